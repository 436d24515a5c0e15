// SPDX-License-Identifier: Apache-2.0
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/statistics/sums.h"

namespace heddle::ops {
namespace {

// The inputs are X, k or X, W, k.
size_t MatricesOf(const Node& node) { return node.inputs.size() - 1; }

Status CheckOrder(double order, StatusCode code) {
  if (order == 0 || order == 2 || order == 3 || order == 4) return OkStatus();
  return Status(code, fmt::format("moment: the order must be 0, 2, 3 or 4, not {}", Scalar(order).ToText()))
      .WithNote("order 0 gives the mean");
}

Result<ValueInfo> InferMoment(const InferContext& context) {
  const size_t matrices = MatricesOf(context.node);
  HEDDLE_RETURN_IF_ERROR(CheckOneShape(context, "moment", matrices));
  const int at = static_cast<int>(matrices);
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, at, "the order"));
  if (context.inputs[matrices].value_type == ValueType::kString)
    return InvalidArgument("moment: the order is a string, not a number");
  if (const Scalar* order = KnownScalar(context, at))
    HEDDLE_RETURN_IF_ERROR(CheckOrder(order->AsDouble(), StatusCode::kInvalidArgument));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

double Power(double x, double order) {
  return order == 2 ? x * x : order == 3 ? x * x * x : (x * x) * (x * x);
}

double OrderOf(const KernelCall& call) { return NumberOr(call, static_cast<int>(MatricesOf(call.node)), 0); }

// Sums are those of the weights, of the cells, and of the powers.
Result<std::vector<TermOfCells>> TermsOfMean(const KernelCall& call) {
  HEDDLE_RETURN_IF_ERROR(CheckOrder(OrderOf(call), StatusCode::kFailedPrecondition));
  std::vector<TermOfCells> terms;
  if (MatricesOf(call.node) == 2) {
    terms.emplace_back([](const double* const* x, int64_t k) { return x[1][k]; });
    terms.emplace_back([](const double* const* x, int64_t k) { return x[0][k] * x[1][k]; });
  } else {
    terms.emplace_back([](const double* const* x, int64_t k) { return x[0][k]; });
  }
  return terms;
}

WideNumber CountOf(const KernelCall& call, double cells, std::span<const WideNumber> sums) {
  return MatricesOf(call.node) == 2 ? sums[0] : WideNumber(cells);
}

double MeanOf(const KernelCall& call, double cells, std::span<const WideNumber> sums) {
  return (sums[MatricesOf(call.node) - 1] / CountOf(call, cells, sums)).ToDouble();
}

std::vector<TermOfCells> TermsOfPowers(const KernelCall& call, double cells,
                                       std::span<const WideNumber> sums) {
  const double order = OrderOf(call), mean = MeanOf(call, cells, sums);
  if (order == 0) return {};
  if (MatricesOf(call.node) == 2)
    return {[=](const double* const* x, int64_t k) { return Power(x[0][k] - mean, order) * x[1][k]; }};
  return {[=](const double* const* x, int64_t k) { return Power(x[0][k] - mean, order); }};
}

double MomentOf(const KernelCall& call, double cells, std::span<const WideNumber> sums) {
  if (OrderOf(call) == 0) return MeanOf(call, cells, sums);
  return (sums.back() / CountOf(call, cells, sums)).ToDouble();
}

constexpr StatisticOfSums kStatistic = {.name = "moment",
                                        .matrices = MatricesOf,
                                        .first = TermsOfMean,
                                        .second = TermsOfPowers,
                                        .result = MomentOf};

Result<Value> RunMoment(const KernelCall& call) { return RunStatistic(call, kStatistic); }
Status RunMomentStage(const StageCall& call, std::span<Value> outputs) {
  return RunStatisticStage(call, kStatistic, outputs);
}
constexpr StagedForm kStaged = StatisticForm(RunMomentStage);

double MomentWorkingBytes(const Node& node, std::span<const ValueInfo> inputs) {
  return sizeof(double) * static_cast<double>(inputs[0].shape.Cells()) *
         static_cast<double>(1 + MatricesOf(node));
}

// Moving one cell moves the mean as well.
void DifferentiateMoment(AdjointCall& call) {
  const Scalar* const order = call.Known(1);
  if (order == nullptr) return call.Refuse("the order of moment() must be known when the script is compiled");
  if (order->AsDouble() == 0) return call.Give(0, call.Formula("spreadTo(dy / (nrow(X) * ncol(X)), X)"));
  const NodeId power = call.Formula("(X - mean(X)) ^ (k - 1)");
  call.Give(0, call.Formula("(P - mean(P)) * (dy * k / (nrow(X) * ncol(X)))", {{"P", power}}));
}

constexpr Operator Moment(Operator op) {
  op.infer = InferMoment;
  op.input_use = MatricesByRows;
  op.staged = &kStaged;
  op.run = RunMoment;
  op.may_fail = true;
  op.working_bytes = MomentWorkingBytes;
  return op;
}

}  // namespace

/// moment(X, k): the central moment sum((X - mean(X))^k) / N of the N cells of X; the mean for k = 0.
///
/// Shapes:  X of any shape with cells, k a number; a number.
/// Errors:  k other than 0, 2, 3, 4; no cells.
/// Error:   that of two sums (docs/numerics.md, section 3); no digits cancel but those of x - mean.
/// Cost:    two passes over X, each through a copy.
/// Rows:    on several ranks each adds up its own, in stages; every rank has the result.
extern constexpr Operator kMoment = Moment({.name = "moment",
                                            .form = CallForm::kPositional,
                                            .parameters = "X k",
                                            .aliases = "centralMoment",
                                            .overload = "weightedMoment",
                                            .min_inputs = 2,
                                            .max_inputs = 2,
                                            .adjoints = "*; 0",
                                            .differentiate = DifferentiateMoment});

/// moment(X, W, k): the same with cells counted W times: sum(W * (X - mean)^k) / sum(W).
extern constexpr Operator kWeightedMoment =
    Moment({.name = "weightedMoment", .parameters = "X W k", .min_inputs = 3, .max_inputs = 3});

}  // namespace heddle::ops
