// SPDX-License-Identifier: Apache-2.0
#include "ops/select/table_entries.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/whole_number.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

// So few cells, or not many more than there are entries, are counted one by one.
constexpr int64_t kFewCells = 1 << 14;

// Keys and weights have A's shape. As SystemDS reads them by position, which functions of its library rely
// on, columns that A does not have are left out, and the cells of a column may stand beside those of a row.
bool Fits(const Shape& a, const Shape& b) {
  const auto same = [](int64_t x, int64_t y) { return x == kUnknown || y == kUnknown || x == y; };
  const bool has_columns = a.columns == kUnknown || b.columns == kUnknown || a.columns <= b.columns;
  return (same(a.rows, b.rows) && has_columns) ||
         (same(a.rows, 1) && same(b.columns, 1) && same(a.columns, b.rows));
}

// The first columns of a dense X.
Result<Matrix> FirstColumns(const Matrix& x, int64_t columns) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(x.rows(), columns, 0));
  for (int64_t i = 0; i < x.rows(); ++i)
    std::copy_n(x.data() + i * x.columns(), columns, result.mutable_data() + i * columns);
  return result;
}

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

// Stable; keys are in [0, range).
template <typename KeyOf>
void SortBy(std::vector<TableEntry>* entries, int64_t range, const KeyOf& key) {
  const auto in_order = [&](const TableEntry& a, const TableEntry& b) { return key(a) < key(b); };
  if (std::is_sorted(entries->begin(), entries->end(), in_order)) return;
  if (range > 4 * static_cast<int64_t>(entries->size()))
    return std::stable_sort(entries->begin(), entries->end(), in_order);
  std::vector<int64_t> next(static_cast<size_t>(range) + 1, 0);
  for (const TableEntry& entry : *entries) ++next[static_cast<size_t>(key(entry)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<TableEntry> sorted(entries->size());
  for (const TableEntry& entry : *entries)
    sorted[static_cast<size_t>(next[static_cast<size_t>(key(entry))]++)] = entry;
  entries->swap(sorted);
}

// Calls put(row, column, sum) for each cell that has entries, in row-major order.
template <typename Put>
void SumCells(const std::vector<TableEntry>& entries, const Put& put) {
  PanelTree tree;
  for (size_t k = 0; k < entries.size(); ++k) {
    tree.Add(entries[k].panel, entries[k].weight);
    if (k + 1 < entries.size() && entries[k + 1].row == entries[k].row &&
        entries[k + 1].column == entries[k].column)
      continue;
    put(entries[k].row, entries[k].column, tree.Finish());
  }
}

}  // namespace

Status CheckFits(const Shape& a, const Shape& b, std::string_view what, StatusCode code) {
  if (Fits(a, b)) return OkStatus();
  return Status(code, fmt::format("table: the first argument is {} but the {} is {}", a, what, b))
      .WithNote("the keys and weights of table() are matrices of the same shape, or scalars");
}

Result<TableInput> TableInput::Of(const Matrix& a, const Value* given, bool is_weights, double fallback) {
  TableInput operand;
  operand.constant_ = fallback;
  if (given != nullptr && given->IsScalar()) operand.constant_ = given->scalar().AsDouble();
  if (given == nullptr || !given->IsMatrix()) return operand;
  operand.matrix_ = given->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckFits(a.shape(), operand.matrix_.shape(),
                                   is_weights ? "weight matrix" : "second", StatusCode::kFailedPrecondition));
  if (operand.matrix_.columns() > a.columns()) {
    HEDDLE_ASSIGN_OR_RETURN(operand.matrix_, FirstColumns(operand.matrix_, a.columns()));
  }
  operand.is_matrix_ = true;
  return operand;
}

int64_t TableKey(double x) {
  constexpr auto kBeyond = static_cast<double>(kMostLength + 1);
  return x >= kBeyond ? kMostLength : std::max<int64_t>(0, TruncateToInteger(x)) - 1;
}

Status TooLarge(std::string_view axis, double key, int64_t most) {
  return ResourceExhausted("table: {} key {} is too large", axis, key)
      .WithNote(fmt::format("a table has at most {} {}s", most, axis));
}

Status BadKey(double x, int64_t row, int64_t column) {
  return FailedPrecondition("table: key {} at row {}, column {} is below 1", x, row + 1, column + 1)
      .WithNote("keys of table() are row and column numbers, counted from 1");
}

Result<std::vector<TableEntry>> ReadEntries(const Matrix& a, const TableInput& b, const TableInput& w,
                                            const TableRows& rows, const std::atomic<bool>* cancelled,
                                            Shape* shape) {
  const bool fixed = shape->IsKnown();
  const int64_t n = std::max<int64_t>(1, a.columns());
  const int64_t height = Granule(rows.total);
  Shape largest{0, 0};
  std::vector<TableEntry> entries;
  entries.reserve(static_cast<size_t>(a.cells()));
  for (int64_t k = 0; k < a.cells(); ++k) {
    if (k % kCellsBetweenPolls == 0 && IsCancelled(cancelled)) return Cancelled("cancelled");
    const double x = a.data()[k];
    const double y = b[k];
    if (std::isnan(x) || std::isnan(y) || std::isnan(w[k])) continue;
    const int64_t row = TableKey(x);
    const int64_t column = TableKey(y);
    if (row < 0 || column < 0) return BadKey(row < 0 ? x : y, rows.first + k / n, k % n);
    if (fixed && (row >= shape->rows || column >= shape->columns)) continue;
    if (column >= kMostColumns) return TooLarge("column", y, kMostColumns);
    if (row >= kMostLength) return TooLarge("row", x, kMostLength);
    largest.rows = std::max(largest.rows, row + 1);
    largest.columns = std::max(largest.columns, column + 1);
    entries.push_back({row, static_cast<int32_t>(column), (rows.first + k / n) / height, w[k]});
  }
  if (rows.has_all_keys) largest.rows = rows.total;
  if (!fixed) *shape = largest;
  return entries;
}

void SortEntries(std::vector<TableEntry>* entries, const Shape& shape) {
  const auto in_order = [](const TableEntry& a, const TableEntry& b) {
    return a.row != b.row ? a.row < b.row : a.column < b.column;
  };
  if (std::is_sorted(entries->begin(), entries->end(), in_order)) return;
  SortBy(entries, shape.columns, [](const TableEntry& entry) { return int64_t{entry.column}; });
  SortBy(entries, shape.rows, [](const TableEntry& entry) { return entry.row; });
}

void CombineEntries(bool counts_ones, std::vector<TableEntry>* entries) {
  size_t kept = 0;
  for (const TableEntry& entry : *entries) {
    if (kept > 0) {
      TableEntry& last = (*entries)[kept - 1];
      if (last.row == entry.row && last.column == entry.column &&
          (counts_ones || last.panel == entry.panel)) {
        last.weight += entry.weight;
        continue;
      }
    }
    (*entries)[kept] = entry;
    (*entries)[kept++].weight = 0.0 + entry.weight;
  }
  entries->resize(kept);
}

Result<Value> InFormat(Matrix dense, Format format) {
  if (format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(dense, AsSparse(dense));
  }
  return Value(std::move(dense));
}

Result<Value> TableOf(std::vector<TableEntry> entries, const Shape& shape, Format format, bool counts_ones,
                      const std::atomic<bool>* cancelled) {
  const bool sparse = format == Format::kSparse;
  // As doubles: sizes are whatever a script says.
  const bool few_cells = static_cast<double>(shape.rows) * static_cast<double>(shape.columns) <=
                         kFewCells + 2 * static_cast<double>(entries.size());
  if (!sparse || (counts_ones && few_cells)) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(shape.rows, shape.columns, 0));
    double* cells = result.mutable_data();
    if (counts_ones) {  // Whole numbers: exact in any order.
      for (const TableEntry& entry : entries) cells[entry.row * shape.columns + entry.column] += entry.weight;
    } else {
      SortEntries(&entries, shape);
      SumCells(entries,
               [&](int64_t row, int32_t column, double sum) { cells[row * shape.columns + column] = sum; });
    }
    return InFormat(std::move(result), format);
  }
  SortEntries(&entries, shape);
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
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

}  // namespace heddle::ops
