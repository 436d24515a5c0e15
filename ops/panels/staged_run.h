// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "core/status.h"
#include "core/values/value.h"
#include "ops/base/kernel.h"
#include "ops/base/stages.h"
#include "ops/panels/panel_store.h"

namespace heddle::ops {

/// An operator whose inputs and results are computed panel by panel although it does not work row by row: as
/// the ranks of a job would do it in stages (ops/base/stages.h), a panel in the place of the rows of a rank.
/// Each rank computes a stage for its panels one after the other; what the panels hand to each other is in
/// the panel store of the rank that makes it, then in that of the rank whose panel it is for. The bytes are
/// those of Operator::run, as they are with any number of ranks.
struct StagedRun {
  const StagedForm& form;  ///< By rows.
  const Node& node;
  std::span<const ValueInfo> infos;  ///< Of its inputs, whole.
  const Split& rows;                 ///< The panels of all ranks, as many of each: a part for each panel,
  const Split& result_rows;          ///< and those of the result (StageCall::result_rows).
  int32_t ranks = 1;
  int32_t rank = 0;
  PanelStore& store;
  /// Computes one stage of one panel, in `outputs`: through whatever runs kernels.
  std::function<Status(const StagePlace& place, std::span<const Value* const> inputs,
                       std::span<Value> outputs)>
      run_stage;

  int32_t panels() const { return (static_cast<int32_t>(rows.cuts.size()) - 1) / ranks; }
};

/// Whether result `i` of the form is cut by rows.
bool IsCutByRows(const StagedForm& form, size_t i);

/// Whether the form works on panels: its results are cut by rows, or each rank has them whole.
bool MakesPanels(const StagedForm& form);
/// Whether it does so on several ranks: those of a grid exchange nothing in panels.
bool CanShareInPanels(const StagedForm& form);

/// How many values a rank makes as such an output of a stage in panels. Of kAll and kNext it is a value as it
/// is without panels, else one that PartsIn (kept_parts.h) knows: of kParts and kFromLast one for each rank.
size_t ValuesOfRank(Reach reach, int32_t ranks, int32_t rank);
/// Whether output `i` among the values of a stage, which is not the last one, is such parts.
bool IsKeptInPanels(const Stage& stage, int32_t ranks, int32_t rank, size_t i);
/// Of parts that come from another rank: how many of them are for one panel.
size_t PartsOfEachPanel(const Stage& stage, int32_t ranks, int32_t rank, size_t i, int32_t panels);

/// One stage of all panels of a rank. `inputs` are its pieces of the inputs, nullptr for one left out, whole
/// or panels; none if the stage reads none. `received`: behind each other, of kHere and kAll one value, of
/// kParts one from each rank, of kFromLast one. `before`: of a stage with kNext, what the rank before has
/// made as that output; nullptr on rank 0. `outputs`: as ValuesOfRank says; of the last stage the results:
/// those that are cut by rows become panels, the others are whole.
///
/// Memory:  what one panel holds in a stage (StagedForm::held_bytes), beside what the store keeps.
/// Errors:  of stages, of the store and of values that are panels.
Status RunStageInPanels(const StagedRun& run, int32_t stage, std::span<const Value* const> inputs,
                        std::span<const Value* const> received, const Value* before,
                        std::span<Value> outputs);

/// All stages, of one rank.
Status RunStagesInPanels(const StagedRun& run, std::span<const Value* const> inputs,
                         std::span<Value> results);

}  // namespace heddle::ops
