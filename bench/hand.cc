// SPDX-License-Identifier: Apache-2.0
#include "bench/hand.h"

#include <immintrin.h>

#include <vector>

#include "bench/probe.h"

// Reassociation is allowed here, as a user's -ffast-math loop would have it.
#pragma GCC optimize("O3", "fast-math")

namespace heddle::bench {
namespace {

constexpr int64_t kRows = 64;

std::vector<std::vector<double>> Accumulators(int threads, int64_t n) {
  return std::vector<std::vector<double>>(static_cast<size_t>(threads), std::vector<double>(static_cast<size_t>(n), 0.0));
}

void AddUp(const std::vector<std::vector<double>>& parts, double* out, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    out[j] = 0;
    for (const auto& part : parts) out[j] += part[static_cast<size_t>(j)];
  }
}

}  // namespace

void HandMultiply(const double* x, const double* y, double* out, int64_t count, int threads) {
  OnThreads(threads, count, 8, [=](int, int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + 4 <= end; i += 4) _mm256_stream_pd(out + i, _mm256_mul_pd(_mm256_loadu_pd(x + i), _mm256_loadu_pd(y + i)));
    for (; i < end; ++i) out[i] = x[i] * y[i];
  });
}

double HandSum(const double* x, int64_t count, int threads) {
  std::vector<double> parts(static_cast<size_t>(threads) * 8, 0.0);
  OnThreads(threads, count, 4096, [&](int thread, int64_t begin, int64_t end) {
    __m256d s[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    int64_t i = begin;
    for (; i + 16 <= end; i += 16)
      for (int k = 0; k < 4; ++k) s[k] = _mm256_add_pd(s[k], _mm256_loadu_pd(x + i + 4 * k));
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
  OnThreads(threads, m, kRows, [=](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double s = 0;
      for (int64_t j = 0; j < n; ++j) s += x[i * n + j];
      out[i] = s;
    }
  });
}

void HandColSums(const double* x, double* out, int64_t m, int64_t n, int threads) {
  auto parts = Accumulators(threads, n);
  OnThreads(threads, m, kRows, [&](int thread, int64_t begin, int64_t end) {
    double* s = parts[static_cast<size_t>(thread)].data();
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < n; ++j) s[j] += x[i * n + j];
  });
  AddUp(parts, out, n);
}

void HandProduct(const double* x, const double* v, double* out, int64_t m, int64_t n, int threads) {
  OnThreads(threads, m, kRows, [=](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double s = 0;
      for (int64_t j = 0; j < n; ++j) s += x[i * n + j] * v[j];
      out[i] = s;
    }
  });
}

void HandTransposedProduct(const double* x, const double* w, double* out, int64_t m, int64_t n, int threads) {
  auto parts = Accumulators(threads, n);
  OnThreads(threads, m, kRows, [&](int thread, int64_t begin, int64_t end) {
    double* s = parts[static_cast<size_t>(thread)].data();
    for (int64_t i = begin; i < end; ++i) {
      const double wi = w[i];
      for (int64_t j = 0; j < n; ++j) s[j] += x[i * n + j] * wi;
    }
  });
  AddUp(parts, out, n);
}

}  // namespace heddle::bench
