// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "core/values/column_groups.h"

namespace heddle::ops {

/// Decodes rows of a compressed matrix as CSR, from the cells of tuples that are not zero: what rows do not
/// have takes no time. Dummies have one such cell a tuple, however many columns.
template <typename T>
class SparseDecoder {
 public:
  /// The matrix must outlive it. Reads each dictionary once.
  explicit SparseDecoder(const Matrix& compressed);

  /// Entries of a row, about: every tuple of a group counts alike, but for the default of SDC groups.
  double EntriesOfRow() const { return entries_of_row_; }
  /// counts[i] becomes the number of entries of row begin + i, for rows [begin, end) of the matrix.
  void Count(int64_t begin, int64_t end, int64_t* counts) const;
  /// Writes the entries of rows [begin, end), the first of row begin + i to place places[i]; columns of a row
  /// ascend.
  void Write(int64_t begin, int64_t end, const int64_t* places, int32_t* columns, T* values) const;

 private:
  // Cells of the tuples of a dictionary that are not zero; columns are those of the group.
  struct Tuples {
    std::vector<int64_t> first;  // Of each tuple, and their number.
    std::vector<int32_t> columns;
    std::vector<T> values;
  };
  struct Part {
    const ColumnGroup* group;
    std::shared_ptr<const Tuples> tuples;  // Not of kUncompressed.
  };
  template <typename Visit>
  void ForRows(const Part& part, int64_t begin, int64_t end, Visit visit) const;

  const Matrix& matrix_;
  std::vector<Part> parts_;   // By their first columns; but for kEmpty.
  bool are_in_order_ = true;  // All columns of a part are before those of the next.
  double entries_of_row_ = 0;
};

/// The same for cells of either type.
class SparseRows {
 public:
  /// The matrix must outlive it. Reads each dictionary once.
  explicit SparseRows(const Matrix& compressed);
  double EntriesOfRow() const;
  /// Whether rows have so few entries that CSR takes less time than dense rows.
  bool HasFewEntries() const;
  /// Rows [begin, end) as CSR without zeros, in the thread that asks. kResourceExhausted.
  Result<Matrix> Decode(int64_t begin, int64_t end) const;
  /// All rows, on all threads. kResourceExhausted.
  Result<Matrix> DecodeAll() const;

 private:
  const Matrix& matrix_;
  std::variant<SparseDecoder<double>, SparseDecoder<float>> decoder_;
};

}  // namespace heddle::ops
