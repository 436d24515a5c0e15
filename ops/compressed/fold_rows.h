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
    int bytes;                         // Of the largest.
    std::vector<uint8_t> byte_tables;  // Of codes of 4 bits: 16 for each byte, from the lowest on.
  };
  const ColumnGroups& groups_;
  int exponent_ = 0;
  int64_t base_ = 0;  // The least of all groups together.
  int most_bytes_ = 0;
  std::vector<Tuples> half_bytes_, others_;
};

/// rowMins or rowMaxs.
class ExtremesOfRows {
 public:
  ExtremesOfRows(const ColumnGroups& groups, simd::Fold fold);
  void Compute(int64_t begin, int64_t end, double* out) const;

 private:
  // The extremes of the tuples of a group, as numbers that are smaller the sooner an extreme wins.
  struct Tuples {
    const ColumnGroup* group;
    std::vector<int64_t> keys;
    std::vector<uint8_t> places;  // Of the keys among those of all groups, where these are at most 256.
  };
  void ComputeByPlaces(int64_t begin, int64_t end, double* out) const;
  double CellOf(int64_t key) const;

  const bool is_minimum_;
  int64_t uniform_;  // The least key of the groups whose rows are all the same.
  std::vector<Tuples> tuples_;
  std::vector<double> cells_;  // Of each place.
  uint8_t uniform_place_ = 0;
};

}  // namespace heddle::ops
