// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/joint_counts.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "ops/base/parallel.h"
#include "ops/compressed/fold_columns.h"

namespace heddle::ops {
namespace {

constexpr int64_t kRowsAtOnce = 1024;
constexpr int64_t kGrainRows = 1 << 16;

}  // namespace

void GroupRows::ReadCodes(int64_t begin, int64_t end, uint16_t* codes) const {
  if (group->encoding == Encoding::kEmpty)
    std::fill_n(codes, end - begin, uint16_t{0});
  else
    DecodeCodes(*group, first + begin, first + end, codes);
}

std::optional<JointCounts> CountJointTuples(const GroupRows& a, const GroupRows& b, int64_t rows,
                                            const GroupRows* weights) {
  const int64_t places = a.tuples() * b.tuples();
  if (places > kMostJointTuples) return std::nullopt;
  const auto size = static_cast<size_t>(places);
  const std::vector<double> cells =
      weights == nullptr ? std::vector<double>() : TuplesAsDoubles(*weights->group);
  JointCounts counts;
  counts.rows.assign(size, 0);
  counts.weights.assign(weights == nullptr ? 0 : size, 0.0);
  std::mutex mutex;
  ParallelFor(rows, kGrainRows, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> own_rows(size, 0);
    std::vector<double> own_weights(counts.weights.size(), 0.0);
    std::array<uint16_t, kRowsAtOnce> a_codes, b_codes, w_codes;
    const auto stride = static_cast<size_t>(b.tuples());
    for (int64_t row = begin; row < end; row += kRowsAtOnce) {
      const int64_t last = std::min(end, row + kRowsAtOnce);
      const auto count = static_cast<size_t>(last - row);
      a.ReadCodes(row, last, a_codes.data());
      b.ReadCodes(row, last, b_codes.data());
      for (size_t i = 0; i < count; ++i) ++own_rows[a_codes[i] * stride + b_codes[i]];
      if (weights == nullptr) continue;
      weights->ReadCodes(row, last, w_codes.data());
      for (size_t i = 0; i < count; ++i) own_weights[a_codes[i] * stride + b_codes[i]] += cells[w_codes[i]];
    }
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < size; ++i) counts.rows[i] += own_rows[i];
    for (size_t i = 0; i < own_weights.size(); ++i) counts.weights[i] += own_weights[i];
  });
  return counts;
}

}  // namespace heddle::ops
