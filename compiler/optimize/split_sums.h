// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "core/programs/graph.h"

namespace heddle::compiler {

/// A graph of a parfor's body in two: what iterations compute at once, and what adds it to sums over all of
/// them, which they do in turn, so that terms are added in the order of the iterations.
struct SplitGraph {
  Graph first;   ///< Reads none of the sums; may be empty.
  Graph adding;  ///< Reads what `first` assigned to variables "%sum<node>".
};

/// Whether the graph reads or assigns one of the sums.
bool TouchesSums(const Graph& graph, std::span<const std::string> sums);
/// Whether all that the graph does is to give them new values.
bool OnlyAdds(const Graph& graph, std::span<const std::string> sums);
/// All that depends on a sum is in `adding`, the rest in `first`; nothing is in `first` when that would
/// compute nothing.
SplitGraph SplitGraphAtSums(const Graph& graph, std::span<const std::string> sums);

}  // namespace heddle::compiler
