// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/simd/aggregate.h"

// Folds of rows, from one number for each tuple. No group is kUncompressed. Rows are those of the groups.
namespace heddle::ops {

/// rowSums whose order is free: the caller knows that all cells AddExactly over the columns
/// (ops/compressed/exact.h).
class SumsOfRows {
 public:
  explicit SumsOfRows(const ColumnGroups& groups);
  /// out[row - begin] = the sum of each row of [begin, end).
  void Compute(int64_t begin, int64_t end, double* out) const;

 private:
  // What the tuples of a group have, in units, above the least of them.
  struct Tuples {
    const ColumnGroup* group;
    std::vector<int64_t> units;
    int bytes = 0;                     // Of the largest.
    std::vector<uint8_t> byte_tables;  // A table by codes for each byte, from the lowest on.
  };
  void AddBytes(int64_t begin, int64_t end, int64_t* sums) const;

  int exponent_ = 0;
  int64_t base_ = 0;  // The least of all groups together.
  int most_bytes_ = 0;
  std::vector<Tuples> of_bytes_;
  std::vector<Tuples> dense_;  // All others whose rows have codes of 8 or 16 bits.
  std::vector<Tuples> others_;
};

/// rowMins or rowMaxs.
class ExtremesOfRows {
 public:
  ExtremesOfRows(const ColumnGroups& groups, simd::Fold fold);
  void Compute(int64_t begin, int64_t end, double* out) const;

 private:
  // The extremes of the tuples of a group.
  struct Tuples {
    const ColumnGroup* group;
    std::vector<uint64_t> keys;   // ExtremeKey().
    std::vector<uint8_t> places;  // Of the keys among those of all groups, where these are at most 256; a
                                  // table of 16 or 256 bytes of codes of 4 and 8 bits.
  };
  void ComputeByPlaces(int64_t begin, int64_t end, double* out) const;

  const bool is_minimum_;
  uint64_t uniform_;            // The least key of the groups whose rows are all the same.
  std::vector<Tuples> dense_;   // Whose rows have codes of 8 or 16 bits.
  std::vector<Tuples> others_;  // But for groups whose rows are all the same.
  std::vector<double> cells_;   // Of each place.
  uint8_t uniform_place_ = 0;
};

}  // namespace heddle::ops
