// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/matrix.h"

namespace heddle::ops {

/// A set of numbers. -0.0 is 0.0, and every NaN is the same.
class DistinctValues {
 public:
  DistinctValues() { Clear(); }
  void Add(double x);
  /// The cells of row i of x, zeros of a CSR matrix among them.
  void AddRow(const Matrix& x, int64_t i);
  void Clear();
  int64_t Count() const { return size_; }
  /// Ascending, NaN last.
  std::vector<double> Elements() const;

 private:
  void Grow();
  bool Insert(uint64_t bits);

  // Open addressing: a power of two of places, of which at most half are in use. A place holds the bits of a
  // number of the set, or those of a NaN that is not ours: it is free.
  std::vector<uint64_t> places_;
  int64_t size_ = 0;
};

/// A 53-bit hash of a number of such a set, evenly spread, as a double that is a whole number.
double HashOfValue(double x);

}  // namespace heddle::ops
