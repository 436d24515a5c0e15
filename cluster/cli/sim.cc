// SPDX-License-Identifier: Apache-2.0
#include "cluster/launch.h"

#include "cluster/cli/report.h"
#include "cluster/cli/run_script.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

const std::vector<Option>& Options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> all = {{"workers", Option::Kind::kValue, "N", "number of worker processes (required)"}};
    for (const Option& option : RunOptions()) all.push_back(option);
    return all;
  }();
  return options;
}

int Run(const Arguments& arguments) {
  if (!arguments.Has("workers")) return Report(Usage("sim needs the number of workers: heddle sim --workers 2 SCRIPT.dml"));
  const Result<int64_t> workers = arguments.Integer("workers", 1, 1, 256);
  if (!workers.ok()) return Report(workers.status());
  return RunScript(arguments, static_cast<int>(*workers),
                   [](const Program& program, const SessionOptions& options, const RunSurroundings& surroundings) {
                     return RunOnLocalProcesses(program, options, surroundings);
                   });
}

}  // namespace

const Verb kSimVerb = {"sim", "run a script on worker processes of this machine, as on a cluster",
                       "sim --workers N [OPTIONS] SCRIPT.dml|-e CODE|- [-args V... | -nvargs K=V...]", Options(),
                       "heddle sim --workers 4 train.dml -nvargs X=data.csv model=w.csv", Run};

}  // namespace heddle::cluster::cli
