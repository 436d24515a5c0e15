// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "cluster/cli/launch/launch.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "cluster/master/worker_identity.h"
#include "ops/io/files/files.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kOptions[] = {
    kRemoteHeddleOption,
    {"hosts", Kind::kValue, "FILE", "a host a line, as ssh takes it; one that stands twice gets two workers"},
    {"listen", Kind::kValue, "HOST", "name or address of this machine for those hosts (default: its name)"},
    {"ssh", Kind::kValue, "PROGRAM", "instead of ssh"},
};

// Without blanks around it and what stands behind '#'.
std::string HostIn(const std::string& line) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string host;
  words >> host;
  return host;
}

Result<std::vector<std::string>> ReadHosts(const Arguments& arguments, int workers) {
  const std::optional<std::string> path = arguments.Value("hosts");
  if (!path) return Usage("launch ssh needs the hosts of workers: --hosts FILE");
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(WorkingDirectory());
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<ops::InputFile> file, files->Open(*path));
  ops::CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view text, file->Read(0, file->size(), &buffer));
  std::vector<std::string> hosts;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::string host = HostIn(line);
    if (host.starts_with('-')) return Usage("--hosts: '{}' in '{}' is no host", host, *path);
    if (!host.empty()) hosts.push_back(host);
  }
  if (hosts.empty()) return Usage("--hosts: there is no host in '{}'", *path);
  if (workers > static_cast<int>(hosts.size()))
    return Usage("--workers {}: '{}' has {} lines with hosts", workers, *path, hosts.size());
  if (workers > 0) hosts.resize(static_cast<size_t>(workers));
  return hosts;
}

int Run(const Arguments& arguments) {
  const Result<LaunchRequest> request = ReadLaunch(arguments);
  if (!request.ok()) return Report(request.status());
  const Result<std::vector<std::string>> hosts = ReadHosts(arguments, request->workers);
  if (!hosts.ok()) return Report(hosts.status());
  const std::string job =
      request->job.empty()
          ? "echo \"heddle launch: until Ctrl-C, 'heddle job submit ${here[*]} SCRIPT' runs scripts there\" >&2\n"
            "wait \"$master\""
          : "run_job " + ShellWords(request->job);
  const std::string text =
      FillIn("ssh.sh", {{"heddle", ShellWord(request->here)},
                        {"remote_heddle", ShellWord(request->heddle)},
                        {"ssh", ShellWord(arguments.Value("ssh").value_or("ssh"))},
                        {"listen", ShellWord(arguments.Value("listen").value_or(HostName()))},
                        {"hosts", ShellWords(*hosts)},
                        {"worker_options", ShellWords(request->WorkerOptions())},
                        {"job", job}});
  return Launch(arguments, text, {"bash", "-c", text, "heddle-launch"});
}

}  // namespace

const Verb kLaunchSshVerb = {
    "launch ssh",
    "start a master here and workers on other hosts by ssh, run a script, end them",
    "launch ssh --hosts FILE [OPTIONS] [SCRIPT.dml|-e CODE [-args V... | -nvargs K=V...]]",
    JoinOptions({kOptions, LaunchOptions()}),
    "heddle launch ssh --hosts hosts.txt train.dml -nvargs X=/data/x.csv",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
