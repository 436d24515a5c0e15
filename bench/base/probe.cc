// SPDX-License-Identifier: Apache-2.0
#include "bench/base/probe.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "bench/hand/ahead.h"

namespace heddle::bench {
namespace {

volatile double sink;

double SumRange(const double* x, int64_t n) {
  __m256d s[8];  // In registers: both loops over them must be unrolled.
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) s[k] = _mm256_setzero_pd();
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) s[k] = _mm256_add_pd(s[k], _mm256_loadu_pd(x + i + 4 * k));
  double total = 0;
  alignas(32) double lanes[4];
  for (const auto& lane : s) {
    _mm256_store_pd(lanes, lane);
    total += lanes[0] + lanes[1] + lanes[2] + lanes[3];
  }
  for (; i < n; ++i) total += x[i];
  return total;
}

// The same where memory is read fastest from several pages side by side: each line fetches one of the eight
// pages behind.
double SumPagesSideBySide(const double* x, int64_t n) {
  __m256d low = _mm256_setzero_pd(), high = low;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
#pragma GCC unroll 4
    for (int64_t line = i; line < i + 32; line += 8) {
      FetchAhead(x + line);
      low = _mm256_add_pd(low, _mm256_loadu_pd(x + line));
      high = _mm256_add_pd(high, _mm256_loadu_pd(x + line + 4));
    }
  }
  alignas(32) double lanes[4];
  _mm256_store_pd(lanes, _mm256_add_pd(low, high));
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] + SumRange(x + i, n - i);
}

// Twelve independent chains hide the latency of four to five cycles of two units.
double Chains256(int64_t rounds) {
  __m256d s[12];
  for (int k = 0; k < 12; ++k) s[k] = _mm256_set1_pd(k);
  const __m256d a = _mm256_set1_pd(0.999999), b = _mm256_set1_pd(1e-6);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int k = 0; k < 12; ++k) s[k] = _mm256_fmadd_pd(s[k], a, b);
  }
  alignas(32) double lanes[4];
  double total = 0;
  for (const auto& lane : s) {
    _mm256_store_pd(lanes, lane);
    total += lanes[0];
  }
  return total;
}

__attribute__((target("avx512f"))) double Chains512(int64_t rounds) {
  __m512d s[12];
  for (int k = 0; k < 12; ++k) s[k] = _mm512_set1_pd(k);
  const __m512d a = _mm512_set1_pd(0.999999), b = _mm512_set1_pd(1e-6);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int k = 0; k < 12; ++k) s[k] = _mm512_fmadd_pd(s[k], a, b);
  }
  alignas(64) double lanes[8];
  double total = 0;
  for (const auto& lane : s) {
    _mm512_store_pd(lanes, lane);
    total += lanes[0];
  }
  return total;
}

}  // namespace

void OnThreads(int threads, int64_t count, int64_t grain,
               const std::function<void(int, int64_t, int64_t)>& body) {
  const int64_t grains = (count + grain - 1) / grain;
  auto cut = [&](int t) { return std::min(count, grains * t / threads * grain); };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { body(t, cut(t), cut(t + 1)); });
  body(0, cut(0), cut(1));
  for (auto& thread : others) thread.join();
}

std::string MakeTemporaryFolder() {
  std::string path = std::filesystem::temp_directory_path() / "heddle-bench-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    std::perror("heddle-bench: no temporary folder");
    std::exit(1);
  }
  return path;
}

double Time(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double BestTime(int rounds, const std::function<void()>& work) {
  work();
  double best = 1e300;
  for (int i = 0; i < rounds; ++i) best = std::min(best, Time(work));
  return best;
}

double ReadBandwidth(const double* data, int64_t count, int threads) {
  // Half of the data each: the better way counts.
  const int64_t half = count / 2;
  const auto rate = [&](const double* from, const auto& sum) {
    const double ms = Time([&] {
      OnThreads(threads, half, 4096,
                [&](int, int64_t begin, int64_t end) { sink = sum(from + begin, end - begin); });
    });
    return static_cast<double>(half) * 8 / ms / 1e6;
  };
  return std::max(rate(data, SumRange), rate(data + half, SumPagesSideBySide));
}

double WriteBandwidth(double* data, int64_t count, int threads) {
  const double ms = Time([&] {
    OnThreads(threads, count, 4096, [&](int, int64_t begin, int64_t end) {
      const __m256d cells = _mm256_set1_pd(1.0);
      int64_t i = begin;
      for (; i + 4 <= end; i += 4) _mm256_stream_pd(data + i, cells);
      for (; i < end; ++i) data[i] = 1.0;
      _mm_sfence();
    });
  });
  return static_cast<double>(count) * 8 / ms / 1e6;
}

double FmaPeak(int threads, double milliseconds) {
  constexpr double kRoundsOfMillisecond = 500'000;  // 12 chains, 2 operations a cycle, 3 GHz.
  const auto rounds = static_cast<int64_t>(std::max(1.0, milliseconds) * kRoundsOfMillisecond);
  const bool wide = __builtin_cpu_supports("avx512f");
  const double ms = Time([&] {
    OnThreads(threads, threads, 1,
              [&](int, int64_t, int64_t) { sink = wide ? Chains512(rounds) : Chains256(rounds); });
  });
  return static_cast<double>(threads) * static_cast<double>(rounds) * 12 * (wide ? 8 : 4) * 2 / ms / 1e6;
}

}  // namespace heddle::bench
