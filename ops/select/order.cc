// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/base/whole_number.h"
#include "ops/cells/move_cells.h"
#include "ops/select/order_stages.h"
#include "ops/select/select_operators.h"

namespace heddle::ops {
namespace {

enum Input { kTarget, kBy, kDecreasing, kIndexReturn };

Result<ValueInfo> InferOrder(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kTarget, "target"));
  const ValueInfo& x = context.inputs[kTarget];
  if (const Scalar* by = KnownScalar(context, kBy)) {
    const std::optional<int64_t> column = WholeNumber(*by);
    if (!column || *column < 1 || (x.shape.columns != kUnknown && *column > x.shape.columns))
      return InvalidArgument("order: by={} is not a column of a {} matrix", by->ToText(), x.shape);
  }
  const Scalar* indexes = KnownScalar(context, kIndexReturn);
  const bool given = IsGiven(context.node, kIndexReturn);
  if (given && indexes != nullptr && indexes->AsBoolean())
    return ValueInfo::OfMatrix({x.shape.rows, 1}, Format::kDense);
  if (given && indexes == nullptr && x.shape.columns != 1)
    return ValueInfo::OfMatrix({x.shape.rows, kUnknown}, x.format);
  return ValueInfo::OfMatrix(x.shape, x.format);
}

// Whole numbers without a point, as columns are counted.
std::string TextOf(double column) {
  const std::optional<int64_t> whole = WholeNumber(Scalar(column));
  return whole ? std::to_string(*whole) : Scalar(column).ToText();
}

// The 0-based columns to sort by, the most important one first.
Result<std::vector<int64_t>> SortColumns(const KernelCall& call, const Shape& x) {
  std::vector<double> named = {1};
  if (call.inputs.size() > kBy && call.inputs[kBy] != nullptr) {
    named.clear();
    if (call.inputs[kBy]->IsScalar()) {
      named.push_back(std::trunc(call.inputs[kBy]->scalar().AsDouble()));
    } else {
      const Matrix& by = call.inputs[kBy]->matrix();
      for (int64_t i = 0; i < by.rows(); ++i)
        for (int64_t j = 0; j < by.columns(); ++j) named.push_back(std::trunc(by.At(i, j)));
    }
  }
  std::vector<int64_t> columns;
  for (double column : named) {
    if (!(column >= 1 && column <= static_cast<double>(x.columns)))
      return FailedPrecondition("order: by={} is not a column of a {} matrix", TextOf(column), x);
    columns.push_back(static_cast<int64_t>(column) - 1);
  }
  return columns;
}

Result<Value> RunOrder(const KernelCall& call) {
  const Matrix& x = call.inputs[kTarget]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const OrderRequest request, RequestOfOrder(call, x.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<KeyedRow> rows,
                          SortedRows(x, request.order, call.context.cancelled));
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix result, request.gives_numbers ? NumberedKeys(x, {}, rows, 0) : GatherRows(x, NumbersOf(rows)));
  return Value(std::move(result));
}

// Keys with the numbers of their rows, and their copy; the numbers in their order.
double OrderWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return static_cast<double>(inputs[kTarget].shape.rows) *
         (2 * (sizeof(uint64_t) + sizeof(int64_t)) + sizeof(int64_t));
}

// The rows of the adjoint go back to where they came from: t(P) %*% dy with the permutation P.
void DifferentiateOrder(AdjointCall& call) {
  const std::vector<NodeId>& inputs = call.node().inputs;
  const auto is_given = [&](size_t i) { return i < inputs.size() && inputs[i] != kNoNode; };
  const Scalar* const gives_index = is_given(kIndexReturn) ? call.Known(kIndexReturn) : nullptr;
  if (is_given(kIndexReturn) && gives_index == nullptr)
    return call.Refuse("index.return of order() must be known when the script is compiled");
  if (gives_index != nullptr && gives_index->AsBoolean()) return;
  const auto input = [&](size_t i) { return is_given(i) ? call.Input(i) : kNoNode; };
  const NodeId rows = call.Rows(kTarget);
  const NodeId places =
      call.Add("order", {call.Input(kTarget), input(kBy), input(kDecreasing), call.Literal(Scalar(true))});
  const NodeId numbers = call.Add("seq", {call.Literal(Scalar(1)), rows});
  const NodeId permutation = call.Add("table", {numbers, places, kNoNode, rows, rows});
  call.Give(0, call.Add("t%*%", {permutation, call.Adjoint()}));
}

}  // namespace

Result<OrderRequest> RequestOfOrder(const KernelCall& call, const Shape& target) {
  OrderRequest request;
  HEDDLE_ASSIGN_OR_RETURN(request.order.columns, SortColumns(call, target));
  request.order.keys.decreasing = BooleanOr(call, kDecreasing, false);
  request.gives_numbers = BooleanOr(call, kIndexReturn, false);
  return request;
}

// order(target=X, by=1, decreasing=FALSE, index.return=FALSE): the rows of X sorted by column `by` (or by the
// columns in the matrix `by`, lexicographically), m x n; with index.return the 1-based numbers of the source
// rows, m x 1. Stable, also when decreasing: ties keep their order. -0.0 ties with 0.0. NaN counts as the
// largest value: last when ascending, first when decreasing. Format: X's; dense with index.return. Exact.
// Rows: whole; on several ranks in stages (order_stages.h).
// Cost: 8 passes over m keys a column, on all threads.
constexpr Operator kOrderOperator = {.name = "order",
                                     .form = CallForm::kNamed,
                                     .parameters = "target by? decreasing? index.return?",
                                     .min_inputs = 1,
                                     .max_inputs = 4,
                                     .infer = InferOrder,
                                     .input_use = FirstByRows,
                                     .staged = &kOrderStages,
                                     .run = RunOrder,
                                     .may_fail = true,
                                     .working_bytes = OrderWorkingBytes,
                                     .adjoints = "*; 0",
                                     .differentiate = DifferentiateOrder};

}  // namespace heddle::ops
