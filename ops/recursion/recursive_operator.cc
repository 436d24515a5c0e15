// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/recursive_operator.h"

#include <cstring>
#include <vector>

#include "ops/base/operator.h"
#include "ops/base/stages.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferRecursive(const InferContext& context) {
  const int64_t width = context.node.FindAttribute(RecursiveAttributes::kWidth)->AsInteger();
  return ValueInfo::OfMatrix({context.inputs[0].shape.rows, width});
}

Result<ValueInfo> InferForward(const InferContext& context) {
  return ValueInfo::OfMatrix({context.node.FindAttribute(RecursiveAttributes::kRoots)->AsInteger(),
                              context.node.FindAttribute(RecursiveAttributes::kWidth)->AsInteger()});
}

Result<std::vector<ValueInfo>> InferBackward(const InferContext& context) {
  std::vector<ValueInfo> adjoints;
  const auto wanted =
      static_cast<size_t>(context.node.FindAttribute(RecursiveAttributes::kWanted)->AsInteger());
  for (const ValueInfo& info : context.inputs.first(wanted)) {
    adjoints.push_back(ValueInfo::OfMatrix(info.IsScalar() ? Shape{1, 1} : info.shape));
    // Adjoints of numbers are doubles, in single precision as well.
    if (info.IsMatrix()) adjoints.back().element_type = info.element_type;
  }
  return adjoints;
}

// Roots do not see each other, and their rows come from every rank to where the value is wanted.
RowRule RowRuleOfRoots(const Node&, std::span<const ValueInfo>) { return RowRule::kReduce; }

InputUse UseOfGroups(const Node&, std::span<const ValueInfo> inputs, int i) {
  return static_cast<size_t>(i) + kBackwardInputs == inputs.size() ? InputUse::kRows : InputUse::kWhole;
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

Status RunBackward(const KernelCall&, std::span<Value>) {
  return Internal("a recursion runs where its program is known");
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
                                            .input_use = FirstByRows,
                                            .run = FinishRecursive,
                                            .may_fail = true,
                                            .takes_singles = TakesAnySingles};

/// Shapes:  groups of n roots give n x width.
/// Error:   as of "recursive".
/// Cost:    the nodes that the roots of each group reach, each once.
/// Source:  docs/gradient.md.
extern constexpr Operator kRecursiveForwardCall = {.name = kRecursiveForward,
                                                   .parameters = "groups number x",
                                                   .min_inputs = 2,
                                                   .max_inputs = -1,
                                                   .infer = InferForward,
                                                   .row_rule = RowRuleOfRoots,
                                                   .input_use = FirstByRows,
                                                   .run = FinishRecursive,
                                                   .may_fail = true,
                                                   .takes_singles = TakesAnySingles};

/// Shapes:  groups and parameters give matrices of the sizes of those that are wanted.
/// Error:   sums over the nodes in the order of docs/numerics.md.
/// Cost:    the nodes that the roots of each group reach, each once; twice "recursiveForward".
/// Source:  docs/gradient.md.
extern constexpr Operator kRecursiveBackwardCall = {.name = kRecursiveBackward,
                                                    .parameters = "x groups number given",
                                                    .min_inputs = 3,
                                                    .max_inputs = -1,
                                                    .results = -1,
                                                    .infer_several = InferBackward,
                                                    .row_rule = RowRuleOfRoots,
                                                    .input_use = UseOfGroups,
                                                    .run_several = RunBackward,
                                                    .may_fail = true,
                                                    .takes_singles = TakesAnySingles,
                                                    .infers_element_types = true};

}  // namespace heddle::ops
