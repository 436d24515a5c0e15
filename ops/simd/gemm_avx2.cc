// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/gemm.h"
#include "ops/simd/rows.h"

namespace heddle::ops {
// Every loop over the accumulators is unrolled, or they would live in memory.
namespace {

constexpr int kStripRows = 4, kStripColumns = 12;

// The first `count` doubles, 1 to 4. A masked store would take twenty cycles on some CPUs.
inline void StoreFirst(double* out, __m256d cells, int64_t count) {
  if (count == 4) return _mm256_storeu_pd(out, cells);
  const __m128d low = _mm256_castpd256_pd128(cells);
  if (count == 1) return _mm_store_sd(out, low);
  _mm_storeu_pd(out, low);
  if (count == 3) _mm_store_sd(out + 2, _mm256_extractf128_pd(cells, 1));
}

// kColumn: doubles between columns of rows that lie side by side; 0: rows anywhere.
template <int kRows, int kVectors, int kColumn>
void RunRows(int64_t depth, const GemmRows& rows, const GemmFetches& fetches, const double* b, double* c,
             int64_t c_stride, int64_t width, bool first, bool last) {
  for (int64_t r = 0; r < fetches.c_rows; ++r)
    for (int64_t v = 0; v < width; v += 8)
      _mm_prefetch(reinterpret_cast<const char*>(fetches.c + r * c_stride + v), _MM_HINT_T0);
  for (int64_t q = 0; q < fetches.strip_cells; q += 8)
    _mm_prefetch(reinterpret_cast<const char*>(fetches.strip + q), _MM_HINT_T1);
  const int64_t left = width - 4 * (kVectors - 1);  // In the last vector.
  __m256d s[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v)
      s[r][v] = first              ? _mm256_setzero_pd()
                : v + 1 < kVectors ? _mm256_loadu_pd(c + r * c_stride + 4 * v)
                                   : simd::LoadFirst(c + r * c_stride + 4 * v, left);
  const double *a = rows.a, *next = rows.next;
  const int64_t row = kColumn > 0 ? 1 : rows.row, column = kColumn > 0 ? kColumn : rows.column;
  const auto add = [&](int64_t count) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int64_t k = 0; k < count; ++k, a += column, next += column, b += 4 * kVectors) {
      __m256d cells[kVectors];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) cells[v] = _mm256_load_pd(b + 4 * v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256d x = _mm256_broadcast_sd(r < kStripRows ? a + r * row : next + (r - kStripRows) * row);
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) s[r][v] = _mm256_fmadd_pd(x, cells[v], s[r][v]);
      }
    }
  };
  if (fetches.memory == nullptr) {
    add(depth);
  } else {
    const double* memory = fetches.memory;
    for (int64_t k = 0; k < depth; k += 8, memory += fetches.memory_step) {
      for (int64_t l = 0; l < fetches.memory_lines; ++l)
        _mm_prefetch(reinterpret_cast<const char*>(memory + l * fetches.memory_line), _MM_HINT_T0);
      add(k + 8 <= depth ? 8 : depth - k);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v)
      StoreFirst(c + r * c_stride + 4 * v, last ? _mm256_add_pd(s[r][v], _mm256_setzero_pd()) : s[r][v],
                 v + 1 < kVectors ? 4 : left);
}

// Of packed rows the addresses are known: an instruction in forty less.
template <int kRows, int kVectors>
void Run(int64_t depth, const GemmRows& rows, const GemmFetches& fetches, const double* b, int64_t /*b_row*/,
         double* c, int64_t c_stride, int64_t width, bool first, bool last) {
  const auto run = rows.row == 1 && rows.column == kStripRows      ? RunRows<kRows, kVectors, kStripRows>
                   : rows.row == 1 && rows.column == kStripColumns ? RunRows<kRows, kVectors, kStripColumns>
                                                                   : RunRows<kRows, kVectors, 0>;
  run(depth, rows, fetches, b, c, c_stride, width, first, last);
}

}  // namespace

// Eight chains at least are in flight in every tile: two additions a cycle, four cycles each.
const GemmKernel kGemmAvx2 = {.rows = kStripRows,
                              .columns = kStripColumns,
                              .depth = 256,
                              .tiles = {{8, 4, Run<8, 1>}, {4, 8, Run<4, 2>}, {4, 12, Run<4, 3>}}};

}  // namespace heddle::ops
