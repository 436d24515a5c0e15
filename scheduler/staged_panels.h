// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/programs/plan.h"
#include "ops/base/operator.h"
#include "ops/base/stages.h"

namespace heddle::scheduler {

/// How one rank computes an operator that does not work row by row from panels, in the stages in which
/// several ranks would (ops/panels/staged_run.h).
struct StagedPanels {
  int32_t form = 0;  ///< Its place among the forms of the operator.
  Split rows;        ///< A part for each panel.
  Split result_rows;
  ops::RankGrid grid;
};

/// The way in which fewest bytes go through the store, with the highest panels of which a stage holds at most
/// `most_held` bytes; where there are none, the way that holds least. nullopt where no form of the operator
/// works by rows, or the sizes are not known.
std::optional<StagedPanels> StagesInPanels(const Node& node, std::span<const ValueInfo> inputs,
                                           double most_held);

/// About what a stage holds: of the inputs that are read by rows and of the results a panel each.
double HeldInStages(const ops::StagedForm& form, const Node& node, std::span<const ValueInfo> inputs,
                    const ops::RankGrid& grid);

}  // namespace heddle::scheduler
