// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/optimize/infer.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// What inference may know about a variable when a block is entered.
compiler::LiveIn LiveInOf(const Variable& variable);

}  // namespace heddle::engine
