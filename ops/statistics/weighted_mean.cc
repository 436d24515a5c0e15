// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/sums.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferWeightedMean(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(CheckOneShape(context, "mean", 2));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

Result<Value> RunWeightedMean(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Matrix> cells, CellsOfOneShape(call, "mean", 2));
  HEDDLE_ASSIGN_OR_RETURN(const WideNumber sum, SumOf(call, cells, [](const double* const* x, int64_t k) {
                            return x[0][k] * x[1][k];
                          }));
  HEDDLE_ASSIGN_OR_RETURN(const WideNumber weights,
                          SumOf(call, cells, [](const double* const* x, int64_t k) { return x[1][k]; }));
  return Value(Scalar((sum / weights).ToDouble()));
}

double WeightedMeanWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 3 * sizeof(double) * static_cast<double>(inputs[0].shape.Cells());
}

}  // namespace

/// mean(X, W): sum(X * W) / sum(W).
///
/// Shapes:  X and W of one shape; a number.
/// Errors:  shapes that differ; no cells.
/// Error:   that of the two sums (docs/numerics.md, section 3).
/// Cost:    two passes, each through a copy.
extern constexpr Operator kWeightedMean = {.name = "weightedMean",
                                           .parameters = "X W",
                                           .min_inputs = 2,
                                           .max_inputs = 2,
                                           .infer = InferWeightedMean,
                                           .run = RunWeightedMean,
                                           .may_fail = true,
                                           .working_bytes = WeightedMeanWorkingBytes,
                                           .adjoints = "W * (dy / sum(W)); (X - y) * (dy / sum(W))"};

}  // namespace heddle::ops
