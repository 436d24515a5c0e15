// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/compressed/exact.h"

namespace heddle::ops {

/// The columns of a matrix as whole numbers. A column is its least value, and a unit times digits of seven
/// bits, each of which is a *plane* of bytes from 0 to 127: what instructions multiply 64 at once
/// (simd/product/byte_products.h).
class BytePlanes {
 public:
  struct Column {
    int exponent = 0;    ///< Of its unit.
    int64_t least = 0;   ///< In units.
    int64_t first = 0;   ///< Of its planes, the lowest digit first.
    int64_t planes = 0;  ///< None: all cells are the least.
  };
  static constexpr int kDigitBits = 7;

  /// Of a matrix, compressed without uncompressed groups, or of dense doubles, which have to be whole numbers
  /// from 0 to 127: a plane for each column. It must outlive this.
  explicit BytePlanes(const Matrix& x);

  /// False where numbers of a dictionary are no multiples of a unit.
  bool AreExact() const { return are_exact_; }
  /// Planes; the last one is of ones where HasOnes().
  int64_t count() const { return planes_ + (HasOnes() ? 1 : 0); }
  /// Whether the least value of a column is other than zero.
  bool HasOnes() const { return has_ones_; }
  const std::vector<Column>& columns() const { return columns_; }
  /// Of each column; of dense ones those of the numbers that they may have.
  const std::vector<ExactUnits>& units() const { return units_; }

  /// Plane p of rows [begin, end) to out + p * stride. False, and something, where a dense cell is no such
  /// number.
  bool Write(int64_t begin, int64_t end, int64_t stride, uint8_t* out) const;

 private:
  struct Group {
    const ColumnGroup* group;
    int64_t first;                             // Of its planes, which follow each other.
    std::vector<std::vector<uint8_t>> planes;  // The byte of each tuple; zeros up to a multiple of 16.
  };
  template <typename T>
  void AddGroup(const ColumnGroup& group);
  bool WriteDense(int64_t begin, int64_t end, int64_t stride, uint8_t* out) const;

  const Matrix& x_;
  std::vector<Column> columns_;
  std::vector<ExactUnits> units_;
  std::vector<Group> groups_;
  int64_t planes_ = 0;
  bool are_exact_ = true, has_ones_ = false;
};

}  // namespace heddle::ops
