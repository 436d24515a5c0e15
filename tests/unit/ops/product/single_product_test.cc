// SPDX-License-Identifier: Apache-2.0
// Packed products of floats against their definition (docs/numerics.md, section 9).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/cpu.h"
#include "ops/base/parallel.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

std::vector<float> Floats(int64_t count, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> cells(static_cast<size_t>(count));
  for (float& cell : cells) cell = static_cast<float>(random() >> 40) * 0x1p-24F - 0.5F;
  return cells;
}

// Every kernel that this machine can run.
class SingleProductTest : public testing::TestWithParam<Cpu> {
 protected:
  void SetUp() override {
    if (!IsSupported(GetParam())) GTEST_SKIP() << "this machine cannot run " << Name(GetParam());
    ASSERT_TRUE(ForceCpu(GetParam()).ok());
  }
  void TearDown() override { ASSERT_TRUE(ForceCpu("auto").ok()); }
};

double SumOfBlocks(const SingleGemm& g, int64_t i, int64_t j, double sum) {
  for (int64_t k0 = 0; k0 < g.k; k0 += kSingleBlock) {
    float chain = 0;
    for (int64_t k = k0; k < std::min(g.k, k0 + kSingleBlock); ++k)
      chain = std::fma(g.a[i * g.a_row + k * g.a_column], g.b[k * g.b_row + j], chain);
    sum += static_cast<double>(chain);
  }
  return sum;
}

// Runs the product on a C of 0.25s, of doubles or of floats, and compares the cells that it says it gives;
// beside them nothing is written.
void ExpectBlocks(SingleGemm g, bool rounded, const std::string& what) {
  constexpr double kBefore = 0.25;
  g.c_row = g.n + 3;
  std::vector<double> sums(static_cast<size_t>(g.m * g.c_row), kBefore);
  std::vector<float> singles(static_cast<size_t>(g.m * g.c_row), static_cast<float>(kBefore));
  (rounded ? static_cast<void>(g.singles = singles.data()) : static_cast<void>(g.c = sums.data()));
  if (g.parallel) {
    Arena arena(2);
    arena.Execute([&] { Run(g); });
  } else {
    Run(g);
  }
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = g.upper_only ? i : 0; j < g.n; ++j) {
      const double sum = SumOfBlocks(g, i, j, g.accumulate ? kBefore : 0.0);
      const auto at = static_cast<size_t>(i * g.c_row + j);
      ASSERT_EQ(rounded ? static_cast<double>(singles[at]) : sums[at],
                rounded ? static_cast<double>(static_cast<float>(sum)) : sum)
          << what << " " << g.m << "x" << g.k << "x" << g.n << " at " << i << ", " << j;
    }
    for (int64_t j = g.n; j < g.c_row; ++j) {
      ASSERT_EQ(sums[static_cast<size_t>(i * g.c_row + j)], kBefore) << what << ": wrote past row " << i;
      ASSERT_EQ(singles[static_cast<size_t>(i * g.c_row + j)], kBefore) << what << ": wrote past row " << i;
    }
  }
}

TEST_P(SingleProductTest, PackedProductsAreSumsOfBlocks) {
  for (const int64_t k : {1, 17, 63, 64, 65, 130, 256, 257, 600}) {
    for (const int64_t m : {1, 4, 5, 8, 13, 145, 301}) {
      for (const int64_t n : {1, 7, 9, 16, 17, 24, 25, 33, 47, 48, 49, 100, 203}) {
        if (m * n * k > 3'000'000) continue;
        const std::vector<float> a = Floats(m * k, 1), b = Floats(k * n, 2);
        SingleGemm g{.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .b = b.data(), .b_row = n};
        ExpectBlocks(g, false, "A B");
        ExpectBlocks(g, true, "A B rounded");
        g.parallel = true;
        ExpectBlocks(g, true, "A B rounded, on two threads");
        g.parallel = false;
        g.accumulate = true;
        ExpectBlocks(g, false, "C + A B");
        g.a_row = 1;
        g.a_column = m;
        ExpectBlocks(g, false, "C + t(A) B");
      }
    }
  }
}

TEST_P(SingleProductTest, TheUpperHalfOfASymmetricProduct) {
  for (const int64_t k : {1, 256, 300}) {
    for (const int64_t n : {9, 16, 25, 47, 49, 52, 100, 145, 152, 203, 289}) {
      const std::vector<float> x = Floats(k * n, 5);
      SingleGemm g{
          .m = n, .n = n, .k = k, .a = x.data(), .a_row = 1, .a_column = n, .b = x.data(), .b_row = n};
      g.upper_only = true;
      ExpectBlocks(g, false, "t(X) X");
      g.parallel = true;
      ExpectBlocks(g, false, "t(X) X on two threads");
    }
  }
}

// Chains of one block, in pieces: what they are is not rounded and not joined before their end.
TEST_P(SingleProductTest, OpenChainsGoOn) {
  for (const bool symmetric : {false, true}) {
    for (const int64_t n : {3, 9, 17, 47, 49, 52, 152}) {
      const int64_t m = symmetric ? n : 13, k = 60, cut = 23;
      const std::vector<float> a = Floats(m * k, 1), b = symmetric ? a : Floats(k * n, 2);
      std::vector<float> chains(static_cast<size_t>(m * n), 0.25F);
      SingleGemm g{.m = m,
                   .n = n,
                   .k = cut,
                   .a = a.data(),
                   .a_row = 1,
                   .a_column = m,
                   .b = b.data(),
                   .b_row = n,
                   .c_row = n,
                   .singles = chains.data(),
                   .open = true,
                   .upper_only = symmetric};
      if (symmetric) g.b = g.a;
      ops::Run(g);
      g.a += cut * m;
      g.b += cut * n;
      g.k = k - cut;
      g.accumulate = true;
      ops::Run(g);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = symmetric ? i : 0; j < n; ++j) {
          float chain = 0;
          for (int64_t t = 0; t < k; ++t)
            chain = std::fma(a[static_cast<size_t>(t * m + i)],
                             (symmetric ? a : b)[static_cast<size_t>(t * n + j)], chain);
          ASSERT_EQ(chains[static_cast<size_t>(i * n + j)], chain)
              << m << "x" << n << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST_P(SingleProductTest, MoreColumnsThanOneBlock) {
  const int64_t m = 5, k = 300, n = 4080 + 29;
  const std::vector<float> a = Floats(m * k, 6), b = Floats(k * n, 7);
  ExpectBlocks({.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .b = b.data(), .b_row = n}, true, "wide");
}

TEST_P(SingleProductTest, ManyThreadsGiveWhatOneGives) {
  for (const auto& [m, k, n] :
       {std::array<int64_t, 3>{600, 2'100, 100}, {300, 1'100, 4'200}, {145, 5'000, 50}}) {
    const std::vector<float> a = Floats(m * k, 8), b = Floats(k * n, 9);
    std::vector<float> expected(static_cast<size_t>(m * n)), found(static_cast<size_t>(m * n));
    SingleGemm g{.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .b = b.data(), .b_row = n, .c_row = n};
    g.singles = expected.data();
    ops::Run(g);
    g.singles = found.data();
    g.parallel = true;
    for (const int threads : {2, 3, 8}) {
      std::fill(found.begin(), found.end(), 0.25F);
      Arena(threads).Execute([&] { ops::Run(g); });
      ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
          << m << "x" << k << "x" << n << " on " << threads << " threads";
    }
  }
}

// More sums than are kept at once: bands of rows, one after the other.
TEST_P(SingleProductTest, LargeResultsOfLongChains) {
  const int64_t m = 4'400, k = 257, n = 1'000;
  const std::vector<float> a = Floats(m * k, 8), b = Floats(k * n, 9);
  std::vector<float> c(static_cast<size_t>(m * n));
  SingleGemm g{.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .b = b.data(), .b_row = n, .c_row = n};
  g.singles = c.data();
  g.parallel = true;
  Arena(2).Execute([&] { ops::Run(g); });
  for (int64_t i = 0; i < m; i += 7)
    for (int64_t j = i % 13; j < n; j += 97)
      ASSERT_EQ(c[static_cast<size_t>(i * n + j)], static_cast<float>(SumOfBlocks(g, i, j, 0.0)))
          << "at " << i << ", " << j;
}

TEST_P(SingleProductTest, PackedOnceForManyProducts) {
  for (const auto& [k, n] :
       {std::pair<int64_t, int64_t>{1, 64}, {256, 100}, {257, 65}, {600, 12}, {3, 4'100}}) {
    const int64_t m = 144;
    const std::vector<float> a = Floats(m * k, 8), b = Floats(k * n, 9);
    std::unique_ptr<SinglePackedRight> packed;
    Arena arena(2);
    arena.Execute([&] { packed = std::make_unique<SinglePackedRight>(b.data(), k, n); });
    for (const int64_t rows : {1, 9, 63, 144}) {
      SingleGemm g{.m = rows, .n = n, .k = k, .a = a.data(), .a_row = k, .b = b.data(), .b_row = n};
      g.packed = packed.get();
      g.prefetched = a.data();
      g.prefetched_cells = rows * k;
      ExpectBlocks(g, false, "A packed B");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, SingleProductTest, testing::Values(Cpu::kAvx2, Cpu::kAvx512),
                         [](const auto& test) { return std::string(Name(test.param)); });

}  // namespace
}  // namespace heddle::ops
