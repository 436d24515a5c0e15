// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/product/few_nonzeros.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "ops/simd/rows.h"

namespace heddle::ops::simd {
namespace {

// Rows that are looked at together, and the most columns that x may have.
constexpr int64_t kRows = 16, kMostColumns = 512;
constexpr int64_t kWordColumns = 64, kMostWords = kMostColumns / kWordColumns;
// Adding a row of y for a cell of x takes about four times as long as tiles of GemmKernel take for it.
constexpr int64_t kCellsForOne = 4;
constexpr int64_t kLeastAdded = 16;

// Bit j tells whether cell j is other than 0, which NaN is.
[[gnu::always_inline]] inline uint64_t FindNonzeros(const double* cells, int64_t count) {
  const auto find = [](__m256d four) {
    return static_cast<uint64_t>(_mm256_movemask_pd(_mm256_cmp_pd(four, _mm256_setzero_pd(), _CMP_NEQ_UQ)));
  };
  uint64_t bits = 0;
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) bits |= find(_mm256_loadu_pd(cells + j)) << j;
  if (j < count) bits |= find(LoadFirst(cells + j, count - j)) << j;
  return bits;
}

// out[c] = fma(factor, y[c], .); whether all of y is finite: y - y is a bit pattern of zeros then.
[[gnu::always_inline]] inline bool AddScaled(double factor, const double* y, int64_t k, double* out) {
  const __m256d x = _mm256_set1_pd(factor);
  __m256d differences = _mm256_setzero_pd();
  int64_t c = 0;
  for (; c + 4 <= k; c += 4) {
    const __m256d cells = _mm256_loadu_pd(y + c);
    _mm256_storeu_pd(out + c, _mm256_fmadd_pd(x, cells, _mm256_loadu_pd(out + c)));
    differences = _mm256_or_pd(differences, _mm256_sub_pd(cells, cells));
  }
  if (c < k) {
    const __m256d cells = LoadFirst(y + c, k - c);
    _mm256_maskstore_pd(out + c, FirstOfFour(k - c), _mm256_fmadd_pd(x, cells, LoadFirst(out + c, k - c)));
    differences = _mm256_or_pd(differences, _mm256_sub_pd(cells, cells));
  }
  return _mm256_testz_si256(_mm256_castpd_si256(differences), _mm256_castpd_si256(differences)) != 0;
}

}  // namespace

int64_t AddFewNonzeros(const double* x, int64_t rows, int64_t x_stride, int64_t n, const double* y,
                       int64_t y_stride, int64_t k, double* out) {
  if (n < kCellsForOne || n > kMostColumns || k < kLeastAdded) return 0;
  const int64_t words = (n + kWordColumns - 1) / kWordColumns;
  uint64_t nonzeros[kRows * kMostWords];
  for (int64_t first = 0, here; first < rows; first += here) {
    here = std::min(kRows, rows - first);
    int64_t count = 0;
    for (int64_t i = 0; i < here; ++i)
      for (int64_t w = 0; w < words; ++w) {
        const int64_t begin = w * kWordColumns;
        nonzeros[i * words + w] =
            FindNonzeros(x + (first + i) * x_stride + begin, std::min(kWordColumns, n - begin));
        count += std::popcount(nonzeros[i * words + w]);
      }
    if (count * kCellsForOne > here * n) return first;
    for (int64_t i = 0; i < here; ++i) {
      const double *cells = x + (first + i) * x_stride, *terms = y + (first + i) * y_stride;
      bool finite = true, any = false;
      for (int64_t w = 0; w < words; ++w)
        for (uint64_t bits = nonzeros[i * words + w]; bits != 0; bits &= bits - 1) {
          const int64_t j = w * kWordColumns + std::countr_zero(bits);
          finite &= AddScaled(cells[j], terms, k, out + j * k);
          any = true;
        }
      // In a row of zeros the first cell tells what the row of y is.
      if (!any) finite = AddScaled(cells[0], terms, k, out);
      if (finite) continue;
      for (int64_t j = any ? 0 : 1; j < n; ++j)
        if (cells[j] == 0) AddScaled(cells[j], terms, k, out + j * k);
    }
  }
  return rows;
}

}  // namespace heddle::ops::simd
