// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/gemm.h"

namespace heddle::ops {
// Every loop over the accumulators is unrolled, or they would live in memory.
namespace {

constexpr int kStripRows = 8, kStripColumns = 24;
// A strip of B does not stay in the first-level cache: its lines are fetched so many doubles ahead.
constexpr int kAhead = 384;

// Where rows of A and B lie, if it is not known: rows of A side by side, but columns anywhere; or anywhere.
constexpr int kSideBySide = -1, kAnywhere = 0;

// kColumn: doubles between columns of rows of A that lie side by side. kStrip: doubles between rows of B.
// kWhole: B has all lanes of the tile.
template <int kRows, int kVectors, int kColumn, int kStrip, bool kWhole>
void RunRows(int64_t depth, const GemmRows& rows, const GemmFetches& fetches, const double* b, int64_t b_row,
             double* c, int64_t c_stride, int64_t width, bool first, bool last) {
  const auto last_lanes = static_cast<__mmask8>(0xff >> (8 * kVectors - width));
  __m512d s[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v)
      s[r][v] = first ? _mm512_setzero_pd()
                      : _mm512_maskz_loadu_pd(v + 1 < kVectors ? 0xff : last_lanes, c + r * c_stride + 8 * v);
  const double* a = rows.a;
  const int64_t row = kColumn == kAnywhere ? rows.row : 1, column = kColumn > 0 ? kColumn : rows.column;
  const int64_t strip = kStrip > 0 ? kStrip : b_row;
  const auto add = [&](int64_t count) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < count; ++k, a += column, b += strip) {
      __m512d cells[kVectors];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
        if (kStrip > 0) _mm_prefetch(reinterpret_cast<const char*>(b + 8 * v + kAhead), _MM_HINT_T0);
        cells[v] = kWhole || v + 1 < kVectors ? _mm512_loadu_pd(b + 8 * v)
                                              : _mm512_maskz_loadu_pd(last_lanes, b + 8 * v);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512d x = _mm512_set1_pd(a[r * row]);
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) s[r][v] = _mm512_fmadd_pd(x, cells[v], s[r][v]);
      }
    }
  };
  // A burst of fetches would wait for the buffers of missed lines: there is a part for each row of the tile.
  const int64_t strip_part = (fetches.strip_cells + 8 * kStripRows - 1) / (8 * kStripRows) * 8;
  const auto fetch_part = [&](int64_t part) __attribute__((always_inline)) {
    if (part < fetches.c_rows) {
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v)
        _mm_prefetch(reinterpret_cast<const char*>(fetches.c + part * c_stride + 8 * v), _MM_HINT_T0);
    }
    const int64_t end = (part + 1) * strip_part;
    for (int64_t q = part * strip_part; q < (end < fetches.strip_cells ? end : fetches.strip_cells); q += 8)
      _mm_prefetch(reinterpret_cast<const char*>(fetches.strip + q), _MM_HINT_T1);
  };
  if (fetches.memory == nullptr) {
    const int64_t steps = (depth + kStripRows - 1) / kStripRows;
    for (int64_t part = 0, k = 0; k < depth; ++part, k += steps) {
      fetch_part(part);
      add(k + steps <= depth ? steps : depth - k);
    }
  } else {
    const double* memory = fetches.memory;
    for (int64_t k = 0; k < depth; k += 8, memory += fetches.memory_step) {
      if (k < 8 * kStripRows) fetch_part(k / 8);
      for (int64_t l = 0; l < fetches.memory_lines; ++l)
        _mm_prefetch(reinterpret_cast<const char*>(memory + l * fetches.memory_line), _MM_HINT_T0);
      add(k + 8 <= depth ? 8 : depth - k);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v)
      _mm512_mask_storeu_pd(c + r * c_stride + 8 * v, v + 1 < kVectors ? 0xff : last_lanes,
                            last ? _mm512_add_pd(s[r][v], _mm512_setzero_pd()) : s[r][v]);
}

// Of packed rows the addresses are known.
template <int kRows, int kVectors, int kStrip, bool kWhole = true>
auto RunOf(const GemmRows& rows) {
  if constexpr (kStrip == kAnywhere)
    return rows.row == 1 ? RunRows<kRows, kVectors, kSideBySide, kStrip, kWhole>
                         : RunRows<kRows, kVectors, kAnywhere, kStrip, kWhole>;
  return rows.row == 1 && rows.column == kStripRows ? RunRows<kRows, kVectors, kStripRows, kStrip, kWhole>
         : rows.row == 1 && rows.column == kStripColumns
             ? RunRows<kRows, kVectors, kStripColumns, kStrip, kWhole>
             : RunRows<kRows, kVectors, kAnywhere, kStrip, kWhole>;
}

template <int kRows, int kVectors>
void Run(int64_t depth, const GemmRows& rows, const GemmFetches& fetches, const double* b, int64_t b_row,
         double* c, int64_t c_stride, int64_t width, bool first, bool last) {
  const auto run = b_row == 8 * kVectors    ? RunOf<kRows, kVectors, 8 * kVectors>(rows)
                   : b_row == kStripColumns ? RunOf<kRows, kVectors, kStripColumns>(rows)
                   : width == 8 * kVectors  ? RunOf<kRows, kVectors, kAnywhere>(rows)
                                            : RunOf<kRows, kVectors, kAnywhere, false>(rows);
  run(depth, rows, fetches, b, b_row, c, c_stride, width, first, last);
}

}  // namespace

const GemmKernel kGemmAvx512 = {.rows = kStripRows,
                                .columns = kStripColumns,
                                .depth = 512,
                                .tiles = {{8, 8, Run<8, 1>}, {8, 16, Run<8, 2>}, {8, 24, Run<8, 3>}},
                                .low = {4, 24, Run<4, 3>},
                                .any_b = true};

}  // namespace heddle::ops
