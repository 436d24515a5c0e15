// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/smallest_hashes.h"

#include <algorithm>
#include <cmath>

namespace heddle::ops {

void SmallestHashes::AddRow(const Matrix& x, int64_t i) {
  if (!x.IsSparse()) {
    for (int64_t j = 0; j < x.columns(); ++j) Add(HashOfValue(x.data()[i * x.columns() + j]));
    return;
  }
  const int64_t begin = x.row_offsets()[i], end = x.row_offsets()[i + 1];
  for (int64_t k = begin; k < end; ++k) Add(HashOfValue(x.values()[k]));
  if (end - begin < x.columns()) Add(HashOfValue(0));
}

std::vector<double> SmallestHashes::Elements() const {
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

int64_t SmallestHashes::Count() const {
  const std::vector<double> kept = Elements();
  if (static_cast<int64_t>(kept.size()) < kKept) return static_cast<int64_t>(kept.size());
  constexpr double kRange = 0x1p53;
  return std::llround(static_cast<double>(kKept - 1) * kRange / kept.back());
}

}  // namespace heddle::ops
