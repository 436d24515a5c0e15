// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/simd/aggregate.h"

// Folds of the columns of a group, from which tuples its rows have, and how often. Groups are not
// kUncompressed. Rows are those of the group.
namespace heddle::ops {

/// Sums whose order is free: the caller knows that the columns AddExactly (ops/compressed/exact.h) over all
/// rows that it adds up.
class TupleSums {
 public:
  explicit TupleSums(const ColumnGroup& group);
  /// sums[c * width + k] += the cells of column k in the rows r of [begin, end) for which (r - begin) mod
  /// classes is c. `classes`: 1, 2, 4 or 8. Sums start at +0.0.
  void Add(int64_t begin, int64_t end, int classes, double* sums) const;

 private:
  // A part of what each tuple has in a column, above the least: a table by codes, and what one of it is.
  struct Digit {
    int64_t column;
    uint64_t units;
    int most;
    std::vector<uint8_t> table;  // Empty: the code itself.
  };
  struct Column {
    int exponent = 0;   // Of its unit.
    int64_t least = 0;  // Units.
  };
  void MakeDigits();
  void MakeDigitsOf(int64_t k);
  void AddTuple(int64_t tuple, double rows, double* sums) const;
  void AddHalfBytes(int64_t begin, int64_t end, int classes, double* sums) const;
  void AddBytes(int64_t begin, int64_t end, int classes, double* sums) const;
  void AddCounted(int64_t begin, int64_t end, int classes, double* sums) const;
  void AddRows(int64_t begin, int64_t end, int classes, double* sums) const;
  template <typename AddDigit>
  void AddDigits(int64_t rows, int64_t before, int classes, const AddDigit& add, double* sums) const;

  const ColumnGroup& group_;
  int64_t width_;
  std::vector<double> tuples_;             // The dictionary, row-major.
  std::vector<double> columns_of_tuples_;  // The same, column-major.
  std::vector<Column> columns_;            // Empty where it is less work to count tuples.
  std::vector<Digit> digits_;              // Of codes of 4 and 8 bits.
};

/// Minima or maxima, which have no order.
class TupleExtremes {
 public:
  TupleExtremes(const ColumnGroup& group, simd::Fold fold);
  /// extremes[k] becomes its fold with the cells of column k in rows [begin, end). Stops reading where
  /// nothing can change any more.
  void Fold(int64_t begin, int64_t end, double* extremes) const;

 private:
  void FoldTuple(int64_t tuple, uint64_t* least) const;
  void FoldCodes(int64_t begin, int64_t end, uint64_t* least) const;

  const ColumnGroup& group_;
  const bool is_minimum_;
  const int64_t width_;
  std::vector<uint64_t> keys_;  // ExtremeKey() of the dictionary's cells, row-major.
  std::vector<uint64_t> best_;  // The least of each column.
};

/// The dictionary of a group as doubles, row-major; a tuple of zeros of kEmpty.
std::vector<double> TuplesAsDoubles(const ColumnGroup& group);

}  // namespace heddle::ops
