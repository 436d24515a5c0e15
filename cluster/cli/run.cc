// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/run_script.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

int Run(const Arguments& arguments) {
  return RunScript(arguments, 1, [](const Program& program, const SessionOptions& options, const RunSurroundings& surroundings) {
    return RunLocally(program, options, surroundings);
  });
}

}  // namespace

const Verb kRunVerb = {"run", "run a script on this machine", "run [OPTIONS] SCRIPT.dml|-e CODE|- [-args V... | -nvargs K=V...]",
                       RunOptions(), "heddle run train.dml -nvargs X=data.csv model=w.csv", Run, /*takes_words=*/true};

}  // namespace heddle::cluster::cli
