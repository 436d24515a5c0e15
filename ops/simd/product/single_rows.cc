// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/product/single_rows.h"

#include <immintrin.h>

#include <algorithm>

#include "ops/simd/product/gemm.h"
#include "ops/simd/rows.h"

namespace heddle::ops::simd {
namespace {

constexpr int kMostVectors = 12;

// Terms of one block and up to 8 * kVectors columns, all in registers. kDense: term e has column e.
template <int kVectors, bool kDense>
void AddBlock(const float* values, const int32_t* columns, int64_t terms, const float* b, int64_t b_stride,
              int64_t n, double* sums) {
  const int64_t last = n - 8 * (kVectors - 1);  // Columns of the last vector.
  const __m256i lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(last)),
                                           _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256 chains[kVectors];
#pragma GCC unroll 12
  for (int v = 0; v < kVectors; ++v) chains[v] = _mm256_setzero_ps();
  for (int64_t e = 0; e < terms; ++e) {
    if (!kDense && values[e] == 0.0F) continue;
    const float* const row = b + (kDense ? e : columns[e]) * b_stride;
    const __m256 value = _mm256_broadcast_ss(values + e);
#pragma GCC unroll 12
    for (int v = 0; v + 1 < kVectors; ++v)
      chains[v] = _mm256_fmadd_ps(value, _mm256_loadu_ps(row + 8 * v), chains[v]);
    const float* const end = row + 8 * (kVectors - 1);
    const __m256 cells = last == 8 ? _mm256_loadu_ps(end) : _mm256_maskload_ps(end, lanes);
    chains[kVectors - 1] = _mm256_fmadd_ps(value, cells, chains[kVectors - 1]);
  }
  alignas(32) float cells[8 * kVectors];
#pragma GCC unroll 12
  for (int v = 0; v < kVectors; ++v) _mm256_store_ps(cells + 8 * v, chains[v]);
  for (int64_t c = 0; c < n; ++c) sums[c] += static_cast<double>(cells[c]);
}

template <bool kDense>
void AddBlocks(const float* values, const int32_t* columns, int64_t count, const float* b, int64_t b_stride,
               int64_t n, double* sums) {
  for (int64_t first = 0, end; first < count; first = end) {
    if constexpr (kDense) {
      end = std::min(count, first + kSingleBlock);
    } else {
      const int64_t block_end = (columns[first] / kSingleBlock + 1) * kSingleBlock;
      for (end = first + 1; end < count && columns[end] < block_end;) ++end;
    }
    const float* const rows = kDense ? b + first * b_stride : b;
    for (int64_t c = 0; c < n; c += 8 * kMostVectors) {
      const int64_t here = std::min<int64_t>(8 * kMostVectors, n - c);
      WithConstant<1, kMostVectors>((here + 7) / 8, [&](auto vectors) {
        AddBlock<decltype(vectors)::value, kDense>(values + first, kDense ? nullptr : columns + first,
                                                   end - first, rows + c, b_stride, here, sums + c);
      });
    }
  }
}

}  // namespace

void AddSparseRowOfSingles(const float* values, const int32_t* columns, int64_t entries, const float* b,
                           int64_t b_stride, int64_t n, double* sums) {
  AddBlocks<false>(values, columns, entries, b, b_stride, n, sums);
}

void AddRowOfSingles(const float* values, int64_t count, const float* b, int64_t b_stride, int64_t n,
                     double* sums) {
  AddBlocks<true>(values, nullptr, count, b, b_stride, n, sums);
}

}  // namespace heddle::ops::simd
