// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/optimize/loop_range.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// The for loops around a place that the static pass walks, as far as it knows their first and last rounds
/// and that each of these comes to the place.
class KnownRounds {
 public:
  void Enter(const std::string& counter, const LoopRange& range) { loops_.push_back({counter, range}); }

  /// What is wrong with an index, or an assignment to cells, in the first or last round: "X[i,]" of a matrix
  /// that has fewer rows than the loop has rounds. `values` are those of the graph's scalars, where known.
  Status CheckIndex(const Graph& graph, const std::vector<std::optional<Scalar>>& values, NodeId id) const;

 private:
  struct Loop {
    std::string counter;
    LoopRange range;
  };
  struct Round;

  std::optional<Scalar> ValueIn(Round* round, NodeId id, int depth) const;

  std::vector<Loop> loops_;
};

/// Whether one of the blocks assigns a variable.
bool Assigns(const std::vector<Block>& blocks, const std::string& variable);

}  // namespace heddle::compiler
