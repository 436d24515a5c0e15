// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "ops/simd/prefetch.h"

// What the loops over dense rows (aggregate.cc, matmul.cc) share. AVX2 only.
namespace heddle::ops::simd {

/// Rows of at least so many columns are taken eight at a time where accumulators are in memory.
constexpr int64_t kLongRow = 512;

/// Rows of more columns are taken one by one where each gives one cell: of several at once the processor
/// reads so far ahead that its prefetcher loses its place.
constexpr int64_t kShortRow = 64;

/// Lane masks for the first n of four lanes; n may be negative (none) or above four (all).
inline __m256i FirstOfFour(int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

/// The first n (0-4) of four cells, zeros behind them, whose memory is not touched. By branches, which are
/// the same for all rows: the masked load of AVX2 takes several times as long as a load on some processors.
[[gnu::always_inline]] inline __m256d LoadFirst(const double* cells, int64_t n) {
  if (n == 4) return _mm256_loadu_pd(cells);
  if (n == 2) return _mm256_zextpd128_pd256(_mm_loadu_pd(cells));
  if (n == 1) return _mm256_zextpd128_pd256(_mm_load_sd(cells));
  if (n == 3) return _mm256_set_m128d(_mm_load_sd(cells + 2), _mm_loadu_pd(cells));
  return _mm256_setzero_pd();
}

[[gnu::always_inline]] inline __m128 LoadFirst(const float* cells, int64_t n) {
  if (n == 4) return _mm_loadu_ps(cells);
  const __m128 two =
      n >= 2 ? _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(cells))) : _mm_setzero_ps();
  if (n == 3) return _mm_movelh_ps(two, _mm_load_ss(cells + 2));
  return n == 1 ? _mm_load_ss(cells) : two;
}

/// The first n (1-8) of eight floats.
[[gnu::always_inline]] inline __m256 LoadFirstOfEight(const float* cells, int64_t n) {
  if (n <= 4) return _mm256_zextps128_ps256(LoadFirst(cells, n));
  return _mm256_set_m128(LoadFirst(cells + 4, n - 4), _mm_loadu_ps(cells));
}

/// Four cells, and the first n (0-4) of four, as doubles.
[[gnu::always_inline]] inline __m256d LoadFour(const double* cells) { return _mm256_loadu_pd(cells); }
[[gnu::always_inline]] inline __m256d LoadFour(const float* cells) {
  return _mm256_cvtps_pd(_mm_loadu_ps(cells));
}
[[gnu::always_inline]] inline __m256d LoadFirstOfFour(const double* cells, int64_t n) {
  return LoadFirst(cells, n);
}
[[gnu::always_inline]] inline __m256d LoadFirstOfFour(const float* cells, int64_t n) {
  return _mm256_cvtps_pd(LoadFirst(cells, n));
}

/// Calls body(std::integral_constant<int, value>) when kFirst <= value <= kLast; false otherwise.
template <int kFirst, int kLast, typename Body>
inline bool WithConstant(int64_t value, const Body& body) {
  if (value == kFirst) {
    body(std::integral_constant<int, kFirst>{});
    return true;
  }
  if constexpr (kFirst < kLast) return WithConstant<kFirst + 1, kLast>(value, body);
  return false;
}

/// Calls add(offset, lanes, masked) for each four cells of a row: lanes 0 (r0 to r3) or 1 (r4 to r7), and
/// whether fewer than four are left. Meanwhile the lines of each sixteen cells are fetched for. kRest: the
/// fours after the last sixteen cells, the last one masked with kMasked.
template <int kRest, bool kMasked, typename Cell, typename Add>
[[gnu::always_inline]] inline void EachFour(const Cell* row, int64_t n, const Prefetch& prefetch,
                                            const Add& add) {
  const auto fetch = [&](int64_t j, int64_t lines) __attribute__((always_inline)) {
    if constexpr (std::is_same_v<Cell, float>)
      prefetch.FetchLine(row + j, j / 16);
    else
      prefetch.Fetch(row + j, 8, lines);
  };
  int64_t j = 0;
  for (int64_t turns = n / 16; turns > 0; --turns, j += 16) {
    fetch(j, 2);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) add(j + 4 * i, i % 2, false);
  }
  if (kRest > 0) fetch(j, (kRest + 1) / 2);
#pragma GCC unroll 4
  for (int i = 0; i < kRest; ++i) add(j + 4 * i, i % 2, kMasked && i == kRest - 1);
}
/// Calls body(kRest, kMasked) for EachFour of rows of n cells.
template <typename Body>
void WithRest(int64_t n, const Body& body) {
  WithConstant<0, 4>((n % 16 + 3) / 4, [&](auto rest) {
    if constexpr (decltype(rest)::value > 0)
      if (n % 4 > 0) return body(rest, std::true_type{});
    body(rest, std::false_type{});
  });
}

/// columns[j] = join(r, columns[j], x[r, j]) for r = 0, ..., kRows - 1 and all j < n: accumulators in L1 take
/// kRows rows. One row at a time follows the prefetcher on short rows; on long rows several save accumulator
/// traffic (docs/numerics.md, section 4). kFetch: lines are fetched meanwhile.
template <int kRows, bool kFetch, typename Cell, typename Join>
inline __attribute__((always_inline)) void UpdateColumns(const Cell* x, int64_t stride, int64_t n,
                                                         double* columns, const Prefetch& prefetch,
                                                         const Join& join) {
  const int64_t whole = n / 4 * 4;
  const auto update = [&](int64_t j) __attribute__((always_inline)) {
    __m256d sum = _mm256_load_pd(columns + j);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum = join(r, sum, LoadFour(x + r * stride + j));
    _mm256_store_pd(columns + j, sum);
  };
  int64_t j = 0;
  for (; j + 16 <= whole; j += 16) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < 16; v += 4) {
      if constexpr (kFetch && std::is_same_v<Cell, double>) {
        if (v % 8 == 0) prefetch.Fetch(x + j + v, stride, kRows);
      } else if constexpr (kFetch) {
        if (v == 0)
          for (int r = 0; r < kRows; ++r) prefetch.FetchLine(x + r * stride + j, r);
      }
      update(j + v);
    }
  }
  for (; j < whole; j += 4) update(j);
  if (whole == n) return;
  __m256d sum = _mm256_load_pd(columns + whole);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum = join(r, sum, LoadFirstOfFour(x + r * stride + whole, n - whole));
  _mm256_store_pd(columns + whole, sum);
}

}  // namespace heddle::ops::simd
