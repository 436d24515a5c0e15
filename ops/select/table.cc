// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/select/select_operators.h"
#include "ops/select/table_of_few_cells.h"

namespace heddle::ops {
namespace {

enum Input { kA, kB, kW, kD1, kD2 };

constexpr int64_t kCellsBetweenPolls = 1 << 20;
constexpr int64_t kMostColumns = std::numeric_limits<int32_t>::max();

// Wider tables are CSR.
constexpr int64_t kMostDenseColumns = 8;
// So few cells, or not many more than there are entries, are counted one by one.
constexpr int64_t kFewCells = 1 << 14;

Format TableFormat(int64_t columns) {
  return columns == kUnknown || columns > kMostDenseColumns ? Format::kSparse : Format::kDense;
}

// Keys and weights have A's shape. As SystemDS reads them by position, which functions of its library rely
// on, columns that A does not have are left out, and the cells of a column may stand beside those of a row.
bool Fits(const Shape& a, const Shape& b) {
  const auto same = [](int64_t x, int64_t y) { return x == kUnknown || y == kUnknown || x == y; };
  const bool has_columns = a.columns == kUnknown || b.columns == kUnknown || a.columns <= b.columns;
  return (same(a.rows, b.rows) && has_columns) ||
         (same(a.rows, 1) && same(b.columns, 1) && same(a.columns, b.rows));
}

Status CheckFits(const Shape& a, const Shape& b, std::string_view what, StatusCode code) {
  if (Fits(a, b)) return OkStatus();
  return Status(code, fmt::format("table: the first argument is {} but the {} is {}", a, what, b))
      .WithNote("the keys and weights of table() are matrices of the same shape, or scalars");
}

// The first columns of a dense X.
Result<Matrix> FirstColumns(const Matrix& x, int64_t columns) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(x.rows(), columns, 0));
  for (int64_t i = 0; i < x.rows(); ++i)
    std::copy_n(x.data() + i * x.columns(), columns, result.mutable_data() + i * columns);
  return result;
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

// A scalar, or one number for each cell of A in row-major order.
class Operand {
 public:
  static Result<Operand> Of(const KernelCall& call, int i, double fallback) {
    Operand operand;
    operand.constant_ = NumberOr(call, i, fallback);
    const auto index = static_cast<size_t>(i);
    if (index < call.inputs.size() && call.inputs[index] != nullptr && call.inputs[index]->IsMatrix()) {
      const Shape a = call.inputs[kA]->matrix().shape();
      operand.matrix_ = call.inputs[index]->matrix();
      HEDDLE_RETURN_IF_ERROR(CheckFits(a, operand.matrix_.shape(), i == kB ? "second" : "weight matrix",
                                       StatusCode::kFailedPrecondition));
      if (operand.matrix_.columns() > a.columns) {
        HEDDLE_ASSIGN_OR_RETURN(operand.matrix_, FirstColumns(operand.matrix_, a.columns));
      }
      operand.is_matrix_ = true;
    }
    return operand;
  }
  double operator[](int64_t k) const { return is_matrix_ ? matrix_.data()[k] : constant_; }
  TableOperand cells() const { return {is_matrix_ ? matrix_.data() : nullptr, constant_}; }
  bool IsConstant() const { return !is_matrix_; }

 private:
  Matrix matrix_;
  bool is_matrix_ = false;
  double constant_ = 0;
};

// A key after truncation, 0-based; that of keys beyond every table is kMostLength. Negative: below 1, an
// error.
inline int64_t Key(double x) {
  constexpr auto kBeyond = static_cast<double>(kMostLength + 1);
  return x >= kBeyond ? kMostLength : std::max<int64_t>(0, TruncateToInteger(x)) - 1;
}

Status TooLarge(std::string_view axis, double key, int64_t most) {
  return ResourceExhausted("table: {} key {} is too large", axis, key)
      .WithNote(fmt::format("a table has at most {} {}s", most, axis));
}

Status BadKey(double x, int64_t position, int64_t columns_of_a) {
  return FailedPrecondition("table: key {} at row {}, column {} is below 1", x, position / columns_of_a + 1,
                            position % columns_of_a + 1)
      .WithNote("keys of table() are row and column numbers, counted from 1");
}

struct Entry {
  int64_t row;
  int32_t column;
  int64_t panel;
  double weight;
};

// Sums entries in order: each panel left to right, panels along the tree of docs/numerics.md section 2.
// Panels without an entry are +0.0 and may be skipped, so a node is joined with the next when all leaves
// between them are done.
class PanelTree {
 public:
  void Add(int64_t panel, double weight) {
    if (depth_ > 0 && stack_[depth_ - 1].panel == panel) {
      stack_[depth_ - 1].sum += weight;
      return;
    }
    if (depth_ > 0) {
      // Everything below the level at which the new panel parts from the last one is complete.
      const int level = Level(stack_[depth_ - 1].panel, panel);
      while (depth_ > 1 && Level(stack_[depth_ - 2].panel, stack_[depth_ - 1].panel) < level) Join();
    }
    stack_[depth_++] = {panel, 0.0 + weight};
  }
  double Finish() {
    while (depth_ > 1) Join();
    return depth_ == 0 ? 0.0 : stack_[--depth_].sum;
  }

 private:
  struct Node {
    int64_t panel;
    double sum;
  };
  // Number of the highest bit in which two panel numbers differ: the height of the node that holds both.
  static int Level(int64_t a, int64_t b) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(a ^ b)));
  }
  void Join() {
    stack_[depth_ - 2] = {stack_[depth_ - 1].panel, stack_[depth_ - 2].sum + stack_[depth_ - 1].sum};
    --depth_;
  }
  Node stack_[66];
  int depth_ = 0;
};

// Reads the keys: entries within the table, in row-major order of A. Sizes of a table without d1 and d2 are
// found here.
Result<std::vector<Entry>> ReadEntries(const KernelCall& call, const Operand& b, const Operand& w,
                                       Shape* shape) {
  const Matrix& a = call.inputs[kA]->matrix();
  const bool fixed = shape->IsKnown();
  const int64_t n = std::max<int64_t>(1, a.columns());
  const int64_t height = Granule(a.rows());
  Shape largest{0, 0};
  std::vector<Entry> entries;
  entries.reserve(static_cast<size_t>(a.cells()));
  for (int64_t k = 0; k < a.cells(); ++k) {
    if (k % kCellsBetweenPolls == 0 && IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    const double x = a.data()[k];
    const double y = b[k];
    if (std::isnan(x) || std::isnan(y) || std::isnan(w[k])) continue;
    const int64_t row = Key(x);
    const int64_t column = Key(y);
    if (row < 0 || column < 0) return BadKey(row < 0 ? x : y, k, n);
    if (fixed && (row >= shape->rows || column >= shape->columns)) continue;
    if (column >= kMostColumns) return TooLarge("column", y, kMostColumns);
    if (row >= kMostLength) return TooLarge("row", x, kMostLength);
    largest.rows = std::max(largest.rows, row + 1);
    largest.columns = std::max(largest.columns, column + 1);
    entries.push_back({row, static_cast<int32_t>(column), k / n / height, w[k]});
  }
  if (KeepsRows(call.node) && w.IsConstant()) largest.rows = a.rows();
  if (!fixed) *shape = largest;
  return entries;
}

// Stable; keys are in [0, range).
template <typename KeyOf>
void SortBy(std::vector<Entry>* entries, int64_t range, const KeyOf& key) {
  const auto in_order = [&](const Entry& a, const Entry& b) { return key(a) < key(b); };
  if (std::is_sorted(entries->begin(), entries->end(), in_order)) return;
  if (range > 4 * static_cast<int64_t>(entries->size()))
    return std::stable_sort(entries->begin(), entries->end(), in_order);
  std::vector<int64_t> next(static_cast<size_t>(range) + 1, 0);
  for (const Entry& entry : *entries) ++next[static_cast<size_t>(key(entry)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Entry> sorted(entries->size());
  for (const Entry& entry : *entries)
    sorted[static_cast<size_t>(next[static_cast<size_t>(key(entry))]++)] = entry;
  entries->swap(sorted);
}

// Orders entries by row; then, within a row, by column. Stable.
void SortEntries(std::vector<Entry>* entries, const Shape& shape) {
  const auto in_order = [](const Entry& a, const Entry& b) {
    return a.row != b.row ? a.row < b.row : a.column < b.column;
  };
  if (std::is_sorted(entries->begin(), entries->end(), in_order)) return;
  SortBy(entries, shape.columns, [](const Entry& entry) { return int64_t{entry.column}; });
  SortBy(entries, shape.rows, [](const Entry& entry) { return entry.row; });
}

// Calls put(row, column, sum) for each cell that has entries, in row-major order.
template <typename Put>
void SumCells(const std::vector<Entry>& entries, const Put& put) {
  PanelTree tree;
  for (size_t k = 0; k < entries.size(); ++k) {
    tree.Add(entries[k].panel, entries[k].weight);
    if (k + 1 < entries.size() && entries[k + 1].row == entries[k].row &&
        entries[k + 1].column == entries[k].column)
      continue;
    put(entries[k].row, entries[k].column, tree.Finish());
  }
}

// A is seq(1, m), and a column B says where in a row the weight stands: entries are in order, at most one in
// a row.
bool IsOneHot(const KernelCall& call, const Operand& w) {
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
    const int64_t column = Key(keys[i]);
    if (column < 0) return BadKey(keys[i], i, 1);
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

Result<Value> InFormat(Matrix dense, Format format) {
  if (format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(dense, AsSparse(dense));
  }
  return Value(std::move(dense));
}

Result<Value> RunTable(const KernelCall& call) {
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, GivenSize(call, kD1, "the number of rows", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, GivenSize(call, kD2, "the number of columns", kUnknown));
  const Matrix& a = call.inputs[kA]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const Operand b, Operand::Of(call, kB, 1));
  HEDDLE_ASSIGN_OR_RETURN(const Operand w, Operand::Of(call, kW, 1));
  if (IsOneHot(call, w)) return RunOneHot(call, shape, w[0]);
  const int64_t least_rows = KeepsRows(call.node) && w.IsConstant() ? a.rows() : 0;
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> made, TableOfFewCells(a, b.cells(), w.cells(), shape,
                                                                      least_rows, call.context.cancelled));
  if (made) return InFormat(*std::move(made), call.node.info.format);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Entry> entries, ReadEntries(call, b, w, &shape));
  const bool sparse = call.node.info.format == Format::kSparse;
  const bool counts_ones = w.IsConstant() && w[0] == 1;
  // As doubles: sizes are whatever a script says.
  const bool few_cells = static_cast<double>(shape.rows) * static_cast<double>(shape.columns) <=
                         kFewCells + 2 * static_cast<double>(entries.size());
  if (!sparse || (counts_ones && few_cells)) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(shape.rows, shape.columns, 0));
    double* cells = result.mutable_data();
    if (counts_ones) {  // Whole numbers: exact in any order.
      for (const Entry& entry : entries) cells[entry.row * shape.columns + entry.column] += 1;
    } else {
      SortEntries(&entries, shape);
      SumCells(entries,
               [&](int64_t row, int32_t column, double sum) { cells[row * shape.columns + column] = sum; });
    }
    return InFormat(std::move(result), call.node.info.format);
  }
  SortEntries(&entries, shape);
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  int64_t nonzeros = 0;
  SumCells(entries, [&](int64_t, int32_t, double sum) { nonzeros += sum != 0; });
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(shape.rows, shape.columns, nonzeros));
  int64_t* offsets = result.mutable_row_offsets();
  int64_t at = 0;
  SumCells(entries, [&](int64_t row, int32_t column, double sum) {
    if (sum == 0) return;
    result.mutable_column_indexes()[at] = column;
    result.mutable_values()[at++] = sum;
    ++offsets[row + 1];
  });
  for (int64_t i = 0; i < shape.rows; ++i) offsets[i + 1] += offsets[i];
  return Value(std::move(result));
}

Result<ValueInfo> InferTableBackward(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kA, "argument 1"));
  const ValueInfo& w = context.inputs[kW];
  return w.IsMatrix() ? ValueInfo::OfMatrix(w.shape) : ValueInfo::OfScalar(ValueType::kDouble);
}

Result<Value> RunTableBackward(const KernelCall& call) {
  const Matrix& a = call.inputs[kA]->matrix();
  const Value& weights = *call.inputs[kW];
  const Matrix& table = call.inputs[kW + 1]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const Operand b, Operand::Of(call, kB, 1));
  HEDDLE_ASSIGN_OR_RETURN(const Operand w, Operand::Of(call, kW, 1));
  const bool is_matrix = weights.IsMatrix();
  const Shape shape = is_matrix ? weights.matrix().shape() : Shape{1, 1};
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(shape.rows, shape.columns, 0));
  // Of weights with more columns than A has the first ones count, else they are read by position.
  const int64_t n = a.columns(), skipped = shape.columns > n ? shape.columns - n : 0;
  for (int64_t k = 0; k < a.cells(); ++k) {
    if (k % kCellsBetweenPolls == 0 && IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    if (std::isnan(a.data()[k]) || std::isnan(b[k]) || std::isnan(w[k])) continue;
    const int64_t row = Key(a.data()[k]), column = Key(b[k]);
    if (row < 0 || column < 0) return BadKey(row < 0 ? a.data()[k] : b[k], k, n);
    if (row >= table.rows() || column >= table.columns()) continue;
    result.mutable_data()[is_matrix ? k + k / n * skipped : 0] +=
        table.data()[row * table.columns() + column];
  }
  if (is_matrix) return Value(std::move(result));
  return Value(Scalar(result.At(0, 0)));
}

void DifferentiateTable(AdjointCall& call) {
  call.Give(kW, call.Add("table_backward", {call.Input(kA), call.Input(kB), call.Input(kW), call.Adjoint()}));
}

double TableWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return sizeof(Entry) * static_cast<double>(inputs[kA].shape.rows) *
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
// Cost: sorts the m*n entries by column and row; counts of few cells need no order, nor do one-hot rows.
constexpr Operator kTableOperator = {.name = "table",
                                     .form = CallForm::kTable,
                                     .parameters = "A B W? odim1? odim2? outputEmptyBlocks?",
                                     .aliases = "ctable",
                                     .min_inputs = 2,
                                     .max_inputs = 5,
                                     .infer = InferTable,
                                     .run = RunTable,
                                     .may_fail = true,
                                     .storages = Storages::kDense,
                                     .working_bytes = TableWorkingBytes,
                                     .adjoints = "0; 0; *; 0",
                                     .differentiate = DifferentiateTable};

// table_backward(A, B, W, dF): the adjoint of the weights, from that of the table: for each the cell to which
// it was added, 0 where it was left out; of a scalar W their sum, in row order.
//
// Shapes: as of table(); the result has the shape of W. Cost: a look-up for each cell of A.
constexpr Operator kTableBackwardOperator = {.name = "table_backward",
                                             .parameters = "A B W dF",
                                             .min_inputs = 4,
                                             .max_inputs = 4,
                                             .infer = InferTableBackward,
                                             .run = RunTableBackward,
                                             .may_fail = true,
                                             .storages = Storages::kDense};

}  // namespace heddle::ops
