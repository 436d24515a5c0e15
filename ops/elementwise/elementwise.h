// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/operator.h"
#include "ops/compressed/cells_of_tuples.h"
#include "ops/scalar/evaluate_scalar.h"

// What all cell-wise operators share. An operator says its name, its kernel (`binary`, `unary`) and what else
// is its own; BinaryOperator, UnaryOperator and CellFunction add the rest.
namespace heddle::ops {

Result<ValueInfo> InferBinary(const InferContext& context);
/// The second input is for operators that are both ("log" may have a base).
Result<ValueInfo> InferUnary(const InferContext& context);
Result<ValueInfo> InferSelect(const InferContext& context);
RowRule RowRuleOfCells(const Node& node, std::span<const ValueInfo> inputs);
InputUse UseOfCells(const Node& node, std::span<const ValueInfo> inputs, int i);
Cost CostOfCells(const Node& node, std::span<const ValueInfo> inputs);
Result<Value> RunBinary(const KernelCall& call);
Result<Value> RunUnary(const KernelCall& call);
Result<Value> RunSelect(const KernelCall& call);
bool TakesSingleCells(const KernelCall& call);
extern const StagedForm kCellColumns;  ///< By columns, beside the row rule.

/// What every cell-wise operator is, `op` but for that.
constexpr Operator CellOperator(Operator op) {
  op.row_rule = RowRuleOfCells;
  op.input_use = UseOfCells;
  op.staged = &kCellColumns;
  op.cost = CostOfCells;
  op.run_compressed = RunCellsOfTuples;
  op.takes_singles = TakesSingleCells;
  op.kind = OperatorKind::kCells;
  op.fusion.use = RowUse::kCells;
  op.fusion.cell = op.fusion.row = op.fusion.outer = true;
  return op;
}

constexpr Operator BinaryOperator(Operator op) {
  if (op.parameters.empty()) op.parameters = "a b";
  op.min_inputs = op.max_inputs = 2;
  op.infer = InferBinary;
  op.run = RunBinary;
  op.scalar_type = BinaryScalarType;
  op.evaluate = EvaluateBinaryScalar;
  return CellOperator(op);
}

/// An operator that has a binary kernel, too, takes a second input where that is given.
constexpr Operator UnaryOperator(Operator op) {
  if (op.parameters.empty()) op.parameters = "x";
  op.min_inputs = 1;
  op.max_inputs = op.binary ? 2 : 1;
  op.infer = InferUnary;
  op.run = RunUnary;
  op.scalar_type = op.binary ? CellScalarType : UnaryScalarType;
  op.evaluate = op.binary ? EvaluateCellScalar : EvaluateUnaryScalar;
  return CellOperator(op);
}

/// A function f(x) that scripts call by its name.
constexpr Operator CellFunction(Operator op) {
  op.form = CallForm::kPositional;
  return UnaryOperator(op);
}

}  // namespace heddle::ops
