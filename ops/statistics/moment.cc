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

Result<Value> RunMoment(const KernelCall& call) {
  const size_t matrices = MatricesOf(call.node);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Matrix> cells, CellsOfOneShape(call, "moment", matrices));
  const double order = NumberOr(call, static_cast<int>(matrices), 0);
  HEDDLE_RETURN_IF_ERROR(CheckOrder(order, StatusCode::kFailedPrecondition));
  const bool weighted = matrices == 2;
  const auto weight = [&](const double* const* x, int64_t k) { return weighted ? x[1][k] : 1.0; };
  WideNumber count = static_cast<double>(cells[0].cells());
  if (weighted) {
    HEDDLE_ASSIGN_OR_RETURN(count, SumOf(call, cells, weight));
  }
  HEDDLE_ASSIGN_OR_RETURN(const WideNumber sum, SumOf(call, cells, [&](const double* const* x, int64_t k) {
                            return x[0][k] * weight(x, k);
                          }));
  const double mean = (sum / count).ToDouble();
  if (order == 0) return Value(Scalar(mean));
  const auto power = [&](const double* const* x, int64_t k) {
    return Power(x[0][k] - mean, order) * weight(x, k);
  };
  HEDDLE_ASSIGN_OR_RETURN(const WideNumber moments, SumOf(call, cells, power));
  return Value(Scalar((moments / count).ToDouble()));
}

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
/// Cost:    two passes over X, the second through a copy.
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
