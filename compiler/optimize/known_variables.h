// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/optimize/infer.h"
#include "compiler/optimize/shared_map.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// What is known of the variables at a place of a program.
using State = SharedMap<LiveIn>;

/// Joins what holds on another way into `state`. True if anything changed.
bool JoinInto(State* state, const State& other);

/// Leaves what is known of a value when its size and its bits are not.
void KeepTypeOnly(LiveIn* known);

/// What the declaration of a parameter or result tells.
LiveIn FromDeclaration(const Parameter& parameter);
/// What a call makes of an argument.
LiveIn ToDeclared(const Parameter& parameter, LiveIn known);

}  // namespace heddle::compiler
