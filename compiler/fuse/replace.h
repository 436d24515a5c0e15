// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/fuse/plan_cost.h"
#include "compiler/fuse/stitch.h"

namespace heddle::compiler::fusion {

struct ReplaceOptions {
  std::function<bool(const FusedOperator&)> can_run;    ///< Empty: yes.
  std::function<bool(NodeId a, NodeId b)> wants_merge;  ///< Puts two aggregates together; empty: yes.
  std::vector<std::vector<NodeId>> aggregates;          ///< Groups of all partitions (Partition::aggregates).
  CostModel model;                                      ///< Of stitches; its can_run is the one above.
  StitchOptions stitch;
};

struct ReplaceReport {
  std::vector<std::shared_ptr<const FusedOperator>> fused;
  std::vector<std::string> again;  ///< For each: operators in it that others compute, too.
  std::vector<std::string> refused;
};

/// Carries out the plan that the picker describes. Values that nobody reads any more are left out.
Result<Graph> Replace(const Dag& dag, const Memo& memo, const EntryPicker& picker,
                      const ReplaceOptions& options, ReplaceReport* report);

}  // namespace heddle::compiler::fusion
