// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cluster/cli/launch/launch.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;
using Json = nlohmann::ordered_json;

// Of RFC 1123, which Kubernetes names things by.
constexpr size_t kLongestLabel = 63;
constexpr size_t kLongestSubdomain = 253;
constexpr size_t kLongestName = 40;  // parts are added to it, and it is a label's value then

constexpr Option kOptions[] = {
    {"name", Kind::kValue, "NAME",
     "of what is made there, for one launch at a time (default: one that nothing else has)"},
    {"namespace", Kind::kValue, "NAME", "where it is made (default: default)"},
    {"image", Kind::kValue, "IMAGE", "of deploy/container/Containerfile (default heddle)"},
    {"volume-claim", Kind::kValue, "NAME", "a volume with the files of the script, at /data of all workers"},
    {"kubectl", Kind::kValue, "PROGRAM", "instead of kubectl"},
};

// Small letters, digits and '-' between them; of a subdomain, such words with dots between.
bool IsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && text.front() != '-' && text.back() != '-' &&
         std::ranges::all_of(
             text, [](char c) { return c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}
bool IsSubdomain(std::string_view text) {
  if (text.size() > kLongestSubdomain) return false;
  for (size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.')) {
    if (!IsLabel(text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
  }
  return IsLabel(text);
}

struct Place {
  std::string name;  // "": the script draws one
  std::string namespace_name;
  std::string image;
  std::string claim;
};

Result<Place> ReadPlace(const Arguments& arguments) {
  Place place;
  place.name = arguments.Value("name").value_or("");
  if (arguments.Has("name") && (!IsLabel(place.name) || place.name.size() > kLongestName))
    return Usage("--name takes up to {} small letters, digits and '-', not '{}'", kLongestName, place.name);
  place.namespace_name = arguments.Value("namespace").value_or("default");
  if (!IsLabel(place.namespace_name))
    return Usage("--namespace takes up to {} small letters, digits and '-', not '{}'", kLongestLabel,
                 place.namespace_name);
  place.image = arguments.Value("image").value_or("heddle");
  const bool is_sound =
      !place.image.empty() && std::all_of(place.image.begin(), place.image.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) ||
               std::string_view("./:@_-").find(c) != std::string_view::npos;
      });
  if (!is_sound) return Usage("--image takes the name of an image, not '{}'", place.image);
  place.claim = arguments.Value("volume-claim").value_or("");
  if (arguments.Has("volume-claim") && !IsSubdomain(place.claim))
    return Usage("--volume-claim takes small letters, digits, '-' and '.', not '{}'", place.claim);
  return place;
}

// JSON is YAML. A pod has of the secrets of the cluster those that it needs. The script fills in %name% and
// %launch%.
std::string Manifest(const Place& place, const std::string& part, int replicas, const Json& command,
                     const std::vector<std::string>& secrets, const Json& resources) {
  Json items = Json::array();
  for (const std::string& secret : secrets) items.push_back({{"key", secret}, {"path", secret}});
  return FillIn(
      "k8s.yaml",
      {{"part", part},
       {"address", part == "master" ? "\"\"" : "None"},
       {"replicas", std::to_string(replicas)},
       {"image", place.image},
       {"command", command.dump()},
       {"secrets", items.dump()},
       {"resources", resources.dump()},
       {"data", place.claim.empty() ? "emptyDir: {}"
                                    : fmt::format("persistentVolumeClaim: {{claimName: {}}}", place.claim)}});
}

std::string Manifests(const Place& place, const LaunchRequest& request) {
  const Json master = {"heddle",
                       "master",
                       "--listen",
                       "0.0.0.0:7077",
                       "--state",
                       "/tmp/master",
                       "--token-file",
                       "/run/heddle/token",
                       "--worker-token-file",
                       "/run/heddle/worker-token",
                       "--tls-certificate",
                       "/run/heddle/tls.crt",
                       "--tls-key",
                       "/run/heddle/tls.key"};
  Json worker = {"heddle",       "worker",
                 "--master",     "%name%-master:7077",
                 "--peer-host",  "$(POD_IP)",
                 "--token-file", "/run/heddle/worker-token",
                 "--tls-ca",     "/run/heddle/tls.crt",
                 "--data-root",  "/data"};
  // Of memory the limit of its group tells it.
  if (request.threads > 0) worker.insert(worker.end(), {"--threads", std::to_string(request.threads)});
  Json resources = Json::object();
  if (request.threads > 0) resources["requests"]["cpu"] = std::to_string(request.threads);
  if (request.memory_bytes > 0)
    resources["requests"]["memory"] = resources["limits"]["memory"] = std::to_string(request.memory_bytes);
  return Manifest(place, "master", 1, master, {"token", "worker-token", "tls.crt", "tls.key"},
                  Json::object()) +
         "---\n" + Manifest(place, "worker", request.workers, worker, {"worker-token", "tls.crt"}, resources);
}

// For `job submit` in the pod of the master, where the script comes through standard input.
std::string Job(const LaunchRequest& request) {
  std::vector<std::string> words = request.job;
  if (!request.script.empty()) words[0] = "-";
  std::string text = ShellWords(words);
  if (!request.script.empty()) text += " <" + ShellWord(request.script);
  return text;
}

int Run(const Arguments& arguments) {
  const Result<LaunchRequest> request = ReadLaunch(arguments);
  if (!request.ok()) return Report(request.status());
  if (request->workers == 0) return Report(Usage("launch k8s needs the number of workers: --workers N"));
  if (request->job.empty()) return Report(Usage("launch k8s needs a script: a file or -e CODE"));
  const Result<Place> place = ReadPlace(arguments);
  if (!place.ok()) return Report(place.status());
  const std::string text =
      FillIn("k8s.sh", {{"heddle", ShellWord(request->here)},
                        {"kubectl", ShellWord(arguments.Value("kubectl").value_or("kubectl"))},
                        {"namespace", place->namespace_name},
                        {"name", place->name.empty() ? "heddle-$launch" : place->name},
                        {"manifests", Manifests(*place, *request)},
                        {"workers", std::to_string(request->workers)},
                        {"job", Job(*request)}});
  return Launch(arguments, text, {"bash", "-c", text, "heddle-launch"});
}

}  // namespace

const Verb kLaunchK8sVerb = {
    "launch k8s",
    "make a cluster in Kubernetes, run a script on it, remove it",
    "launch k8s --workers N [OPTIONS] SCRIPT.dml|-e CODE [-args V... | -nvargs K=V...]",
    JoinOptions({kOptions, LaunchOptions()}),
    "heddle launch k8s --workers 4 --image registry/heddle:0.1 --volume-claim data train.dml -nvargs X=x.csv",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
