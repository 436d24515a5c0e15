// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "compiler/fuse/build_operator.h"
#include "compiler/fuse/cost.h"
#include "compiler/fuse/dag.h"

namespace heddle::compiler::fusion {

/// What stands in a plan for one node or several: a fused operator, or the node itself.
struct PlanUnit {
  std::vector<NodeId> roots;
  FusionTemplate kind = FusionTemplate::kCell;
  std::vector<NodeId> covered;  ///< Ascending, roots included.
  std::vector<NodeId> inputs;   ///< Nodes that it reads.
};

/// Several units that one pass over their rows computes.
struct Stitch {
  std::vector<size_t> units;    ///< Ascending positions among those given.
  std::vector<NodeId> roots;    ///< What is read outside, ascending.
  std::vector<NodeId> covered;  ///< Ascending.
  BuiltOperator built;
};

struct StitchOptions {
  /// Merges whatever the model says; what the executor refuses is not formed.
  bool by_cost = true;
  std::function<bool()> wants;  ///< Has the last word (random plans); empty: yes.
};

/// Puts units together whose operators walk the same number of rows and that share rows: both read them, or
/// one makes what the other reads ("dominant merging" and "remote stitching" of Zheng et al., AStitch, ASPLOS
/// 2022, section 4, over whole rows). A value that only members of a stitch read is not written at all. No
/// way leads from a stitch out and back in. Pairs are merged one by one, that of the largest saving first,
/// until none saves memory traffic worth a pass.
std::vector<Stitch> FindStitches(const Dag& dag, const CostModel& model, const std::vector<PlanUnit>& units,
                                 const StitchOptions& options);

}  // namespace heddle::compiler::fusion
