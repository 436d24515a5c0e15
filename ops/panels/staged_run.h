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

/// An operator whose inputs and results one process computes panel by panel although it does not work row by
/// row: as the ranks of a job would do it in stages (ops/base/stages.h), a panel in the place of the rows of
/// a rank, one after the other, with what the stages hand to each other in the panel store. The bytes are
/// those of Operator::run, as they are with any number of ranks.
struct StagedRun {
  const StagedForm& form;  ///< By rows.
  const Node& node;
  std::span<const ValueInfo> infos;  ///< Of its inputs, whole.
  const Split& rows;                 ///< The panels: as many as it has parts,
  const Split& result_rows;          ///< and those of the result (StageCall::result_rows).
  PanelStore& store;
  /// Computes one stage of one rank, in `outputs`: through whatever runs kernels.
  std::function<Status(const StagePlace& place, std::span<const Value* const> inputs,
                       std::span<Value> outputs)>
      run_stage;
};

/// Results that are cut by rows become panels; the others are whole.
///
/// Memory:  what one rank holds in a stage (StagedForm::held_bytes), beside what the store keeps.
/// Errors:  of stages, of the store and of `inputs` that are panels.
Status RunStagesInPanels(const StagedRun& run, std::span<const Value* const> inputs,
                         std::span<Value> results);

/// Whether result `i` of the form is cut by rows.
bool IsCutByRows(const StagedForm& form, size_t i);

}  // namespace heddle::ops
