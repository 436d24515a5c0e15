// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/programs/program.h"

namespace heddle::compiler {

/// Whether a call of one function may lead to a call of another.
bool Reaches(const Program& program, const std::string& from, const std::string& to);
/// Whether a call of the function may lead to one of itself.
bool IsRecursive(const Program& program, const std::string& name);

/// A function (a key in Program::functions) in which the bodies of others stand for calls of them, as far as
/// InlineFunctions can: in a recursive function of all that are not recursive, in another of those that lead
/// to a recursive one. So recursions are called where the loop over their roots is, and what they compute is
/// in their own blocks.
Function ExpandCalls(const Program& program, const std::string& name);

}  // namespace heddle::compiler
