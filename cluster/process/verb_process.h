// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/environment/child_process.h"

// Processes in which this program runs one of its own verbs: `heddle executor`, `heddle compiler`.
namespace heddle::cluster {

/// Starts `process` with the arguments of `heddle VERB --control-fd 3`; the program "" is this one
/// (/proc/self/exe). Fails as StartChild does.
Result<pid_t> StartVerb(std::string_view verb, ChildProcess process);

}  // namespace heddle::cluster
