// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/product/matmul.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/simd/product/few_columns.h"
#include "ops/simd/product/join_rows.h"
#include "ops/simd/product/product_rows.h"
#include "ops/simd/rows.h"

namespace heddle::ops::simd {
namespace {

// Rows of several columns are read again and again in blocks of so many cells.
constexpr int64_t kBlockCells = 3072;
// Cells of a skinny right operand: they stay in the second-level cache.
constexpr int64_t kSkinnyCells = 1 << 14;
// Columns of X from which on tiles of GemmKernel are as fast with 14 to 24 columns of Y.
constexpr int64_t kColumnsForTiles = 32;
// Columns whose accumulators are in registers in one pass over the rows.
constexpr int64_t kFewForRegisters = 48;

const FewColumns<double>& FewColumnsOf(const double*, Cpu cpu) {
  return cpu == Cpu::kAvx512 ? kFewColumnsAvx512 : kFewColumnsAvx2;
}
const FewColumns<float>& FewColumnsOf(const float*, Cpu cpu) {
  return cpu == Cpu::kAvx512 ? kFewSingleColumnsAvx512 : kFewSingleColumnsAvx2;
}

// One lane is one row of accumulators: kVectors = ceil(n / 4) registers.
template <int kVectors>
void NarrowInRegisters(const double* x, int64_t rows, int64_t n, const double* w, double* lanes,
                       const Prefetch& prefetch) {
  const int64_t last = n - 4 * (kVectors - 1);
  __m256d sums[8][kVectors];
#pragma GCC unroll 8
  for (int lane = 0; lane < 8; ++lane) {
    if constexpr (kVectors == 2) sums[lane][0] = _mm256_loadu_pd(lanes + lane * n);
    sums[lane][kVectors - 1] = LoadFirst(lanes + lane * n + 4 * (kVectors - 1), last);
  }
  const auto add_row = [&](int lane, const double* row, double weight_of_row) __attribute__((always_inline)) {
    const __m256d weight = _mm256_set1_pd(weight_of_row);
    if constexpr (kVectors == 2) sums[lane][0] = _mm256_fmadd_pd(_mm256_loadu_pd(row), weight, sums[lane][0]);
    sums[lane][kVectors - 1] =
        _mm256_fmadd_pd(LoadFirst(row + 4 * (kVectors - 1), last), weight, sums[lane][kVectors - 1]);
  };
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8, x += 8 * n, w += 8) {
    prefetch.Fetch(x, 8, n);
#pragma GCC unroll 8
    for (int lane = 0; lane < 8; ++lane) add_row(lane, x + lane * n, w[lane]);
  }
#pragma GCC unroll 8
  for (int lane = 0; lane < 8; ++lane) {
    if (lane < rows - i) add_row(lane, x + lane * n, w[lane]);
    if constexpr (kVectors == 2) _mm256_storeu_pd(lanes + lane * n, sums[lane][0]);
    _mm256_maskstore_pd(lanes + lane * n + 4 * (kVectors - 1), FirstOfFour(last), sums[lane][kVectors - 1]);
  }
}

// Rows times one vector, in the order in which they lie in memory: so the processor's prefetcher follows
// them.
template <typename Cell>
void RowByRow(const Cell* x, int64_t rows, int64_t stride, int64_t n, const double* v, double* out,
              int64_t out_stride, const Prefetch& prefetch) {
  WithRest(n, [&](auto rest, auto masked) {
    for (int64_t i = 0; i < rows; ++i)
      out[i * out_stride] = MultiplyRow<rest, masked>(x + i * stride, v, n, prefetch);
  });
}

// One column of Y: memory limits, and rows that begin anywhere are read faster by half vectors.
template <typename Cell>
void AddOneColumn(const Cell* x, int64_t rows, int64_t stride, int64_t n, const double* w, int64_t w_stride,
                  double* columns, const Prefetch& prefetch) {
  if (n <= kFewForRegisters)
    return FewColumnsOf(x, Cpu::kAvx2)
        .multiply_columns(x, rows, stride, n, w, w_stride, 1, columns, 0, prefetch);
  int64_t done = 0;
  if (prefetch)
    done = AddRowsToColumns<8, true>(x, rows, stride, n, w, w_stride, columns, prefetch);
  else if (n >= kLongRow)
    done = AddRowsToColumns<8, false>(x, rows, stride, n, w, w_stride, columns, prefetch);
  AddRowsToColumns<1, false>(x + done * stride, rows - done, stride, n, w + done * w_stride, w_stride,
                             columns, prefetch);
}

int64_t BlockOfCells(int64_t cells, int64_t n) {
  return std::max<int64_t>(8, cells / std::max<int64_t>(n, 1) / 8 * 8);
}

template <typename Cell>
void MultiplyRowsOf(const Cell* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                    int64_t vector_stride, int64_t count, double* out, int64_t out_stride,
                    const Prefetch& prefetch) {
  // Several vectors: a block of rows stays in L1 while four vectors at a time pass over it, of which the
  // first ones fetch.
  const int64_t block = count > 4 ? BlockOfCells(kBlockCells, n) : std::max<int64_t>(1, rows);
  for (int64_t i = 0; i < rows; i += block) {
    const int64_t here = std::min(block, rows - i);
    for (int64_t c = 0; c < count; c += 4) {
      const Cell* const from = x + i * stride;
      const double* const v = vectors + c * vector_stride;
      double* to = out + i * out_stride + c;
      const Prefetch fetches = c == 0 ? prefetch : Prefetch();
      const int64_t together = std::min<int64_t>(4, count - c);
      if (together == 1 && n > kShortRow) {
        RowByRow(from, here, stride, n, v, to, out_stride, fetches);
        continue;
      }
      // One vector: memory limits, and rows that begin anywhere are read faster by half vectors.
      const FewColumns<Cell>& few = FewColumnsOf(x, together == 1 ? Cpu::kAvx2 : SelectedCpu());
      const int64_t done =
          few.multiply_rows(from, here, stride, n, v, vector_stride, together, to, out_stride, fetches);
      for (int64_t one = 0; one < together; ++one)
        RowByRow(from + done * stride, here - done, stride, n, v + one * vector_stride,
                 to + done * out_stride + one, out_stride, Prefetch());
    }
  }
}

template <typename Cell>
void MultiplyColumnsOf(const Cell* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                       int64_t w_stride, int64_t count, double* columns, int64_t columns_stride,
                       const Prefetch& prefetch) {
  if (n == 0) return;
  if (count == 1) return AddOneColumn(x, rows, stride, n, w, w_stride, columns, prefetch);
  const FewColumns<Cell>& few = FewColumnsOf(x, SelectedCpu());
  const int64_t block = BlockOfCells(kBlockCells, n), passes = CeilDivide(count, few.most_columns);
  const Prefetch fetches = prefetch.Beyond(std::min(rows, block) * n);
  for (int64_t i = 0; i < rows; i += block) {
    const int64_t here = std::min(block, rows - i);
    for (int64_t pass = 1, done = 0, width; pass <= passes; ++pass, done += width) {
      width = count * pass / passes - done;
      few.multiply_columns(x + i * stride, here, stride, n, w + i * w_stride + done, w_stride, width,
                           columns + done * columns_stride, columns_stride, done == 0 ? fetches : Prefetch());
    }
  }
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
                  int64_t vector_stride, int64_t count, double* out, int64_t out_stride,
                  const Prefetch& prefetch) {
  MultiplyRowsOf(x, rows, stride, n, vectors, vector_stride, count, out, out_stride, prefetch);
}
void MultiplyRows(const float* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                  int64_t vector_stride, int64_t count, double* out, int64_t out_stride,
                  const Prefetch& prefetch) {
  MultiplyRowsOf(x, rows, stride, n, vectors, vector_stride, count, out, out_stride, prefetch);
}

bool IsSkinny(int64_t rows, int64_t n, int64_t columns) {
  return SelectedCpu() == Cpu::kAvx512 && rows >= 8 && columns >= kLeastSkinny && columns <= kMostSkinny &&
         n * columns <= kSkinnyCells;
}

bool AreFewForTiles(int64_t n, int64_t columns) {
  return SelectedCpu() == Cpu::kAvx512 &&
         columns <= (n < kColumnsForTiles ? 2 * kFewColumnsAvx512.most_columns : kMostSkinny);
}

void MultiplyColumns(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                     int64_t w_stride, int64_t count, double* columns, int64_t columns_stride,
                     const Prefetch& prefetch) {
  MultiplyColumnsOf(x, rows, stride, n, w, w_stride, count, columns, columns_stride, prefetch);
}
void MultiplyColumns(const float* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                     int64_t w_stride, int64_t count, double* columns, int64_t columns_stride,
                     const Prefetch& prefetch) {
  MultiplyColumnsOf(x, rows, stride, n, w, w_stride, count, columns, columns_stride, prefetch);
}

void MultiplyFewColumns(const double* x, int64_t rows, int64_t x_stride, int64_t n, const double* y,
                        int64_t y_stride, int64_t k, double* out) {
  alignas(64) double sums[8 * kMostRegisterColumns] = {};
  const int64_t padded = (k + 7) / 8 * 8;
  for (int64_t j = 0; j < n; ++j) std::copy_n(out + j * k, k, sums + j * padded);
  MultiplyColumns(y, rows, y_stride, k, x, x_stride, n, sums, padded);
  for (int64_t j = 0; j < n; ++j) std::copy_n(sums + j * padded, k, out + j * k);
}

void MultiplyNarrow(const double* x, int64_t rows, int64_t n, const double* w, double* lanes,
                    const Prefetch& prefetch) {
  if (n == 1) return MultiplyFlat(x, w, rows, lanes);
  if (n <= 4) return NarrowInRegisters<1>(x, rows, n, w, lanes, prefetch);
  return NarrowInRegisters<2>(x, rows, n, w, lanes, prefetch);
}

}  // namespace heddle::ops::simd
