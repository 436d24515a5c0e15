// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/matmul.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "core/panels.h"
#include "ops/cpu.h"
#include "ops/simd/few_columns.h"
#include "ops/simd/join_rows.h"
#include "ops/simd/rows.h"

namespace heddle::ops::simd {
namespace {

// Rows of several columns are read again and again in blocks of so many cells.
constexpr int64_t kBlockCells = 3072;
// Doubles between a loop that reads page after page and what it fetches: Zen 3 likes it near, Zen 5 far (X %*% v of a hundred columns
// took 1.2 times as long with 96).
int64_t FarAhead() {
  static const int64_t distance = IsSupported(Cpu::kAvx512) ? 1024 : 96;
  return distance;
}
// The same of two loops that fetch a half each (Zen 4, long rows).
constexpr int64_t kHalvesAhead = 256;
// The tail of a row is not counted as a line to fetch: side by side, fetching begins anew after so many cells (page after page it
// catches up), or it would fall behind the reading (X %*% v of 100 columns took 1.7 times as long).
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

// (r0+r4, r1+r5, r2+r6, r3+r7) of one row times each of kCount vectors. kTail: after the whole eights comes
// 0: nothing, 1: at most four cells, 2: more.
template <int kCount, int kTail>
[[gnu::always_inline]] inline void HalfLanes(const double* x, int64_t whole, const double* v, int64_t v_stride, __m256i mask,
                                             Ahead& ahead, __m256d* half) {
  __m256d low[kCount], high[kCount];
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) low[c] = high[c] = _mm256_setzero_pd();
  const auto add = [&](int64_t j) __attribute__((always_inline)) {
    const __m256d x_low = _mm256_loadu_pd(x + j), x_high = _mm256_loadu_pd(x + j + 4);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      low[c] = _mm256_fmadd_pd(x_low, _mm256_load_pd(v + c * v_stride + j), low[c]);
      high[c] = _mm256_fmadd_pd(x_high, _mm256_load_pd(v + c * v_stride + j + 4), high[c]);
    }
  };
  const bool every = ahead.shift() == 0;
  for (int64_t turns = whole / 16; turns > 0; --turns, x += 16, v += 16) {
    ahead.Fetch();
    add(0);
    if (every) ahead.Fetch();
    add(8);
  }
  if (whole % 16 > 0) {
    ahead.Fetch();
    add(0);
    x += 8;
    v += 8;
  }
  if constexpr (kTail > 0) {
    const __m256d x_low = kTail == 1 ? _mm256_maskload_pd(x, mask) : _mm256_loadu_pd(x);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) low[c] = _mm256_fmadd_pd(x_low, _mm256_load_pd(v + c * v_stride), low[c]);
  }
  if constexpr (kTail == 2) {
    const __m256d x_high = _mm256_maskload_pd(x + 4, mask);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) high[c] = _mm256_fmadd_pd(x_high, _mm256_load_pd(v + c * v_stride + 4), high[c]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) half[c] = _mm256_add_pd(low[c], high[c]);
}

// The same for four long rows of one vector, which is read once for all.
template <int kTail>
[[gnu::always_inline]] inline void HalfLanesOfFour(const double* x, int64_t stride, int64_t whole, const double* v,
                                                   __m256i mask, Ahead& next, __m256d (*half)[1]) {
  __m256d low[4], high[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) low[r] = high[r] = _mm256_setzero_pd();
  const auto add = [&](__m256d* lanes, int64_t j, bool masked) __attribute__((always_inline)) {
    __m256d cells = _mm256_load_pd(v + j);
    KeepInRegister(cells);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const double* row = x + r * stride + j;
      lanes[r] = _mm256_fmadd_pd(masked ? _mm256_maskload_pd(row, mask) : _mm256_loadu_pd(row), cells, lanes[r]);
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

// kWhole: the number of whole eights in a row, -1 when it is not a constant. Returns the rows done.
template <int kCount, int kWhole, int kTail>
int64_t FourRowsAtATime(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                        int64_t v_stride, Ahead& ahead, double* out, int64_t out_stride) {
  const __m256i mask = FirstOfFour(kTail == 2 ? n % 8 - 4 : n % 8);
  const int64_t whole = kWhole >= 0 ? 8 * kWhole : n / 8 * 8;
  // Short rows have too many lines that are not counted as whole ones.
  const bool by_cells = kWhole >= 0 && stride == n && ahead.side_by_side() && ahead.shift() == 0;
  EightAhead eight(ahead);
  Ahead next = by_cells ? Ahead::AtHand(x) : ahead;
  // Zen 4 follows one long row rather than four.
  const int64_t least_of_four = FetchesToFirstLevel() ? kLongRow : INT64_MAX;
  const bool catches_up = stride == n && !ahead.side_by_side() && ahead.shift() == 0;
  uint64_t fetched = next.next();
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride, out += 4 * out_stride) {
    if (catches_up) next.CatchUp(fetched);
    fetched += static_cast<uint64_t>(32 * stride);
    if (by_cells) eight.Read(4 * stride);
    __m256d half[4][kCount];
    const auto one_by_one = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r)
        HalfLanes<kCount, kTail>(x + r * stride, whole, v, v_stride, mask, next, half[r]);
    };
    if constexpr (kCount == 1 && kWhole < 0)
      n >= least_of_four ? HalfLanesOfFour<kTail>(x, stride, whole, v, mask, next, half) : one_by_one();
    else
      one_by_one();
    StoreFourRows<kCount>(half, out, out_stride);
  }
  ahead = next;
  return i;
}

template <int kCount, int kWhole>
int64_t FourRowsByTail(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                       int64_t v_stride, Ahead& ahead, double* out, int64_t out_stride) {
  if (n % 8 == 0) return FourRowsAtATime<kCount, kWhole, 0>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
  if (n % 8 <= 4) return FourRowsAtATime<kCount, kWhole, 1>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
  return FourRowsAtATime<kCount, kWhole, 2>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
}

template <int kCount>
void RowsTimesVectors(const double* x, int64_t rows, int64_t stride, int64_t n, const double* v,
                      int64_t v_stride, Ahead& ahead, double* out, int64_t out_stride) {
  int64_t i = 0;
  if (IsForAvx512(kCount))
    i = MultiplyRowsAvx512(x, rows, stride, n, v, v_stride, kCount, out, out_stride, ahead);
  else if (n < 8)
    i = FourRowsByTail<kCount, 0>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
  else if (n < 16)
    i = FourRowsByTail<kCount, 1>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
  else
    i = FourRowsByTail<kCount, -1>(x, rows, stride, n, v, v_stride, ahead, out, out_stride);
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
  const __m256i mask = FirstOfFour(n - 4 * (kVectors - 1));
  const auto fetch = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v += 2) next.FetchToSecondLevel();
  };
  const auto add_row = [&]() __attribute__((always_inline)) {
    const auto cells = [&](int v) __attribute__((always_inline)) {
      __m256d four = kMasked && v + 1 == kVectors ? _mm256_maskload_pd(x + 4 * v, mask) : _mm256_loadu_pd(x + 4 * v);
      if constexpr (kCount > 1) KeepInRegister(four);
      return four;
    };
    // The fewer of cells and weights are held: with the accumulators they just have room in sixteen registers.
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
  ahead = next;
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) _mm256_store_pd(columns + c * columns_stride + 4 * v, sums[c][v]);
}

template <int kVectors, int kCount>
void ColumnsInRegisters(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                        int64_t w_stride, double* columns, int64_t columns_stride, Ahead& ahead) {
  const auto run = n == 4 * kVectors ? ColumnsInRegisters<kVectors, kCount, false> : ColumnsInRegisters<kVectors, kCount, true>;
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

// Four rows of the product and four rows of the columns at a time, so that the CPU waits for memory with work at hand. kSame: the
// same rows. Returns the rows done. n <= 16 is in (4 * (kVectors - 1), 4 * kVectors].
template <int kVectors, bool kSame>
int64_t RowsAndColumns(const RowsAndColumnsCall& call, const Ahead& ahead) {
  const int64_t n = call.n, stride = call.stride, groups = std::min(call.rows, call.previous_rows) / 4;
  const __m256i mask = FirstOfFour(n - 4 * (kVectors - 1));
  __m256d sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_load_pd(call.columns + 4 * v);
  const auto row = [&](const double* x, int v) __attribute__((always_inline)) {
    return v + 1 < kVectors ? _mm256_loadu_pd(x + 4 * v) : _mm256_maskload_pd(x + 4 * v, mask);
  };
  Ahead next = ahead;
  EightAhead eight(next);
  for (int64_t i = 0; i < 4 * groups; i += 4) {
    const auto add_columns = [&](const double* from, const double* w) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const __m256d weight = _mm256_broadcast_sd(w + r);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_fmadd_pd(row(from + r * stride, v), weight, sums[v]);
      }
    };
    if (!kSame) add_columns(call.previous + i * stride, call.w + i);
    const double* x = call.x + i * stride;
    if (next.side_by_side())
      eight.Read(4 * stride);
    else
      for (int64_t line = 0; line < 4 * stride; line += 8) next.Fetch();
    __m256d half[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r, x += stride) {
      // Lanes 0-3 take vectors 0 and 2, lanes 4-7 vectors 1 and 3; each chain begins at +0.0.
      __m256d lanes[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) lanes[v % 2] = _mm256_fmadd_pd(row(x, v), _mm256_load_pd(call.v + 4 * v), lanes[v % 2]);
      half[r] = _mm256_add_pd(lanes[0], lanes[1]);
    }
    _mm256_storeu_pd(call.out + i, JoinFourRows(half[0], half[1], half[2], half[3]));
    if (kSame) add_columns(call.x + i * stride, call.out + i);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) _mm256_store_pd(call.columns + 4 * v, sums[v]);
  return 4 * groups;
}

// Many columns. Returns the rows done: kRows at a time. Several pay also on rows that are in the cache already.
template <int kRows, int kFetch = 0>
int64_t ColumnsInMemory(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                        int64_t w_stride, double* columns, Ahead* ahead = nullptr) {
  Ahead next = ahead == nullptr ? Ahead() : *ahead;
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows, x += kRows * stride, w += kRows * w_stride) {
    __m256d weights[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) weights[r] = _mm256_broadcast_sd(w + r * w_stride);
    const auto join = [&](int r, __m256d sum, __m256d cells) __attribute__((always_inline)) {
      return _mm256_fmadd_pd(cells, weights[r], sum);
    };
    UpdateColumns<kRows, kFetch>(x, stride, n, columns, join, &next);
  }
  if (ahead != nullptr) *ahead = next;
  return i;
}

// RowsAndColumns of rows that do not fit into registers: the accumulators of columns are in the first-level cache, and so are four
// rows when they are read again.
template <bool kSame, int kTail>
int64_t WideRowsAndColumns(const RowsAndColumnsCall& call) {
  const int64_t n = call.n, stride = call.stride, whole = n / 8 * 8, rows = std::min(call.rows, call.previous_rows) / 4 * 4;
  const __m256i mask = FirstOfFour(kTail == 2 ? n % 8 - 4 : n % 8);
  // One loop fetches where lines go to the first-level cache, which both loops fill; else each fetches a half.
  const bool halves = !FetchesToFirstLevel();
  const int64_t distance = stride != n ? 0 : halves ? kHalvesAhead : FarAhead();  // Rows with gaps between them are left to the machine.
  Ahead next = Ahead::AtHand(call.x + distance, halves ? 1 : 0);
  const auto add = [&](const double* four, const double* w) {
    halves ? ColumnsInMemory<4, 4>(four, 4, stride, n, w, 1, call.columns, &next) : ColumnsInMemory<4>(four, 4, stride, n, w, 1, call.columns);
  };
  for (int64_t i = 0; i < rows; i += 4) {
    const double* x = call.x + i * stride;
    if (distance > 0) next.CatchUp(reinterpret_cast<uint64_t>(x + distance));
    if (!kSame) add(call.previous + i * stride, call.w + i);
    __m256d half[4][1];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) HalfLanes<1, kTail>(x + r * stride, whole, call.v, 0, mask, next, half[r]);
    StoreFourRows<1>(half, call.out + i, 1);
    if (kSame) add(x, call.out + i);
  }
  return rows;
}

// The same one row at a time and without fetches: what the machine's prefetcher brings in order arrives at the rate of the read probe
// (Zen 4, n = 100: 0.97 of it, where four rows at once reach 0.75, however they fetch). kRest: vectors after the last sixteen columns.
template <bool kSame, int kRest, bool kMasked>
int64_t RowByRow(const RowsAndColumnsCall& call) {
  const int64_t n = call.n, rows = std::min(call.rows, call.previous_rows);
  const __m256i mask = FirstOfFour(n % 4);
  const auto load = [&](const double* row, int v) __attribute__((always_inline)) {
    return kMasked && v == kRest - 1 ? _mm256_maskload_pd(row + 4 * v, mask) : _mm256_loadu_pd(row + 4 * v);
  };
  const auto multiply = [&](const double* row) __attribute__((always_inline)) {
    __m256d lanes[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    const double* v = call.v;
    const auto add = [&](int i, __m256d cells) __attribute__((always_inline)) {
      lanes[i % 2] = _mm256_fmadd_pd(cells, _mm256_load_pd(v + 4 * i), lanes[i % 2]);
    };
    for (int64_t turns = n / 16; turns > 0; --turns, row += 16, v += 16)
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) add(i, _mm256_loadu_pd(row + 4 * i));
#pragma GCC unroll 4
    for (int i = 0; i < kRest; ++i) add(i, load(row, i));
    const __m256d half = _mm256_add_pd(lanes[0], lanes[1]);
    const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
    return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair))) + 0.0;
  };
  const auto add_columns = [&](const double* row, double w) __attribute__((always_inline)) {
    const __m256d weight = _mm256_set1_pd(w);
    double* columns = call.columns;
    const auto add = [&](int i, __m256d cells) __attribute__((always_inline)) {
      _mm256_store_pd(columns + 4 * i, _mm256_fmadd_pd(cells, weight, _mm256_load_pd(columns + 4 * i)));
    };
    for (int64_t turns = n / 16; turns > 0; --turns, row += 16, columns += 16)
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) add(i, _mm256_loadu_pd(row + 4 * i));
#pragma GCC unroll 4
    for (int i = 0; i < kRest; ++i) add(i, load(row, i));
  };
  const double *x = call.x, *previous = call.previous;
  for (int64_t i = 0; i < rows; ++i, x += call.stride, previous += call.stride) {
    if (!kSame) add_columns(previous, call.w[i]);
    const double product = multiply(x);
    if (kSame) add_columns(x, product);
    call.out[i] = product;
  }
  return rows;
}

template <bool kSame>
int64_t RowByRowByTail(const RowsAndColumnsCall& call) {
  int64_t done = 0;
  WithConstant<0, 4>(CeilDivide(call.n % 16, 4), [&](auto rest) {
    if constexpr (rest > 0)
      done = call.n % 4 > 0 ? RowByRow<kSame, rest, true>(call) : RowByRow<kSame, rest, false>(call);
    else
      done = RowByRow<kSame, 0, false>(call);
  });
  return done;
}

template <bool kSame>
int64_t WideRowsAndColumnsByTail(const RowsAndColumnsCall& call) {
  if (!FetchesToFirstLevel() && call.n < kLongRow) return RowByRowByTail<kSame>(call);
  if (call.n % 8 == 0) return WideRowsAndColumns<kSame, 0>(call);
  return call.n % 8 <= 4 ? WideRowsAndColumns<kSame, 1>(call) : WideRowsAndColumns<kSame, 2>(call);
}

// All `count` columns of w over a block of rows that stays in L1.
void ColumnsInMemory(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w, int64_t w_stride,
                     int64_t count, double* columns, int64_t columns_stride, Ahead& ahead) {
  if (count > 1) {
    // The accumulators of a block of columns in registers.
    const int64_t width = count >= 4 ? 12 : count == 3 ? 16 : 24;
    for (int64_t j = 0; j < n; j += width) {
      const int64_t here = std::min(width, n - j);
      WithConstant<1, 6>(CeilDivide(here, 4), [&](auto vectors) {
        ColumnsByCount<vectors>(x + j, rows, stride, here, w, w_stride, count, columns + j, columns_stride, ahead);
      });
    }
    return;
  }
  int64_t done = 0;
  if (ahead)
    done = !ahead.side_by_side() ? ColumnsInMemory<8, 4>(x, rows, stride, n, w, w_stride, columns, &ahead)
           : ahead.shift() > 0   ? ColumnsInMemory<4, 4>(x, rows, stride, n, w, w_stride, columns, &ahead)
                                 : ColumnsInMemory<2, 4>(x, rows, stride, n, w, w_stride, columns, &ahead);
  else if (n >= kLongRow)
    done = ColumnsInMemory<8>(x, rows, stride, n, w, w_stride, columns);
  ColumnsInMemory<1>(x + done * stride, rows - done, stride, n, w + done * w_stride, w_stride, columns);
}

// One lane is one row of accumulators: kVectors = ceil(n / 4) registers.
template <int kVectors>
void NarrowInRegisters(const double* x, int64_t rows, int64_t n, const double* w, double* lanes, Ahead* ahead) {
  const __m256i mask = FirstOfFour(n - 4 * (kVectors - 1));
  __m256d sums[8][kVectors];
#pragma GCC unroll 8
  for (int lane = 0; lane < 8; ++lane) {
    if constexpr (kVectors == 2) sums[lane][0] = _mm256_loadu_pd(lanes + lane * n);
    sums[lane][kVectors - 1] = _mm256_maskload_pd(lanes + lane * n + 4 * (kVectors - 1), mask);
  }
  const auto add_row = [&](int lane, const double* row, double weight_of_row) __attribute__((always_inline)) {
    const __m256d weight = _mm256_set1_pd(weight_of_row);
    if constexpr (kVectors == 2) sums[lane][0] = _mm256_fmadd_pd(_mm256_loadu_pd(row), weight, sums[lane][0]);
    sums[lane][kVectors - 1] =
        _mm256_fmadd_pd(_mm256_maskload_pd(row + 4 * (kVectors - 1), mask), weight, sums[lane][kVectors - 1]);
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
    _mm256_maskstore_pd(lanes + lane * n + 4 * (kVectors - 1), mask, sums[lane][kVectors - 1]);
  }
}

// What products of rows with `count` vectors fetch where nobody else does. (Zen 4 reads rows of one vector faster without.)
Ahead AheadOf(const double* x, int64_t stride, int64_t n, int64_t count) {
  if (stride != n || (count == 1 && !FetchesToFirstLevel())) return Ahead::AtHand(x);
  return Ahead(x + (MemoryStreams() > 1 ? Ahead::kStreamedCells : IsForAvx512(count) ? 4 * stride : FarAhead()));
}

int64_t BlockOfCells(int64_t cells, int64_t n) { return std::max<int64_t>(8, cells / std::max<int64_t>(n, 1) / 8 * 8); }

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
  // Several vectors: a block of rows stays in L1 while four vectors at a time pass over it.
  const int64_t block = count > 4 ? BlockOfCells(kBlockCells, n) : MemoryStreams() > 1 ? BlockOfCells(kFetchedCells, n) : rows;
  for (int64_t i = 0; i < rows; i += block) {
    const int64_t here = std::min(block, rows - i);
    Ahead next = ahead != nullptr ? *ahead : AheadOf(x + i * stride, stride, n, count);
    for (int64_t c = 0; c < count; c += 4) {
      const double *from = x + i * stride, *v = vectors + c * vector_stride;
      double* to = out + i * out_stride + c;
      Ahead at_hand = Ahead::AtHand(from);
      WithConstant<1, 4>(std::min<int64_t>(4, count - c), [&](auto together) {
        RowsTimesVectors<together>(from, here, stride, n, v, vector_stride, c == 0 ? next : at_hand, to, out_stride);
      });
    }
    if (ahead != nullptr) *ahead = next;
  }
}

bool IsSkinny(int64_t rows, int64_t n, int64_t columns) {
  return SelectedCpu() == Cpu::kAvx512 && rows >= 8 && columns >= kLeastSkinny && columns <= kMostSkinny && n * columns <= kSkinnyCells;
}

bool AreFewForTiles(int64_t n, int64_t columns) {
  return SelectedCpu() == Cpu::kAvx512 && columns <= (n < kColumnsForTiles ? 2 * kMostColumnsTogether : kMostSkinny);
}

void MultiplySkinny(const double* x, int64_t rows, int64_t stride, int64_t n, const double* b, int64_t count, double* out,
                    int64_t out_stride, Ahead* ahead) {
  Ahead next;
  if (ahead != nullptr)
    next = *ahead;
  else if (stride == n)
    next = Ahead(x + (MemoryStreams() > 1 ? Ahead::kStreamedCells : 8 * stride));
  MultiplySkinnyAvx512(x, rows, stride, n, b, count, out, out_stride, next);
  if (ahead != nullptr) *ahead = next;
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
      MultiplyColumnsAvx512(from, here, stride, n, weights + done, w_stride, width, columns + done * columns_stride, columns_stride,
                            done == 0 ? next : nothing);
    }
    if (done < count) {
      double* rest = columns + done * columns_stride;
      Ahead& fetch = done == 0 ? next : nothing;
      const bool few = WithConstant<1, 8>(CeilDivide(n, 4), [&](auto vectors) {
        ColumnsByCount<vectors>(from, here, stride, n, weights + done, w_stride, count - done, rest, columns_stride, fetch);
      });
      if (!few) ColumnsInMemory(from, here, stride, n, weights + done, w_stride, count - done, rest, columns_stride, fetch);
    }
    if (ahead != nullptr) *ahead = next;
  }
}

void MultiplyFewColumns(const double* x, int64_t rows, int64_t x_stride, int64_t n, const double* y, int64_t y_stride,
                        int64_t k, double* out) {
  alignas(64) double sums[8 * kMostRegisterColumns] = {};
  const int64_t padded = (k + 7) / 8 * 8;
  for (int64_t j = 0; j < n; ++j) std::copy_n(out + j * k, k, sums + j * padded);
  MultiplyColumns(y, rows, y_stride, k, x, x_stride, n, sums, padded);
  for (int64_t j = 0; j < n; ++j) std::copy_n(sums + j * padded, k, out + j * k);
}

void MultiplyRowsAndColumns(const RowsAndColumnsCall& call) {
  const bool same = call.previous == call.x;
  const auto narrow = [&] {
    // Three vectors of 256 bits take fewer turns than the halves of two wide ones.
    const bool wide = SelectedCpu() == Cpu::kAvx512 && !(SplitsWideVectors() && call.n <= 12);
    const auto run = wide           ? MultiplyRowsAndColumnsAvx512
                     : call.n <= 12 ? (same ? RowsAndColumns<3, true> : RowsAndColumns<3, false>)
                                    : (same ? RowsAndColumns<4, true> : RowsAndColumns<4, false>);
    return run(call, Ahead(call.x + (MemoryStreams() > 1 ? Ahead::kStreamedCells : FarAhead())));
  };
  const int64_t done = call.n <= 16 ? narrow() : (same ? WideRowsAndColumnsByTail<true> : WideRowsAndColumnsByTail<false>)(call);
  const auto multiply_rest = [&] {
    MultiplyRows(call.x + done * call.stride, call.rows - done, call.stride, call.n, call.v, 0, 1, call.out + done, 1);
  };
  if (same) multiply_rest();
  MultiplyColumns(call.previous + done * call.stride, call.previous_rows - done, call.stride, call.n, call.w + done, 1, 1,
                  call.columns, 0);
  if (!same) multiply_rest();
}

void MultiplyNarrow(const double* x, int64_t rows, int64_t n, const double* w, double* lanes,
                    Ahead* ahead) {
  if (n == 1) return MultiplyFlat(x, w, rows, lanes);
  if (n <= 4) return NarrowInRegisters<1>(x, rows, n, w, lanes, ahead);
  return NarrowInRegisters<2>(x, rows, n, w, lanes, ahead);
}

}  // namespace heddle::ops::simd
