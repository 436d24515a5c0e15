// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <array>

#include "bench/hand/ahead.h"
#include "bench/hand/functions.h"
#include "bench/hand/fusion.h"
#include "bench/hand/slices.h"
#include "ops/base/cpu.h"

// 256-bit vectors suffice: these loops wait for memory.
namespace heddle::bench {
namespace {

constexpr int64_t kTen = 10;
constexpr int64_t kCells = 4096;  // Grain of flat loops.
constexpr int64_t kRows = 64;     // Grain of loops over rows.
constexpr int64_t kAhead = 1024;  // Cells between a load and its prefetch.

double SumOf(__m256d lanes) {
  const __m128d two = _mm256_castpd256_pd128(lanes) + _mm256_extractf128_pd(lanes, 1);
  return two[0] + two[1];
}

// The sum over slices of slice_sum(begin, end).
template <typename SliceSum>
double Sum(int64_t count, SliceSum slice_sum) {
  const Slices slices(count, kCells);
  SliceSums parts(slices.size(), 1);
  slices.Each([&](int64_t slice, int64_t begin, int64_t end) { *parts.Of(slice) = slice_sum(begin, end); });
  double total = 0;
  parts.AddUp(&total);
  return total;
}

// The dot product of a row of x with v, and sums += the row times it. Each of the two loops fetches a half.
void ChainRow(const double* x, int64_t n, const double* v, double* sums) {
  __m256d dots = _mm256_setzero_pd(), next = dots;
  int64_t j = 0;
  for (; j + 16 <= n; j += 16) {
    FetchAhead(x + j, kAhead);
#pragma GCC unroll 2
    for (int64_t k = j; k < j + 16; k += 8) {
      dots = _mm256_fmadd_pd(_mm256_loadu_pd(x + k), _mm256_load_pd(v + k), dots);
      next = _mm256_fmadd_pd(_mm256_loadu_pd(x + k + 4), _mm256_load_pd(v + k + 4), next);
    }
  }
  for (; j + 4 <= n; j += 4) dots = _mm256_fmadd_pd(_mm256_loadu_pd(x + j), _mm256_load_pd(v + j), dots);
  double rest = 0;
  for (; j < n; ++j) rest += x[j] * v[j];
  const double dot = SumOf(dots + next) + rest;
  const __m256d weight = _mm256_set1_pd(dot);
  const auto add = [&](int64_t k) __attribute__((always_inline)) {
    _mm256_store_pd(sums + k, _mm256_fmadd_pd(_mm256_loadu_pd(x + k), weight, _mm256_load_pd(sums + k)));
  };
  for (j = 0; j + 16 <= n; j += 16) {
    FetchAhead(x + j + 8, kAhead);
#pragma GCC unroll 4
    for (int64_t k = j; k < j + 16; k += 4) add(k);
  }
  for (; j + 4 <= n; j += 4) add(j);
  for (; j < n; ++j) sums[j] += x[j] * dot;
}

// Ten columns: two rows are five vectors, and the middle one belongs to both. Four rows, accumulators in
// registers.
void ChainOfTen(const double* x, const double* v, double* sums, int64_t rows) {
  std::array<double, 2 * kTen> twice;
  for (size_t j = 0; j < twice.size(); ++j) twice[j] = v[j % kTen];
  __m256d weights[5], s[5];
  for (int k = 0; k < 5; ++k) weights[k] = _mm256_loadu_pd(twice.data() + 4 * k);
#pragma GCC unroll 5
  for (int k = 0; k < 5; ++k) s[k] = _mm256_setzero_pd();
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * kTen) {
    const auto cells = [&](int k) __attribute__((always_inline)) { return _mm256_loadu_pd(x + 4 * k); };
#pragma GCC unroll 5
    for (int k = 0; k < 5; ++k) FetchAhead(x + 8 * k, kAhead);
    const __m256d first = _mm256_hadd_pd(_mm256_fmadd_pd(cells(0), weights[0], cells(1) * weights[1]),
                                         _mm256_fmadd_pd(cells(3), weights[3], cells(4) * weights[4])),
                  second = _mm256_hadd_pd(_mm256_fmadd_pd(cells(5), weights[0], cells(6) * weights[1]),
                                          _mm256_fmadd_pd(cells(8), weights[3], cells(9) * weights[4])),
                  middles = _mm256_permute4x64_pd(
                      _mm256_hadd_pd(cells(2) * weights[2], cells(7) * weights[2]), 0xd8);
    const __m256d dots =
        _mm256_permute2f128_pd(first, second, 0x20) + _mm256_permute2f128_pd(first, second, 0x31) + middles;
    const __m256d d[4] = {_mm256_permute4x64_pd(dots, 0x00), _mm256_permute4x64_pd(dots, 0x55),
                          _mm256_permute4x64_pd(dots, 0xaa), _mm256_permute4x64_pd(dots, 0xff)};
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256d a = d[2 * half], b = d[2 * half + 1], both = _mm256_blend_pd(a, b, 12);
      s[0] = _mm256_fmadd_pd(cells(5 * half), a, s[0]);
      s[1] = _mm256_fmadd_pd(cells(5 * half + 1), a, s[1]);
      s[2] = _mm256_fmadd_pd(cells(5 * half + 2), both, s[2]);
      s[3] = _mm256_fmadd_pd(cells(5 * half + 3), b, s[3]);
      s[4] = _mm256_fmadd_pd(cells(5 * half + 4), b, s[4]);
    }
  }
  for (int p = 0; p < 20; ++p) sums[p % kTen] += s[p / 4][p % 4];
  for (; i < rows; ++i, x += kTen) {
    double dot = 0;
    for (int64_t j = 0; j < kTen; ++j) dot += x[j] * v[j];
    for (int64_t j = 0; j < kTen; ++j) sums[j] += x[j] * dot;
  }
}

// Two rows of the multinomial loop; v and sums have four rows of `stride` cells, zero from n on; x may be
// read up to n only.
void MultinomialRows(const double* x, int64_t rows, int64_t n, const double* v, int64_t stride,
                     const double* p, double* sums) {
  for (int64_t i = 0; i < rows; i += 2, x += 2 * n, p += 10) {
    const bool two = i + 1 < rows;
    const double* rest = two ? x + n : x;
    __m256d q[2][4];
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r)
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) q[r][k] = _mm256_setzero_pd();
    for (int64_t j = 0; j + 4 <= n; j += 4) {
      const __m256d a = _mm256_loadu_pd(x + j), b = _mm256_loadu_pd(rest + j);
      if (j % 8 == 0) {
        FetchAhead(x + j, kAhead);
        FetchAhead(rest + j, kAhead);
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const __m256d weights = _mm256_load_pd(v + k * stride + j);
        q[0][k] = _mm256_fmadd_pd(a, weights, q[0][k]);
        q[1][k] = _mm256_fmadd_pd(b, weights, q[1][k]);
      }
    }
    __m256d c[2];  // A vector of the four classes for each row.
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      const __m256d low = _mm256_hadd_pd(q[r][0], q[r][1]), high = _mm256_hadd_pd(q[r][2], q[r][3]);
      __m256d dots = _mm256_permute2f128_pd(low, high, 0x20) + _mm256_permute2f128_pd(low, high, 0x31);
      const double* row = r == 0 ? x : rest;
      for (int64_t j = n / 4 * 4; j < n; ++j)
        dots =
            _mm256_fmadd_pd(_mm256_set1_pd(row[j]),
                            _mm256_setr_pd(v[j], v[stride + j], v[2 * stride + j], v[3 * stride + j]), dots);
      const __m256d chances = _mm256_loadu_pd(two || r == 0 ? p + 5 * r : p);
      const __m256d products = dots * chances;
      c[r] = _mm256_fnmadd_pd(chances, _mm256_set1_pd(SumOf(products)), products);
    }
    if (!two) c[1] = _mm256_setzero_pd();
    const __m256d w[8] = {_mm256_permute4x64_pd(c[0], 0x00), _mm256_permute4x64_pd(c[0], 0x55),
                          _mm256_permute4x64_pd(c[0], 0xaa), _mm256_permute4x64_pd(c[0], 0xff),
                          _mm256_permute4x64_pd(c[1], 0x00), _mm256_permute4x64_pd(c[1], 0x55),
                          _mm256_permute4x64_pd(c[1], 0xaa), _mm256_permute4x64_pd(c[1], 0xff)};
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
      const __m256d a = _mm256_loadu_pd(x + j), b = _mm256_loadu_pd(rest + j);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        double* sum = sums + k * stride + j;
        _mm256_store_pd(sum, _mm256_fmadd_pd(b, w[4 + k], _mm256_fmadd_pd(a, w[k], _mm256_load_pd(sum))));
      }
    }
    for (; j < n; ++j)
      for (int k = 0; k < 4; ++k) sums[k * stride + j] += x[j] * w[k][0] + rest[j] * w[4 + k][0];
  }
}

}  // namespace

const bool kPagesSideBySide = ops::MemoryStreams() > 1;

double HandSumOfProducts(const double* x, const double* y, const double* z, int64_t count) {
  return Sum(count, [=](int64_t i, int64_t end) {
    __m256d s[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    for (; i + 16 <= end; i += 16)
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const int64_t j = i + 4 * k;
        if (k % 2 == 0)
          for (const double* input : {x, y, z}) FetchAhead(input + j);
        s[k] = _mm256_fmadd_pd(_mm256_loadu_pd(x + j) * _mm256_loadu_pd(y + j), _mm256_loadu_pd(z + j), s[k]);
      }
    double total = SumOf((s[0] + s[1]) + (s[2] + s[3]));
    for (; i < end; ++i) total += x[i] * y[i] * z[i];
    return total;
  });
}

void HandTripleProduct(const double* x, const double* y, const double* z, double* out, int64_t count) {
  Slices(count, kCells).Each([=](int64_t, int64_t i, int64_t end) {
    for (; i + 8 <= end; i += 8) {
      for (const double* input : {x, y, z}) FetchAhead(input + i);
#pragma GCC unroll 2
      for (int64_t j = i; j < i + 8; j += 4)
        _mm256_stream_pd(out + j, _mm256_loadu_pd(x + j) * _mm256_loadu_pd(y + j) * _mm256_loadu_pd(z + j));
    }
    for (; i < end; ++i) out[i] = x[i] * y[i] * z[i];
    _mm_sfence();
  });
}

double HandSumOfSigmoids(const double* x, const double* y, int64_t count) {
  return Sum(count, [=](int64_t i, int64_t end) {
    return SelectedHandFunctions().sum_of_sigmoids(x + i, y + i, end - i);
  });
}

double HandSumOfExponentials(const double* x, const double* y, int64_t count) {
  return Sum(count, [=](int64_t i, int64_t end) {
    return SelectedHandFunctions().sum_of_exponentials(x + i, y + i, end - i);
  });
}

void HandChain(const double* x, const double* v, double* out, int64_t m, int64_t n) {
  const Slices slices(m, kRows);
  SliceSums parts(slices.size(), n), weights(1, n);
  std::copy_n(v, n, weights.Of(0));
  slices.Each([&](int64_t slice, int64_t i, int64_t end) {
    double *sums = parts.Of(slice), *w = weights.Of(0);
    if (n == kTen) return ChainOfTen(x + i * n, w, sums, end - i);
    for (; i < end; ++i) ChainRow(x + i * n, n, w, sums);
  });
  parts.AddUp(out);
}

void HandMultinomial(const double* x, const double* v, const double* p, double* out, int64_t m, int64_t n) {
  const int64_t stride = (n + 7) / 8 * 8;
  const Slices slices(m, kRows);
  SliceSums parts(slices.size(), 4 * stride), turned(1, 4 * stride);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t k = 0; k < 4; ++k) turned.Of(0)[k * stride + j] = v[j * 4 + k];
  slices.Each([&](int64_t slice, int64_t i, int64_t end) {
    MultinomialRows(x + i * n, end - i, n, turned.Of(0), stride, p + i * 5, parts.Of(slice));
  });
  std::vector<double> total(static_cast<size_t>(4 * stride));
  parts.AddUp(total.data());
  for (int64_t j = 0; j < n; ++j)
    for (int64_t k = 0; k < 4; ++k) out[j * 4 + k] = total[static_cast<size_t>(k * stride + j)];
}

}  // namespace heddle::bench
