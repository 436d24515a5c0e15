// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>

// Inner loops of products with the rows of a CSR matrix (docs/numerics.md, section 3): entries e of a row,
// ascending, values[e] in columns[e]. An explicit zero counts as absent where a function says so. AVX2.
namespace heddle::ops::simd {

/// One row of CSR times dense: out[c] = fma(values[e], b[columns[e], c], .) from 0 over entries e in order,
/// then + 0.0, for c < n. An explicit zero counts as absent. Where `prefetch_distance` is not 0, the rows of
/// b that entries so many places on name (they exist) are fetched into the second-level cache meanwhile; not
/// by the loop for more than 40 columns with AVX-512.
void MultiplySparseRow(const double* values, const int32_t* columns, int64_t entries, const double* b,
                       int64_t b_stride, int64_t n, double* out, int64_t prefetch_distance = 0);

/// Lanes of a row times 2 <= k <= 8 columns: lanes[l * LaneStride(k) + c] is the chain of fma(values[e],
/// b[columns[e] * k + c], .) from +0.0 over the entries whose column is l modulo 8. 32-byte aligned. An
/// explicit zero counts as absent.
constexpr int64_t LaneStride(int64_t k) { return k <= 4 ? 4 : 8; }
void MultiplyByLanes(const double* values, const int32_t* columns, int64_t entries, const double* b,
                     int64_t k, double* lanes);
/// out[c] = L of the eight lanes of column c, + 0.0.
void CloseLanes(const double* lanes, int64_t k, double* out);
/// Both, for rows whose entries are [offsets[i], offsets[i + 1]), to row-major `out`.
void MultiplyRowsByLanes(const double* values, const int32_t* columns, const int64_t* offsets, int64_t rows,
                         const double* b, int64_t k, double* out);

/// out[columns[e] * k + c] = fma(values[e], y[c], .) for c < k <= kMostRegisterColumns (simd/matmul.h) and
/// every entry; all columns differ.
void AddScaledRow(const double* values, const int32_t* columns, int64_t entries, const double* y, int64_t k,
                  double* out);
/// out[c] = fma(x[c], weight, out[c]) for c < n.
inline void AddScaled(double weight, const double* x, int64_t n, double* out) {
  const __m256d factor = _mm256_set1_pd(weight);
  int64_t c = 0;
  for (; c + 4 <= n; c += 4)
    _mm256_storeu_pd(out + c, _mm256_fmadd_pd(_mm256_loadu_pd(x + c), factor, _mm256_loadu_pd(out + c)));
  for (; c < n; ++c) out[c] = std::fma(x[c], weight, out[c]);
}

}  // namespace heddle::ops::simd
