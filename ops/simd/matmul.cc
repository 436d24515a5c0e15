// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/matmul.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "core/panels.h"
#include "ops/simd/rows.h"

namespace heddle::ops::simd {
namespace {

constexpr int64_t kBlockCells = 2048;

double SumOfLanes(const double* r) {
  return ((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]));
}

// (r0+r4, r1+r5, r2+r6, r3+r7) of one row times each of kCount vectors. kTail: after the whole eights comes
// 0: nothing, 1: at most four cells, 2: more.
template <int kCount, int kTail>
inline void HalfLanes(const double* x, int64_t whole, const double* v, int64_t v_stride, __m256i mask,
                      __m256d* half) {
  __m256d low[kCount], high[kCount];
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) low[c] = high[c] = _mm256_setzero_pd();
  int64_t j = 0;
  for (; j < whole; j += 8) {
    const __m256d x_low = _mm256_loadu_pd(x + j), x_high = _mm256_loadu_pd(x + j + 4);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      low[c] = _mm256_fmadd_pd(x_low, _mm256_load_pd(v + c * v_stride + j), low[c]);
      high[c] = _mm256_fmadd_pd(x_high, _mm256_load_pd(v + c * v_stride + j + 4), high[c]);
    }
  }
  if constexpr (kTail > 0) {
    const __m256d x_low = kTail == 1 ? _mm256_maskload_pd(x + j, mask) : _mm256_loadu_pd(x + j);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c)
      low[c] = _mm256_fmadd_pd(x_low, _mm256_load_pd(v + c * v_stride + j), low[c]);
  }
  if constexpr (kTail == 2) {
    const __m256d x_high = _mm256_maskload_pd(x + j + 4, mask);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c)
      high[c] = _mm256_fmadd_pd(x_high, _mm256_load_pd(v + c * v_stride + j + 4), high[c]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) half[c] = _mm256_add_pd(low[c], high[c]);
}

// The rest of L for four rows at once, and + 0.0.
inline __m256d JoinFourRows(__m256d a, __m256d b, __m256d c, __m256d d) {
  const __m256d ab = _mm256_add_pd(_mm256_permute2f128_pd(a, b, 0x20), _mm256_permute2f128_pd(a, b, 0x31));
  const __m256d cd = _mm256_add_pd(_mm256_permute2f128_pd(c, d, 0x20), _mm256_permute2f128_pd(c, d, 0x31));
  return _mm256_add_pd(_mm256_permute4x64_pd(_mm256_hadd_pd(ab, cd), 0xd8), _mm256_setzero_pd());
}

// kWhole: the number of whole eights in a row, -1 when it is not a constant.
template <int kCount, int kWhole, int kTail>
int64_t FourRowsAtATime(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                        int64_t v_stride, double* out, int64_t out_stride) {
  const __m256i mask = FirstOfFour(kTail == 2 ? n % 8 - 4 : n % 8);
  const int64_t whole = kWhole >= 0 ? 8 * kWhole : n / 8 * 8;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride, out += 4 * out_stride) {
    __m256d half[4][kCount];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) HalfLanes<kCount, kTail>(x + r * stride, whole, v, v_stride, mask, half[r]);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      const __m256d four = JoinFourRows(half[0][c], half[1][c], half[2][c], half[3][c]);
      if (kCount == 1 && out_stride == 1) {
        _mm256_storeu_pd(out, four);
        continue;
      }
      alignas(32) double results[4];
      _mm256_store_pd(results, four);
      for (int r = 0; r < 4; ++r) out[r * out_stride + c] = results[r];
    }
  }
  return i;
}

template <int kCount, int kWhole>
int64_t FourRowsByTail(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                       int64_t v_stride, double* out, int64_t out_stride) {
  if (n % 8 == 0) return FourRowsAtATime<kCount, kWhole, 0>(x, rows, stride, n, v, v_stride, out, out_stride);
  if (n % 8 <= 4) return FourRowsAtATime<kCount, kWhole, 1>(x, rows, stride, n, v, v_stride, out, out_stride);
  return FourRowsAtATime<kCount, kWhole, 2>(x, rows, stride, n, v, v_stride, out, out_stride);
}

template <int kCount>
void RowsTimesVectors(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                      int64_t v_stride, double* out, int64_t out_stride) {
  int64_t i = 0;
  if (n < 8)
    i = FourRowsByTail<kCount, 0>(x, rows, stride, n, v, v_stride, out, out_stride);
  else if (n < 16)
    i = FourRowsByTail<kCount, 1>(x, rows, stride, n, v, v_stride, out, out_stride);
  else
    i = FourRowsByTail<kCount, -1>(x, rows, stride, n, v, v_stride, out, out_stride);
  for (; i < rows; ++i) {
    for (int c = 0; c < kCount; ++c) {
      double lanes[8] = {0, 0, 0, 0, 0, 0, 0, 0};
      MultiplyFlat(x + i * stride, v + c * v_stride, n, lanes);
      out[i * out_stride + c] = SumOfLanes(lanes) + 0.0;
    }
  }
}

// Few columns: kVectors * kCount accumulators in registers (every loop over them must be unrolled), kVectors
// = ceil(n / 4).
template <int kVectors, int kCount>
void ColumnsInRegisters(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                        int64_t w_stride, double* columns, int64_t columns_stride) {
  __m256d sums[kCount][kVectors];
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[c][v] = _mm256_load_pd(columns + c * columns_stride + 4 * v);
  const __m256i mask = FirstOfFour(n - 4 * (kVectors - 1));
  for (int64_t i = 0; i < rows; ++i, x += stride, w += w_stride) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const __m256d cells =
          v + 1 < kVectors ? _mm256_loadu_pd(x + 4 * v) : _mm256_maskload_pd(x + 4 * v, mask);
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c)
        sums[c][v] = _mm256_fmadd_pd(cells, _mm256_broadcast_sd(w + c), sums[c][v]);
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) _mm256_store_pd(columns + c * columns_stride + 4 * v, sums[c][v]);
}

template <int kVectors>
void ColumnsByCount(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                    int64_t w_stride, int64_t count, double* columns, int64_t columns_stride) {
  for (int64_t c = 0; c < count;) {
    const int64_t left = count - c;
    double* here = columns + c * columns_stride;
    if (kVectors <= 3 && left >= 4) {
      ColumnsInRegisters<kVectors, kVectors <= 3 ? 4 : 1>(x, rows, stride, n, w + c, w_stride, here,
                                                          columns_stride);
      c += 4;
    } else if (kVectors <= 6 && left >= 2) {
      ColumnsInRegisters<kVectors, kVectors <= 6 ? 2 : 1>(x, rows, stride, n, w + c, w_stride, here,
                                                          columns_stride);
      c += 2;
    } else {
      ColumnsInRegisters<kVectors, 1>(x, rows, stride, n, w + c, w_stride, here, columns_stride);
      c += 1;
    }
  }
}

// Many columns. Returns the rows done: kRows at a time. Several pay also on rows that are in the cache already.
template <int kRows>
int64_t ColumnsInMemory(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                        int64_t w_stride, double* columns) {
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows, x += kRows * stride, w += kRows * w_stride) {
    __m256d weights[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) weights[r] = _mm256_broadcast_sd(w + r * w_stride);
    UpdateColumns<kRows>(x, stride, n, columns, [&](int r, __m256d sum, __m256d cells) __attribute__((always_inline)) {
      return _mm256_fmadd_pd(cells, weights[r], sum);
    });
  }
  return i;
}

void ColumnsInMemory(bool several, const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                     int64_t w_stride, double* columns) {
  const int64_t done = several ? ColumnsInMemory<8>(x, rows, stride, n, w, w_stride, columns) : 0;
  ColumnsInMemory<1>(x + done * stride, rows - done, stride, n, w + done * w_stride, w_stride, columns);
}

// One lane is one row of accumulators: kVectors = ceil(n / 4) registers.
template <int kVectors>
void NarrowInRegisters(const double* x, int64_t rows, int64_t n, const double* w, double* lanes) {
  const __m256i mask = FirstOfFour(n - 4 * (kVectors - 1));
  __m256d sums[8][kVectors];
#pragma GCC unroll 8
  for (int lane = 0; lane < 8; ++lane) {
    if constexpr (kVectors == 2) sums[lane][0] = _mm256_loadu_pd(lanes + lane * n);
    sums[lane][kVectors - 1] = _mm256_maskload_pd(lanes + lane * n + 4 * (kVectors - 1), mask);
  }
  const auto add_row = [&](int lane, const double* row, double weight_of_row) __attribute__((always_inline)) {
    const __m256d weight = _mm256_set1_pd(weight_of_row);
    if constexpr (kVectors == 2) sums[lane][0] = _mm256_fmadd_pd(_mm256_loadu_pd(row), weight, sums[lane][0]);
    sums[lane][kVectors - 1] =
        _mm256_fmadd_pd(_mm256_maskload_pd(row + 4 * (kVectors - 1), mask), weight, sums[lane][kVectors - 1]);
  };
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8, x += 8 * n, w += 8) {
#pragma GCC unroll 8
    for (int lane = 0; lane < 8; ++lane) add_row(lane, x + lane * n, w[lane]);
  }
#pragma GCC unroll 8
  for (int lane = 0; lane < 8; ++lane) {
    if (lane < rows - i) add_row(lane, x + lane * n, w[lane]);
    if constexpr (kVectors == 2) _mm256_storeu_pd(lanes + lane * n, sums[lane][0]);
    _mm256_maskstore_pd(lanes + lane * n + 4 * (kVectors - 1), mask, sums[lane][kVectors - 1]);
  }
}

// out += the row times B for n <= 4 * kVectors columns, all in registers.
template <int kVectors>
void SparseRowInRegisters(const double* values, const int32_t* columns, int64_t entries, const double* b,
                          int64_t b_stride, int64_t n, double* out) {
  const __m256i mask = FirstOfFour(n - 4 * (kVectors - 1));
  __m256d sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v + 1 < kVectors; ++v) sums[v] = _mm256_loadu_pd(out + 4 * v);
  sums[kVectors - 1] = _mm256_maskload_pd(out + 4 * (kVectors - 1), mask);
  for (int64_t e = 0; e < entries; ++e) {
    const double* row = b + columns[e] * b_stride;
    const __m256d value = _mm256_broadcast_sd(values + e);
#pragma GCC unroll 8
    for (int v = 0; v + 1 < kVectors; ++v) sums[v] = _mm256_fmadd_pd(_mm256_loadu_pd(row + 4 * v), value, sums[v]);
    sums[kVectors - 1] = _mm256_fmadd_pd(_mm256_maskload_pd(row + 4 * (kVectors - 1), mask), value, sums[kVectors - 1]);
  }
#pragma GCC unroll 8
  for (int v = 0; v + 1 < kVectors; ++v) _mm256_storeu_pd(out + 4 * v, sums[v]);
  _mm256_maskstore_pd(out + 4 * (kVectors - 1), mask, sums[kVectors - 1]);
}

}  // namespace

void MultiplyFlat(const double* x, const double* v, int64_t count, double lanes[8]) {
  __m256d low = _mm256_loadu_pd(lanes), high = _mm256_loadu_pd(lanes + 4);
  int64_t p = 0;
  for (; p + 8 <= count; p += 8) {
    low = _mm256_fmadd_pd(_mm256_loadu_pd(x + p), _mm256_loadu_pd(v + p), low);
    high = _mm256_fmadd_pd(_mm256_loadu_pd(x + p + 4), _mm256_loadu_pd(v + p + 4), high);
  }
  _mm256_storeu_pd(lanes, low);
  _mm256_storeu_pd(lanes + 4, high);
  for (int64_t lane = 0; p < count; ++p, ++lane) lanes[lane] = std::fma(x[p], v[p], lanes[lane]);
}

void MultiplyRows(const double* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                  int64_t vector_stride, int64_t count, double* out, int64_t out_stride) {
  // Several vectors: a block of rows stays in L1 while four vectors at a time pass over it.
  const int64_t block =
      count <= 4 ? rows : std::max<int64_t>(4, kBlockCells / std::max<int64_t>(n, 1) / 4 * 4);
  for (int64_t i = 0; i < rows; i += block) {
    const int64_t here = std::min(block, rows - i);
    for (int64_t c = 0; c < count; c += 4) {
      const double *from = x + i * stride, *v = vectors + c * vector_stride;
      double* to = out + i * out_stride + c;
      WithConstant<1, 4>(std::min<int64_t>(4, count - c), [&](auto together) {
        RowsTimesVectors<together>(from, here, stride, n, v, vector_stride, to, out_stride);
      });
    }
  }
}

void MultiplyColumns(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                     int64_t w_stride, int64_t count, double* columns, int64_t columns_stride) {
  if (n == 0) return;
  const int64_t block =
      count == 1 ? rows : std::max<int64_t>(8, kBlockCells / std::max<int64_t>(n, 1) / 8 * 8);
  for (int64_t i = 0; i < rows; i += block) {
    const int64_t here = std::min(block, rows - i);
    const double *from = x + i * stride, *weights = w + i * w_stride;
    const bool few = WithConstant<1, 8>(CeilDivide(n, 4), [&](auto vectors) {
      ColumnsByCount<vectors>(from, here, stride, n, weights, w_stride, count, columns, columns_stride);
    });
    if (few) continue;
    // The first column of w brings the rows into L1.
    for (int64_t c = 0; c < count; ++c)
      ColumnsInMemory(c > 0 || n >= kLongRow, from, here, stride, n, weights + c, w_stride,
                      columns + c * columns_stride);
  }
}

void MultiplyNarrow(const double* x, int64_t rows, int64_t n, const double* w, double* lanes) {
  if (n == 1) return MultiplyFlat(x, w, rows, lanes);
  if (n <= 4) return NarrowInRegisters<1>(x, rows, n, w, lanes);
  return NarrowInRegisters<2>(x, rows, n, w, lanes);
}

void MultiplySparseRow(const double* values, const int32_t* columns, int64_t entries, const double* b,
                       int64_t b_stride, int64_t n, double* out) {
  int64_t c = 0;
  for (; c + 32 <= n; c += 32) {
    __m256d sums[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) sums[v] = _mm256_loadu_pd(out + c + 4 * v);
    for (int64_t e = 0; e < entries; ++e) {
      const double* row = b + columns[e] * b_stride + c;
      const __m256d value = _mm256_broadcast_sd(values + e);
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) sums[v] = _mm256_fmadd_pd(_mm256_loadu_pd(row + 4 * v), value, sums[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) _mm256_storeu_pd(out + c + 4 * v, sums[v]);
  }
  // The rest at once too, so that its chains run side by side.
  WithConstant<1, 8>(CeilDivide(n - c, 4), [&](auto vectors) {
    SparseRowInRegisters<vectors>(values, columns, entries, b + c, b_stride, n - c, out + c);
  });
}

}  // namespace heddle::ops::simd
