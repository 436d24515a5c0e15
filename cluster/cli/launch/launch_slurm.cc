// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "cluster/cli/launch/launch.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr int64_t kMiB = 1 << 20;

constexpr Option kOptions[] = {
    kRemoteHeddleOption,
    {"sbatch", Kind::kValue, "OPTION", "one of sbatch, such as --time=1:00:00; may be given again"},
};

// One worker a node; what a node gives it.
Result<std::string> Directives(const Arguments& arguments, const LaunchRequest& request) {
  std::string name =
      request.script.empty() ? "heddle" : std::filesystem::path(request.script).stem().string();
  for (char& c : name)
    if (ShellWord(std::string_view(&c, 1))[0] == '\'') c = '-';  // A directive is split at blanks.
  std::vector<std::string> lines = {"--job-name=" + name, fmt::format("--nodes={}", request.workers),
                                    "--ntasks-per-node=1", "--output=heddle-%j.log"};
  if (request.threads > 0) lines.push_back(fmt::format("--cpus-per-task={}", request.threads));
  if (request.memory_bytes > 0)
    lines.push_back(fmt::format("--mem={}M", (request.memory_bytes + kMiB - 1) / kMiB));
  for (const std::string& option : arguments.rest("sbatch")) {
    if (!option.starts_with('-') || option.find('\n') != std::string::npos)
      return Usage("--sbatch takes one option of sbatch, such as --time=1:00:00, not '{}'", option);
    lines.push_back(option);
  }
  std::string text;
  for (const std::string& line : lines) text += fmt::format("{}#SBATCH {}", text.empty() ? "" : "\n", line);
  return text;
}

int Run(const Arguments& arguments) {
  const Result<LaunchRequest> request = ReadLaunch(arguments);
  if (!request.ok()) return Report(request.status());
  if (request->workers == 0)
    return Report(Usage("launch slurm needs the number of workers, one a node: --workers N"));
  if (request->job.empty()) return Report(Usage("launch slurm needs a script: a file or -e CODE"));
  const Result<std::string> directives = Directives(arguments, *request);
  if (!directives.ok()) return Report(directives.status());
  const std::string text = FillIn("slurm.sh", {{"sbatch", *directives},
                                               {"heddle", ShellWord(request->heddle)},
                                               {"worker_options", ShellWords(request->WorkerOptions())},
                                               {"job", "run_job " + ShellWords(request->job)}});
  return Launch(arguments, text, {"sbatch"}, text);
}

}  // namespace

const Verb kLaunchSlurmVerb = {
    "launch slurm",
    "submit a batch job to Slurm that is a cluster of its own and runs a script",
    "launch slurm --workers N [OPTIONS] SCRIPT.dml|-e CODE [-args V... | -nvargs K=V...]",
    JoinOptions({kOptions, LaunchOptions()}),
    "heddle launch slurm --workers 4 --threads 16 --memory 64G --sbatch --time=2:00:00 train.dml -nvargs X=x.csv",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
