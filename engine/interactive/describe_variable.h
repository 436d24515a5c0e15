// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/variables/variables.h"

namespace heddle::engine {

/// "matrix 1000x10", "matrix 5x5, 7 non-zeros", "frame 10x2 (STRING, FP64)", "list of 3", "double", as far as
/// it is known.
std::string Describe(const ValueInfo& info);
/// The same of a value, with what it holds: "double 3.5", "string \"a\"".
std::string Describe(const Variable& variable);

}  // namespace heddle::engine
