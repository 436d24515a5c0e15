// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/optimize/liveness.h"

namespace heddle::compiler {

/// Adds to `defined` the variables that have a value behind the block on every way through it. False if it
/// may read one that has none.
bool FollowDefined(const Block& block, Names* defined);
bool FollowDefined(const std::vector<Block>& blocks, Names* defined);

}  // namespace heddle::compiler
