// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

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

/// Leaves only the types of the variables that the blocks assign.
void ForgetAssigned(const std::vector<Block>& blocks, State* state);

/// Appends what is known of a value as a text: the texts are the same where the same is known. Of a list its
/// elements count, because they decide what a function does with it.
void AppendToKey(const LiveIn& known, std::string* key);

/// True if what is known says that the candidate is not the one that the call of `block` runs.
bool IsExcluded(const CallCandidate& candidate, const Block& block, const State& state);

/// What the declaration of a parameter or result tells.
LiveIn FromDeclaration(const Parameter& parameter);
/// What a call makes of an argument.
LiveIn ToDeclared(const Parameter& parameter, LiveIn known);

}  // namespace heddle::compiler
