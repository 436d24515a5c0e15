// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/whole_number.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/sort_keys.h"
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

struct KeyedRow {
  uint64_t key;
  int64_t row;
};

// Whole numbers without a point, as columns are counted.
std::string TextOf(double column) {
  const std::optional<int64_t> whole = WholeNumber(Scalar(column));
  return whole ? std::to_string(*whole) : Scalar(column).ToText();
}

// The 0-based columns to sort by, the most important one first.
Result<std::vector<int64_t>> SortColumns(const KernelCall& call, const Matrix& x) {
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
    if (!(column >= 1 && column <= static_cast<double>(x.columns())))
      return FailedPrecondition("order: by={} is not a column of a {} matrix", TextOf(column), x.shape());
    columns.push_back(static_cast<int64_t>(column) - 1);
  }
  return columns;
}

std::vector<double> Column(const Matrix& x, int64_t column) {
  std::vector<double> cells(static_cast<size_t>(x.rows()));
  ParallelFor(x.rows(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      cells[static_cast<size_t>(i)] = x.IsSparse() ? x.At(i, column) : x.data()[i * x.columns() + column];
  });
  return cells;
}

// Sorts by the last column first: a stable sort keeps its order within ties of the more important ones.
Result<Value> RunOrder(const KernelCall& call) {
  const Matrix& x = call.inputs[kTarget]->matrix();
  const bool decreasing = BooleanOr(call, kDecreasing, false);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> columns, SortColumns(call, x));
  std::vector<KeyedRow> rows(static_cast<size_t>(x.rows()));
  std::vector<KeyedRow> scratch;
  for (size_t i = 0; i < rows.size(); ++i) rows[i].row = static_cast<int64_t>(i);
  for (size_t c = columns.size(); c-- > 0;) {
    if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    const std::vector<double> cells = Column(x, columns[c]);
    for (KeyedRow& row : rows) {
      row.key = SortKey(cells[static_cast<size_t>(row.row)]);
      if (decreasing) row.key = ~row.key;
    }
    SortByKeys(&rows, &scratch, [](const KeyedRow& row) { return row.key; });
  }
  if (BooleanOr(call, kIndexReturn, false)) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), 1));
    for (size_t i = 0; i < rows.size(); ++i) result.mutable_data()[i] = static_cast<double>(rows[i].row + 1);
    return Value(std::move(result));
  }
  std::vector<int64_t> order(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) order[i] = rows[i].row;
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, GatherRows(x, order));
  return Value(std::move(result));
}

// Keys and their copy, and the column they come from.
double OrderWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return static_cast<double>(inputs[kTarget].shape.rows) * (2 * sizeof(KeyedRow) + sizeof(double));
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

// order(target=X, by=1, decreasing=FALSE, index.return=FALSE): the rows of X sorted by column `by` (or by the
// columns in the matrix `by`, lexicographically), m x n; with index.return the 1-based numbers of the source
// rows, m x 1. Stable, also when decreasing: ties keep their order. -0.0 ties with 0.0. NaN counts as the
// largest value: last when ascending, first when decreasing. Format: X's; dense with index.return. Exact.
// Cost: 8 passes over m keys a column.
constexpr Operator kOrderOperator = {.name = "order",
                                     .form = CallForm::kNamed,
                                     .parameters = "target by? decreasing? index.return?",
                                     .min_inputs = 1,
                                     .max_inputs = 4,
                                     .infer = InferOrder,
                                     .run = RunOrder,
                                     .may_fail = true,
                                     .working_bytes = OrderWorkingBytes,
                                     .adjoints = "*; 0",
                                     .differentiate = DifferentiateOrder};

}  // namespace heddle::ops
