// SPDX-License-Identifier: Apache-2.0
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/statistics/sums.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferCovariance(const InferContext& context) {
  const size_t count = IsGiven(context.node, 2) ? 3 : 2;
  HEDDLE_RETURN_IF_ERROR(CheckOneShape(context, "cov", count));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

Result<Value> RunCovariance(const KernelCall& call) {
  const bool weighted = IsGiven(call.node, 2);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Matrix> cells, CellsOfOneShape(call, "cov", weighted ? 3 : 2));
  const auto weight = [&](const double* const* x, int64_t k) { return weighted ? x[2][k] : 1.0; };
  WideNumber count = static_cast<double>(cells[0].cells());
  if (weighted) {
    HEDDLE_ASSIGN_OR_RETURN(count, SumOf(call, cells, weight));
  }
  double means[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto term = [&](const double* const* x, int64_t k) { return x[i][k] * weight(x, k); };
    HEDDLE_ASSIGN_OR_RETURN(const WideNumber sum, SumOf(call, cells, term));
    means[i] = (sum / count).ToDouble();
  }
  if (!(count.ToDouble() > 1)) return Value(Scalar(0.0));
  const auto product = [&](const double* const* x, int64_t k) {
    return ((x[0][k] - means[0]) * (x[1][k] - means[1])) * weight(x, k);
  };
  HEDDLE_ASSIGN_OR_RETURN(const WideNumber products, SumOf(call, cells, product));
  return Value(Scalar((products / (count - 1.0)).ToDouble()));
}

double CovarianceWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 4 * sizeof(double) * static_cast<double>(inputs[0].shape.Cells());
}

// Deviations of the other from its mean; those from the own mean add up to zero.
void DifferentiateCovariance(AdjointCall& call) {
  const std::vector<NodeId>& inputs = call.node().inputs;
  const bool weighted = inputs.size() > 2 && inputs[2] != kNoNode;
  const auto adjoint = [&](std::string_view other) {
    return call.Formula(weighted
                            ? fmt::format("({0} - sum({0} * W) / sum(W)) * W * (dy / (sum(W) - 1))", other)
                            : fmt::format("({0} - mean({0})) * (dy / (nrow(A) * ncol(A) - 1))", other));
  };
  if (call.IsWanted(0)) call.Give(0, adjoint("B"));
  if (call.IsWanted(1)) call.Give(1, adjoint("A"));
}

}  // namespace

/// cov(A, B): the covariance sum((A - mean(A)) * (B - mean(B))) / (N - 1) of cells that stand at the same
/// place; 0 for one cell. With weights W cells count W times and N is sum(W).
///
/// Shapes:  A, B and W of one shape; a number.
/// Errors:  shapes that differ; no cells.
/// Error:   that of the sums (docs/numerics.md, section 3).
/// Cost:    three passes over A and B through a copy.
extern constexpr Operator kCovariance = {.name = "cov",
                                         .form = CallForm::kPositional,
                                         .parameters = "A B W?",
                                         .min_inputs = 2,
                                         .max_inputs = 3,
                                         .infer = InferCovariance,
                                         .run = RunCovariance,
                                         .may_fail = true,
                                         .working_bytes = CovarianceWorkingBytes,
                                         .adjoints = "*; *; ",  // by the weights there is none
                                         .differentiate = DifferentiateCovariance};

}  // namespace heddle::ops
