// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/sums.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferWeightedMean(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(CheckOneShape(context, "mean", 2));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

size_t TwoMatrices(const Node&) { return 2; }
Result<std::vector<TermOfCells>> Terms(const KernelCall&) {
  return std::vector<TermOfCells>{[](const double* const* x, int64_t k) { return x[0][k] * x[1][k]; },
                                  [](const double* const* x, int64_t k) { return x[1][k]; }};
}
std::vector<TermOfCells> NoTerms(const KernelCall&, double, std::span<const WideNumber>) { return {}; }
double MeanOf(const KernelCall&, double, std::span<const WideNumber> sums) {
  return (sums[0] / sums[1]).ToDouble();
}

constexpr StatisticOfSums kStatistic = {
    .name = "mean", .matrices = TwoMatrices, .first = Terms, .second = NoTerms, .result = MeanOf};

Result<Value> RunWeightedMean(const KernelCall& call) { return RunStatistic(call, kStatistic); }
Status RunWeightedMeanStage(const StageCall& call, std::span<Value> outputs) {
  return RunStatisticStage(call, kStatistic, outputs);
}
constexpr StagedForm kStaged = StatisticForm(RunWeightedMeanStage);

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
/// Rows:    on several ranks each adds up its own, in stages; every rank has the result.
extern constexpr Operator kWeightedMean = {.name = "weightedMean",
                                           .parameters = "X W",
                                           .min_inputs = 2,
                                           .max_inputs = 2,
                                           .infer = InferWeightedMean,
                                           .input_use = MatricesByRows,
                                           .staged = &kStaged,
                                           .run = RunWeightedMean,
                                           .may_fail = true,
                                           .working_bytes = WeightedMeanWorkingBytes,
                                           .adjoints = "W * (dy / sum(W)); (X - y) * (dy / sum(W))"};

}  // namespace heddle::ops
