// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/matmul.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "core/panels.h"
#include "ops/cpu.h"
#include "ops/simd/few_columns.h"
#include "ops/simd/join_rows.h"
#include "ops/simd/product_rows.h"
#include "ops/simd/rows.h"

namespace heddle::ops::simd {
namespace {

// Rows of several columns are read again and again in blocks of so many cells.
constexpr int64_t kBlockCells = 3072;
// The tail of a row is not counted as a line to fetch: side by side, fetching begins anew after so many cells
// (page after page it catches up), or it would fall behind the reading (X %*% v of 100 columns took 1.7 times
// as long).
constexpr int64_t kFetchedCells = 8192;
// Cells of a skinny right operand: they stay in the second-level cache.
constexpr int64_t kSkinnyCells = 1 << 14;
// Columns of X from which on tiles of GemmKernel are as fast with 14 to 24 columns of Y.
constexpr int64_t kColumnsForTiles = 32;

// One load for several uses, where the compiler would load again for each.
inline void KeepInRegister(__m256d& cells) { asm("" : "+x"(cells)); }

bool IsForAvx512(int64_t count) { return count >= kLeastFewColumns && SelectedCpu() == Cpu::kAvx512; }

double SumOfLanes(const double* r) {
  return ((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]));
}

// HalfLanes of four long rows and one vector, which is read once for all.
template <int kTail>
[[gnu::always_inline]] inline void HalfLanesOfFour(const double* x, int64_t stride, int64_t whole,
                                                   const double* v, int64_t last, Ahead& next,
                                                   __m256d (*half)[1]) {
  __m256d low[4], high[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) low[r] = high[r] = _mm256_setzero_pd();
  const auto add = [&](__m256d * lanes, int64_t j, bool masked) __attribute__((always_inline)) {
    __m256d cells = _mm256_load_pd(v + j);
    KeepInRegister(cells);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const double* row = x + r * stride + j;
      lanes[r] = _mm256_fmadd_pd(masked ? LoadFirst(row, last) : _mm256_loadu_pd(row), cells, lanes[r]);
    }
  };
  for (int64_t j = 0; j < whole; j += 8) {
    if (!next.side_by_side()) {
      // Of the other streams the machine's prefetcher knows.
      _mm_prefetch(reinterpret_cast<const char*>(x + 4 * stride + j), _MM_HINT_T0);
    } else {
      for (int line = 0; line < 4; line += 1 << next.shift()) next.Fetch();
    }
    add(low, j, false);
    add(high, j + 4, false);
  }
  if constexpr (kTail > 0) add(low, whole, kTail == 1);
  if constexpr (kTail == 2) add(high, whole + 4, true);
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) half[r][0] = _mm256_add_pd(low[r], high[r]);
}

// HalfLanes of kRows rows, one half of the lanes after the other: a load of v serves kRows products, and
// kRows * kCount sums are in registers.
template <int kRows, int kCount, int kTail>
[[gnu::always_inline]] inline void HalfLanesOfRows(const double* x, int64_t stride, int64_t whole,
                                                   const double* v, int64_t v_stride, int64_t last,
                                                   Ahead& next, __m256d (*half)[kCount]) {
#pragma GCC unroll 2
  for (int part = 0; part < 2; ++part) {
    __m256d lanes[kRows][kCount];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) lanes[r][c] = _mm256_setzero_pd();
    const auto add = [&](int64_t j, int64_t cells) __attribute__((always_inline)) {
      __m256d weights[kCount];
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) {
        weights[c] = _mm256_load_pd(v + c * v_stride + j);
        KeepInRegister(weights[c]);
      }
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        __m256d row = LoadFirst(x + r * stride + j, cells);
        KeepInRegister(row);
#pragma GCC unroll 4
        for (int c = 0; c < kCount; ++c) lanes[r][c] = _mm256_fmadd_pd(row, weights[c], lanes[r][c]);
      }
    };
    const auto fetch = [&]() __attribute__((always_inline)) {
      if (part == 0)
        for (int r = 0; r < kRows; ++r) next.Fetch();
    };
    const bool every = next.shift() == 0;
    int64_t j = 4 * part;
    for (int64_t turns = whole / 16; turns > 0; --turns, j += 16) {
      fetch();
      add(j, 4);
      if (every) fetch();
      add(j + 8, 4);
    }
    if (whole % 16 > 0) {
      fetch();
      add(j, 4);
    }
    if (part == 0 && kTail > 0) add(whole, kTail == 1 ? last : 4);
    if (part == 1 && kTail == 2) add(whole + 4, last);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c)
        half[r][c] = part == 0 ? lanes[r][c] : _mm256_add_pd(half[r][c], lanes[r][c]);
  }
}

// Rows that HalfLanesOfRows takes together.
constexpr int RowsTogether(int count) { return count == 1 ? 1 : count == 2 ? 4 : 2; }

// kWhole: the number of whole eights in a row, -1 when it is not a constant. Returns the rows done.
template <int kCount, int kWhole, int kTogether, int kTail>
int64_t FourRowsAtATime(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                        int64_t v_stride, Ahead& ahead, double* out, int64_t out_stride) {
  const int64_t last = kTail == 2 ? n % 8 - 4 : n % 8;
  const int64_t whole = kWhole >= 0 ? 8 * kWhole : n / 8 * 8;
  // Short rows have too many lines that are not counted as whole ones.
  const bool by_cells = kWhole >= 0 && stride == n && ahead.side_by_side() && ahead.shift() == 0;
  EightAhead eight(ahead);
  Ahead next = by_cells ? Ahead::AtHand(x) : ahead;
  // AMD follows one long row rather than four.
  const int64_t least_of_four = MemoryStreams() > 1 ? kLongRow : INT64_MAX;
  WholeRows whole_rows(ahead, stride == n);
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride, out += 4 * out_stride) {
    whole_rows.Read(4 * stride, next);
    if (by_cells) eight.Read(4 * stride);
    __m256d half[4][kCount];
    const auto in_turn = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < 4; r += kTogether) {
        if constexpr (kTogether == 1)
          HalfLanes<kCount, kTail>(x + r * stride, whole, v, v_stride, last, next, half[r]);
        else
          HalfLanesOfRows<kTogether, kCount, kTail>(x + r * stride, stride, whole, v, v_stride, last, next,
                                                    half + r);
      }
    };
    if constexpr (kCount == 1 && kWhole < 0)
      n >= least_of_four ? HalfLanesOfFour<kTail>(x, stride, whole, v, last, next, half) : in_turn();
    else
      in_turn();
    StoreFourRows<kCount>(half, out, out_stride);
  }
  if (by_cells)
    ahead = next;
  else
    ahead.GoOnFrom(next);
  return i;
}

// Rows in memory times one vector, in the order in which they lie there (kShortRow).
void RowByRow(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v, double* out,
              int64_t out_stride) {
  const int64_t distance = RowsAhead(n, stride);
  WithRest(n, [&](auto rest, auto masked) {
    for (int64_t i = 0; i < rows; ++i)
      out[i * out_stride] = MultiplyRow<rest, masked>(x + i * stride, v, n, distance);
  });
}

template <int kCount, int kWhole, int kTogether = 1>
int64_t FourRowsByTail(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                       int64_t v_stride, Ahead& ahead, double* out, int64_t out_stride) {
  if (n % 8 == 0)
    return FourRowsAtATime<kCount, kWhole, kTogether, 0>(x, rows, stride, n, v, v_stride, ahead, out,
                                                         out_stride);
  if (n % 8 <= 4)
    return FourRowsAtATime<kCount, kWhole, kTogether, 1>(x, rows, stride, n, v, v_stride, ahead, out,
                                                         out_stride);
  return FourRowsAtATime<kCount, kWhole, kTogether, 2>(x, rows, stride, n, v, v_stride, ahead, out,
                                                       out_stride);
}

template <int kCount>
void RowsTimesVectors(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                      int64_t v_stride, bool in_order, Ahead& ahead, double* out, int64_t out_stride) {
  int64_t i = 0;
  if (IsForAvx512(kCount))
    i = MultiplyRowsAvx512(x, rows, stride, n, v, v_stride, kCount, out, out_stride, ahead);
  else if (n < 8)
    i = FourRowsByTail<kCount, 0>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
  else if (n < 16)
    i = FourRowsByTail<kCount, 1>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
  else if (in_order)
    i = FourRowsByTail<kCount, -1>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
  else
    i = FourRowsByTail<kCount, -1, RowsTogether(kCount)>(x, rows, stride, n, v, v_stride, ahead, out,
                                                         out_stride);
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
template <int kVectors, int kCount, bool kMasked>
void ColumnsInRegisters(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                        int64_t w_stride, double* columns, int64_t columns_stride, Ahead& ahead) {
  Ahead next = ahead;
  __m256d sums[kCount][kVectors];
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[c][v] = _mm256_load_pd(columns + c * columns_stride + 4 * v);
  const auto fetch = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v += 2) next.FetchToSecondLevel();
  };
  const auto add_row = [&]() __attribute__((always_inline)) {
    const auto cells = [&](int v) __attribute__((always_inline)) {
      __m256d four =
          kMasked && v + 1 == kVectors ? LoadFirst(x + 4 * v, n - 4 * v) : _mm256_loadu_pd(x + 4 * v);
      if constexpr (kCount > 1) KeepInRegister(four);
      return four;
    };
    // The fewer of cells and weights are held: with the accumulators they just have room in sixteen
    // registers.
    if constexpr (kVectors <= kCount) {
      __m256d held[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) held[v] = cells(v);
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) {
        const __m256d weight = _mm256_broadcast_sd(w + c);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[c][v] = _mm256_fmadd_pd(held[v], weight, sums[c][v]);
      }
    } else {
      __m256d held[kCount];
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) held[c] = _mm256_broadcast_sd(w + c);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const __m256d four = cells(v);
#pragma GCC unroll 4
        for (int c = 0; c < kCount; ++c) sums[c][v] = _mm256_fmadd_pd(four, held[c], sums[c][v]);
      }
    }
    x += stride;
    w += w_stride;
  };
  const int64_t period = int64_t{1} << ahead.shift();
  int64_t i = 0;
  // Whole rows are fetched by cells; of wider rows each pass fetches its columns.
  if (next.side_by_side() && period == 1 && stride == n) {
    EightAhead eight(next);
    for (; i < rows; ++i) {
      eight.Read(stride);
      add_row();
    }
  }
  for (; next && i + period <= rows; i += period) {
    fetch();
    for (int64_t r = 0; r < period; ++r) add_row();
  }
  for (; i < rows; ++i) add_row();
  ahead.GoOnFrom(next);
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) _mm256_store_pd(columns + c * columns_stride + 4 * v, sums[c][v]);
}

template <int kVectors, int kCount>
void ColumnsInRegisters(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                        int64_t w_stride, double* columns, int64_t columns_stride, Ahead& ahead) {
  const auto run = n == 4 * kVectors ? ColumnsInRegisters<kVectors, kCount, false>
                                     : ColumnsInRegisters<kVectors, kCount, true>;
  run(x, rows, stride, n, w, w_stride, columns, columns_stride, ahead);
}

template <int kVectors>
void ColumnsByCount(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                    int64_t w_stride, int64_t count, double* columns, int64_t columns_stride, Ahead& ahead) {
  // One pass fetches.
  Ahead nothing;
  for (int64_t c = 0; c < count;) {
    Ahead& next = c == 0 ? ahead : nothing;
    const int64_t left = count - c;
    double* here = columns + c * columns_stride;
    if (kVectors <= 3 && left >= 4) {
      ColumnsInRegisters<kVectors, kVectors <= 3 ? 4 : 1>(x, rows, stride, n, w + c, w_stride, here,
                                                          columns_stride, next);
      c += 4;
    } else if (kVectors <= 4 && left == 3) {
      ColumnsInRegisters<kVectors, kVectors <= 4 ? 3 : 1>(x, rows, stride, n, w + c, w_stride, here,
                                                          columns_stride, next);
      c += 3;
    } else if (kVectors <= 6 && left >= 2) {
      ColumnsInRegisters<kVectors, kVectors <= 6 ? 2 : 1>(x, rows, stride, n, w + c, w_stride, here,
                                                          columns_stride, next);
      c += 2;
    } else {
      ColumnsInRegisters<kVectors, 1>(x, rows, stride, n, w + c, w_stride, here, columns_stride, next);
      c += 1;
    }
  }
}

// All `count` columns of w over a block of rows that stays in L1.
void ColumnsInMemory(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                     int64_t w_stride, int64_t count, double* columns, int64_t columns_stride, Ahead& ahead) {
  if (count > 1) {
    // The accumulators of a block of columns in registers.
    const int64_t width = count >= 4 ? 12 : count == 3 ? 16 : 24;
    for (int64_t j = 0; j < n; j += width) {
      const int64_t here = std::min(width, n - j);
      WithConstant<1, 6>(CeilDivide(here, 4), [&](auto vectors) {
        ColumnsByCount<vectors>(x + j, rows, stride, here, w, w_stride, count, columns + j, columns_stride,
                                ahead);
      });
    }
    return;
  }
  int64_t done = 0;
  if (ahead)
    done = !ahead.side_by_side() ? AddRowsToColumns<8, 4>(x, rows, stride, n, w, w_stride, columns, &ahead)
           : ahead.shift() > 0   ? AddRowsToColumns<4, 4>(x, rows, stride, n, w, w_stride, columns, &ahead)
                                 : AddRowsToColumns<2, 4>(x, rows, stride, n, w, w_stride, columns, &ahead);
  else if (n >= kLongRow)
    done = AddRowsToColumns<8>(x, rows, stride, n, w, w_stride, columns);
  AddRowsToColumns<1>(x + done * stride, rows - done, stride, n, w + done * w_stride, w_stride, columns);
}

// One lane is one row of accumulators: kVectors = ceil(n / 4) registers.
template <int kVectors>
void NarrowInRegisters(const double* x, int64_t rows, int64_t n, const double* w, double* lanes,
                       Ahead* ahead) {
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
    if (ahead != nullptr) {
      for (int64_t line = 0; line < n; line += 4) ahead->FetchToSecondLevel();
    }
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

// Doubles between a loop over groups of rows, of so many doubles, and what it fetches.
int64_t RowsTogetherAhead(int64_t group) {
  return MemoryStreams() > 1 ? Ahead::kStreamedCells : FetchesToFirstLevel() ? FarAhead() : group;
}

// What products of rows with `count` vectors fetch where nobody else does. (Zen 4 reads rows of one vector
// faster without.)
Ahead AheadOf(const double* x, int64_t stride, int64_t n, int64_t count) {
  if (stride != n || (count == 1 && !FetchesToFirstLevel())) return Ahead::AtHand(x);
  return Ahead(x + (IsForAvx512(count) || MemoryStreams() > 1 ? RowsTogetherAhead(4 * stride) : FarAhead()));
}

int64_t BlockOfCells(int64_t cells, int64_t n) {
  return std::max<int64_t>(8, cells / std::max<int64_t>(n, 1) / 8 * 8);
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
                  int64_t vector_stride, int64_t count, double* out, int64_t out_stride, Ahead* ahead) {
  if (count == 1 && n > kShortRow && ahead == nullptr && MemoryStreams() == 1)
    return RowByRow(x, rows, stride, n, vectors, out, out_stride);
  // Several vectors: a block of rows stays in L1 while four vectors at a time pass over it.
  const int64_t block = count > 4             ? BlockOfCells(kBlockCells, n)
                        : MemoryStreams() > 1 ? BlockOfCells(kFetchedCells, n)
                                              : rows;
  for (int64_t i = 0; i < rows; i += block) {
    const int64_t here = std::min(block, rows - i);
    Ahead next = ahead != nullptr ? *ahead : AheadOf(x + i * stride, stride, n, count);
    for (int64_t c = 0; c < count; c += 4) {
      const double *from = x + i * stride, *v = vectors + c * vector_stride;
      double* to = out + i * out_stride + c;
      Ahead at_hand = Ahead::AtHand(from);
      // From memory one row after the other: the prefetcher loses its place among several.
      const bool in_order = c == 0 && ahead == nullptr;
      WithConstant<1, 4>(std::min<int64_t>(4, count - c), [&](auto together) {
        RowsTimesVectors<together>(from, here, stride, n, v, vector_stride, in_order, c == 0 ? next : at_hand,
                                   to, out_stride);
      });
    }
    if (ahead != nullptr) ahead->GoOnFrom(next);
  }
}

bool IsSkinny(int64_t rows, int64_t n, int64_t columns) {
  return SelectedCpu() == Cpu::kAvx512 && rows >= 8 && columns >= kLeastSkinny && columns <= kMostSkinny &&
         n * columns <= kSkinnyCells;
}

bool AreFewForTiles(int64_t n, int64_t columns) {
  return SelectedCpu() == Cpu::kAvx512 &&
         columns <= (n < kColumnsForTiles ? 2 * kMostColumnsTogether : kMostSkinny);
}

void MultiplySkinny(const double* x, int64_t rows, int64_t stride, int64_t n, const double* b, int64_t count,
                    double* out, int64_t out_stride, Ahead* ahead) {
  Ahead next;
  if (ahead != nullptr)
    next = *ahead;
  else if (stride == n)
    next = Ahead(x + RowsTogetherAhead(8 * stride));
  MultiplySkinnyAvx512(x, rows, stride, n, b, count, out, out_stride, next);
  if (ahead != nullptr) ahead->GoOnFrom(next);
}

void MultiplyColumns(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                     int64_t w_stride, int64_t count, double* columns, int64_t columns_stride, Ahead* ahead) {
  if (n == 0) return;
  const int64_t block = count == 1 || ahead != nullptr ? rows : BlockOfCells(kBlockCells, n);
  for (int64_t i = 0; i < rows; i += block) {
    const int64_t here = std::min(block, rows - i);
    const double *from = x + i * stride, *weights = w + i * w_stride;
    Ahead next;
    if (ahead != nullptr)
      next = *ahead;
    else if (stride == n && (count > 1 || MemoryStreams() > 1))
      next = Ahead(from + (count > 1 ? here * n : Ahead::kStreamedCells));
    int64_t done = 0;
    Ahead nothing;
    const int64_t passes = CeilDivide(count, kMostColumnsTogether);
    for (int64_t pass = 1, width; IsForAvx512(count) && pass <= passes; ++pass, done += width) {
      width = count * pass / passes - done;
      MultiplyColumnsAvx512(from, here, stride, n, weights + done, w_stride, width,
                            columns + done * columns_stride, columns_stride, done == 0 ? next : nothing);
    }
    if (done < count) {
      double* rest = columns + done * columns_stride;
      Ahead& fetch = done == 0 ? next : nothing;
      const bool few = WithConstant<1, 8>(CeilDivide(n, 4), [&](auto vectors) {
        ColumnsByCount<vectors>(from, here, stride, n, weights + done, w_stride, count - done, rest,
                                columns_stride, fetch);
      });
      if (!few)
        ColumnsInMemory(from, here, stride, n, weights + done, w_stride, count - done, rest, columns_stride,
                        fetch);
    }
    if (ahead != nullptr) ahead->GoOnFrom(next);
  }
}

void MultiplyFewColumns(const double* x, int64_t rows, int64_t x_stride, int64_t n, const double* y,
                        int64_t y_stride, int64_t k, double* out) {
  alignas(64) double sums[8 * kMostRegisterColumns] = {};
  const int64_t padded = (k + 7) / 8 * 8;
  for (int64_t j = 0; j < n; ++j) std::copy_n(out + j * k, k, sums + j * padded);
  MultiplyColumns(y, rows, y_stride, k, x, x_stride, n, sums, padded);
  for (int64_t j = 0; j < n; ++j) std::copy_n(sums + j * padded, k, out + j * k);
}

void MultiplyNarrow(const double* x, int64_t rows, int64_t n, const double* w, double* lanes, Ahead* ahead) {
  if (n == 1) return MultiplyFlat(x, w, rows, lanes);
  if (n <= 4) return NarrowInRegisters<1>(x, rows, n, w, lanes, ahead);
  return NarrowInRegisters<2>(x, rows, n, w, lanes, ahead);
}

}  // namespace heddle::ops::simd
