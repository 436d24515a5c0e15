// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/optimize/names.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// The scalar parameters of a function whose values no size depends on: they, and numbers made of them, only
/// meet cell-wise operators, conditions, calls and results. What is compiled for one value serves all.
Names FreeParameters(const Function& function);

}  // namespace heddle::compiler
