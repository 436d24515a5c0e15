// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/catalog.h"
#include "ops/cells/move_cells.h"
#include "ops/statistics/direction.h"
#include "ops/statistics/distinct_values.h"
#include "ops/statistics/sets_of_cells.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferUnique(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "data"));
  HEDDLE_ASSIGN_OR_RETURN(const Direction direction, DirectionOf(context.node));
  const Shape x = context.inputs[0].shape;
  switch (direction) {
    case Direction::kRows: return ValueInfo::OfMatrix({x.rows, kUnknown});
    case Direction::kColumns: return ValueInfo::OfMatrix({kUnknown, x.columns});
    case Direction::kAll: break;
  }
  return ValueInfo::OfMatrix({kUnknown, 1});
}

RowRule UniqueRowRule(const Node& node, std::span<const ValueInfo>) {
  const Result<Direction> direction = DirectionOf(node);
  return direction.ok() && *direction == Direction::kAll ? RowRule::kReduce : RowRule::kWhole;
}

InputUse ByRows(const Node&, std::span<const ValueInfo>, int) { return InputUse::kRows; }

Result<Matrix> Column(const std::vector<double>& cells) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(static_cast<int64_t>(cells.size()), 1));
  std::copy(cells.begin(), cells.end(), result.mutable_data());
  return result;
}

// Row i of the result: the distinct values of row i of x, zeros behind them.
Result<Matrix> UniqueOfRows(const KernelCall& call, const Matrix& x) {
  std::vector<std::vector<double>> rows(static_cast<size_t>(x.rows()));
  HEDDLE_RETURN_IF_ERROR(ForSetOfEachRow<DistinctValues>(
      call, x, [&](int64_t i, DistinctValues& set) { rows[static_cast<size_t>(i)] = set.Elements(); }));
  size_t widest = 0;
  for (const std::vector<double>& row : rows) widest = std::max(widest, row.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(x.rows(), static_cast<int64_t>(widest), 0));
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), result.mutable_data() + i * widest);
  return result;
}

Result<Value> RunUnique(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const Direction direction, DirectionOf(call.node));
  Matrix result;
  switch (direction) {
    case Direction::kRows: {
      HEDDLE_ASSIGN_OR_RETURN(result, UniqueOfRows(call, x));
      break;
    }
    case Direction::kColumns: {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix columns, Transpose(x));
      HEDDLE_ASSIGN_OR_RETURN(const Matrix values, UniqueOfRows(call, columns));
      HEDDLE_ASSIGN_OR_RETURN(result, Transpose(values));
      break;
    }
    case Direction::kAll: {
      // A partial value is a list of distinct cells, too, one a row: those of all ranks together are as many
      // cells of a matrix.
      HEDDLE_ASSIGN_OR_RETURN(DistinctValues distinct, SetOfAllCells<DistinctValues>(call, x));
      HEDDLE_ASSIGN_OR_RETURN(result, Column(distinct.Elements()));
      break;
    }
  }
  return Value(std::move(result));
}

}  // namespace

/// unique(X, dir="rc"): the distinct cells of X, ascending, NaN last; -0.0 counts as 0.0, all NaNs as one.
///
/// Shapes:  X m x n. "rc": k x 1. "r": m x k, row i has those of row i and zeros behind them. "c": k x n,
///          likewise by columns. k is known only after the run.
/// Exact.   SystemDS gives them in no particular order.
/// Rows:    "rc" is a reduction; the others are whole.
/// Cost:    one step of a hash table a cell while few are distinct; else the cells are sorted by their bytes.
extern constexpr Operator kUnique = {.name = "unique",
                                     .form = CallForm::kNamed,
                                     .parameters = "data @dir?",
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .infer = InferUnique,
                                     .row_rule = UniqueRowRule,
                                     .input_use = ByRows,
                                     .run = RunUnique};

}  // namespace heddle::ops
