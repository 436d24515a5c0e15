// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "ops/base/operator.h"
#include "ops/select/table_of_few_cells.h"

// What table() reads and adds up: its operands, the entries of the table, and their sums in the order of
// docs/numerics.md.
namespace heddle::ops {

/// Longest work between two looks at `cancelled`.
constexpr int64_t kCellsBetweenPolls = 1 << 20;
/// Of a table.
constexpr int64_t kMostColumns = std::numeric_limits<int32_t>::max();

/// kInvalidArgument or kFailedPrecondition, as `code` says, where keys or weights of shape `b` do not fit to
/// A.
Status CheckFits(const Shape& a, const Shape& b, std::string_view what, StatusCode code);

/// The keys B or the weights W: a scalar, or one number for each cell of A in row-major order.
class TableInput {
 public:
  /// Of the value of input `i`; nullptr: `fallback`.
  static Result<TableInput> Of(const Matrix& a, const Value* given, bool is_weights, double fallback);
  double operator[](int64_t k) const { return is_matrix_ ? matrix_.data()[k] : constant_; }
  TableOperand cells() const { return {is_matrix_ ? matrix_.data() : nullptr, constant_}; }
  bool IsConstant() const { return !is_matrix_; }

 private:
  Matrix matrix_;
  bool is_matrix_ = false;
  double constant_ = 0;
};

/// A key after truncation, 0-based; that of keys beyond every table is kMostLength. Negative: below 1, an
/// error.
int64_t TableKey(double x);
Status TooLarge(std::string_view axis, double key, int64_t most);
/// `row` and `column` from 0: where the key stands in A.
Status BadKey(double x, int64_t row, int64_t column);

/// A weight that counts for one cell of the table.
struct TableEntry {
  int64_t row;
  int32_t column;
  int64_t panel;  ///< Of the rows of A.
  double weight;
};

/// Rows of A that somebody has, of all.
struct TableRows {
  int64_t first = 0;
  int64_t total = 0;
  bool has_all_keys = false;  ///< A is 1, 2, ..., total, and each of these has a row in the table.
};

/// Reads the keys: entries within the table, in row-major order of A. Where `shape` is not known it becomes
/// the smallest that holds them.
Result<std::vector<TableEntry>> ReadEntries(const Matrix& a, const TableInput& b, const TableInput& w,
                                            const TableRows& rows, const std::atomic<bool>* cancelled,
                                            Shape* shape);

/// Orders entries by row; then, within a row, by column. Stable.
void SortEntries(std::vector<TableEntry>* entries, const Shape& shape);
/// Of sorted entries one for each cell and panel, with the sum in their order; with `counts_ones`, where sums
/// are exact in every order, one for each cell.
void CombineEntries(bool counts_ones, std::vector<TableEntry>* entries);

/// The table, in that format, whatever the order of the entries of different cells.
Result<Value> TableOf(std::vector<TableEntry> entries, const Shape& shape, Format format, bool counts_ones,
                      const std::atomic<bool>* cancelled);
Result<Value> InFormat(Matrix dense, Format format);

}  // namespace heddle::ops
