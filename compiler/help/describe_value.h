// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/programs/graph.h"

namespace heddle::compiler {

/// "matrix 1000x10", "matrix ?x5", "frame 10x2 (STRING, FP64)", "list", "double", as far as it is known.
std::string Describe(const ValueInfo& info);

}  // namespace heddle::compiler
