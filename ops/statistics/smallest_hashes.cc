// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/smallest_hashes.h"

#include <algorithm>
#include <cmath>

namespace heddle::ops {

void SmallestHashes::AddCells(const double* cells, int64_t count) {
  for (int64_t k = 0; k < count; ++k) Add(HashOfValue(cells[k]));
}

void SmallestHashes::AddRows(const Matrix& x, int64_t begin, int64_t end) {
  if (!x.IsSparse()) return AddCells(x.data() + begin * x.columns(), (end - begin) * x.columns());
  const int64_t first = x.row_offsets()[begin], last = x.row_offsets()[end];
  AddCells(x.values() + first, last - first);
  if (last - first < (end - begin) * x.columns()) Add(HashOfValue(0));
}

std::vector<double> SmallestHashes::Elements() {
  std::vector<double> kept = hashes_.Elements();
  kept.resize(std::min(kept.size(), static_cast<size_t>(kKept)));
  return kept;
}

void SmallestHashes::Prune() {
  const std::vector<double> kept = Elements();
  hashes_.Clear();
  for (const double hash : kept) hashes_.Add(hash);
  largest_ = kept.back();
}

int64_t SmallestHashes::Count() {
  const std::vector<double> kept = Elements();
  if (static_cast<int64_t>(kept.size()) < kKept) return static_cast<int64_t>(kept.size());
  constexpr double kRange = 0x1p53;
  return std::llround(static_cast<double>(kKept - 1) * kRange / kept.back());
}

}  // namespace heddle::ops
