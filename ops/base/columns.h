// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

// How operators run by columns (docs/distribution.md): column j of the result comes from column j of the
// inputs that are read by columns, and from all of the others. A form by columns is one stage, in which each
// rank runs the operator on its columns.
namespace heddle::ops {

/// For StagedForm::run: Operator::run on the columns at hand, for operators of one result that look neither
/// at the number nor at the place of a column.
Status RunColumns(const StageCall& call, std::span<Value> outputs);

/// For StagedForm::input_use, beside AllByRows and FirstByRows, where kRows means the columns: the inputs
/// that are matrices with as many columns as the result, more than one.
InputUse ResultColumns(const Node& node, std::span<const ValueInfo> inputs, int i);

/// For StagedForm::input_use: no input has columns, as of what makes a matrix of nothing.
inline InputUse NoneByColumns(const Node&, std::span<const ValueInfo>, int) { return InputUse::kWhole; }

inline constexpr Stage kOneStage[] = {{.reads_inputs = true}};

/// A form by columns whose result has the columns of what it reads.
constexpr StagedForm ByColumns(InputUse (*input_use)(const Node& node, std::span<const ValueInfo> inputs,
                                                     int i),
                               bool (*applies)(const Node& node, std::span<const ValueInfo> inputs) = nullptr,
                               Status (*run)(const StageCall& call, std::span<Value> outputs) = RunColumns) {
  return {.stages = kOneStage,
          .result = StagedResult::kSameColumns,
          .axis = Axis::kColumns,
          .applies = applies,
          .input_use = input_use,
          .run = run};
}

}  // namespace heddle::ops
