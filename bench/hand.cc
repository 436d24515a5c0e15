// SPDX-License-Identifier: Apache-2.0
#include "bench/hand.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <vector>

#include "bench/hand_ahead.h"
#include "bench/probe.h"

// Reassociation is allowed here, as a user's -ffast-math loop would have it. The loops are the shortest that
// read at the probe's speed: ten columns pass through registers four rows at a time, wider rows one at a
// time, because interleaved rows defeat the prefetcher, except where rows are so long that the accumulators'
// traffic costs more. Lines are fetched where memory is read fastest from several pages side by side, and
// there only.
#pragma GCC optimize("O3", "fast-math")

namespace heddle::bench {
namespace {

constexpr int64_t kRows = 64;
constexpr int64_t kTen = 10;
constexpr int64_t kLongRow = 512;

struct alignas(64) Line {
  double cells[8] = {};
};

// A row of sums for each thread, each from a cache line of its own.
class Accumulators {
 public:
  Accumulators(int threads, int64_t n)
      : n_(n), rows_(static_cast<size_t>(threads), std::vector<Line>(static_cast<size_t>(n / 8 + 1))) {}
  double* Of(int thread) { return rows_[static_cast<size_t>(thread)].data()->cells; }
  void AddUp(double* out) {
    std::fill_n(out, n_, 0.0);
    for (size_t thread = 0; thread < rows_.size(); ++thread)
      for (int64_t j = 0; j < n_; ++j) out[j] += Of(static_cast<int>(thread))[j];
  }

 private:
  int64_t n_;
  std::vector<std::vector<Line>> rows_;
};

double SumOf(__m256d lanes) {
  const __m128d two = _mm256_castpd256_pd128(lanes) + _mm256_extractf128_pd(lanes, 1);
  return two[0] + two[1];
}

// kWeighted: out = X v, else row sums. Two rows of ten are five vectors; the middle one belongs to both.
template <bool kWeighted>
void RowsOfTen(const double* x, const double* v, double* out, int64_t rows) {
  std::array<double, 2 * kTen> twice;
  for (int64_t j = 0; j < 2 * kTen; ++j) twice[static_cast<size_t>(j)] = kWeighted ? v[j % kTen] : 1.0;
  __m256d weights[5];
  for (int k = 0; k < 5; ++k) weights[k] = _mm256_loadu_pd(twice.data() + 4 * k);
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * kTen) {
#pragma GCC unroll 5
    for (int k = 0; k < 5; ++k) FetchAhead(x + 8 * k);
    const auto cells = [&](int k) {
      return kWeighted ? _mm256_loadu_pd(x + 4 * k) * weights[k % 5] : _mm256_loadu_pd(x + 4 * k);
    };
    const __m256d first = _mm256_hadd_pd(cells(0) + cells(1), cells(3) + cells(4)),
                  second = _mm256_hadd_pd(cells(5) + cells(6), cells(8) + cells(9)),
                  middles = _mm256_permute4x64_pd(_mm256_hadd_pd(cells(2), cells(7)), 0xd8);
    _mm256_storeu_pd(out + i, _mm256_permute2f128_pd(first, second, 0x20) +
                                  _mm256_permute2f128_pd(first, second, 0x31) + middles);
  }
  for (; i < rows; ++i, x += kTen) {
    out[i] = 0;
    for (int64_t j = 0; j < kTen; ++j) out[i] += x[j] * twice[static_cast<size_t>(j)];
  }
}

template <bool kWeighted>
void WideRows(const double* x, const double* v, double* out, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i, x += n) {
    __m256d s[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    const auto add = [&](int64_t j, int k) {
      const __m256d cells = _mm256_loadu_pd(x + j);
      s[k] = s[k] + (kWeighted ? cells * _mm256_loadu_pd(v + j) : cells);
    };
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) {
      FetchAhead(x + j);
      FetchAhead(x + j + 8);
      for (int k = 0; k < 4; ++k) add(j + 4 * k, k);
    }
    if (j < n) FetchAhead(x + j);
    for (; j + 4 <= n; j += 4) add(j, 0);
    double sum = SumOf((s[0] + s[1]) + (s[2] + s[3]));
    for (; j < n; ++j) sum += kWeighted ? x[j] * v[j] : x[j];
    out[i] = sum;
  }
}

template <bool kWeighted>
void Rows(const double* x, const double* v, double* out, int64_t m, int64_t n, int threads) {
  OnThreads(threads, m, kRows, [=](int, int64_t begin, int64_t end) {
    if (n == kTen)
      RowsOfTen<kWeighted>(x + begin * n, v, out + begin, end - begin);
    else
      WideRows<kWeighted>(x + begin * n, v, out + begin, end - begin, n);
  });
}

// kWeighted: sums += t(X) w, else column sums.
template <bool kWeighted>
void ColumnsOfTen(const double* x, const double* w, double* sums, int64_t rows) {
  __m256d s[10];
  for (__m256d& sum : s) sum = _mm256_setzero_pd();
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * kTen) {
#pragma GCC unroll 5
    for (int k = 0; k < 5; ++k) FetchAhead(x + 8 * k);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256d a = kWeighted ? _mm256_broadcast_sd(w + i + 2 * half) : _mm256_setzero_pd(),
                    b = kWeighted ? _mm256_broadcast_sd(w + i + 2 * half + 1) : _mm256_setzero_pd();
      const __m256d weights[5] = {a, a, _mm256_blend_pd(a, b, 12), b, b};
#pragma GCC unroll 5
      for (int k = 0; k < 5; ++k) {
        const __m256d cells = _mm256_loadu_pd(x + 20 * half + 4 * k);
        s[5 * half + k] = s[5 * half + k] + (kWeighted ? cells * weights[k] : cells);
      }
    }
  }
  std::array<double, 4 * kTen> lanes;
  for (int k = 0; k < 10; ++k) _mm256_storeu_pd(lanes.data() + 4 * k, s[k]);
  for (size_t p = 0; p < lanes.size(); ++p) sums[p % kTen] += lanes[p];
  for (; i < rows; ++i, x += kTen)
    for (int64_t j = 0; j < kTen; ++j) sums[j] += kWeighted ? x[j] * w[i] : x[j];
}

// Returns the rows done.
template <bool kWeighted, int kAtOnce>
int64_t WideColumns(const double* x, const double* w, double* sums, int64_t rows, int64_t n) {
  int64_t i = 0;
  for (; i + kAtOnce <= rows; i += kAtOnce, x += kAtOnce * n) {
    __m256d weights[kAtOnce];
#pragma GCC unroll 8
    for (int r = 0; r < kAtOnce; ++r)
      weights[r] = kWeighted ? _mm256_broadcast_sd(w + i + r) : _mm256_setzero_pd();
    const auto add = [&](int64_t j) __attribute__((always_inline)) {
      __m256d sum = _mm256_load_pd(sums + j);
#pragma GCC unroll 8
      for (int r = 0; r < kAtOnce; ++r) {
        if (j % 8 == 0) FetchAhead(x + r * n + j);
        const __m256d cells = _mm256_loadu_pd(x + r * n + j);
        sum = sum + (kWeighted ? cells * weights[r] : cells);
      }
      _mm256_store_pd(sums + j, sum);
    };
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < 16; v += 4) add(j + v);
    }
    for (; j + 4 <= n; j += 4) add(j);
    for (; j < n; ++j)
      for (int r = 0; r < kAtOnce; ++r) sums[j] += kWeighted ? x[r * n + j] * w[i + r] : x[r * n + j];
  }
  return i;
}

template <bool kWeighted>
void Columns(const double* x, const double* w, double* out, int64_t m, int64_t n, int threads) {
  Accumulators parts(threads, n);
  OnThreads(threads, m, kRows, [&](int thread, int64_t begin, int64_t end) {
    double* sums = parts.Of(thread);
    const double *cells = x + begin * n, *weights = kWeighted ? w + begin : nullptr;
    if (n == kTen) return ColumnsOfTen<kWeighted>(cells, weights, sums, end - begin);
    const int64_t done = n < kLongRow ? 0 : WideColumns<kWeighted, 8>(cells, weights, sums, end - begin, n);
    WideColumns<kWeighted, 1>(cells + done * n, kWeighted ? weights + done : nullptr, sums,
                              end - begin - done, n);
  });
  parts.AddUp(out);
}

}  // namespace

void HandMultiply(const double* x, const double* y, double* out, int64_t count, int threads) {
  OnThreads(threads, count, 8, [=](int, int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + 4 <= end; i += 4)
      _mm256_stream_pd(out + i, _mm256_mul_pd(_mm256_loadu_pd(x + i), _mm256_loadu_pd(y + i)));
    for (; i < end; ++i) out[i] = x[i] * y[i];
  });
}

double HandSum(const double* x, int64_t count, int threads) {
  std::vector<double> parts(static_cast<size_t>(threads) * 8, 0.0);
  OnThreads(threads, count, 4096, [&](int thread, int64_t begin, int64_t end) {
    __m256d s[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
      FetchAhead(x + i);
      FetchAhead(x + i + 8);
      for (int k = 0; k < 4; ++k) s[k] = _mm256_add_pd(s[k], _mm256_loadu_pd(x + i + 4 * k));
    }
    alignas(32) double lanes[4];
    _mm256_store_pd(lanes, _mm256_add_pd(_mm256_add_pd(s[0], s[1]), _mm256_add_pd(s[2], s[3])));
    double total = lanes[0] + lanes[1] + lanes[2] + lanes[3];
    for (; i < end; ++i) total += x[i];
    parts[static_cast<size_t>(thread) * 8] = total;
  });
  double total = 0;
  for (double part : parts) total += part;
  return total;
}

void HandRowSums(const double* x, double* out, int64_t m, int64_t n, int threads) {
  Rows<false>(x, nullptr, out, m, n, threads);
}

void HandColSums(const double* x, double* out, int64_t m, int64_t n, int threads) {
  Columns<false>(x, nullptr, out, m, n, threads);
}

void HandProduct(const double* x, const double* v, double* out, int64_t m, int64_t n, int threads) {
  Rows<true>(x, v, out, m, n, threads);
}

void HandTransposedProduct(const double* x, const double* w, double* out, int64_t m, int64_t n, int threads) {
  Columns<true>(x, w, out, m, n, threads);
}

}  // namespace heddle::bench
