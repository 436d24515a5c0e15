// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "ops/base/machine_constants.h"

namespace heddle::compiler::fusion {

struct PhaseOptions {
  int ranks = 1;
  int64_t min_distributed_bytes = 0;  ///< As in placement.
  int64_t memory_budget = 0;          ///< Bytes that one operator may take; 0: no limit.
  std::function<bool(std::string_view variable)> is_split;  ///< As FuseOptions.
  ops::MachineConstants constants;
  std::function<bool(const Graph& graph, NodeId node)> can_run;  ///< As FuseOptions::can_run_in_phases.
  std::function<bool()> wants;  ///< Has the last word (random plans); empty: yes.
};

/// Replaces groups of operators between two products by operators "phased"
/// (core/programs/phased_operator.h), which run as one task. Two kinds of operators are grouped: those that
/// read what others have reduced over all rows, as in batch norm ("regional" and "global" stitching of Zheng
/// et al., AStitch, ASPLOS 2022, section 4); and small ones whatever they read ("remote" stitching), because
/// starting a task would take longer than their work. Small products are members too, as in a head of
/// attention, unless the group would get too many members.
///
/// The members of a group must not wait for an operator outside it that waits for another member. Operators
/// from which the longest way back to the inputs crosses the same number of boundaries (products and other
/// operators that cannot be members) never do, so groups are formed among those. Operators whose rows are
/// split over ranks are no members: their reductions go between ranks by the plan.
///
/// `graph` is what the choice of fused operators left, infos inferred. Keeps every bit of every result.
/// Linear in the graph. `phased` gets the operators that were made.
Result<Graph> JoinPhases(const Graph& graph, const PhaseOptions& options,
                         std::vector<std::shared_ptr<const PhasedOperator>>* phased);

}  // namespace heddle::compiler::fusion
