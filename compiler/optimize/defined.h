// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compiler/optimize/names.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// Adds to `defined` the variables that have a value behind the block on every way through it. False if it
/// may read one that has none.
bool FollowDefined(const Block& block, SharedNames* defined);
bool FollowDefined(const std::vector<Block>& blocks, SharedNames* defined);

}  // namespace heddle::compiler
