// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "ops/statistics/distinct_values.h"

namespace heddle::ops {

/// A sketch of a set of numbers: the kKept smallest hashes of its elements. That of the union of two sets is
/// made of theirs, so it is the same however the numbers are divided among workers (Beyer, Haas, Reinwald,
/// Sismanis, Gemulla: On synopses for distinct-value estimation under multiset operations, SIGMOD 2007).
class SmallestHashes {
 public:
  static constexpr int64_t kKept = 1024;

  /// A hash as HashOfValue makes it.
  void Add(double hash) {
    if (hash > largest_) return;
    hashes_.Add(hash);
    if (hashes_.Count() >= 2 * kKept) Prune();
  }
  void AddCells(const double* cells, int64_t count);
  /// The cells of rows [begin, end) of x, zeros of a CSR matrix among them.
  void AddRows(const Matrix& x, int64_t begin, int64_t end);
  void Join(SmallestHashes other) {
    for (const double hash : other.Elements()) Add(hash);
  }
  void Clear() { *this = SmallestHashes(); }
  /// The hashes, ascending, at most kKept.
  std::vector<double> Elements();
  /// How many numbers the set has: exact below kKept. Else, with h the largest hash that is kept, as a part
  /// of the range of hashes, (kKept - 1) / h; its standard error is 3.1 % (1 / sqrt(kKept - 2)).
  int64_t Count();

 private:
  void Prune();

  DistinctValues hashes_;
  double largest_ = std::numeric_limits<double>::infinity();  // Larger ones are not among the smallest kKept.
};

}  // namespace heddle::ops
