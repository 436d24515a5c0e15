// SPDX-License-Identifier: Apache-2.0
#include "cluster/process/verb_process.h"

namespace heddle::cluster {

Result<pid_t> StartVerb(std::string_view verb, ChildProcess process) {
  if (process.program.empty()) process.program = "/proc/self/exe";
  process.arguments = {"heddle", std::string(verb), "--control-fd", fmt::format("{}", kChildControl)};
  return StartChild(process);
}

}  // namespace heddle::cluster
