// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/programs/distribution.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/cells/global_places.h"
#include "ops/cells/move_cells.h"
#include "ops/compressed/occurring_cells.h"
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

// Of all cells, of which it matters only which there are.
Result<std::optional<Value>> RunUniqueOfCodes(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Direction direction, DirectionOf(call.node));
  if (direction != Direction::kAll) return std::optional<Value>();
  return RunOnOccurringCells(call);
}

// ---- On several ranks.

bool IsOfRows(const Node& node, std::span<const ValueInfo>) {
  const Result<Direction> direction = DirectionOf(node);
  return direction.ok() && *direction == Direction::kRows;
}
bool IsOfColumns(const Node& node, std::span<const ValueInfo>) {
  const Result<Direction> direction = DirectionOf(node);
  return direction.ok() && *direction == Direction::kColumns;
}

Result<Value> OneNumber(int64_t number) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix cell, FilledMatrix(1, 1, static_cast<double>(number)));
  return Value(std::move(cell));
}
int64_t Largest(const Matrix& numbers) {
  return static_cast<int64_t>(*std::max_element(numbers.data(), numbers.data() + numbers.rows()));
}

// Each rank has the values of its rows; how many columns there are tells the rank with most of them.
Status RunRowsStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 0) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix values, UniqueOfRows(call.WholeCall(), call.inputs[0]->matrix()));
    HEDDLE_ASSIGN_OR_RETURN(outputs[1], OneNumber(values.columns()));
    outputs[0] = Value(std::move(values));
    return OkStatus();
  }
  const Matrix& values = call.Received(0).matrix();
  const int64_t widest = Largest(call.Received(1).matrix()), width = values.columns();
  outputs[0] = Value(values);
  if (width == widest) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(values.rows(), widest, 0));
  ParallelFor(values.rows(), RowGrain(widest), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::copy_n(values.data() + i * width, width, result.mutable_data() + i * widest);
  });
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

// The distinct values of each column, as rows (column, value), to the rank that brings them together.
Status SendColumns(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix columns, Transpose(call.inputs[0]->matrix()));
  std::vector<std::vector<double>> values(static_cast<size_t>(columns.rows()));
  HEDDLE_RETURN_IF_ERROR(ForSetOfEachRow<DistinctValues>(
      call.WholeCall(), columns,
      [&](int64_t j, DistinctValues& set) { values[static_cast<size_t>(j)] = set.Elements(); }));
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const auto [first, last] = OwnPlaces(columns.rows(), rank, call.ranks());
    size_t count = 0;
    for (int64_t j = first; j < last; ++j) count += values[static_cast<size_t>(j)].size();
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(static_cast<int64_t>(count), 2));
    double* out = rows.mutable_data();
    for (int64_t j = first; j < last; ++j) {
      for (const double value : values[static_cast<size_t>(j)]) {
        *out++ = static_cast<double>(j);
        *out++ = value;
      }
    }
    outputs[static_cast<size_t>(rank)] = Value(std::move(rows));
  }
  return OkStatus();
}

// Row j has the values of column `first` + j of all ranks, zeros behind them.
Status JoinColumns(const StageCall& call, std::span<Value> outputs) {
  const auto [first, last] = OwnPlaces(call.input_infos[0].shape.columns, call.rank, call.ranks());
  struct ColumnAndValue {
    double column, value;
  };
  std::vector<std::span<const ColumnAndValue>> parts;
  for (const Value* part : call.Parts(0))
    parts.emplace_back(static_cast<const ColumnAndValue*>(static_cast<const void*>(part->matrix().data())),
                       static_cast<size_t>(part->matrix().rows()));
  std::vector<std::vector<double>> columns(static_cast<size_t>(last - first));
  const int64_t begin_of_all = first;
  ParallelFor(last - first, 1, [&](int64_t begin, int64_t end) {
    DistinctValues set;
    for (int64_t j = begin; j < end && !IsCancelled(call.context.cancelled); ++j) {
      const auto column = static_cast<double>(begin_of_all + j);
      set.Clear();
      for (const std::span<const ColumnAndValue> part : parts) {
        auto row = std::lower_bound(part.begin(), part.end(), column,
                                    [](const ColumnAndValue& a, double b) { return a.column < b; });
        for (; row != part.end() && row->column == column; ++row) set.Add(row->value);
      }
      columns[static_cast<size_t>(j)] = set.Elements();
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  size_t longest = 0;
  for (const std::vector<double>& column : columns) longest = std::max(longest, column.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix values, FilledMatrix(last - first, static_cast<int64_t>(longest), 0));
  for (size_t j = 0; j < columns.size(); ++j)
    std::copy(columns[j].begin(), columns[j].end(), values.mutable_data() + j * longest);
  HEDDLE_ASSIGN_OR_RETURN(outputs[1], OneNumber(values.columns()));
  outputs[0] = Value(std::move(values));
  return OkStatus();
}

// Rows of the result to the ranks that have them, with the columns of this rank.
Status SendRows(const StageCall& call, std::span<Value> outputs) {
  const Matrix& columns = call.Received(0).matrix();
  const Split rows = Distribution::SplitRows(Largest(call.Received(1).matrix()), call.ranks()).split;
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const int64_t begin = rows.Begin(rank), end = rows.End(rank), filled = std::min(end, columns.columns());
    HEDDLE_ASSIGN_OR_RETURN(Matrix part, FilledMatrix(end - begin, columns.rows(), 0));
    if (begin < filled) {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix slice, SliceColumns(columns, begin, filled));
      HEDDLE_ASSIGN_OR_RETURN(const Matrix turned, Transpose(slice));
      std::copy_n(turned.data(), turned.cells(), part.mutable_data());
    }
    outputs[static_cast<size_t>(rank)] = Value(std::move(part));
  }
  return OkStatus();
}

Status JoinRowsOfResult(const StageCall& call, std::span<Value> outputs) {
  const int64_t n = call.input_infos[0].shape.columns, rows = call.Parts(0)[0]->matrix().rows();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows, n));
  double* out = result.mutable_data();
  for (const Value* part : call.Parts(0)) {
    const Matrix& columns = part->matrix();
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(columns.data() + i * columns.columns(), columns.columns(), out + i * n);
    out += columns.columns();
  }
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

Status RunColumnsStage(const StageCall& call, std::span<Value> outputs) {
  switch (call.stage) {
    case 0: return SendColumns(call, outputs);
    case 1: return JoinColumns(call, outputs);
    case 2: return SendRows(call, outputs);
    default: return JoinRowsOfResult(call, outputs);
  }
}

// At most every cell with its column.
double MovedBytes(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return 2 * sizeof(double) * static_cast<double>(inputs[0].shape.rows) *
         static_cast<double>(inputs[0].shape.columns);
}

constexpr Reach kValuesAndWidth[] = {Reach::kHere, Reach::kAll}, kPieces[] = {Reach::kParts};
constexpr Stage kRowsStages[] = {{.outputs = kValuesAndWidth, .reads_inputs = true}, {}},
                kColumnsStages[] = {{.outputs = kPieces, .reads_inputs = true},
                                    {.outputs = kValuesAndWidth},
                                    {.outputs = kPieces},
                                    {}};
constexpr StagedForm kColumnsForm = {.stages = kColumnsStages,
                                     .result = StagedResult::kUneven,
                                     .applies = IsOfColumns,
                                     .moved_bytes = MovedBytes,
                                     .run = RunColumnsStage};
constexpr StagedForm kRowsForm = {.stages = kRowsStages,
                                  .result = StagedResult::kSameRows,
                                  .other = &kColumnsForm,
                                  .applies = IsOfRows,
                                  .run = RunRowsStage};

}  // namespace

/// unique(X, dir="rc"): the distinct cells of X, ascending, NaN last; -0.0 counts as 0.0, all NaNs as one.
///
/// Shapes:  X m x n. "rc": k x 1. "r": m x k, row i has those of row i and zeros behind them. "c": k x n,
///          likewise by columns. k is known only after the run.
/// Exact.   SystemDS gives them in no particular order.
/// Rows:    "rc" is a reduction; the others are whole, on several ranks in stages: "r" pads its rows to the
///          width of the widest, "c" brings each column together on one rank and turns it back into rows.
/// Cost:    one step of a hash table a cell while few are distinct; else the cells are sorted by their bytes.
extern constexpr Operator kUnique = {.name = "unique",
                                     .form = CallForm::kNamed,
                                     .parameters = "data @dir?",
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .infer = InferUnique,
                                     .row_rule = UniqueRowRule,
                                     .input_use = AllByRows,
                                     .staged = &kRowsForm,
                                     .run = RunUnique,
                                     .run_compressed = RunUniqueOfCodes};

}  // namespace heddle::ops
