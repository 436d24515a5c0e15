// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <array>

#include "bench/hand/functions.h"
#include "bench/hand/fusion.h"
#include "bench/hand/slices.h"

namespace heddle::bench {
namespace {

constexpr int64_t kRows = 16;
constexpr int64_t kBatch = 256;  // Logarithms taken at once.

double SumOf(__m256d lanes) {
  const __m128d two = _mm256_castpd256_pd128(lanes) + _mm256_extractf128_pd(lanes, 1);
  return two[0] + two[1];
}

// u . v[c] for four columns c at once; kRank 0 takes the argument.
template <int kRank>
__m256d FourDots(const double* u, const double* const v[4], int64_t rank_argument) {
  const int64_t rank = kRank > 0 ? kRank : rank_argument;
  __m256d s[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) s[r] = _mm256_setzero_pd();
  int64_t k = 0;
#pragma GCC unroll 5
  for (; k + 4 <= rank; k += 4) {
    const __m256d cells = _mm256_loadu_pd(u + k);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) s[r] = _mm256_fmadd_pd(cells, _mm256_loadu_pd(v[r] + k), s[r]);
  }
  const __m256d low = _mm256_hadd_pd(s[0], s[1]), high = _mm256_hadd_pd(s[2], s[3]);
  __m256d dots = _mm256_permute2f128_pd(low, high, 0x20) + _mm256_permute2f128_pd(low, high, 0x31);
  if constexpr (kRank % 4 != 0 || kRank == 0)
    for (; k < rank; ++k)
      dots = _mm256_fmadd_pd(_mm256_set1_pd(u[k]), _mm256_setr_pd(v[0][k], v[1][k], v[2][k], v[3][k]), dots);
  return dots;
}

// Calls take(first, count, rows of v, dots) for runs of up to four entries of row i; rows beyond count repeat
// the first.
template <int kRank, typename Take>
void VisitDots(const HandCsr& x, int64_t i, const double* u, const double* v, int64_t rank, Take take) {
  for (int64_t e = x.offsets[i]; e < x.offsets[i + 1]; e += 4) {
    const int64_t count = std::min<int64_t>(4, x.offsets[i + 1] - e);
    const double* rows[4];
#pragma GCC unroll 4
    for (int64_t r = 0; r < 4; ++r) rows[r] = v + x.columns[r < count ? e + r : e] * rank;
    take(e, count, rows, FourDots<kRank>(u + i * rank, rows, rank));
  }
}

// The sum over rows of row_sum(i).
template <typename RowSum>
double SumRows(const HandCsr& x, RowSum row_sum) {
  const Slices slices(x.rows, kRows);
  SliceSums parts(slices.size(), 1);
  slices.Each([&](int64_t slice, int64_t begin, int64_t end) {
    double total = 0;
    for (int64_t i = begin; i < end; ++i) total += row_sum(i);
    *parts.Of(slice) = total;
  });
  double total = 0;
  parts.AddUp(&total);
  return total;
}

template <int kRank>
double OuterLog(const HandCsr& x, const double* u, const double* v, int64_t rank) {
  return SumRows(x, [&](int64_t i) {
    std::array<double, kBatch + 4> dots;
    int64_t first = x.offsets[i], end = first;
    double total = 0;
    const auto flush = [&] {
      total += SelectedHandFunctions().sum_of_logarithms(x.values + first, dots.data(), end - first);
      first = end;
    };
    VisitDots<kRank>(
        x, i, u, v, rank,
        [&](int64_t e, int64_t count, const double* const*, __m256d four) __attribute__((always_inline)) {
          _mm256_storeu_pd(dots.data() + (e - first), four);
          end = e + count;
          if (end - first >= kBatch) flush();
        });
    flush();
    return total;
  });
}

template <int kRank>
double OuterLoss(const HandCsr& x, const double* u, const double* v, int64_t rank) {
  return SumRows(x, [&](int64_t i) {
    __m256d sum = _mm256_setzero_pd();
    double rest = 0;
    VisitDots<kRank>(
        x, i, u, v, rank,
        [&](int64_t e, int64_t count, const double* const*, __m256d four) __attribute__((always_inline)) {
          if (count == 4) {
            const __m256d cells = _mm256_loadu_pd(x.values + e), difference = cells - four;
            const __m256d present = _mm256_cmp_pd(cells, _mm256_setzero_pd(), _CMP_NEQ_UQ);
            sum = _mm256_fmadd_pd(difference, _mm256_and_pd(difference, present), sum);
          } else {
            for (int64_t r = 0; r < count; ++r)
              if (x.values[e + r] != 0) rest += (x.values[e + r] - four[r]) * (x.values[e + r] - four[r]);
          }
        });
    return SumOf(sum) + rest;
  });
}

template <int kRank>
void OuterRight(const HandCsr& x, const double* u, const double* v, int64_t rank_argument, double* out) {
  const int64_t rank = kRank > 0 ? kRank : rank_argument;
  Slices(x.rows, kRows).Each([&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double* sums = out + i * rank;
      std::fill_n(sums, rank, 0.0);
      VisitDots<kRank>(
          x, i, u, v, rank,
          [&](int64_t e, int64_t count, const double* const* rows, __m256d four)
              __attribute__((always_inline)) {
                __m256d d[4];
#pragma GCC unroll 4
                for (int r = 0; r < 4; ++r)
                  d[r] = _mm256_set1_pd(r < count && x.values[e + r] != 0 ? four[r] : 0.0);
                int64_t k = 0;
#pragma GCC unroll 5
                for (; k + 4 <= rank; k += 4) {
                  __m256d sum = _mm256_loadu_pd(sums + k);
#pragma GCC unroll 4
                  for (int r = 0; r < 4; ++r) sum = _mm256_fmadd_pd(d[r], _mm256_loadu_pd(rows[r] + k), sum);
                  _mm256_storeu_pd(sums + k, sum);
                }
                if constexpr (kRank % 4 != 0 || kRank == 0)
                  for (; k < rank; ++k)
                    for (int r = 0; r < 4; ++r) sums[k] += d[r][0] * rows[r][k];
              });
    }
  });
}

}  // namespace

double HandSparseSum(const HandCsr& x, const HandCsr& y, const HandCsr& z) {
  const Slices slices(x.rows, kRows);
  SliceSums parts(slices.size(), 1);
  slices.Each([&](int64_t slice, int64_t begin, int64_t end) {
    std::vector<double> scratch(static_cast<size_t>(2 * x.n), 0.0);
    double *of_y = scratch.data(), *of_z = of_y + x.n;
    double total = 0;
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t e = y.offsets[i]; e < y.offsets[i + 1]; ++e) of_y[y.columns[e]] = y.values[e];
      for (int64_t e = z.offsets[i]; e < z.offsets[i + 1]; ++e) of_z[z.columns[e]] = z.values[e];
      double even = 0, odd = 0;
      int64_t e = x.offsets[i];
      for (; e + 2 <= x.offsets[i + 1]; e += 2) {
        even += x.values[e] * of_y[x.columns[e]] * of_z[x.columns[e]];
        odd += x.values[e + 1] * of_y[x.columns[e + 1]] * of_z[x.columns[e + 1]];
      }
      for (; e < x.offsets[i + 1]; ++e) even += x.values[e] * of_y[x.columns[e]] * of_z[x.columns[e]];
      total += even + odd;
      for (e = y.offsets[i]; e < y.offsets[i + 1]; ++e) of_y[y.columns[e]] = 0;
      for (e = z.offsets[i]; e < z.offsets[i + 1]; ++e) of_z[z.columns[e]] = 0;
    }
    *parts.Of(slice) = total;
  });
  double total = 0;
  parts.AddUp(&total);
  return total;
}

void HandSparseChain(const HandCsr& x, const double* v, double* out) {
  const Slices slices(x.rows, kRows);
  SliceSums parts(slices.size(), x.n);
  slices.Each([&](int64_t slice, int64_t begin, int64_t end) {
    double* sums = parts.Of(slice);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = x.offsets[i], last = x.offsets[i + 1];
      double dots[4] = {0, 0, 0, 0};
      int64_t e = first;
      for (; e + 4 <= last; e += 4)
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) dots[r] += x.values[e + r] * v[x.columns[e + r]];
      for (; e < last; ++e) dots[0] += x.values[e] * v[x.columns[e]];
      const double dot = (dots[0] + dots[1]) + (dots[2] + dots[3]);
      for (e = first; e < last; ++e) sums[x.columns[e]] += dot * x.values[e];
    }
  });
  parts.AddUp(out);
}

double HandOuterLog(const HandCsr& x, const double* u, const double* v, int64_t rank) {
  return rank == 20    ? OuterLog<20>(x, u, v, rank)
         : rank == 100 ? OuterLog<100>(x, u, v, rank)
                       : OuterLog<0>(x, u, v, rank);
}

void HandOuterRight(const HandCsr& x, const double* u, const double* v, int64_t rank, double* out) {
  if (rank == 20) return OuterRight<20>(x, u, v, rank, out);
  if (rank == 100) return OuterRight<100>(x, u, v, rank, out);
  return OuterRight<0>(x, u, v, rank, out);
}

double HandOuterLoss(const HandCsr& x, const double* u, const double* v, int64_t rank) {
  return rank == 20    ? OuterLoss<20>(x, u, v, rank)
         : rank == 100 ? OuterLoss<100>(x, u, v, rank)
                       : OuterLoss<0>(x, u, v, rank);
}

}  // namespace heddle::bench
