// SPDX-License-Identifier: Apache-2.0
// X %*% v and t(X) %*% w in one loop over the rows of X.
#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#include "ops/simd/product/join_rows.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/product/product_rows.h"

namespace heddle::ops::simd {
namespace {

// A product as it is stored: of floats rounded to one.
template <typename Cell>
[[gnu::always_inline]] inline __m256d Stored(__m256d products) {
  if constexpr (std::is_same_v<Cell, float>) return _mm256_cvtps_pd(_mm256_cvtpd_ps(products));
  return products;
}
template <typename Cell>
[[gnu::always_inline]] inline double Stored(double product) {
  return static_cast<double>(static_cast<Cell>(product));
}

// Four rows of the product and four rows of the columns at a time, so that the CPU waits for memory with work
// at hand. kSame: the same rows. Returns the rows done. n = 4 * (kVectors - 1) + kLast <= 16.
template <int kVectors, int kLast, bool kSame, typename Cell>
int64_t RowsAndColumns(const RowsAndColumnsCall<Cell>& call) {
  const int64_t stride = call.stride, groups = std::min(call.rows, call.previous_rows) / 4;
  __m256d sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_load_pd(call.columns + 4 * v);
  const auto row = [&](const Cell* x, int v) __attribute__((always_inline)) {
    return v + 1 < kVectors ? LoadFour(x + 4 * v) : LoadFirstOfFour(x + 4 * v, kLast);
  };
  for (int64_t i = 0; i < 4 * groups; i += 4) {
    const auto add_columns = [&](const Cell* from, const auto& weight_of) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const __m256d weight = weight_of(r);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          sums[v] = _mm256_fmadd_pd(row(from + r * stride, v), weight, sums[v]);
      }
    };
    if (!kSame)
      add_columns(
          call.previous + i * stride, [&](int r) __attribute__((always_inline)) {
            return _mm256_broadcast_sd(call.w + i + r);
          });
    const Cell* x = call.x + i * stride;
    if constexpr (std::is_same_v<Cell, double>) {
      call.prefetch.Fetch(x, 8, (4 * stride + 7) / 8);
    } else {
      for (int64_t line = 0; 16 * line < 4 * stride; ++line) call.prefetch.FetchLine(x + 16 * line, line);
    }
    __m256d half[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r, x += stride) {
      // Lanes 0-3 take vectors 0 and 2, lanes 4-7 vectors 1 and 3; each chain begins at +0.0.
      __m256d lanes[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        lanes[v % 2] = _mm256_fmadd_pd(row(x, v), _mm256_load_pd(call.v + 4 * v), lanes[v % 2]);
      half[r] = _mm256_add_pd(lanes[0], lanes[1]);
    }
    __m256d product = JoinFourRows(half[0], half[1], half[2], half[3]);
    if (kSame) product = Stored<Cell>(product);
    _mm256_storeu_pd(call.out + i * call.out_step, product);
    const __m256d weights[4] = {_mm256_permute4x64_pd(product, 0x00), _mm256_permute4x64_pd(product, 0x55),
                                _mm256_permute4x64_pd(product, 0xaa), _mm256_permute4x64_pd(product, 0xff)};
    if (kSame)
      add_columns(
          call.x + i * stride, [&](int r) __attribute__((always_inline)) { return weights[r]; });
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) _mm256_store_pd(call.columns + 4 * v, sums[v]);
  return 4 * groups;
}

template <bool kSame, typename Cell>
int64_t NarrowRowsAndColumns(const RowsAndColumnsCall<Cell>& call) {
  int64_t done = 0;
  WithConstant<1, 4>((call.n + 3) % 4 + 1, [&](auto last) {
    done = call.n <= 12 ? RowsAndColumns<3, last, kSame>(call) : RowsAndColumns<4, last, kSame>(call);
  });
  return done;
}

// RowsAndColumns of rows that do not fit into registers, one at a time: what is asked for in the order of
// memory arrives fastest. The second time the row is in a cache. Each of the two loops fetches a half, so
// that memory is at work all the time.
template <bool kSame, int kRest, bool kMasked, typename Cell>
int64_t RowByRow(const RowsAndColumnsCall<Cell>& call) {
  const int64_t n = call.n, rows = std::min(call.rows, call.previous_rows);
  const Prefetch even = call.prefetch.Even(), odd = call.prefetch.Odd();
  const auto add_columns = [&](const Cell* row, double w) __attribute__((always_inline)) {
    const __m256d weight = _mm256_set1_pd(w);
    EachFour<kRest, kMasked>(
        row, n, odd, [&](int64_t j, int, bool masked) __attribute__((always_inline)) {
          const __m256d cells = masked ? LoadFirstOfFour(row + j, n - j) : LoadFour(row + j);
          double* const sum = call.columns + j;
          _mm256_store_pd(sum, _mm256_fmadd_pd(cells, weight, _mm256_load_pd(sum)));
        });
  };
  const Cell *x = call.x, *previous = call.previous;
  for (int64_t i = 0; i < rows; ++i, x += call.stride, previous += call.stride) {
    if (!kSame) add_columns(previous, call.w[i]);
    double product = MultiplyRow<kRest, kMasked>(x, call.v, n, even);
    if (kSame) product = Stored<Cell>(product);
    if (kSame) add_columns(x, product);
    call.out[i * call.out_step] = product;
  }
  return rows;
}

template <bool kSame, typename Cell>
int64_t RowsAndColumnsOf(const RowsAndColumnsCall<Cell>& call) {
  if (call.n <= 16) return NarrowRowsAndColumns<kSame>(call);
  int64_t done = 0;
  WithRest(call.n, [&](auto rest, auto masked) { done = RowByRow<kSame, rest, masked>(call); });
  return done;
}

template <typename Cell>
void Run(const RowsAndColumnsCall<Cell>& call) {
  const bool same = call.previous == call.x;
  const int64_t done = same ? RowsAndColumnsOf<true>(call) : RowsAndColumnsOf<false>(call);
  const auto multiply_rest = [&] {
    MultiplyRows(call.x + done * call.stride, call.rows - done, call.stride, call.n, call.v, 0, 1,
                 call.out + done * call.out_step, 1);
  };
  if (same) {
    multiply_rest();
    double* const products = call.out + done * call.out_step;
    for (int64_t i = 0; i < call.rows - done; ++i) products[i] = Stored<Cell>(products[i]);
  }
  MultiplyColumns(call.previous + done * call.stride, call.previous_rows - done, call.stride, call.n,
                  call.w + done * call.out_step, 1, 1, call.columns, 0);
  if (!same) multiply_rest();
}

}  // namespace

void MultiplyRowsAndColumns(const RowsAndColumnsCall<double>& call) { Run(call); }
void MultiplyRowsAndColumns(const RowsAndColumnsCall<float>& call) { Run(call); }

}  // namespace heddle::ops::simd
