// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/product/sparse_rows.h"

#include <algorithm>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/simd/product/few_columns.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/rows.h"

namespace heddle::ops::simd {
namespace {

// Sums of one pass over the entries of a row, and the columns for which eight lanes give nothing.
constexpr int kMostVectors = 12;
constexpr int64_t kMostAvx2Columns = 40;
// MultiplySparseRow of n <= 4 * kVectors columns, all in registers.
template <int kVectors>
void SparseRowInRegisters(const double* values, const int32_t* columns, int64_t entries, const double* b,
                          int64_t b_stride, int64_t n, double* out, int64_t prefetch_distance) {
  const int64_t last = n - 4 * (kVectors - 1);
  __m256d sums[kVectors];
#pragma GCC unroll 12
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_setzero_pd();
  for (int64_t e = 0; e < entries; ++e) {
    if (prefetch_distance >
        0) {  // Of the lines of a row every second one; the processor's prefetcher finds the others.
      const double* next = b + columns[e + prefetch_distance] * b_stride;
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; v += 4)
        _mm_prefetch(reinterpret_cast<const char*>(next + 4 * v), _MM_HINT_T1);
    }
    if (values[e] == 0.0) continue;
    const double* row = b + columns[e] * b_stride;
    const __m256d value = _mm256_broadcast_sd(values + e);
#pragma GCC unroll 12
    for (int v = 0; v + 1 < kVectors; ++v)
      sums[v] = _mm256_fmadd_pd(_mm256_loadu_pd(row + 4 * v), value, sums[v]);
    sums[kVectors - 1] =
        _mm256_fmadd_pd(LoadFirst(row + 4 * (kVectors - 1), last), value, sums[kVectors - 1]);
  }
#pragma GCC unroll 12
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_add_pd(sums[v], _mm256_setzero_pd());
#pragma GCC unroll 12
  for (int v = 0; v + 1 < kVectors; ++v) _mm256_storeu_pd(out + 4 * v, sums[v]);
  // A masked store is slow, and what reads the row next would wait for it.
  if (n == 4 * kVectors)
    _mm256_storeu_pd(out + 4 * (kVectors - 1), sums[kVectors - 1]);
  else
    _mm256_maskstore_pd(out + 4 * (kVectors - 1), FirstOfFour(last), sums[kVectors - 1]);
}

// k cells in one or two vectors, zeros behind them.
template <int k>
struct FewCells {
  static constexpr int kVectors = (k + 3) / 4, kTail = k - 4 * (kVectors - 1);
  static constexpr int64_t kStride = LaneStride(k);
  __m256d v[kVectors];

  static FewCells Load(const double* cells) {
    FewCells few;
    if constexpr (kVectors == 2) few.v[0] = _mm256_loadu_pd(cells);
    const double* tail = cells + 4 * (kVectors - 1);
    few.v[kVectors - 1] = LoadFirst(tail, kTail);
    return few;
  }
  static FewCells LoadLane(const double* lane) {
    FewCells few;
    for (int i = 0; i < kVectors; ++i) few.v[i] = _mm256_loadu_pd(lane + 4 * i);
    return few;
  }
  void StoreLane(double* lane) const {
    for (int i = 0; i < kVectors; ++i) _mm256_store_pd(lane + 4 * i, v[i]);
  }
  // A masked store is slow.
  void Store(double* cells) const {
    if constexpr (kVectors == 2) _mm256_storeu_pd(cells, v[0]);
    double* tail = cells + 4 * (kVectors - 1);
    const __m256d last = v[kVectors - 1];
    const __m128d low = _mm256_castpd256_pd128(last);
    if constexpr (kTail == 4) _mm256_storeu_pd(tail, last);
    if constexpr (kTail == 1) _mm_store_sd(tail, low);
    if constexpr (kTail == 2 || kTail == 3) _mm_storeu_pd(tail, low);
    if constexpr (kTail == 3) _mm_store_sd(tail + 2, _mm256_extractf128_pd(last, 1));
  }
  FewCells AddZero() const {
    FewCells sum;
    for (int i = 0; i < kVectors; ++i) sum.v[i] = _mm256_add_pd(v[i], _mm256_setzero_pd());
    return sum;
  }
  friend FewCells operator+(FewCells a, const FewCells& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] = _mm256_add_pd(a.v[i], b.v[i]);
    return a;
  }
};

template <int k>
[[gnu::always_inline]] inline void ToLanes(const double* values, const int32_t* columns, int64_t entries,
                                           const double* b, double* lanes) {
  using Cells = FewCells<k>;
#pragma GCC unroll 16
  for (int i = 0; i < 8 * Cells::kVectors; ++i) _mm256_store_pd(lanes + 4 * i, _mm256_setzero_pd());
  for (int64_t e = 0; e < entries; ++e) {
    if (values[e] == 0.0) continue;
    const Cells row = Cells::Load(b + int64_t{columns[e]} * k);
    double* lane = lanes + (columns[e] & 7) * Cells::kStride;
    Cells sum = Cells::LoadLane(lane);
    const __m256d value = _mm256_broadcast_sd(values + e);
    for (int i = 0; i < Cells::kVectors; ++i) sum.v[i] = _mm256_fmadd_pd(value, row.v[i], sum.v[i]);
    sum.StoreLane(lane);
  }
}

template <int k>
[[gnu::always_inline]] inline void Close(const double* lanes, double* out) {
  const auto lane = [&](int l) __attribute__((always_inline)) {
    return FewCells<k>::LoadLane(lanes + l * FewCells<k>::kStride);
  };
  auto sum = ((lane(0) + lane(4)) + (lane(2) + lane(6))) + ((lane(1) + lane(5)) + (lane(3) + lane(7)));
  sum.AddZero().Store(out);
}

// A row of at most two entries, none of them beyond `count`; two may be read. Without a branch: how many the
// next row has is not foreseen.
template <int k>
[[gnu::always_inline]] inline void CloseFewEntries(const double* values, const int32_t* columns,
                                                   int64_t count, const double* b, double* out) {
  using Cells = FewCells<k>;
  const auto is_there = [=](int e) __attribute__((always_inline)) {
    const __m256d here =
        _mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_set1_epi64x(e)));
    return _mm256_and_pd(here,
                         _mm256_cmp_pd(_mm256_broadcast_sd(values + e), _mm256_setzero_pd(), _CMP_NEQ_UQ));
  };
  const __m256d is_first = is_there(0), is_second = is_there(1);
  const __m256d same_lane = _mm256_castsi256_pd(
      _mm256_cmpeq_epi64(_mm256_set1_epi64x((columns[0] ^ columns[1]) & 7), _mm256_setzero_si256()));
  const Cells first = Cells::Load(b + int64_t{columns[0]} * k),
              second = Cells::Load(b + int64_t{columns[1]} * k);
  Cells sum;
  for (int i = 0; i < Cells::kVectors; ++i) {
    const __m256d product = _mm256_fmadd_pd(_mm256_broadcast_sd(values), first.v[i], _mm256_setzero_pd());
    const __m256d one = _mm256_and_pd(is_first, product);
    const __m256d two = _mm256_add_pd(
        _mm256_fmadd_pd(_mm256_broadcast_sd(values + 1), second.v[i], _mm256_and_pd(same_lane, one)),
        _mm256_andnot_pd(same_lane, one));
    sum.v[i] = _mm256_blendv_pd(one, two, is_second);
  }
  sum.AddZero().Store(out);
}

template <int k>
void RowsByLanes(const double* values, const int32_t* columns, const int64_t* offsets, int64_t rows,
                 const double* b, double* out) {
  alignas(64) double lanes[8 * LaneStride(k)];
  const int64_t all = offsets[rows];
  for (int64_t i = 0; i < rows; ++i, out += k) {
    const int64_t first = offsets[i], count = offsets[i + 1] - first;
    if (count <= 2 && first + 2 <= all) {
      CloseFewEntries<k>(values + first, columns + first, count, b, out);
      continue;
    }
    ToLanes<k>(values + first, columns + first, count, b, lanes);
    Close<k>(lanes, out);
  }
}

}  // namespace

void MultiplySparseRow(const double* values, const int32_t* columns, int64_t entries, const double* b,
                       int64_t b_stride, int64_t n, double* out, int64_t prefetch_distance) {
  if (n > kMostAvx2Columns && SelectedCpu() == Cpu::kAvx512)
    return MultiplySparseRowAvx512(values, columns, entries, b, b_stride, n, out);
  constexpr int64_t kMost = 4 * kMostVectors;
  const int64_t together = n <= kMost ? kMost : 4 * CeilDivide(CeilDivide(n, 4), CeilDivide(n, kMost));
  for (int64_t c = 0; c < n; c += together) {
    const int64_t here = std::min(together, n - c);
    WithConstant<1, kMostVectors>(CeilDivide(here, 4), [&](auto vectors) {
      SparseRowInRegisters<vectors>(values, columns, entries, b + c, b_stride, here, out + c,
                                    prefetch_distance);
    });
  }
}

void MultiplyByLanes(const double* values, const int32_t* columns, int64_t entries, const double* b,
                     int64_t k, double* lanes) {
  WithConstant<2, 8>(k, [&](auto count) { ToLanes<count>(values, columns, entries, b, lanes); });
}

void CloseLanes(const double* lanes, int64_t k, double* out) {
  WithConstant<2, 8>(k, [&](auto count) { Close<count>(lanes, out); });
}

void MultiplyRowsByLanes(const double* values, const int32_t* columns, const int64_t* offsets, int64_t rows,
                         const double* b, int64_t k, double* out) {
  WithConstant<2, 8>(k, [&](auto count) { RowsByLanes<count>(values, columns, offsets, rows, b, out); });
}

void AddScaledRow(const double* values, const int32_t* columns, int64_t entries, const double* y, int64_t k,
                  double* out) {
  WithConstant<0, kMostRegisterColumns / 4>(k / 4, [&](auto vectors) {
    constexpr int kVectors = decltype(vectors)::value;
    __m256d cells[kVectors + 1];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) cells[v] = _mm256_loadu_pd(y + 4 * v);
    for (int64_t e = 0; e < entries; ++e) {
      double* row = out + columns[e] * k;
      const __m256d value = _mm256_broadcast_sd(values + e);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        _mm256_storeu_pd(row + 4 * v, _mm256_fmadd_pd(value, cells[v], _mm256_loadu_pd(row + 4 * v)));
      for (int64_t c = 4 * kVectors; c < k; ++c) row[c] = std::fma(values[e], y[c], row[c]);
    }
  });
}

}  // namespace heddle::ops::simd
