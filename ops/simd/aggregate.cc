// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/aggregate.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/values/panels.h"
#include "ops/simd/rows.h"

namespace heddle::ops::simd {

double ExactMinimum(double a, double b) {
  if (a != a || b != b) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

double ExactMaximum(double a, double b) {
  if (a != a || b != b) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The four folds on a vector (a = accumulator, x = cell) and on one cell.
struct Add {
  static constexpr double kStart = 0.0;
  static __m256d Of(__m256d a, __m256d x) { return _mm256_add_pd(a, x); }
  static double Of(double a, double x) { return a + x; }
};
struct Multiply {
  static constexpr double kStart = 1.0;
  static __m256d Of(__m256d a, __m256d x) { return _mm256_mul_pd(a, x); }
  static double Of(double a, double x) { return a * x; }
};
// minpd gives its second operand for NaN and for two zeros; joining both orders by OR keeps any NaN and any
// minus sign.
struct Minimum {
  static constexpr double kStart = kInfinity;
  static __m256d Of(__m256d a, __m256d x) { return _mm256_or_pd(_mm256_min_pd(a, x), _mm256_min_pd(x, a)); }
  static double Of(double a, double x) { return ExactMinimum(a, x); }
};
// By AND any plus sign of two zeros is kept; a NaN is put back as all ones.
struct Maximum {
  static constexpr double kStart = -kInfinity;
  static __m256d Of(__m256d a, __m256d x) {
    return _mm256_or_pd(_mm256_and_pd(_mm256_max_pd(a, x), _mm256_max_pd(x, a)),
                        _mm256_cmp_pd(a, x, _CMP_UNORD_Q));
  }
  static double Of(double a, double x) { return ExactMaximum(a, x); }
};

// Calls body(Add{}) etc. for the fold.
template <typename Body>
auto Dispatch(Fold fold, const Body& body) {
  switch (fold) {
    case Fold::kAdd: return body(Add{});
    case Fold::kMultiply: return body(Multiply{});
    case Fold::kMinimum: return body(Minimum{});
    case Fold::kMaximum: break;
  }
  return body(Maximum{});
}

template <typename Op>
double LanesOf(const double* r) {
  return Op::Of(Op::Of(Op::Of(r[0], r[4]), Op::Of(r[2], r[6])),
                Op::Of(Op::Of(r[1], r[5]), Op::Of(r[3], r[7])));
}

// Cells in their order: a row, or all of an array.
template <typename Op>
void Flat(const double* x, int64_t count, double* lanes, const Prefetch& prefetch = {}) {
  __m256d low = _mm256_loadu_pd(lanes), high = _mm256_loadu_pd(lanes + 4);
  const auto add = [&](const double* eight) __attribute__((always_inline)) {
    low = Op::Of(low, _mm256_loadu_pd(eight));
    high = Op::Of(high, _mm256_loadu_pd(eight + 4));
  };
  int64_t p = 0;
  for (; prefetch && p + 64 <= count; p += 64) {
    prefetch.Fetch(x + p, 8, 8);
#pragma GCC unroll 8
    for (int64_t q = 0; q < 64; q += 8) add(x + p + q);
  }
  for (; p + 8 <= count; p += 8) add(x + p);
  _mm256_storeu_pd(lanes, low);
  _mm256_storeu_pd(lanes + 4, high);
  for (int64_t lane = 0; p < count; ++p, ++lane) lanes[lane] = Op::Of(lanes[lane], x[p]);
}

// Few columns: accumulators stay in registers (every loop over them must be unrolled). kVectors = ceil(n /
// 4).
template <typename Op, int kVectors>
void ColumnsInRegisters(const double* x, int64_t rows, int64_t stride, int64_t n, double* columns,
                        const Prefetch& prefetch) {
  __m256d sums[kVectors];
#pragma GCC unroll 12
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_load_pd(columns + 4 * v);
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    prefetch.Fetch(x, 8, (n + 7) / 8);
#pragma GCC unroll 12
    for (int v = 0; v + 1 < kVectors; ++v) sums[v] = Op::Of(sums[v], _mm256_loadu_pd(x + 4 * v));
    sums[kVectors - 1] =
        Op::Of(sums[kVectors - 1], LoadFirst(x + 4 * (kVectors - 1), n - 4 * (kVectors - 1)));
  }
#pragma GCC unroll 12
  for (int v = 0; v < kVectors; ++v) _mm256_store_pd(columns + 4 * v, sums[v]);
}

// Many columns. Returns the rows done: kRows at a time.
template <typename Op, int kRows, bool kFetch>
int64_t ColumnsInMemory(const double* x, int64_t rows, int64_t stride, int64_t n, double* columns,
                        const Prefetch& prefetch) {
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows, x += kRows * stride)
    UpdateColumns<kRows, kFetch>(
        x, stride, n, columns, prefetch,
        [](int, __m256d sum, __m256d cells) __attribute__((always_inline)) { return Op::Of(sum, cells); });
  return i;
}

template <typename Op>
void Columns(const double* x, int64_t rows, int64_t stride, int64_t n, double* columns,
             const Prefetch& prefetch) {
  if (n == 0) return;
  const bool few = WithConstant<1, 8>(CeilDivide(n, 4), [&](auto vectors) {
    ColumnsInRegisters<Op, vectors>(x, rows, stride, n, columns, prefetch);
  });
  if (few) return;
  const int64_t done = prefetch       ? ColumnsInMemory<Op, 8, true>(x, rows, stride, n, columns, prefetch)
                       : n < kLongRow ? 0
                                      : ColumnsInMemory<Op, 8, false>(x, rows, stride, n, columns, prefetch);
  ColumnsInMemory<Op, 1, false>(x + done * stride, rows - done, stride, n, columns, prefetch);
}

// Eight rows of n cells are 8n cells in sequence, and 2n accumulators take them as they come.
template <typename Op, int kColumns>
void NarrowInRegisters(const double* x, int64_t rows, double* narrow, const Prefetch& prefetch) {
  __m256d sums[2 * kColumns];
#pragma GCC unroll 16
  for (int v = 0; v < 2 * kColumns; ++v) sums[v] = _mm256_load_pd(narrow + 4 * v);
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8, x += 8 * kColumns) {
    prefetch.Fetch(x, 8, kColumns);
#pragma GCC unroll 16
    for (int v = 0; v < 2 * kColumns; ++v) sums[v] = Op::Of(sums[v], _mm256_loadu_pd(x + 4 * v));
  }
#pragma GCC unroll 16
  for (int v = 0; v < 2 * kColumns; ++v) _mm256_store_pd(narrow + 4 * v, sums[v]);
  for (int64_t p = 0; p < (rows - i) * kColumns; ++p) narrow[p] = Op::Of(narrow[p], x[p]);
}

// The first n (1-4) of four cells; lanes behind them change no fold.
template <typename Op>
[[gnu::always_inline]] inline __m256d LoadRest(const double* cells, int64_t n) {
  const __m256d rest = LoadFirst(cells, n);
  if (Op::kStart == 0.0) return rest;
  return _mm256_blendv_pd(_mm256_set1_pd(Op::kStart), rest, _mm256_castsi256_pd(FirstOfFour(n)));
}

// Lanes of one row of at most kShortRow cells, joined once: (r0+r4, r1+r5, r2+r6, r3+r7). How it ends after
// its whole eights: kTail 0: nothing, 1: at most four cells, 2: more. kWhole is the number of whole eights,
// -1 when it is not a constant.
template <typename Op, int kWhole, int kTail>
[[gnu::always_inline]] inline __m256d HalfLanes(const double* x, int64_t n, const Prefetch& prefetch) {
  const __m256d start = _mm256_set1_pd(Op::kStart);
  __m256d low = start, high = start;
  prefetch.Fetch(x, 8, (n + 7) / 8);
  const int64_t whole = kWhole >= 0 ? 8 * kWhole : n / 8 * 8;
  int64_t j = 0;
  for (; j < whole; j += 8) {
    low = Op::Of(low, _mm256_loadu_pd(x + j));
    high = Op::Of(high, _mm256_loadu_pd(x + j + 4));
  }
  if constexpr (kTail == 1) low = Op::Of(low, LoadRest<Op>(x + j, n - j));
  if constexpr (kTail == 2) {
    low = Op::Of(low, _mm256_loadu_pd(x + j));
    high = Op::Of(high, LoadRest<Op>(x + j + 4, n - j - 4));
  }
  return Op::Of(low, high);
}

// The rest of L for four rows at once.
template <typename Op>
inline __m256d JoinFourRows(__m256d a, __m256d b, __m256d c, __m256d d) {
  const __m256d ab = Op::Of(_mm256_permute2f128_pd(a, b, 0x20), _mm256_permute2f128_pd(a, b, 0x31));
  const __m256d cd = Op::Of(_mm256_permute2f128_pd(c, d, 0x20), _mm256_permute2f128_pd(c, d, 0x31));
  const __m256d acbd = Op::Of(_mm256_unpacklo_pd(ab, cd), _mm256_unpackhi_pd(ab, cd));
  return _mm256_permute4x64_pd(acbd, 0xd8);
}

template <typename Op, int kWhole, int kTail>
int64_t FourRowsAtATime(const double* x, int64_t rows, int64_t stride, int64_t n, double* out,
                        const Prefetch& prefetch) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride) {
    const auto row = [&](int64_t r) __attribute__((always_inline)) {
      return HalfLanes<Op, kWhole, kTail>(x + r * stride, n, prefetch);
    };
    const __m256d a = row(0), b = row(1), c = row(2), d = row(3);
    _mm256_storeu_pd(out + i, JoinFourRows<Op>(a, b, c, d));
  }
  return i;
}

template <typename Op, int kWhole>
int64_t FourRowsByTail(const double* x, int64_t rows, int64_t stride, int64_t n, double* out,
                       const Prefetch& prefetch) {
  if (n % 8 == 0) return FourRowsAtATime<Op, kWhole, 0>(x, rows, stride, n, out, prefetch);
  if (n % 8 <= 4) return FourRowsAtATime<Op, kWhole, 1>(x, rows, stride, n, out, prefetch);
  return FourRowsAtATime<Op, kWhole, 2>(x, rows, stride, n, out, prefetch);
}

// Extremes have no order: four short rows are four lanes. Returns the rows done.
template <typename Op>
int64_t ExtremesOfShortRows(const double* x, int64_t rows, int64_t stride, int64_t n, double* out) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride) {
    const auto column = [&](int64_t j) __attribute__((always_inline)) {
      return _mm256_setr_pd(x[j], x[stride + j], x[2 * stride + j], x[3 * stride + j]);
    };
    __m256d extremes = column(0);
    for (int64_t j = 1; j < n; ++j) extremes = Op::Of(extremes, column(j));
    _mm256_storeu_pd(out + i, extremes);
  }
  return i;
}

// Longer rows one after the other: so the processor's prefetcher follows them.
template <typename Op, int kRest, bool kMasked>
void RowByRow(const double* x, int64_t rows, int64_t stride, int64_t n, double* out,
              const Prefetch& prefetch) {
  const __m256d start = _mm256_set1_pd(Op::kStart);
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    __m256d lanes[2] = {start, start};
    EachFour<kRest, kMasked>(
        x, n, prefetch, [&](int64_t j, int half, bool masked) __attribute__((always_inline)) {
          lanes[half] = Op::Of(lanes[half], masked ? LoadRest<Op>(x + j, n - j) : _mm256_loadu_pd(x + j));
        });
    const __m256d half = Op::Of(lanes[0], lanes[1]),
                  pair = Op::Of(half, _mm256_permute2f128_pd(half, half, 0x01));
    out[i] = _mm256_cvtsd_f64(Op::Of(pair, _mm256_permute_pd(pair, 0x5)));
  }
}

template <typename Op>
void Rows(const double* x, int64_t rows, int64_t stride, int64_t n, double* out, const Prefetch& prefetch) {
  constexpr bool kExtreme = std::is_same_v<Op, Minimum> || std::is_same_v<Op, Maximum>;
  int64_t i = 0;
  if (n > kShortRow) {
    WithRest(n,
             [&](auto rest, auto masked) { RowByRow<Op, rest, masked>(x, rows, stride, n, out, prefetch); });
    return;
  }
  if (n == 1 && stride == 1) {
    for (; i + 4 <= rows; i += 4)
      _mm256_storeu_pd(out + i, Op::Of(_mm256_set1_pd(Op::kStart), _mm256_loadu_pd(x + i)));
  } else if (kExtreme && n > 0 && n < 8) {
    i = ExtremesOfShortRows<Op>(x, rows, stride, n, out);
  } else if (n < 8) {
    i = FourRowsByTail<Op, 0>(x, rows, stride, n, out, prefetch);
  } else if (n < 16) {
    i = FourRowsByTail<Op, 1>(x, rows, stride, n, out, prefetch);
  } else {
    i = FourRowsByTail<Op, -1>(x, rows, stride, n, out, prefetch);
  }
  for (; i < rows; ++i) {
    double lanes[8];
    for (double& lane : lanes) lane = Op::kStart;
    Flat<Op>(x + i * stride, n, lanes);
    out[i] = LanesOf<Op>(lanes);
  }
}

// Rows too short for lanes along them: four rows side by side.
__m256d IndexesInShortRows(__m256d flip, const double* const x[4], int64_t n) {
  __m256d best = _mm256_set1_pd(-kInfinity), place = _mm256_set1_pd(1.0), here = place;
  for (int64_t j = 0; j < n; ++j) {
    const __m256d cell = _mm256_xor_pd(_mm256_setr_pd(x[0][j], x[1][j], x[2][j], x[3][j]), flip);
    const __m256d better = _mm256_cmp_pd(cell, best, _CMP_GE_OQ);
    best = _mm256_blendv_pd(best, cell, better);
    place = _mm256_blendv_pd(place, here, better);
    here = _mm256_add_pd(here, _mm256_set1_pd(1.0));
  }
  return place;
}

}  // namespace

double StartOf(Fold fold) {
  return Dispatch(fold, [](auto op) { return decltype(op)::kStart; });
}
double FoldTwo(Fold fold, double a, double b) {
  return Dispatch(fold, [&](auto op) { return decltype(op)::Of(a, b); });
}
double FoldLanes(Fold fold, const double lanes[8]) {
  return Dispatch(fold, [&](auto op) { return LanesOf<decltype(op)>(lanes); });
}
void FoldFlat(Fold fold, const double* x, int64_t count, double lanes[8], const Prefetch& prefetch) {
  Dispatch(fold, [&](auto op) { Flat<decltype(op)>(x, count, lanes, prefetch); });
}
void FoldColumns(Fold fold, const double* x, int64_t rows, int64_t stride, int64_t n, double* columns,
                 const Prefetch& prefetch) {
  Dispatch(fold, [&](auto op) { Columns<decltype(op)>(x, rows, stride, n, columns, prefetch); });
}
void FoldNarrow(Fold fold, const double* x, int64_t rows, int64_t n, double* narrow,
                const Prefetch& prefetch) {
  Dispatch(fold, [&](auto op) {
    WithConstant<1, 8>(
        n, [&](auto columns) { NarrowInRegisters<decltype(op), columns>(x, rows, narrow, prefetch); });
  });
}
void FoldRows(Fold fold, const double* x, int64_t rows, int64_t stride, int64_t n, double* out,
              const Prefetch& prefetch) {
  Dispatch(fold, [&](auto op) { Rows<decltype(op)>(x, rows, stride, n, out, prefetch); });
}

int64_t FindNonFinite(const double* x, int64_t from, int64_t count) {
  const auto differs = [](const double* four) __attribute__((always_inline)) {
    const __m256d cells = _mm256_loadu_pd(four);
    return _mm256_sub_pd(cells, cells);  // 0, or NaN.
  };
  int64_t p = from;
  for (; p + 8 <= count; p += 8) {
    const __m256d low = differs(x + p), high = differs(x + p + 4);
    const int places = _mm256_movemask_pd(_mm256_cmp_pd(low, low, _CMP_UNORD_Q)) |
                       _mm256_movemask_pd(_mm256_cmp_pd(high, high, _CMP_UNORD_Q)) << 4;
    if (places != 0) return p + std::countr_zero(static_cast<unsigned>(places));
  }
  while (p < count && std::isfinite(x[p])) ++p;
  return p;
}

void DeviateFlat(const double* x, int64_t count, double mean, double lanes[8]) {
  const __m256d means = _mm256_set1_pd(mean);
  __m256d low = _mm256_loadu_pd(lanes), high = _mm256_loadu_pd(lanes + 4);
  int64_t p = 0;
  for (; p + 8 <= count; p += 8) {
    const __m256d a = _mm256_sub_pd(_mm256_loadu_pd(x + p), means),
                  b = _mm256_sub_pd(_mm256_loadu_pd(x + p + 4), means);
    low = _mm256_add_pd(low, _mm256_mul_pd(a, a));
    high = _mm256_add_pd(high, _mm256_mul_pd(b, b));
  }
  _mm256_storeu_pd(lanes, low);
  _mm256_storeu_pd(lanes + 4, high);
  for (int64_t lane = 0; p < count; ++p, ++lane) {
    const double d = x[p] - mean;
    lanes[lane] = lanes[lane] + d * d;
  }
}

void DeviateColumns(const double* x, int64_t rows, int64_t n, const double* means, double* columns) {
  const int64_t whole = n / 4 * 4;
  for (int64_t i = 0; i < rows; ++i, x += n) {
    for (int64_t j = 0; j < whole; j += 4) {
      const __m256d d = _mm256_sub_pd(_mm256_loadu_pd(x + j), _mm256_loadu_pd(means + j));
      _mm256_store_pd(columns + j, _mm256_add_pd(_mm256_load_pd(columns + j), _mm256_mul_pd(d, d)));
    }
    for (int64_t j = whole; j < n; ++j) {
      const double d = x[j] - means[j];
      columns[j] = columns[j] + d * d;
    }
  }
}

void IndexOfExtreme(bool largest, const double* x, int64_t rows, int64_t n, double* out) {
  const __m256d flip = _mm256_set1_pd(largest ? 0.0 : -0.0);
  if (n < 8) {
    for (int64_t i = 0; i < rows; i += 4) {
      const double* four[4];
      for (int64_t r = 0; r < 4; ++r) four[r] = x + std::min(i + r, rows - 1) * n;
      const __m256d places = IndexesInShortRows(flip, four, n);
      for (int64_t r = 0; r < std::min<int64_t>(4, rows - i); ++r) out[i + r] = places[r];
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i, x += n) {
    // Each lane keeps its largest cell and the last place of it; -Inf at place -1 stands for nothing yet.
    __m256d best = _mm256_set1_pd(-kInfinity), place = _mm256_set1_pd(-1.0);
    __m256d here = _mm256_setr_pd(0, 1, 2, 3);
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
      const __m256d cell = _mm256_xor_pd(_mm256_loadu_pd(x + j), flip);
      const __m256d better = _mm256_cmp_pd(cell, best, _CMP_GE_OQ);
      best = _mm256_blendv_pd(best, cell, better);
      place = _mm256_blendv_pd(place, here, better);
      here = _mm256_add_pd(here, _mm256_set1_pd(4.0));
    }
    alignas(32) double bests[4], places[4];
    _mm256_store_pd(bests, best);
    _mm256_store_pd(places, place);
    double most = -kInfinity, at = -1.0;
    for (int lane = 0; lane < 4; ++lane) {
      if (bests[lane] > most || (bests[lane] == most && places[lane] > at)) {
        most = bests[lane];
        at = places[lane];
      }
    }
    for (; j < n; ++j) {
      const double cell = largest ? x[j] : -x[j];
      if (cell >= most) {
        most = cell;
        at = static_cast<double>(j);
      }
    }
    out[i] = at < 0 ? 1.0 : at + 1.0;
  }
}

}  // namespace heddle::ops::simd
