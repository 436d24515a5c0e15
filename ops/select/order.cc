// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/base/whole_number.h"
#include "ops/cells/move_cells.h"
#include "ops/compressed/arrange_groups.h"
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

// Puts rows in the order of a column of a group, those that tie as they stand.
Status SortByTuples(const KernelCall& call, const ColumnGroup& group, int64_t k, const KeyOrder& keys,
                    std::vector<int64_t>* rows) {
  const Matrix& x = call.inputs[kTarget]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const Matrix tuples, ToElementType(group.dictionary, ElementType::kFloat64));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<KeyedRow> sorted,
                          SortedRows(tuples, {.columns = {k}, .keys = keys}, call.context.cancelled));
  // Places among the distinct keys.
  std::vector<size_t> place(sorted.size());
  size_t places = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i].key != sorted[i - 1].key) ++places;
    place[static_cast<size_t>(sorted[i].row)] = places;
  }
  std::vector<uint16_t> codes(rows->size());
  DecodeCodes(group, x.first_row(), x.first_row() + x.rows(), codes.data());
  std::vector<int64_t> next(places + 2, 0);
  for (const uint16_t code : codes) ++next[place[code] + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<int64_t> result(rows->size());
  for (const int64_t row : *rows)
    result[static_cast<size_t>(next[place[codes[static_cast<size_t>(row)]]]++)] = row;
  *rows = std::move(result);
  return IsCancelled(call.context.cancelled) ? Cancelled("cancelled") : OkStatus();
}

// Rows of a compressed matrix are put in order by counting those of each tuple.
Result<std::optional<Value>> RunOrderOfCodes(const KernelCall& call) {
  const std::optional<Value> nothing;
  const Matrix& x = call.inputs[kTarget]->matrix();
  if (!x.IsCompressed() || !DictionariesPay(x)) return nothing;
  const Result<OrderRequest> request = RequestOfOrder(call, x.shape());
  if (!request.ok()) return nothing;
  std::vector<int64_t> rows(static_cast<size_t>(x.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<int64_t>& columns = request->order.columns;
  for (auto column = columns.rbegin(); column != columns.rend(); ++column) {
    for (const ColumnGroup& group : x.groups().groups) {
      const auto found = std::lower_bound(group.columns.begin(), group.columns.end(), *column);
      if (found == group.columns.end() || *found != *column) continue;
      if (group.encoding == Encoding::kUncompressed) return nothing;
      if (group.tuples() > 1)
        HEDDLE_RETURN_IF_ERROR(
            SortByTuples(call, group, found - group.columns.begin(), request->order.keys, &rows));
    }
  }
  if (!request->gives_numbers) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix sorted, GatherGroupRows(x, rows, call.context));
    return std::optional<Value>(std::move(sorted));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix numbers, Matrix::Dense(x.rows(), 1));
  std::transform(rows.begin(), rows.end(), numbers.mutable_data(),
                 [](int64_t row) { return static_cast<double>(row + 1); });
  HEDDLE_ASSIGN_OR_RETURN(numbers, ToElementType(numbers, call.node.info.element_type));
  return std::optional<Value>(std::move(numbers));
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
                                     .run_compressed = RunOrderOfCodes,
                                     .may_fail = true,
                                     .working_bytes = OrderWorkingBytes,
                                     .adjoints = "*; 0",
                                     .differentiate = DifferentiateOrder};

}  // namespace heddle::ops
