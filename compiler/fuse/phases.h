// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/programs/graph.h"

namespace heddle::compiler::fusion {

struct PhaseOptions {
  int ranks = 1;
  int64_t min_distributed_bytes = 0;  ///< As in placement.
  int64_t memory_budget = 0;          ///< Bytes that one operator may take; 0: no limit.
  std::function<bool(std::string_view variable)> is_split;  ///< As FuseOptions.
  std::function<bool()> wants;                              ///< Has the last word (random plans); empty: yes.
};

/// Puts operators between two products together into operators "phased" (core/programs/phased_operator.h):
/// those that read what others have reduced over all rows, as batch norm does ("regional" and "global"
/// stitching of Zheng et al., AStitch, ASPLOS 2022, section 4), and small ones whatever they read ("remote"
/// stitching), for which a task costs more than what they compute. Small products are members as well (those
/// of one head of attention), unless that puts too many operators into one.
///
/// Operators that could not be one without waiting for a third are not put together: of all whose longest way
/// from the inputs crosses as many products, none needs another one through a product. Operators whose rows
/// are spread over ranks stay alone: what they reduce to goes between ranks, by the plan.
///
/// `graph` is what the choice of fused operators left, infos inferred. Keeps every bit of every result.
/// Linear in the graph. `phased` gets the operators that were made.
Result<Graph> JoinPhases(const Graph& graph, const PhaseOptions& options,
                         std::vector<std::shared_ptr<const PhasedOperator>>* phased);

}  // namespace heddle::compiler::fusion
