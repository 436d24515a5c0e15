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

bool IsWeighted(const Node& node) { return IsGiven(node, 2); }
size_t MatricesOf(const Node& node) { return IsWeighted(node) ? 3 : 2; }

// Sums are those of the weights, of the cells of A and of B, and of the products of deviations.
Result<std::vector<TermOfCells>> TermsOfMeans(const KernelCall& call) {
  if (!IsWeighted(call.node))
    return std::vector<TermOfCells>{[](const double* const* x, int64_t k) { return x[0][k]; },
                                    [](const double* const* x, int64_t k) { return x[1][k]; }};
  return std::vector<TermOfCells>{[](const double* const* x, int64_t k) { return x[2][k]; },
                                  [](const double* const* x, int64_t k) { return x[0][k] * x[2][k]; },
                                  [](const double* const* x, int64_t k) { return x[1][k] * x[2][k]; }};
}

WideNumber CountOf(const KernelCall& call, double cells, std::span<const WideNumber> sums) {
  return IsWeighted(call.node) ? sums[0] : WideNumber(cells);
}

std::vector<TermOfCells> TermsOfProducts(const KernelCall& call, double cells,
                                         std::span<const WideNumber> sums) {
  const WideNumber count = CountOf(call, cells, sums);
  if (!(count.ToDouble() > 1)) return {};
  const bool weighted = IsWeighted(call.node);
  const double a = (sums[weighted ? 1 : 0] / count).ToDouble(),
               b = (sums[weighted ? 2 : 1] / count).ToDouble();
  if (weighted)
    return {[=](const double* const* x, int64_t k) { return ((x[0][k] - a) * (x[1][k] - b)) * x[2][k]; }};
  return {[=](const double* const* x, int64_t k) { return ((x[0][k] - a) * (x[1][k] - b)); }};
}

double CovarianceOf(const KernelCall& call, double cells, std::span<const WideNumber> sums) {
  const WideNumber count = CountOf(call, cells, sums);
  return count.ToDouble() > 1 ? (sums.back() / (count - 1.0)).ToDouble() : 0.0;
}

constexpr StatisticOfSums kStatistic = {.name = "cov",
                                        .matrices = MatricesOf,
                                        .first = TermsOfMeans,
                                        .second = TermsOfProducts,
                                        .result = CovarianceOf};

Result<Value> RunCovariance(const KernelCall& call) { return RunStatistic(call, kStatistic); }
Status RunCovarianceStage(const StageCall& call, std::span<Value> outputs) {
  return RunStatisticStage(call, kStatistic, outputs);
}
constexpr StagedForm kStaged = StatisticForm(RunCovarianceStage);

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
/// Rows:    on several ranks each adds up its own, in stages; every rank has the result.
extern constexpr Operator kCovariance = {.name = "cov",
                                         .form = CallForm::kPositional,
                                         .parameters = "A B W?",
                                         .min_inputs = 2,
                                         .max_inputs = 3,
                                         .infer = InferCovariance,
                                         .input_use = MatricesByRows,
                                         .staged = &kStaged,
                                         .run = RunCovariance,
                                         .may_fail = true,
                                         .working_bytes = CovarianceWorkingBytes,
                                         .adjoints = "*; *; ",  // by the weights there is none
                                         .differentiate = DifferentiateCovariance};

}  // namespace heddle::ops
