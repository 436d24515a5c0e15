// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/values/matrix.h"

namespace heddle::ops {

/// What of the rows of a matrix decides how a binary file stores them by column groups: the different cells
/// of each column, as long as they are few, and how many rows have each. Parts of the rows that are counted
/// one by one, and added up in their order, give what all rows give. Cells are told apart by their bits, but
/// that all NaN are one; floats count as the doubles that they are.
class CountedCells {
 public:
  struct Column {
    bool are_many = false;       ///< More than MostOf(columns): nothing else is known then.
    std::vector<double> cells;   ///< Ascending, -0.0 before +0.0, NaN last.
    std::vector<int64_t> rows;   ///< That have each of them.
    int64_t runs = 0;            ///< Of rows with the same cell.
    double first = 0, last = 0;  ///< Of the first and the last row.
  };

  CountedCells() = default;
  /// As rows() and columns() have them.
  CountedCells(int64_t rows, std::vector<Column> columns) : rows_(rows), columns_(std::move(columns)) {}

  /// No matrix with more columns is stored by groups in a file.
  static constexpr int64_t kMostColumns = int64_t{1} << 16;
  /// Columns with more different cells count as such with many, so that all of them together take little
  /// memory.
  static int64_t MostOf(int64_t columns);

  /// Counts the cells of a matrix, on all threads. Of one with more than kMostColumns nothing.
  static CountedCells Of(const Matrix& rows);
  /// Rows that follow these.
  void Add(const CountedCells& next);

  int64_t rows() const { return rows_; }
  /// None where there are more than kMostColumns.
  const std::vector<Column>& columns() const { return columns_; }
  std::vector<Column> TakeColumns() && { return std::move(columns_); }

 private:
  int64_t rows_ = 0;
  std::vector<Column> columns_;
};

}  // namespace heddle::ops
