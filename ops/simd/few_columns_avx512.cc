// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/few_columns.h"
#include "ops/simd/join_rows.h"
#include "ops/simd/matmul.h"
#include "ops/simd/vector.h"

namespace heddle::ops::simd {
// Every loop over accumulators is unrolled, or they would live in memory.
namespace {

using avx512::FirstLanes;

// Accumulators of one pass over the rows, beside the cells of a row and a weight.
constexpr int kAccumulators = 25, kMostVectors = 6;

// Four rows at a time: a vector is loaded once for all of them.
template <int kCount>
int64_t FourRowsAtATime(const double* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                        int64_t vector_stride, double* out, int64_t out_stride, Ahead& ahead) {
  const int64_t whole = n / 8 * 8;
  const __mmask8 mask = FirstLanes(n - whole);
  const int period = 1 << ahead.shift();
  Ahead next = ahead;
  WholeRows whole_rows(ahead, stride == n);
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride, out += 4 * out_stride) {
    whole_rows.Read(4 * stride, next);
    __m512d lanes[4][kCount];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) lanes[r][c] = _mm512_setzero_pd();
    const auto add = [&](int64_t j, __mmask8 cells_there) __attribute__((always_inline)) {
      __m512d cells[4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) cells[r] = _mm512_maskz_loadu_pd(cells_there, x + r * stride + j);
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) {
        const __m512d v = _mm512_load_pd(vectors + c * vector_stride + j);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) lanes[r][c] = _mm512_fmadd_pd(cells[r], v, lanes[r][c]);
      }
    };
    for (int64_t j = 0; j < whole; j += 8) {
      for (int line = 0; line < 4; line += period) next.Fetch();
      add(j, 0xff);
    }
    if (whole < n) add(whole, mask);
    __m256d half[4][kCount];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c)
        half[r][c] =
            _mm256_add_pd(_mm512_castpd512_pd256(lanes[r][c]), _mm512_extractf64x4_pd(lanes[r][c], 1));
    StoreFourRows<kCount>(half, out, out_stride);
  }
  ahead.GoOnFrom(next);
  return i;
}

// Of so many vectors of each row, from x on; the last has `mask`.
template <int kVectors, int kCount>
void Columns(const double* x, int64_t rows, int64_t stride, __mmask8 mask, const double* w, int64_t w_stride,
             double* columns, int64_t columns_stride, Ahead& ahead) {
  __m512d sums[kCount][kVectors];
#pragma GCC unroll 12
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 6
    for (int v = 0; v < kVectors; ++v) sums[c][v] = _mm512_load_pd(columns + c * columns_stride + 8 * v);
  const auto add_row = [&]() __attribute__((always_inline)) {
    __m512d cells[kVectors];
#pragma GCC unroll 6
    for (int v = 0; v < kVectors; ++v)
      cells[v] = v + 1 < kVectors ? _mm512_loadu_pd(x + 8 * v) : _mm512_maskz_loadu_pd(mask, x + 8 * v);
#pragma GCC unroll 12
    for (int c = 0; c < kCount; ++c) {
      const __m512d weight = _mm512_set1_pd(w[c]);
#pragma GCC unroll 6
      for (int v = 0; v < kVectors; ++v) sums[c][v] = _mm512_fmadd_pd(cells[v], weight, sums[c][v]);
    }
    x += stride;
    w += w_stride;
  };
  const int64_t period = int64_t{1} << ahead.shift();
  Ahead next = ahead;
  int64_t i = 0;
  for (; next && i + period <= rows; i += period) {
#pragma GCC unroll 6
    for (int v = 0; v < kVectors; ++v) next.side_by_side() ? next.FetchToSecondLevel() : next.Fetch();
    for (int64_t r = 0; r < period; ++r) add_row();
  }
  for (; i < rows; ++i) add_row();
  ahead.GoOnFrom(next);
#pragma GCC unroll 12
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 6
    for (int v = 0; v < kVectors; ++v) _mm512_store_pd(columns + c * columns_stride + 8 * v, sums[c][v]);
}

// Columns of so many vectors.
template <int kCount, int kVectors = 1>
auto ColumnsOf(int64_t vectors) {
  if constexpr (kVectors < kMostVectors && (kVectors + 1) * kCount <= kAccumulators) {
    if (vectors > kVectors) return ColumnsOf<kCount, kVectors + 1>(vectors);
  }
  return Columns<kVectors, kCount>;
}

template <int kCount>
void ColumnsByVectors(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                      int64_t w_stride, double* columns, int64_t columns_stride, Ahead& ahead) {
  constexpr int kMost = kAccumulators / kCount < kMostVectors ? kAccumulators / kCount : kMostVectors;
  const int64_t vectors = (n + 7) / 8, passes = (vectors + kMost - 1) / kMost, longer = vectors % passes;
  for (int64_t pass = 0, first = 0, here; pass < passes; ++pass, first += here) {
    here = vectors / passes + (pass < longer ? 1 : 0);
    const int64_t left = n - 8 * (first + here - 1);
    const __mmask8 mask = left >= 8 ? 0xff : FirstLanes(left);
    ColumnsOf<kCount>(here)(x + 8 * first, rows, stride, mask, w, w_stride, columns + 8 * first,
                            columns_stride, ahead);
  }
}

template <int kCount = kLeastFewColumns>
auto ColumnsByVectorsOf(int64_t count) {
  if constexpr (kCount < kMostColumnsTogether) {
    if (count > kCount) return ColumnsByVectorsOf<kCount + 1>(count);
  }
  return ColumnsByVectors<kCount>;
}

}  // namespace

int64_t MultiplyRowsAvx512(const double* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                           int64_t vector_stride, int64_t count, double* out, int64_t out_stride,
                           Ahead& ahead) {
  const auto run = count == 2 ? FourRowsAtATime<2> : count == 3 ? FourRowsAtATime<3> : FourRowsAtATime<4>;
  return run(x, rows, stride, n, vectors, vector_stride, out, out_stride, ahead);
}

void MultiplyColumnsAvx512(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                           int64_t w_stride, int64_t count, double* columns, int64_t columns_stride,
                           Ahead& ahead) {
  ColumnsByVectorsOf(count)(x, rows, stride, n, w, w_stride, columns, columns_stride, ahead);
}

namespace {

// Of two vectors; kSame: the columns of the same rows.
template <bool kSame>
int64_t RowsAndColumns(const RowsAndColumnsCall& call, const Ahead& ahead) {
  const int64_t stride = call.stride, least = call.rows < call.previous_rows ? call.rows : call.previous_rows,
                done = least / 4 * 4;
  const __mmask8 mask = FirstLanes(call.n - 8);
  const __m512d v[2] = {_mm512_load_pd(call.v), _mm512_load_pd(call.v + 8)};
  __m512d sums[2] = {_mm512_load_pd(call.columns), _mm512_load_pd(call.columns + 8)};
  Ahead next = ahead;
  EightAhead eight(next);
  for (int64_t i = 0; i < done; i += 4) {
    __m512d cells[4][2];
    const auto load = [&](const double* x) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        cells[r][0] = _mm512_loadu_pd(x + r * stride);
        cells[r][1] = _mm512_maskz_loadu_pd(mask, x + r * stride + 8);
      }
    };
    const auto add = [&](const double* w) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const __m512d weight = _mm512_set1_pd(w[r]);
#pragma GCC unroll 2
        for (int q = 0; q < 2; ++q) sums[q] = _mm512_fmadd_pd(cells[r][q], weight, sums[q]);
      }
    };
    if (!kSame) {
      load(call.previous + i * stride);
      add(call.w + i);
    }
    if (next.side_by_side()) {
      eight.Read(4 * stride);
    } else {
      for (int64_t line = 0; line < 4 * stride; line += 8) next.Fetch();
    }
    load(call.x + i * stride);
    __m256d half[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m512d lanes =
          _mm512_fmadd_pd(cells[r][1], v[1], _mm512_fmadd_pd(cells[r][0], v[0], _mm512_setzero_pd()));
      half[r] = _mm256_add_pd(_mm512_castpd512_pd256(lanes), _mm512_extractf64x4_pd(lanes, 1));
    }
    double* const out = call.out + i * call.out_step;
    _mm256_storeu_pd(out, JoinFourRows(half[0], half[1], half[2], half[3]));
    if (kSame) add(out);
  }
  _mm512_store_pd(call.columns, sums[0]);
  _mm512_store_pd(call.columns + 8, sums[1]);
  return done;
}

}  // namespace

int64_t MultiplyRowsAndColumnsAvx512(const RowsAndColumnsCall& call, const Ahead& ahead) {
  return (call.previous == call.x ? RowsAndColumns<true> : RowsAndColumns<false>)(call, ahead);
}

}  // namespace heddle::ops::simd
