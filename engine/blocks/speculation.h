// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/graph.h"
#include "core/programs/plan.h"
#include "core/programs/program.h"

namespace heddle::engine {

/// The predicate of a loop and the first block of its body as one graph, so that ranks compute what the body
/// does with the values that are there while the predicate is on its way to them (docs/rounds.md).
///
/// Nothing of it can be seen when the predicate turns out false: the body's graph has no effect and cannot
/// fail, and what it assigns are temporary variables until then.
struct Speculation {
  Graph graph;          ///< The nodes of the predicate, then those of the body.
  NodeId boundary = 0;  ///< How many are the predicate's.
  /// Variables that the body assigns, and the temporaries that stand for them.
  std::vector<std::pair<std::string, std::string>> assigned;
  bool is_refused = false;  ///< It has turned out to be too much work, or not to be one plan.
};

/// nullopt where the first block of the body may not run before the predicate is known.
std::optional<Speculation> SpeculationOf(const Block& loop);
/// Whether each rank has so little to do in the plan that it costs less than to wait once more.
bool IsWorthwhile(const Plan& plan);

/// `graph` cut before the node `boundary`, which no edge crosses; and put together again.
std::pair<Graph, Graph> Parted(const Graph& graph, NodeId boundary);
Graph Joined(Graph first, const Graph& second);

}  // namespace heddle::engine
