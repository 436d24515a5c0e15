// SPDX-License-Identifier: Apache-2.0
// The packed product against its definition: one chain a cell, on every form that A, B and C may have.
#include "ops/product/matmul_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ops/base/cpu.h"
#include "ops/base/parallel.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {
namespace {

// Around the sizes of tiles, strips, blocks and steps of both kernels.
constexpr int64_t kRows[] = {1, 3, 4, 5, 8, 9, 13, 100, 145, 301};
constexpr int64_t kColumns[] = {1, 4, 5, 8, 9, 10, 11, 12, 13, 16, 17, 24, 25, 36, 49, 100, 203};
constexpr int64_t kDepths[] = {1, 5, 80, 128, 129, 160, 256, 257, 600};

std::vector<double> Cells(int64_t count, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> cells(static_cast<size_t>(count));
  for (double& cell : cells) cell = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
  return cells;
}

double CellOfA(const Gemm& g, int64_t i, int64_t k) { return g.a[i * g.a_row + k * g.a_column]; }

// Every kernel that this machine can run.
class GemmTest : public testing::TestWithParam<Cpu> {
 protected:
  void SetUp() override {
    // The other kernel can only run where the CPU has its instructions.
    if (!IsSupported(GetParam())) GTEST_SKIP() << "this machine cannot run " << Name(GetParam());
    ASSERT_TRUE(ForceCpu(GetParam()).ok());
  }
  void TearDown() override { ASSERT_TRUE(ForceCpu("auto").ok()); }
};

// All of A times all of B, neither with gaps, ended canonically; C is to be set.
Gemm WholeProduct(int64_t m, int64_t k, int64_t n, const std::vector<double>& a,
                  const std::vector<double>& b) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = a.data(),
          .a_row = k,
          .b = b.data(),
          .b_row = n,
          .c_row = n,
          .canonical = true};
}

// Runs the product on a C of 0.25s and compares the cells that it says it gives; beside them nothing is
// written.
void ExpectChains(Gemm g, const std::string& what) {
  constexpr double kBefore = 0.25;
  g.c_row = g.n + 3;
  std::vector<double> c(static_cast<size_t>(g.m * g.c_row), kBefore);
  g.c = c.data();
  if (g.parallel) {
    Arena arena(2);
    arena.Execute([&] { Run(g); });
  } else {
    Run(g);
  }
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = g.upper_only ? i : 0; j < g.n; ++j) {
      double chain = g.accumulate ? kBefore : 0.0;
      for (int64_t k = 0; k < g.k; ++k) chain = std::fma(CellOfA(g, i, k), g.b[k * g.b_row + j], chain);
      ASSERT_EQ(c[static_cast<size_t>(i * g.c_row + j)], chain)
          << what << " " << g.m << "x" << g.k << "x" << g.n << " at " << i << ", " << j;
    }
    for (int64_t j = g.n; j < g.c_row; ++j)
      ASSERT_EQ(c[static_cast<size_t>(i * g.c_row + j)], kBefore) << what << ": wrote past row " << i;
  }
}

TEST_P(GemmTest, EveryCellIsOneChain) {
  for (const int64_t k : kDepths) {
    for (const int64_t m : kRows) {
      for (const int64_t n : kColumns) {
        if (m * n * k > 3'000'000) continue;
        const std::vector<double> a = Cells(m * k, 1), b = Cells(k * n, 2);
        Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .a_column = 1, .b = b.data(), .b_row = n};
        g.canonical = true;
        ExpectChains(g, "A B");
        g.parallel = true;
        ExpectChains(g, "A B on two threads");
        g.parallel = false;
        g.canonical = false;
        g.accumulate = true;
        g.prefetched = a.data();
        ExpectChains(g, "C + A B");
        g.a_row = 1;
        g.a_column = m;
        ExpectChains(g, "C + t(A) B");
        g.accumulate = false;
        g.parallel = true;
        ExpectChains(g, "t(A) B on two threads");
      }
    }
  }
}

TEST_P(GemmTest, StridedOperandsAreReadWhereTheyAre) {
  const int64_t m = 37, k = 300, n = 29, gap = 5;
  const std::vector<double> a = Cells(m * (k + gap) * 2, 3), b = Cells(k * (n + gap), 4);
  ExpectChains({.m = m, .n = n, .k = k, .a = a.data(), .a_row = k + gap, .b = b.data(), .b_row = n + gap},
               "gaps");
  ExpectChains({.m = m,
                .n = n,
                .k = k,
                .a = a.data(),
                .a_row = 2 * (k + gap),
                .a_column = 2,
                .b = b.data(),
                .b_row = n + gap},
               "every second cell");
}

TEST_P(GemmTest, TheUpperHalfOfASymmetricProduct) {
  std::vector<int64_t> widths(std::begin(kColumns), std::end(kColumns));
  // A last strip of few columns, in one block of rows and in two.
  widths.insert(widths.end(), {26, 29, 32, 52, 145, 149, 152, 289});
  for (const int64_t k : {1, 127, 128, 129, 300}) {
    for (const int64_t n : widths) {
      const std::vector<double> x = Cells(k * n, 5);
      Gemm g{.m = n, .n = n, .k = k, .a = x.data(), .a_row = 1, .a_column = n, .b = x.data(), .b_row = n};
      g.upper_only = true;
      ExpectChains(g, "t(X) X");
      g.parallel = true;
      ExpectChains(g, "t(X) X on two threads");
      g.parallel = false;
      g.accumulate = true;
      ExpectChains(g, "t(X) X, chains that go on");
    }
  }
}

TEST_P(GemmTest, MoreColumnsThanOneBlock) {
  const int64_t m = 5, k = 3, n = 4081 + 12;
  const std::vector<double> a = Cells(m * k, 6), b = Cells(k * n, 7);
  ExpectChains({.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .b = b.data(), .b_row = n}, "wide");
}

// Blocks of rows of A against one B that is packed once; steps of 256 (512) rows of B and blocks of 4080
// columns. Threads take packing and products of several steps and blocks of columns in turns, more threads
// than the machine has, too.
TEST_P(GemmTest, ManyThreadsGiveWhatOneGives) {
  const int64_t shapes[][3] = {{600, 2'100, 100}, {300, 1'100, 4'200}, {145, 5'000, 50}, {1'000, 700, 300}};
  for (const auto& [m, k, n] : shapes) {
    const std::vector<double> a = Cells(m * k, 8), b = Cells(k * n, 9);
    Gemm g = WholeProduct(m, k, n, a, b);
    std::vector<double> expected(static_cast<size_t>(m * n)), found(static_cast<size_t>(m * n));
    g.c = expected.data();
    ops::Run(g);
    g.c = found.data();
    g.parallel = true;
    for (const int threads : {2, 3, 8}) {
      Arena arena(threads);
      for (int run = 0; run < 3; ++run) {
        std::fill(found.begin(), found.end(), 0.25);
        arena.Execute([&] { ops::Run(g); });
        ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(double)), 0)
            << m << "x" << k << "x" << n << " on " << threads << " threads";
      }
    }
  }
}

// Large results of short chains go past the caches, block by block; those whose rows have gaps do not.
TEST_P(GemmTest, LargeResultsOfShortChains) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{3, 67}, {17, 50}, {32, 127}}) {
    const int64_t m = (int64_t{1} << 22) / n + 150, gap = 5;
    const std::vector<double> a = Cells(m * k, 8), b = Cells(k * n, 9);
    std::vector<double> expected(static_cast<size_t>(m * (n + gap)));
    AlignedArray found(m * n + 8);
    Gemm g = WholeProduct(m, k, n, a, b);
    g.c = expected.data();
    g.c_row = n + gap;
    ops::Run(g);
    g.c = found.data();
    g.c_row = n;
    for (const bool parallel : {false, true}) {
      std::fill_n(found.data(), m * n + 8, 0.25);
      g.parallel = parallel;
      Arena arena(3);
      arena.Execute([&] { ops::Run(g); });
      for (int64_t i = 0; i < m; ++i)
        ASSERT_EQ(std::memcmp(found.data() + i * n, expected.data() + i * (n + gap),
                              static_cast<size_t>(n) * sizeof(double)),
                  0)
            << m << "x" << k << "x" << n << ", row " << i;
      for (int64_t j = 0; j < 8; ++j) EXPECT_EQ(found[m * n + j], 0.25);
    }
  }
}

TEST_P(GemmTest, PackedOnceForManyProducts) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{1, 64},
                             {80, 24},
                             {256, 100},
                             {257, 65},
                             {513, 203},
                             {600, 12},
                             {1025, 7},
                             {3, 4100}}) {
    const int64_t m = 144;
    const std::vector<double> a = Cells(m * k, 8), b = Cells(k * n, 9);
    std::unique_ptr<PackedRight> packed;
    Arena arena(2);
    arena.Execute([&] { packed = std::make_unique<PackedRight>(b.data(), k, n); });
    for (const int64_t rows : {1, 4, 8, 9, 24, 63, 144}) {
      Gemm g{
          .m = rows, .n = n, .k = k, .a = a.data() + (m - rows) * k, .a_row = k, .b = b.data(), .b_row = n};
      g.packed = packed.get();
      ExpectChains(g, "A packed B");
      g.canonical = true;
      g.prefetched = a.data();
      g.prefetched_cells = rows * k;
      ExpectChains(g, "A packed B, fetching");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, GemmTest, testing::Values(Cpu::kAvx2, Cpu::kAvx512),
                         [](const auto& test) { return std::string(Name(test.param)); });

}  // namespace
}  // namespace heddle::ops
