// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/sparse_vectors.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/values/panels.h"
#include "ops/reduction/lane_tree.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops::simd {
namespace {

// Rows taken together, so that lanes and entries stay in the first-level cache. Of more entries on average
// than kShortRow each goes alone: a wrong guess at its end costs less than to look up whose each entry is.
constexpr int64_t kBlockRows = 128, kBlockEntries = 1024, kShortRow = 6, kShortRowOfChunks = 24;

// rows[e] = i for the entries e of each row i, the first one's place is 0; up to kWidth numbers behind the
// last may be written.
template <int kWidth>
void WriteRows(const int64_t* offsets, int64_t count, int32_t* rows) {
  for (int64_t i = 0; i < count; ++i) {
    const __m256i row = _mm256_set1_epi32(static_cast<int32_t>(i));
    int32_t* at = rows + (offsets[i] - offsets[0]);
    int32_t* const end = rows + (offsets[i + 1] - offsets[0]);
    // As many as most rows have, without a branch; what is too much the next rows write over.
    for (int w = 0; w < kWidth; w += 8) _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + w), row);
    for (at += kWidth; at < end; ++at) *at = static_cast<int32_t>(i);
  }
}

class RowsOfEntries {
 public:
  RowsOfEntries(const int64_t* offsets, int64_t count) {
    if (offsets[count] - offsets[0] <= 3 * count)
      WriteRows<8>(offsets, count, rows_);
    else
      WriteRows<16>(offsets, count, rows_);
  }
  int64_t operator[](int64_t e) const { return rows_[e]; }

 private:
  int32_t rows_[kBlockEntries + 16];
};

// Calls few(first, end) for rows that fit a block and have at most so many entries on average, one(row) for
// every other.
template <typename Few, typename One>
void ForRows(const int64_t* offsets, int64_t rows, int64_t most_rows, int64_t short_row, Few few, One one) {
  for (int64_t i = 0; i < rows;) {
    int64_t end = std::min(rows, i + most_rows);
    if (offsets[end] - offsets[i] > kBlockEntries)
      end = std::upper_bound(offsets + i, offsets + end, offsets[i] + kBlockEntries) - offsets - 1;
    if (end > i && offsets[end] - offsets[i] <= short_row * (end - i)) {
      few(i, end);
      i = end;
    } else {
      for (end = std::max(end, i + 1); i < end; ++i) one(i);
    }
  }
}

// Of a row: lanes of all of so many chunks are kept at once; of more than a few only if there are that many
// entries to a chunk.
constexpr int64_t kMostChunks = 16, kFewChunks = 4, kEntriesOfChunk = 2;

struct Ones {
  double operator[](int64_t) const { return 1.0; }
};

// fma(value, v[column], lane), where an explicit zero counts as absent if kZeros says so.
template <bool kZeros, typename Vector>
[[gnu::always_inline]] inline double AddToLane(double value, Vector v, int64_t column, double lane) {
  double cell = v[column];
  if constexpr (kZeros) {
    const __m128d is_there = _mm_cmp_sd(_mm_set_sd(value), _mm_setzero_pd(), _CMP_NEQ_UQ);
    cell = _mm_cvtsd_f64(_mm_and_pd(is_there, _mm_set_sd(cell)));
  }
  return std::fma(value, cell, lane);
}

// A row of one chunk. The sum of its lanes by scalars: a vector would wait for lanes just stored.
template <bool kZeros, typename Vector>
[[gnu::always_inline]] inline double MultiplyRow(const SparseRows& x, int64_t row, Vector v) {
  double s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int64_t e = x.offsets[row], end = x.offsets[row + 1]; e < end; ++e) {
    double& lane = s[x.columns[e] & 7];
    lane = AddToLane<kZeros>(x.values[e], v, x.columns[e], lane);
  }
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

// A row of many chunks.
template <bool kZeros, typename Vector>
double MultiplyLongRow(const SparseRows& x, int64_t row, Vector v, LaneTree& tree) {
  for (int64_t e = x.offsets[row], end = x.offsets[row + 1]; e < end; ++e) {
    const int64_t column = x.columns[e];
    double& lane = tree.Leaf(column / kColumnChunk)[column & 7];
    lane = AddToLane<kZeros>(x.values[e], v, column, lane);
  }
  double lanes[8];
  tree.Finish(lanes);
  return FoldLanes(Fold::kAdd, lanes);
}

// The lanes of the chunks of a row become those of the row.
void JoinChunks(int64_t chunks, double* lanes) {
  for (int64_t step = 1; step < chunks; step *= 2)
    for (int64_t c = 0; c + step < chunks; c += 2 * step)
      for (int64_t lane = 0; lane < 8; ++lane)
        lanes[c * 8 + lane] = lanes[c * 8 + lane] + lanes[(c + step) * 8 + lane];
}

// Rows [first, end), whose entries are of rows[0] and so on, by the lanes of (row, chunk) each.
template <bool kZeros, bool kChunks, typename Vector, typename Rows>
[[gnu::always_inline]] inline void MultiplyTogether(const SparseRows& x, int64_t first, int64_t end,
                                                    const Rows& rows, Vector v, int64_t chunks, double* out) {
  alignas(64) double lanes[kBlockRows * 8];
  std::fill_n(lanes, (end - first) * chunks * 8, 0.0);
  for (int64_t e = x.offsets[first], begin = e, last = x.offsets[end]; e < last; ++e) {
    const int64_t column = x.columns[e];
    const int64_t place = kChunks ? rows[e - begin] * chunks + column / kColumnChunk : rows[e - begin];
    double& lane = lanes[place * 8 + (column & 7)];
    lane = AddToLane<kZeros>(x.values[e], v, column, lane);
  }
  if (kChunks)
    for (int64_t i = 0; i < end - first; ++i) JoinChunks(chunks, lanes + i * chunks * 8);
  FoldRows(Fold::kAdd, lanes, end - first, chunks * 8, 8, out + first);
}

template <bool kZeros, bool kChunks, typename Vector>
void Multiply(const SparseRows& x, Vector v, int64_t n, double* out) {
  const int64_t chunks = kChunks ? CeilDivide(n, kColumnChunk) : 1;
  ForRows(
      x.offsets, x.rows, kBlockRows / chunks, kChunks ? kShortRowOfChunks : kShortRow,
      [&](int64_t first, int64_t end) {
        MultiplyTogether<kZeros, kChunks>(x, first, end, RowsOfEntries(x.offsets + first, end - first), v,
                                          chunks, out);
      },
      [&](int64_t row) {
        struct First {
          int64_t operator[](int64_t) const { return 0; }
        };
        if constexpr (kChunks)
          MultiplyTogether<kZeros, true>(x, row, row + 1, First(), v, chunks, out);
        else
          out[row] = MultiplyRow<kZeros>(x, row, v);
      });
}

template <typename Vector>
void MultiplyAny(const SparseRows& x, Vector v, int64_t n, double* out) {
  const int64_t chunks = CeilDivide(n, kColumnChunk);
  LaneTree tree;
  if (chunks > kMostChunks ||
      (chunks > kFewChunks && x.offsets[x.rows] - x.offsets[0] < kEntriesOfChunk * chunks * x.rows))
    for (int64_t i = 0; i < x.rows; ++i)
      out[i] = x.has_zeros ? MultiplyLongRow<true>(x, i, v, tree) : MultiplyLongRow<false>(x, i, v, tree);
  else if (chunks > 1)
    x.has_zeros ? Multiply<true, true>(x, v, n, out) : Multiply<false, true>(x, v, n, out);
  else
    x.has_zeros ? Multiply<true, false>(x, v, n, out) : Multiply<false, false>(x, v, n, out);
}

void AddZero(double* cells, int64_t count) {
  for (int64_t i = 0; i < count; ++i) cells[i] = cells[i] + 0.0;
}

// Zeros times a number add nothing; an explicit one must not meet anything else.
bool MayMeetZeros(const double* w, int64_t count, int64_t w_stride) {
  double sum = 0;  // Of zeros, and of NaN where w is Infinity or NaN.
  for (int64_t i = 0; i < count; ++i) sum += w[i * w_stride] * 0.0;
  return std::isnan(sum);
}

// The entries of rows [first, end), each with weight_of(its place among them).
template <bool kSkipsZeros, typename WeightOf>
[[gnu::always_inline]] inline void AddRows(const SparseRows& x, int64_t first, int64_t end,
                                           WeightOf weight_of, double* out) {
  const int32_t* const columns = x.columns;
  const double* const values = x.values;
  for (int64_t e = x.offsets[first], begin = e, last = x.offsets[end]; e < last; ++e) {
    double& cell = out[columns[e]];
    if (!kSkipsZeros || values[e] != 0.0) cell = std::fma(values[e], weight_of(e - begin), cell);
  }
}

void AddRow(const SparseRows& x, int64_t row, double weight, bool skips_zeros, double* out) {
  const auto weight_of = [weight](int64_t) { return weight; };
  skips_zeros ? AddRows<true>(x, row, row + 1, weight_of, out)
              : AddRows<false>(x, row, row + 1, weight_of, out);
}

void AddTogether(const SparseRows& x, int64_t first, int64_t end, const RowsOfEntries& rows, const double* w,
                 int64_t w_stride, bool skips_zeros, double* out) {
  const auto weight_of = [&, weights = w + first * w_stride](int64_t e) {
    return weights[rows[e] * w_stride];
  };
  skips_zeros ? AddRows<true>(x, first, end, weight_of, out) : AddRows<false>(x, first, end, weight_of, out);
}

}  // namespace

void MultiplySparseRows(const SparseRows& x, const double* v, int64_t n, double* out) {
  MultiplyAny(x, v, n, out);
  AddZero(out, x.rows);
}

void SumSparseRows(const SparseRows& x, int64_t n, double* out) { MultiplyAny(x, Ones(), n, out); }

void AddScaledSparseRows(const SparseRows& x, const double* w, int64_t w_stride, double* out) {
  const bool skips_zeros = x.has_zeros && MayMeetZeros(w, x.rows, w_stride);
  ForRows(
      x.offsets, x.rows, kBlockRows, kShortRow,
      [&](int64_t first, int64_t end) {
        AddTogether(x, first, end, RowsOfEntries(x.offsets + first, end - first), w, w_stride, skips_zeros,
                    out);
      },
      [&](int64_t row) { AddRow(x, row, w[row * w_stride], skips_zeros, out); });
}

void MultiplyAndAddSparseRows(const SparseRows& x, const double* v, double* w, double* out) {
  ForRows(
      x.offsets, x.rows, kBlockRows, kShortRow,
      [&](int64_t first, int64_t end) {
        const RowsOfEntries rows(x.offsets + first, end - first);
        if (x.has_zeros)
          MultiplyTogether<true, false>(x, first, end, rows, v, 1, w);
        else
          MultiplyTogether<false, false>(x, first, end, rows, v, 1, w);
        AddZero(w + first, end - first);
        AddTogether(x, first, end, rows, w, 1, x.has_zeros && MayMeetZeros(w + first, end - first, 1), out);
      },
      [&](int64_t row) {
        w[row] = (x.has_zeros ? MultiplyRow<true>(x, row, v) : MultiplyRow<false>(x, row, v)) + 0.0;
        AddRow(x, row, w[row], x.has_zeros && !std::isfinite(w[row]), out);
      });
}

}  // namespace heddle::ops::simd
