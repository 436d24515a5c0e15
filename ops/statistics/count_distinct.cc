// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/cells/move_cells.h"
#include "ops/compressed/occurring_cells.h"
#include "ops/statistics/direction.h"
#include "ops/statistics/distinct_values.h"
#include "ops/statistics/sets_of_cells.h"
#include "ops/statistics/smallest_hashes.h"

// How many distinct cells a matrix, or each of its rows or columns, has. -0.0 counts as 0.0, all NaNs as one.
//
//   countDistinct(X, dir="rc")                     "rc": an integer, "r": m x 1, "c": 1 x n
//   countDistinctApprox(X, type="KMV", dir="rc")   the same from a sketch (ops/statistics/smallest_hashes.h)
//   rowCountDistinct(X), colCountDistinct(X), rowCountDistinctApprox(X, type=), colCountDistinctApprox(X,
//   type=)
//
// Error:  none; of the approximate forms none below 1024 distinct cells and none of rows, which are counted
//         exactly, else a standard error of 3.1 %; never more than there are cells.
// Rows:   by rows row-wise, the others are reductions. A partial value is a list of what was found, one
//         element a row: (cell) of all cells, (column, cell) of columns; with a sketch hashes in place of
//         cells.
// Cost:   one step of a hash table a cell while few are distinct; else the cells are sorted by their bytes.
//         Memory: all distinct cells; of a sketch 16 KiB for each result.
namespace heddle::ops {
namespace {

struct Count {
  Direction direction;
  bool approximate;
};

Result<Count> CountOf(const Node& node) {
  Count count{Direction::kAll, node.op.ends_with("Approx")};
  if (count.approximate) {
    const Scalar* type = node.FindAttribute("type");
    std::string text = type == nullptr ? "KMV" : type->ToText();
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
    if (text != "KMV")
      return InvalidArgument("{}: unknown sketch type=\"{}\"", node.op, type->ToText())
          .WithNote("it is \"KMV\"");
  }
  if (node.op.starts_with("row")) {
    count.direction = Direction::kRows;
  } else if (node.op.starts_with("col")) {
    count.direction = Direction::kColumns;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(count.direction, DirectionOf(node));
  }
  return count;
}

Result<ValueInfo> InferCount(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "data"));
  HEDDLE_ASSIGN_OR_RETURN(const Count count, CountOf(context.node));
  switch (count.direction) {
    case Direction::kRows: return ValueInfo::OfMatrix({context.inputs[0].shape.rows, 1});
    case Direction::kColumns: return ValueInfo::OfMatrix({1, context.inputs[0].shape.columns});
    case Direction::kAll: break;
  }
  return ValueInfo::OfScalar(ValueType::kInteger);
}

RowRule CountRowRule(const Node& node, std::span<const ValueInfo>) {
  const Result<Count> count = CountOf(node);
  return count.ok() && count->direction == Direction::kRows ? RowRule::kRowWise : RowRule::kReduce;
}

Result<Matrix> CountRows(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), 1));
  double* counts = result.mutable_data();
  HEDDLE_RETURN_IF_ERROR(ForSetOfEachRow<DistinctValues>(
      call, x, [&](int64_t i, DistinctValues& set) { counts[i] = static_cast<double>(set.Count()); }));
  return result;
}

// No more than there are cells, whatever a sketch says.
template <typename Set>
int64_t CountOfCells(Set& set, int64_t cells) {
  return std::min<int64_t>(set.Count(), cells);
}

template <typename Set>
Result<Value> CountAll(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  Set set;
  if (call.phase == Phase::kFinish) {
    for (int64_t k = 0; k < x.rows(); ++k) set.Add(x.data()[k]);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(set, SetOfAllCells<Set>(call, x));
  }
  if (call.phase != Phase::kPartial)
    return Value(Scalar(CountOfCells(set, call.input_infos[0].shape.Cells())));
  const std::vector<double> elements = set.Elements();
  HEDDLE_ASSIGN_OR_RETURN(Matrix list, Matrix::Dense(static_cast<int64_t>(elements.size()), 1));
  std::copy(elements.begin(), elements.end(), list.mutable_data());
  return Value(std::move(list));
}

// What each column holds, as the list of a partial value.
template <typename Set>
Result<Matrix> ListColumns(const KernelCall& call, const Matrix& columns) {
  std::vector<std::vector<double>> elements(static_cast<size_t>(columns.rows()));
  HEDDLE_RETURN_IF_ERROR(ForSetOfEachRow<Set>(
      call, columns, [&](int64_t j, Set& set) { elements[static_cast<size_t>(j)] = set.Elements(); }));
  int64_t count = 0;
  for (const std::vector<double>& of_column : elements) count += static_cast<int64_t>(of_column.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix list, Matrix::Dense(count, 2));
  double* out = list.mutable_data();
  for (size_t j = 0; j < elements.size(); ++j) {
    for (const double element : elements[j]) {
      *out++ = static_cast<double>(j);
      *out++ = element;
    }
  }
  return list;
}

template <typename Set>
Result<Value> CountColumns(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t rows = call.input_infos[0].shape.rows;
  Matrix result;
  if (call.phase == Phase::kFinish) {
    HEDDLE_ASSIGN_OR_RETURN(result, Matrix::Dense(1, call.input_infos[0].shape.columns));
    std::vector<Set> sets(static_cast<size_t>(result.columns()));
    for (int64_t k = 0; k < x.rows(); ++k)
      sets[static_cast<size_t>(x.data()[2 * k])].Add(x.data()[2 * k + 1]);
    for (size_t j = 0; j < sets.size(); ++j)
      result.mutable_data()[j] = static_cast<double>(CountOfCells(sets[j], rows));
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix columns, Transpose(x));
  if (call.phase == Phase::kPartial) {
    HEDDLE_ASSIGN_OR_RETURN(result, ListColumns<Set>(call, columns));
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(result, Matrix::Dense(1, x.columns()));
  double* counts = result.mutable_data();
  HEDDLE_RETURN_IF_ERROR(ForSetOfEachRow<Set>(
      call, columns, [&](int64_t j, Set& set) { counts[j] = static_cast<double>(CountOfCells(set, rows)); }));
  return Value(std::move(result));
}

Result<Value> RunCount(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Count count, CountOf(call.node));
  switch (count.direction) {
    case Direction::kRows: {
      HEDDLE_ASSIGN_OR_RETURN(Matrix counts, CountRows(call));
      return Value(std::move(counts));
    }
    case Direction::kColumns:
      return count.approximate ? CountColumns<SmallestHashes>(call) : CountColumns<DistinctValues>(call);
    case Direction::kAll: break;
  }
  return count.approximate ? CountAll<SmallestHashes>(call) : CountAll<DistinctValues>(call);
}

// Of all cells, of which it matters only which there are.
Result<std::optional<Value>> RunCountOfCodes(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Count count, CountOf(call.node));
  if (count.direction != Direction::kAll) return std::optional<Value>();
  return RunOnOccurringCells(call);
}

constexpr Operator OfCount(std::string_view name, std::string_view parameters) {
  return {.name = name,
          .form = CallForm::kNamed,
          .parameters = parameters,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferCount,
          .row_rule = CountRowRule,
          .input_use = AllByRows,
          .run = RunCount,
          .run_compressed = name.starts_with("count") ? RunCountOfCodes : nullptr};
}

constexpr Operator kOperators[] = {
    OfCount("countDistinct", "data @dir?"),
    OfCount("rowCountDistinct", "data"),
    OfCount("colCountDistinct", "data"),
    OfCount("countDistinctApprox", "data @type? @dir?"),
    OfCount("rowCountDistinctApprox", "data @type?"),
    OfCount("colCountDistinctApprox", "data @type?"),
};

}  // namespace

std::span<const Operator> CountDistinctOperators() { return kOperators; }

}  // namespace heddle::ops
