// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "ops/simd/prefetch.h"

// Inner loops of sums, products, extremes and squared deviations over dense doubles (docs/numerics.md,
// section 3). AVX2 on every CPU: these loops run at the speed of memory, and 256-bit loads are faster than
// 512-bit ones on rows that are not 64-byte aligned (section 4). Accumulators are read and written in place:
// start them at StartOf(fold). Arrays called `columns` or `narrow` are 64-byte aligned and padded to a
// multiple of 8 doubles; the padding ends up arbitrary.
namespace heddle::ops::simd {

enum class Fold : uint8_t { kAdd, kMultiply, kMinimum, kMaximum };

/// min and max of the language: NaN if any is NaN, -0.0 < 0.0.
double ExactMinimum(double a, double b);
double ExactMaximum(double a, double b);

/// +0.0, 1.0, +Inf, -Inf.
double StartOf(Fold fold);
/// a (fold) b; minimum and maximum as the language has them (NaN wins, -0.0 < 0.0).
double FoldTwo(Fold fold, double a, double b);
/// L: ((r0+r4)+(r2+r6)) + ((r1+r5)+(r3+r7)) with the fold in place of +.
double FoldLanes(Fold fold, const double lanes[8]);

// Lines are fetched meanwhile as `prefetch` says (Prefetch::OfStream for cells in memory).

/// lanes[p mod 8] takes x[p], p ascending.
void FoldFlat(Fold fold, const double* x, int64_t count, double lanes[8], const Prefetch& prefetch = {});
/// columns[j] takes x[i, j], i ascending; rows are `stride` apart.
void FoldColumns(Fold fold, const double* x, int64_t rows, int64_t stride, int64_t n, double* columns,
                 const Prefetch& prefetch = {});
/// narrow[(i mod 8) * n + j] takes x[i, j], i ascending, for n <= 8 and rows without gaps.
void FoldNarrow(Fold fold, const double* x, int64_t rows, int64_t n, double* narrow,
                const Prefetch& prefetch = {});
/// out[i] = L of row i: eight lanes over j, started afresh.
void FoldRows(Fold fold, const double* x, int64_t rows, int64_t stride, int64_t n, double* out,
              const Prefetch& prefetch = {});

/// The first p >= from at which x[p] is infinite or NaN; `count` if there is none.
int64_t FindNonFinite(const double* x, int64_t from, int64_t count);
/// Whether none of the numbers is infinite or NaN. For the few results of a tile, where a call would take
/// longer.
inline bool AllFinite(const double* x, int64_t count) {
  constexpr uint64_t kExponent = uint64_t{0x7FF} << 52;
  uint64_t carries = 0;  // An exponent of ones alone carries into the highest bit.
  for (int64_t p = 0; p < count; ++p)
    carries |= (std::bit_cast<uint64_t>(x[p]) & kExponent) + (uint64_t{1} << 52);
  return carries >> 63 == 0;
}

/// lanes[p mod 8] += (x[p] - mean)^2, multiply then add.
void DeviateFlat(const double* x, int64_t count, double mean, double lanes[8]);
/// columns[j] += (x[i, j] - means[j])^2.
void DeviateColumns(const double* x, int64_t rows, int64_t n, const double* means, double* columns);

/// out[i] = 1-based column of the largest (smallest) cell of row i; the last of equals, NaN ignored, 1 if all
/// are NaN.
void IndexOfExtreme(bool largest, const double* x, int64_t rows, int64_t n, double* out);

}  // namespace heddle::ops::simd
