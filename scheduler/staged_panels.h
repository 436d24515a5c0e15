// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/programs/plan.h"
#include "ops/base/operator.h"
#include "ops/base/stages.h"

namespace heddle::scheduler {

/// How an operator that does not work row by row is computed from panels, in the stages in which as many
/// ranks would (ops/panels/staged_run.h).
struct StagedPanels {
  int32_t form = 0;  ///< Its place among the forms of the operator.
  Split rows;        ///< A part for each panel of each rank.
  Split result_rows;
  ops::RankGrid grid;
};

/// The way in which fewest bytes go through the store, with the highest panels of which a stage holds at most
/// `most_held` bytes; where there are none, the way that holds least. nullopt where no form of the operator
/// works by rows, or the sizes are not known.
std::optional<StagedPanels> StagesInPanels(const Node& node, std::span<const ValueInfo> inputs,
                                           double most_held);

/// The same where several ranks compute it in stages: with as many panels for each rank, which has the rows
/// that it has in any case. nullopt where its form cannot (ops::CanShareInPanels), where no rank has
/// `least_bytes` of an operand by rows, where sizes are not known, or with so many ranks that each would have
/// a single panel.
std::optional<StagedPanels> StagesInPanels(const StagedNode& staged, const Node& node,
                                           std::span<const ValueInfo> inputs, int32_t ranks,
                                           double least_bytes, double most_held);

/// Writes into the plan how the ranks share out a node: all of them, or each for itself in the same way.
void SetStages(const StagedPanels& stages, NodeId node, Plan* plan);

/// What is counted of a part that a panel makes for a panel of another rank, while it goes there. The parts
/// that it makes for all ranks have its rows together, and so much of a rank is taken to be on the way at a
/// time.
int64_t BytesOfPart(const StagedPanels& stages, const Node& node, std::span<const ValueInfo> inputs,
                    int32_t ranks);

/// How much more than an even share the largest part of the rows has.
double Unevenness(const Split& rows);

/// About what a stage holds: of the inputs that are read by rows and of the results a panel each.
double HeldInStages(const ops::StagedForm& form, const Node& node, std::span<const ValueInfo> inputs,
                    const ops::RankGrid& grid);
/// The same of the largest panels.
double HeldInStages(const ops::StagedForm& form, const Node& node, std::span<const ValueInfo> inputs,
                    const ops::RankGrid& grid, const Split& rows, const Split& result_rows);

}  // namespace heddle::scheduler
