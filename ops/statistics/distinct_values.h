// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/matrix.h"

namespace heddle::ops {

/// A set of numbers. -0.0 is 0.0, and every NaN is the same.
///
/// A few are in a hash table. Of more, every step of such a table waits for memory: they are keys in a list,
/// which is sorted, and freed of duplicates, whenever it has grown to twice what it was.
class DistinctValues {
 public:
  DistinctValues() { Clear(); }
  void Add(double x);
  void AddCells(const double* cells, int64_t count);
  /// The cells of rows [begin, end) of x, zeros of a CSR matrix among them.
  void AddRows(const Matrix& x, int64_t begin, int64_t end);
  /// The numbers of another set, which is used up.
  void Join(DistinctValues other);
  void Clear();
  int64_t Count();
  /// Ascending, NaN last.
  std::vector<double> Elements();

 private:
  bool IsTable() const { return !places_.empty(); }
  bool Insert(uint64_t bits);
  void AddToTable(uint64_t bits);
  void Grow();
  void AddToList(uint64_t key) { keys_.push_back(key); }
  /// From now on the numbers are in the list.
  void LeaveTable();
  void SortListIfLong();
  /// All of the list becomes distinct and ascending.
  void SortList();

  // Open addressing: a power of two of places, of which at most half are in use. A place holds the bits of a
  // number of the set, or those of a NaN that is not ours: it is free. No places: the list is the set.
  std::vector<uint64_t> places_;
  int shift_ = 0;  // Of the product that tells the place.
  int64_t size_ = 0;
  // Keys as SortKey makes them: the first `sorted_` are distinct and ascend.
  std::vector<uint64_t> keys_;
  size_t sorted_ = 0;
};

/// A 53-bit hash of a number of such a set, evenly spread, as a double that is a whole number.
double HashOfValue(double x);

}  // namespace heddle::ops
