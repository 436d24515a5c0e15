// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "core/programs/program.h"

namespace heddle::compiler {

/// The number that a control block's graph assigns `name`, where the graph does nothing else that shows.
const Scalar* AssignedNumber(const Graph& graph, std::string_view name);

/// What the variable of a for loop runs through.
struct LoopRange {
  bool is_empty = false;
  int64_t first = 0, step = 1;
  int64_t last = 0;  ///< The variable in the last round.
};

/// A bound or the increment of a for loop without its fraction; nullopt of NaN, with which a loop has no
/// round. kFailedPrecondition for what is no 64-bit integer.
Result<std::optional<int64_t>> LoopBound(const Scalar& bound);

/// Of a loop with these bounds, if the run accepts them; from:to where `increment` is nullptr.
std::optional<LoopRange> RangeOf(const Scalar& from, const Scalar& to, const Scalar* increment);
/// Of a loop whose bounds and increment are literals that the run accepts.
std::optional<LoopRange> RangeOf(const Block& loop);

}  // namespace heddle::compiler
