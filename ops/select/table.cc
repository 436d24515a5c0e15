// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/compressed/fold_columns.h"
#include "ops/compressed/occurring_cells.h"
#include "ops/select/select_operators.h"
#include "ops/select/table_codes.h"
#include "ops/select/table_entries.h"
#include "ops/select/table_stages.h"

namespace heddle::ops {
namespace {

enum Input { kA, kB, kW, kD1, kD2 };

// Wider tables are CSR.
constexpr int64_t kMostDenseColumns = 8;
Format TableFormat(int64_t columns) {
  return columns == kUnknown || columns > kMostDenseColumns ? Format::kSparse : Format::kDense;
}

// A is 1, 2, ..., so it has a row in the table for each of its own, if only B and a scalar weight say what is
// in it.
bool KeepsRows(const Node& node) { return BooleanAttribute(node, "keep.rows", false); }

Result<ValueInfo> InferTable(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kA, "argument 1"));
  const Shape& a = context.inputs[kA].shape;
  if (!IsGiven(context.node, kB)) return InvalidArgument("table: argument 2 is missing");
  for (int input : {int{kB}, int{kW}}) {
    if (!IsGiven(context.node, input)) continue;
    const ValueInfo& info = context.inputs[static_cast<size_t>(input)];
    if (info.IsMatrix())
      HEDDLE_RETURN_IF_ERROR(
          CheckFits(a, info.shape, input == kB ? "second" : "weight matrix", StatusCode::kInvalidArgument));
  }
  if (IsGiven(context.node, kD1) != IsGiven(context.node, kD2))
    return InvalidArgument(
        "table: the number of rows and the number of columns are given together or not at all");
  const bool keeps_rows =
      KeepsRows(context.node) && !(IsGiven(context.node, kW) && context.inputs[kW].IsMatrix());
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rows,
                          InferSize(context, kD1, "the number of rows", keeps_rows ? a.rows : kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t columns, InferSize(context, kD2, "the number of columns", kUnknown));
  return ValueInfo::OfMatrix({rows, columns}, TableFormat(columns));
}

// The keys (kB) or weights (kW) of a call.
Result<TableInput> KeysOrWeightsOf(const KernelCall& call, size_t i) {
  const Value* const given = i < call.inputs.size() ? call.inputs[i] : nullptr;
  return TableInput::Of(call.inputs[kA]->matrix(), given, i == kW, 1);
}

// A is seq(1, m), and a column B says where in a row the weight stands: entries are in order, at most one in
// a row.
bool IsOneHot(const KernelCall& call, const TableInput& w) {
  const Value& b = *call.inputs[kB];
  const Matrix& a = call.inputs[kA]->matrix();
  const bool ascends = a.rows() < 2 || a.At(1, 0) == 2;  // seq(1, -3) goes down.
  return KeepsRows(call.node) && ascends && w.IsConstant() && a.columns() == 1 && b.IsMatrix() &&
         b.matrix().shape() == a.shape();
}

Result<Value> RunOneHot(const KernelCall& call, Shape shape, double weight) {
  const int64_t rows = call.inputs[kA]->matrix().rows();
  const double* const keys = call.inputs[kB]->matrix().data();
  const bool fixed = shape.IsKnown();
  std::vector<int32_t> columns(static_cast<size_t>(rows));  // -1: no entry.
  int64_t entries = 0, largest = 0;
  for (int64_t i = 0; i < rows; ++i) {
    if (i % kCellsBetweenPolls == 0 && IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    columns[static_cast<size_t>(i)] = -1;
    if (std::isnan(keys[i]) || std::isnan(weight)) continue;
    const int64_t column = TableKey(keys[i]);
    if (column < 0) return BadKey(keys[i], i, 0);
    if (fixed && (i >= shape.rows || column >= shape.columns)) continue;
    if (column >= kMostColumns) return TooLarge("column", keys[i], kMostColumns);
    columns[static_cast<size_t>(i)] = static_cast<int32_t>(column);
    largest = std::max(largest, column + 1);
    entries += weight != 0;
  }
  if (!fixed) shape = {rows, largest};
  const int64_t filled = std::min(rows, shape.rows);
  if (call.node.info.format != Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(shape.rows, shape.columns, 0));
    double* const cells = result.mutable_data();
    for (int64_t i = 0; i < filled; ++i)
      if (const int32_t column = columns[static_cast<size_t>(i)]; column >= 0)
        cells[i * shape.columns + column] = 0.0 + weight;
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(shape.rows, shape.columns, entries));
  int64_t* const offsets = result.mutable_row_offsets();
  int32_t* const indexes = result.mutable_column_indexes();
  double* const values = result.mutable_values();
  int64_t at = 0;
  for (int64_t i = 0; i < shape.rows; ++i) {
    if (i < filled && columns[static_cast<size_t>(i)] >= 0 && weight != 0) {
      indexes[at] = columns[static_cast<size_t>(i)];
      values[at++] = weight;
    }
    offsets[i + 1] = at;
  }
  return Value(std::move(result));
}

// The one-hot rows of a compressed column: its codes, and a row of the table for each of its tuples.
Result<std::optional<Value>> RunOneHotOfCodes(const KernelCall& call) {
  const std::optional<Value> nothing;
  const Value& keys = *call.inputs[kB];
  if (!keys.IsMatrix() || !keys.matrix().IsCompressed()) return nothing;
  const Matrix &a = call.inputs[kA]->matrix(), &b = keys.matrix();
  const Result<TableInput> w = KeysOrWeightsOf(call, kW);
  const Result<int64_t> rows = GivenSize(call, kD1, "the number of rows", a.rows()),
                        given = GivenSize(call, kD2, "the number of columns", kUnknown);
  if (!w.ok() || !rows.ok() || !given.ok() || *rows != b.rows() || b.shape() != Shape{a.rows(), 1} ||
      !IsOneHot(call, *w) || !((*w)[0] != 0) || !std::isfinite((*w)[0]))
    return nothing;
  const ColumnGroup& group = b.groups().groups[0];
  if (group.encoding == Encoding::kEmpty || group.encoding == Encoding::kUncompressed) return nothing;
  const std::vector<double> cells = TuplesAsDoubles(group);
  const std::vector<int64_t> counts = CountRowsOfTuples(group, b.first_row(), b.first_row() + b.rows());
  int64_t columns = std::max<int64_t>(*given, 0);
  for (size_t tuple = 0; tuple < cells.size(); ++tuple) {
    if (counts[tuple] == 0 || std::isnan(cells[tuple])) continue;
    const int64_t key = TableKey(cells[tuple]);
    if (key < 0 || key >= kMostColumns) return nothing;  // An error.
    if (*given == kUnknown) columns = std::max(columns, key + 1);
  }
  // A dictionary of dummies is as wide as it is high.
  const auto tuples = static_cast<int64_t>(cells.size());
  if (columns == 0 || columns > b.rows() / (2 * tuples)) return nothing;
  HEDDLE_ASSIGN_OR_RETURN(Matrix dictionary, FilledMatrix(tuples, columns, 0));
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    const double cell = cells[static_cast<size_t>(tuple)];
    const int64_t key = std::isnan(cell) ? -1 : TableKey(cell);
    if (key >= 0 && key < columns) dictionary.mutable_data()[tuple * columns + key] = (*w)[0];
  }
  auto table = std::make_shared<ColumnGroups>();
  table->rows = b.groups().rows;
  table->columns = columns;
  table->element_type = call.node.info.element_type;
  ColumnGroup& dummies = table->groups.emplace_back(group);
  dummies.columns.resize(static_cast<size_t>(columns));
  std::iota(dummies.columns.begin(), dummies.columns.end(), 0);
  HEDDLE_ASSIGN_OR_RETURN(dummies.dictionary, ToElementType(dictionary, table->element_type));
  return std::optional<Value>(
      Matrix::OfGroups(std::move(table)).Rows(b.first_row(), b.first_row() + b.rows()));
}

Result<std::optional<Value>> RunTableOfCodes(const KernelCall& call) {
  if (!call.inputs[kA]->matrix().IsCompressed()) return RunOneHotOfCodes(call);
  const Result<int64_t> rows = GivenSize(call, kD1, "the number of rows", kUnknown),
                        columns = GivenSize(call, kD2, "the number of columns", kUnknown);
  if (!rows.ok() || !columns.ok() || KeepsRows(call.node) ||
      call.node.info.element_type != ElementType::kFloat64)
    return std::optional<Value>();
  return TableOfJointCounts(call, {*rows, *columns});
}

Result<Value> RunTable(const KernelCall& call) {
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, GivenSize(call, kD1, "the number of rows", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, GivenSize(call, kD2, "the number of columns", kUnknown));
  const Matrix& a = call.inputs[kA]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const TableInput b, KeysOrWeightsOf(call, kB));
  HEDDLE_ASSIGN_OR_RETURN(const TableInput w, KeysOrWeightsOf(call, kW));
  if (IsOneHot(call, w)) return RunOneHot(call, shape, w[0]);
  const int64_t least_rows = KeepsRows(call.node) && w.IsConstant() ? a.rows() : 0;
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> made, TableOfFewCells(a, b.cells(), w.cells(), shape,
                                                                      least_rows, call.context.cancelled));
  if (made) return InFormat(*std::move(made), call.node.info.format);
  const TableRows rows{.total = a.rows(), .has_all_keys = least_rows > 0};
  HEDDLE_ASSIGN_OR_RETURN(std::vector<TableEntry> entries,
                          ReadEntries(a, b, w, rows, call.context.cancelled, &shape));
  return TableOf(std::move(entries), shape, call.node.info.format, w.IsConstant() && w[0] == 1,
                 call.context.cancelled);
}

Result<ValueInfo> InferTableBackward(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kA, "argument 1"));
  const ValueInfo& w = context.inputs[kW];
  return w.IsMatrix() ? ValueInfo::OfMatrix(w.shape) : ValueInfo::OfScalar(ValueType::kDouble);
}

// Adds to `result`, of the shape of W, whose first row is row `first` of all.
Status AddBackward(const KernelCall& call, int64_t first, Matrix* result) {
  const Matrix& a = call.inputs[kA]->matrix();
  const Matrix& table = call.inputs[kW + 1]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const TableInput b, KeysOrWeightsOf(call, kB));
  HEDDLE_ASSIGN_OR_RETURN(const TableInput w, KeysOrWeightsOf(call, kW));
  const bool is_matrix = call.inputs[kW]->IsMatrix();
  // Of weights with more columns than A has the first ones count, else they are read by position.
  const int64_t n = a.columns(), skipped = result->columns() > n ? result->columns() - n : 0;
  for (int64_t k = 0; k < a.cells(); ++k) {
    if (k % kCellsBetweenPolls == 0 && IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    if (std::isnan(a.data()[k]) || std::isnan(b[k]) || std::isnan(w[k])) continue;
    const int64_t row = TableKey(a.data()[k]), column = TableKey(b[k]);
    if (row < 0 || column < 0) return BadKey(row < 0 ? a.data()[k] : b[k], first + k / n, k % n);
    if (row >= table.rows() || column >= table.columns()) continue;
    result->mutable_data()[is_matrix ? k + k / n * skipped : 0] +=
        table.data()[row * table.columns() + column];
  }
  return OkStatus();
}

Result<Value> RunTableBackward(const KernelCall& call) {
  const Value& weights = *call.inputs[kW];
  const Shape shape = weights.IsMatrix() ? weights.matrix().shape() : Shape{1, 1};
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(shape.rows, shape.columns, 0));
  HEDDLE_RETURN_IF_ERROR(AddBackward(call, call.total_rows > 0 ? call.row_begin : 0, &result));
  if (weights.IsMatrix()) return Value(std::move(result));
  return Value(Scalar(result.At(0, 0)));
}

// Whether keys and weights that are matrices have the rows of A.
bool HaveRowsOfA(std::span<const ValueInfo> inputs) {
  return inputs[kA].IsMatrix() && inputs[kA].IsSized() &&
         std::all_of(inputs.begin() + kB, inputs.begin() + kW + 1, [&](const ValueInfo& info) {
           return !info.IsMatrix() || (info.IsSized() && info.shape.rows == inputs[kA].shape.rows);
         });
}
RowRule BackwardRowRule(const Node&, std::span<const ValueInfo> inputs) {
  return inputs[kW].IsMatrix() && HaveRowsOfA(inputs) ? RowRule::kRowWise : RowRule::kWhole;
}
InputUse BackwardInputUse(const Node&, std::span<const ValueInfo> inputs, int i) {
  return i <= kW && inputs[static_cast<size_t>(i)].IsMatrix() && HaveRowsOfA(inputs) ? InputUse::kRows
                                                                                     : InputUse::kWhole;
}

// Of a scalar W: the sum goes on from rank to rank, and that of the last goes to all.
Status RunBackwardStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) {
    outputs[0] = Value(Scalar(call.Received(0).matrix().At(0, 0)));
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix sum,
                          FilledMatrix(1, 1, call.before == nullptr ? 0 : call.before->matrix().At(0, 0)));
  HEDDLE_RETURN_IF_ERROR(AddBackward(call.WholeCall(), call.rows.Begin(call.rank), &sum));
  outputs[0] = Value(call.rank + 1 == call.ranks() ? sum : sum.Rows(0, 0));
  outputs[1] = Value(std::move(sum));
  return OkStatus();
}
bool HasOneWeight(const Node&, std::span<const ValueInfo> inputs) {
  return !inputs[kW].IsMatrix() && HaveRowsOfA(inputs);
}
constexpr Reach kSumOfRows[] = {Reach::kAll, Reach::kNext};
constexpr Stage kBackwardStages[] = {{.outputs = kSumOfRows, .reads_inputs = true}, {}};
constexpr StagedForm kBackwardStaged = {.stages = kBackwardStages,
                                        .result = StagedResult::kEach,
                                        .applies = HasOneWeight,
                                        .run = RunBackwardStage};

void DifferentiateTable(AdjointCall& call) {
  call.Give(kW, call.Add("table_backward", {call.Input(kA), call.Input(kB), call.Input(kW), call.Adjoint()}));
}

double TableWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return sizeof(TableEntry) * static_cast<double>(inputs[kA].shape.rows) *
         static_cast<double>(inputs[kA].shape.columns);
}

}  // namespace

// table(A, B, W, d1, d2): F[i, j] = sum of W[k] over the cells k with trunc(A[k]) = i and trunc(B[k]) = j.
//
// Shapes: A m x n; B and W the same shape, or scalars (W left out: 1, counts). Further columns of B and W do
// not
//   count, and a row A goes with a column of as many cells. The result is d1 x d2, entries
//   outside are dropped; without d1 and d2 it is max(A) x max(B), known only after the run. An entry with NaN
//   in A, B or W is skipped and counts for no size either. With the attribute "keep.rows" A is seq(1, m), and
//   the table has m rows (if W is no matrix: language reference 3.14).
// Errors: a key below 1 (at run time).
// Format: dense with at most 8 columns known before the run, else CSR.
// Order: weights of a cell add up in row order within panels of Granule(m) rows of A; panels along the tree.
// Rows: in stages where keys and weights have the rows of A: each rank adds up its own, by cell and panel,
// and
//   sends the sums to the rank that has the row of the table.
// Cost: sorts the m*n entries by column and row; counts of few cells need no order, nor do one-hot rows.
constexpr Operator kTableOperator = {.name = "table",
                                     .form = CallForm::kTable,
                                     .parameters = "A B W? odim1? odim2? outputEmptyBlocks?",
                                     .aliases = "ctable",
                                     .min_inputs = 2,
                                     .max_inputs = 5,
                                     .infer = InferTable,
                                     .input_use = TableInputUse,
                                     .staged = &kTableStaged,
                                     .run = RunTable,
                                     .run_compressed = RunTableOfCodes,
                                     .may_fail = true,
                                     .storages = Storages::kDense,
                                     .working_bytes = TableWorkingBytes,
                                     .adjoints = "0; 0; *; 0",
                                     .differentiate = DifferentiateTable};

// table_backward(A, B, W, dF): the adjoint of the weights, from that of the table: for each the cell to which
// it was added, 0 where it was left out; of a scalar W their sum, in row order.
//
// Shapes: as of table(); the result has the shape of W. Cost: a look-up for each cell of A.
// Rows: row-wise where keys and weights have the rows of A; of a scalar W ranks add up one after the other.
constexpr Operator kTableBackwardOperator = {.name = "table_backward",
                                             .parameters = "A B W dF",
                                             .min_inputs = 4,
                                             .max_inputs = 4,
                                             .infer = InferTableBackward,
                                             .row_rule = BackwardRowRule,
                                             .input_use = BackwardInputUse,
                                             .staged = &kBackwardStaged,
                                             .run = RunTableBackward,
                                             .may_fail = true,
                                             .storages = Storages::kDense};

}  // namespace heddle::ops
