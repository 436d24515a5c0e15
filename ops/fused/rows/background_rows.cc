// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/rows/background_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/values/panels.h"
#include "ops/reduction/lane_tree.h"
#include "ops/sparse/gather_cells.h"

namespace heddle::ops {
namespace {

// Additions of a lane from which on whole binades are taken: they cost about as many.
constexpr int64_t kManyAdditions = 64;

// lanes[j mod 8] takes x for j = first, ..., last - 1.
void FoldRun(simd::Fold fold, double x, int64_t first, int64_t last, double* lanes) {
  if (fold == simd::Fold::kAdd && x == 0) return;
  const auto one_by_one = [&](int64_t end) {
    for (; first < end; ++first)
      if (fold == simd::Fold::kAdd)
        lanes[first & 7] += x;
      else
        lanes[first & 7] = simd::FoldTwo(fold, lanes[first & 7], x);
  };
  one_by_one(std::min(last, (first + 7) / 8 * 8));
  const int64_t times = (last - first) / 8;
  if (fold == simd::Fold::kAdd && times >= kManyAdditions) {
    for (int j = 0; j < 8; ++j) lanes[j] = AddRepeatedly(lanes[j], x, times);
    first += times * 8;
  } else if (fold == simd::Fold::kAdd) {
    for (int64_t i = 0; i < times; ++i)
      for (int j = 0; j < 8; ++j) lanes[j] += x;
    first += times * 8;
  }
  one_by_one(last);
}

// With fewer columns an entry than this, cells are written out: the same value is not repeated often enough.
constexpr int64_t kColumnsOfEntry = 64, kColumnsTogether = 512;

// The lanes of columns [column, end) of a row, whose entries there are [first, last); `column` is a multiple
// of 8.
void FoldColumns(simd::Fold fold, const Entries& x, double absent, int64_t first, int64_t last,
                 int64_t column, int64_t end, double* lanes) {
  if ((last - first) * kColumnsOfEntry > end - column) {
    double cells[kColumnsTogether];
    for (; column < end; column += kColumnsTogether) {
      const int64_t here = std::min(kColumnsTogether, end - column);
      std::fill_n(cells, here, absent);
      for (; first < last && x.columns[first] < column + here; ++first)
        cells[x.columns[first] - column] = x.values[first];
      simd::FoldFlat(fold, cells, here, lanes);
    }
    return;
  }
  for (int64_t e = first; e < last; ++e) {
    FoldRun(fold, absent, column, x.columns[e], lanes);
    column = x.columns[e] + 1;
    if (fold == simd::Fold::kAdd)
      lanes[x.columns[e] & 7] += x.values[e];
    else
      lanes[x.columns[e] & 7] = simd::FoldTwo(fold, lanes[x.columns[e] & 7], x.values[e]);
  }
  FoldRun(fold, absent, column, end, lanes);
}

}  // namespace

double AddRepeatedly(double sum, double x, int64_t times) {
  while (times > 0) {
    const double before = sum;
    sum += x;
    --times;
    if (sum == before || std::isnan(sum)) return sum;
    // From the second sum within a binade on every addition adds the same multiple of the last place: where x
    // lies half way between two of them, the first one has made the sum even.
    const uint64_t binade = std::bit_cast<uint64_t>(sum) >> 52;  // Sign and exponent.
    const bool settled = times >= 4 && std::bit_cast<uint64_t>(before) >> 52 == binade &&
                         (binade & 0x7ff) > 0 && (binade & 0x7ff) < 0x7fe &&
                         std::signbit(sum) == std::signbit(x) && std::abs(before) >= std::abs(x);
    if (!settled) continue;
    const double step = (sum + x) - sum;
    if (step == 0) return sum;
    const double end = std::bit_cast<double>((binade + 1) << 52);
    const double steps = std::min(static_cast<double>(times), std::floor((end - sum) / step) - 2);
    if (steps < 1) continue;
    sum += steps * step;
    times -= static_cast<int64_t>(steps);
  }
  return sum;
}

bool HasNonzero(const double* numbers, int64_t count) {
  return std::any_of(numbers, numbers + count, [](double number) { return number != 0; });
}

void FilledRows::Fill(const Entries& x, const double* backgrounds, int64_t rows, int64_t n) {
  offsets.assign(1, 0);
  for (int64_t i = 0; i < rows; ++i)
    offsets.push_back(offsets.back() + (backgrounds[i] != 0 ? n : x.offsets[i + 1] - x.offsets[i]));
  // Loops over entries may read a register past the last one.
  const auto room = static_cast<size_t>(offsets.back() + kGatherOverrun);
  columns.assign(room, 0);
  values.assign(room, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    int32_t* const to = columns.data() + offsets[static_cast<size_t>(i)];
    double* const cells = values.data() + offsets[static_cast<size_t>(i)];
    const int64_t first = x.offsets[i], last = x.offsets[i + 1];
    if (backgrounds[i] == 0) {
      std::copy(x.columns + first, x.columns + last, to);
      std::copy(x.values + first, x.values + last, cells);
      continue;
    }
    for (int64_t j = 0; j < n; ++j) to[j] = static_cast<int32_t>(j);
    std::fill_n(cells, n, backgrounds[i]);
    for (int64_t e = first; e < last; ++e) cells[x.columns[e]] = x.values[e];
  }
}

void FoldRowsWithBackground(simd::Fold fold, const Entries& x, const double* backgrounds, int64_t rows,
                            int64_t n, double* out) {
  const bool ordered = fold == simd::Fold::kAdd || fold == simd::Fold::kMultiply;
  alignas(64) double lanes[8];
  simd::LaneTree tree;
  for (int64_t i = 0; i < rows; ++i) {
    const double absent = backgrounds == nullptr ? 0.0 : backgrounds[i];
    const int64_t first = x.offsets[i], last = x.offsets[i + 1];
    std::fill_n(lanes, 8, simd::StartOf(fold));
    if (!ordered) {
      simd::FoldFlat(fold, x.values + first, last - first, lanes);
      if (last - first < n) lanes[0] = simd::FoldTwo(fold, lanes[0], absent);
    } else if (n <= kColumnChunk) {
      FoldColumns(fold, x, absent, first, last, 0, n, lanes);
    } else {
      int64_t e = first;
      for (int64_t chunk = 0; chunk * kColumnChunk < n; ++chunk) {
        const int64_t begin = chunk * kColumnChunk, end = std::min(n, begin + kColumnChunk);
        const int64_t next = std::lower_bound(x.columns + e, x.columns + last, end) - x.columns;
        FoldColumns(fold, x, absent, e, next, begin, end, tree.Leaf(chunk));
        e = next;
      }
      tree.Finish(lanes);
    }
    out[i] = simd::FoldLanes(fold, lanes);
  }
}

void SpreadRowsWithBackground(const Entries& x, const double* backgrounds, int64_t rows, int64_t n,
                              double* out, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i, out += stride) {
    std::fill_n(out, n, backgrounds == nullptr ? 0.0 : backgrounds[i]);
    for (int64_t e = x.offsets[i]; e < x.offsets[i + 1]; ++e) out[x.columns[e]] = x.values[e];
  }
}

}  // namespace heddle::ops
