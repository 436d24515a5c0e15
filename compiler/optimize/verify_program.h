// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/programs/program.h"

namespace heddle::compiler {

/// Whether every graph of a program is one (Verify(graph)), and every call names a function that the program
/// has, with parameters that the function has: passes and the run look both up by these names. The error,
/// kInternal, names the block, and `after` what made the program: "stage build", "pass hoist".
Status VerifyProgram(const Program& program, std::string_view after);

}  // namespace heddle::compiler
