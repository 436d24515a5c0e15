// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/recursive_operator.h"

#include <cstring>

#include "ops/operator.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferRecursive(const InferContext& context) {
  const int64_t width = context.node.FindAttribute(RecursiveAttributes::kWidth)->AsInteger();
  return ValueInfo::OfMatrix({context.inputs[0].shape.rows, width});
}

// Roots do not see each other, and their rows come from every rank to where the value is wanted.
RowRule RowRuleOfRoots(const Node&, std::span<const ValueInfo>) { return RowRule::kReduce; }

InputUse UseOfRoots(const Node&, std::span<const ValueInfo>, int i) {
  return i == 0 ? InputUse::kRows : InputUse::kWhole;
}

// Puts rows together: each begins with its number.
Result<Value> FinishRecursive(const KernelCall& call) {
  if (call.phase != Phase::kFinish) return Internal("a recursion runs where its program is known");
  const Matrix& list = call.inputs[0]->matrix();
  const int64_t width = call.node.info.shape.columns;
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(call.node.info.shape.rows, width));
  if (list.rows() != rows.rows() || list.columns() != width + 1)
    return Internal("the rows of a recursion are {}", list.shape());
  for (int64_t i = 0; i < list.rows(); ++i) {
    const double* const row = list.data<double>() + i * (width + 1);
    std::memcpy(rows.mutable_data() + static_cast<int64_t>(row[0]) * width, row + 1,
                static_cast<size_t>(width) * sizeof(double));
  }
  return Value(std::move(rows));
}

}  // namespace

/// Shapes:  n roots give n x width.
/// Error:   each result is the one that a call of the function would give, bit for bit.
/// Cost:    the nodes that the roots reach, each once.
/// Source:  Fegade et al., Cortex, MLSys 2021.
extern constexpr Operator kRecursiveCall = {.name = kRecursive,
                                            .parameters = "roots x",
                                            .min_inputs = 1,
                                            .max_inputs = -1,
                                            .infer = InferRecursive,
                                            .row_rule = RowRuleOfRoots,
                                            .input_use = UseOfRoots,
                                            .run = FinishRecursive,
                                            .may_fail = true,
                                            .takes_singles = TakesAnySingles};

}  // namespace heddle::ops
