// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/recursion/run/evaluate_recursion.h"
#include "ops/recursion/structure/linearize.h"

namespace heddle::engine {

/// The nodes that some roots reach, and their results.
struct RecursionPart {
  std::shared_ptr<const ops::Linearized> structure;
  ops::NodeResults results;
};
/// Roots in parts: trees of one part share nothing with those of another but what both compute. nullopt: the
/// calls are for the interpreter.
using RecursionParts = std::optional<std::vector<RecursionPart>>;

/// The rows of `count` roots, those of the parts one behind the other, as the operators of recursions make
/// them (ops/recursion/recursive_operator.h); in a partial result with their numbers, from `first` on. An
/// error is rows that are left, where the call says so.
Result<Matrix> RowsOfRoots(const ops::KernelCall& call, int64_t first, int64_t count,
                           const Result<RecursionParts>& parts);

}  // namespace heddle::engine
