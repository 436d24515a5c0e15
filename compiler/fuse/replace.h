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
  CostModel model;  ///< By which units are stitched; its can_run decides about every operator.
  StitchOptions stitch;
};

struct ReplaceReport {
  std::vector<std::shared_ptr<const FusedOperator>> fused;
  std::vector<std::string> again;  ///< For each: its operators that other units compute as well.
  std::vector<std::string> refused;
};

/// Makes the graph of the plan whose entries `picker` chooses: units from the sinks down, stitched. Values
/// that only stitched units compute inside are not in it.
Result<Graph> Replace(const Dag& dag, const Memo& memo, const EntryPicker& picker,
                      const ReplaceOptions& options, ReplaceReport* report);

}  // namespace heddle::compiler::fusion
