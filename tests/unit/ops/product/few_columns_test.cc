// SPDX-License-Identifier: Apache-2.0
// Products with few columns (ops/simd/product/matmul.h) against their definition, for every number of columns
// and rows of every length.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "ops/base/cpu.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/product/matmul.h"

namespace heddle::ops::simd {
namespace {

constexpr double kBefore = 0.25;  // In memory that is not to be written.
// What may be fetched meanwhile, on any machine: nothing, one page after the other, pages in turns, a half.
const Prefetch kEveryPrefetch[] = {Prefetch(), Prefetch(Prefetch::kFar, 1), Prefetch(Prefetch::kFar, 8),
                                   Prefetch(100, 8).Odd()};

// Every eighth cell is a zero of either sign.
std::vector<double> Cells(int64_t count, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> cells(static_cast<size_t>(count));
  for (double& cell : cells) {
    cell = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
    if (random() % 8 == 0) cell = std::copysign(0.0, cell);
  }
  return cells;
}

// With every set of instructions that this machine has.
void ForEachCpu(const std::function<void()>& body) {
  for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
    if (!IsSupported(cpu)) continue;
    ASSERT_TRUE(ForceCpu(cpu).ok());
    SCOPED_TRACE(Name(cpu));
    body();
  }
  ASSERT_TRUE(ForceCpu("auto").ok());
}

TEST(FewColumnsTest, ASkinnyProductIsOneChainACell) {
  const int64_t gap = 3;
  ForEachCpu([&] {
    int64_t shapes = 0;
    for (int64_t count = 1; count <= 16; ++count) {
      for (int64_t n = 1; n <= 27; ++n) {
        const std::vector<double> b = Cells(n * count, 2);
        for (const int64_t rows : {8, 9, 15, 16, 37}) {
          if (!IsSkinny(rows, n, count)) continue;
          ++shapes;
          for (const int64_t stride : {n, n + gap}) {
            const std::vector<double> x = Cells(rows * stride, 1);
            std::vector<double> out(static_cast<size_t>(rows * (count + gap)), kBefore);
            for (const Prefetch& prefetch : kEveryPrefetch) {
              MultiplySkinny(x.data(), rows, stride, n, b.data(), count, out.data(), count + gap, prefetch);
              for (int64_t i = 0; i < rows; ++i) {
                const double* cells = out.data() + i * (count + gap);
                for (int64_t c = 0; c < count; ++c) {
                  double chain = 0;
                  for (int64_t j = 0; j < n; ++j)
                    chain = std::fma(x[static_cast<size_t>(i * stride + j)],
                                     b[static_cast<size_t>(j * count + c)], chain);
                  ASSERT_EQ(cells[c], chain) << rows << "x" << n << "x" << count << " at " << i << ", " << c;
                  ASSERT_FALSE(cells[c] == 0 && std::signbit(cells[c])) << rows << "x" << n << "x" << count;
                }
                for (int64_t c = count; c < count + gap; ++c)
                  ASSERT_EQ(cells[c], kBefore) << "wrote past row " << i;
              }
            }
          }
        }
      }
    }
    EXPECT_EQ(shapes, SelectedCpu() == Cpu::kAvx512 ? 5 * 27 * 5 : 0);  // Of nine to thirteen columns.
  });
}

TEST(FewColumnsTest, RowsTimesVectorsAreLanes) {
  const int64_t gap = 3;
  ForEachCpu([&] {
    for (int64_t count = 1; count <= 9; ++count) {
      for (const int64_t n : {1, 3, 4, 7, 8, 9, 10, 13, 16, 31, 63, 64, 65, 70, 100, 129}) {
        const int64_t stride = n + gap, padded = (n + 7) / 8 * 8;
        AlignedArray vectors(count * padded);
        for (int64_t k = 0; k < count * padded; ++k)
          vectors[k] = k % padded < n ? std::sin(static_cast<double>(k) + 0.5) : 0.0;
        for (const int64_t rows : {1, 3, 4, 9}) {
          const std::vector<double> x = Cells(rows * stride, 6);
          std::vector<double> out(static_cast<size_t>(rows * (count + gap)), kBefore);
          MultiplyRows(x.data(), rows, stride, n, vectors.data(), padded, count, out.data(), count + gap,
                       kEveryPrefetch[rows % 4]);
          for (int64_t i = 0; i < rows; ++i) {
            const double* const cells = out.data() + i * (count + gap);
            for (int64_t c = 0; c < count; ++c) {
              double r[8] = {};
              for (int64_t j = 0; j < n; ++j)
                r[j & 7] =
                    std::fma(x[static_cast<size_t>(i * stride + j)], vectors[c * padded + j], r[j & 7]);
              ASSERT_EQ(cells[c], (((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]))) + 0.0)
                  << rows << "x" << n << "x" << count << " at " << i << ", " << c;
            }
            for (int64_t c = count; c < count + gap; ++c)
              ASSERT_EQ(cells[c], kBefore) << "wrote past row " << i;
          }
        }
      }
    }
  });
}

TEST(FewColumnsTest, ColumnsOfEveryNumberGoOnFromWhatIsThere) {
  const int64_t gap = 3, rows = 19;
  ForEachCpu([&] {
    for (int64_t count = 1; count <= 16; ++count) {
      const std::vector<double> w = Cells(rows * (count + gap), 3);
      for (int64_t n = 1; n <= 60; ++n) {
        const std::vector<double> x = Cells(rows * (n + gap), 4);
        const int64_t padded = (n + 7) / 8 * 8;
        AlignedArray columns(count * padded);
        for (int64_t k = 0; k < count * padded; ++k) columns.data()[k] = kBefore;
        MultiplyColumns(x.data(), rows, n + gap, n, w.data(), count + gap, count, columns.data(), padded,
                        kEveryPrefetch[n % 4]);
        for (int64_t c = 0; c < count; ++c) {
          for (int64_t j = 0; j < n; ++j) {
            double chain = kBefore;
            for (int64_t i = 0; i < rows; ++i)
              chain = std::fma(x[static_cast<size_t>(i * (n + gap) + j)],
                               w[static_cast<size_t>(i * (count + gap) + c)], chain);
            ASSERT_EQ(columns.data()[c * padded + j], chain) << n << "x" << count << " at " << j << ", " << c;
          }
        }
      }
    }
  });
}

// out and columns of rows and of others, or of the same ones, against the literal definition.
TEST(FewColumnsTest, RowsAndColumnsAtOnce) {
  ForEachCpu([&] {
    for (const int64_t n : {9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,  23, 24,
                            25, 26, 27, 28, 29, 30, 31, 32, 33, 36, 50, 64, 65, 100, 519}) {
      for (const auto& [rows, others] :
           {std::pair<int64_t, int64_t>(0, 0), {1, 1}, {3, 5}, {4, 4}, {9, 12}, {37, 37}, {64, 71}}) {
        for (const auto& [same, gap] :
             {std::pair<bool, int64_t>(false, 0), {true, 0}, {false, 3}, {true, 3}}) {
          const int64_t stride = n + gap, previous_rows = same ? rows : others;
          const std::vector<double> x = Cells(rows * stride + 1, 3),
                                    previous = same ? x : Cells(previous_rows * stride + 1, 4);
          const int64_t padded = std::max<int64_t>(16, (n + 7) / 8 * 8);
          AlignedArray v(padded), columns(padded);
          for (int64_t j = 0; j < padded; ++j) {
            v[j] = j < n ? std::sin(static_cast<double>(j) + 0.5) : 0.0;
            columns[j] = kBefore;
          }
          std::vector<double> out(static_cast<size_t>(previous_rows) + 1, kBefore),
              expected_out = out, w = Cells(previous_rows + 1, 5);
          std::vector<double> expected(static_cast<size_t>(n), kBefore);
          for (int64_t i = 0; i < rows; ++i) {
            double r[8] = {};
            for (int64_t j = 0; j < n; ++j)
              r[j & 7] = std::fma(x[static_cast<size_t>(i * stride + j)], v[j], r[j & 7]);
            expected_out[static_cast<size_t>(i)] =
                (((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]))) + 0.0;
          }
          const std::vector<double>& weights = same ? expected_out : w;
          for (int64_t i = 0; i < previous_rows; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double& cell = expected[static_cast<size_t>(j)];
              cell = std::fma(previous[static_cast<size_t>(i * stride + j)], weights[static_cast<size_t>(i)],
                              cell);
            }
          MultiplyRowsAndColumns({.n = n,
                                  .stride = stride,
                                  .x = x.data(),
                                  .rows = rows,
                                  .v = v.data(),
                                  .out = out.data(),
                                  .previous = same ? x.data() : previous.data(),
                                  .previous_rows = previous_rows,
                                  .w = same ? out.data() : w.data(),
                                  .columns = columns.data(),
                                  .prefetch = kEveryPrefetch[(n + rows) % 4]});
          SCOPED_TRACE(testing::Message()
                       << rows << " and " << previous_rows << " rows of " << n << (same ? ", the same" : ""));
          EXPECT_EQ(std::memcmp(out.data(), expected_out.data(), out.size() * sizeof(double)), 0);
          EXPECT_EQ(std::memcmp(columns.data(), expected.data(), expected.size() * sizeof(double)), 0);
          if (!same) continue;
          for (int64_t j = 0; j < padded; ++j) columns[j] = kBefore;
          double places[5] = {0, 0, 0, 0, kBefore};
          MultiplyRowsAndColumns({.n = n,
                                  .stride = stride,
                                  .x = x.data(),
                                  .rows = rows,
                                  .v = v.data(),
                                  .out = places,
                                  .previous = x.data(),
                                  .previous_rows = rows,
                                  .w = places,
                                  .columns = columns.data(),
                                  .out_step = 0});
          EXPECT_EQ(std::memcmp(columns.data(), expected.data(), expected.size() * sizeof(double)), 0)
              << "not kept";
          EXPECT_EQ(places[4], kBefore);
        }
      }
    }
  });
}

// Cells that are floats, as floats and as doubles.
struct BothCells {
  explicit BothCells(int64_t count, uint32_t seed) : doubles(Cells(count, seed)) {
    for (double& cell : doubles) cell = static_cast<double>(static_cast<float>(cell));
    singles.assign(doubles.begin(), doubles.end());
  }
  std::vector<double> doubles;
  std::vector<float> singles;
};

TEST(FewColumnsTest, FloatsAreTheDoublesThatTheyAre) {
  ForEachCpu([] {
    for (const int64_t n : {1, 3, 8, 9, 15, 16, 17, 31, 49, 65, 100, 131, 700}) {
      const int64_t rows = 37, stride = n + 3, padded = (n + 7) / 8 * 8;
      const BothCells x(rows * stride, 1);
      AlignedArray vectors(padded * 8);
      std::fill_n(vectors.data(), padded * 8, 0.0);
      for (int64_t c = 0; c < 8; ++c)
        for (int64_t j = 0; j < n; ++j) vectors[c * padded + j] = static_cast<double>(j % 7 - 3) / 9;
      const std::vector<double> w = Cells(rows * 8, 2);
      for (const int64_t count : {1, 2, 3, 4, 5, 8}) {
        SCOPED_TRACE(testing::Message() << n << " columns, " << count);
        const Prefetch& prefetch = kEveryPrefetch[(n + count) % 4];
        std::vector<double> expected(static_cast<size_t>(rows * count)), found = expected;
        MultiplyRows(x.doubles.data(), rows, stride, n, vectors.data(), padded, count, expected.data(),
                     count);
        MultiplyRows(x.singles.data(), rows, stride, n, vectors.data(), padded, count, found.data(), count,
                     prefetch);
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(double)), 0);
        AlignedArray sums(count * padded), singles(count * padded);
        std::fill_n(sums.data(), count * padded, kBefore);
        std::fill_n(singles.data(), count * padded, kBefore);
        MultiplyColumns(x.doubles.data(), rows, stride, n, w.data(), count, count, sums.data(), padded);
        MultiplyColumns(x.singles.data(), rows, stride, n, w.data(), count, count, singles.data(), padded,
                        prefetch);
        for (int64_t c = 0; c < count; ++c)
          EXPECT_EQ(std::memcmp(singles.data() + c * padded, sums.data() + c * padded,
                                static_cast<size_t>(n) * sizeof(double)),
                    0);
      }
    }
  });
}

// t(X) (X v), the product rounded to floats as where it is stored; and the two products of other rows.
TEST(FewColumnsTest, PairsOfFloatsRoundWhatGoesFromOneToTheOther) {
  for (const int64_t n : {9, 10, 12, 13, 16, 17, 33, 100, 131})
    for (const int64_t rows : {1, 3, 4, 7, 40}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << n);
      const int64_t padded = (n + 7) / 8 * 8;
      const BothCells x(rows * n, 1), previous((rows + 2) * n, 2);
      AlignedArray v(std::max<int64_t>(16, padded)), expected(padded), found(padded);
      std::fill_n(v.data(), std::max<int64_t>(16, padded), 0.0);
      for (int64_t j = 0; j < n; ++j) v[j] = static_cast<double>(j % 7 - 3) / 9;
      const auto start = [&](AlignedArray& columns) { std::fill_n(columns.data(), padded, kBefore); };
      std::vector<double> products(static_cast<size_t>(rows) + 4), out = products;
      MultiplyRows(x.doubles.data(), rows, n, n, v.data(), padded, 1, products.data(), 1);
      for (double& product : products) product = static_cast<double>(static_cast<float>(product));
      start(expected);
      MultiplyColumns(x.doubles.data(), rows, n, n, products.data(), 1, 1, expected.data(), padded);
      for (const int64_t step : {1, 0}) {
        start(found);
        MultiplyRowsAndColumns(RowsAndColumnsCall<float>{.n = n,
                                                         .stride = n,
                                                         .x = x.singles.data(),
                                                         .rows = rows,
                                                         .v = v.data(),
                                                         .out = out.data(),
                                                         .previous = x.singles.data(),
                                                         .previous_rows = rows,
                                                         .w = out.data(),
                                                         .columns = found.data(),
                                                         .out_step = step,
                                                         .prefetch = kEveryPrefetch[(n + rows) % 4]});
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), static_cast<size_t>(n) * sizeof(double)), 0)
            << "step " << step;
        if (step == 1) {
          EXPECT_EQ(std::memcmp(out.data(), products.data(), static_cast<size_t>(rows) * sizeof(double)), 0);
        }
      }
      const std::vector<double> w = Cells(rows + 2, 3);
      start(expected);
      start(found);
      MultiplyRows(x.doubles.data(), rows, n, n, v.data(), padded, 1, products.data(), 1);
      MultiplyColumns(previous.doubles.data(), rows + 2, n, n, w.data(), 1, 1, expected.data(), padded);
      MultiplyRowsAndColumns(RowsAndColumnsCall<float>{.n = n,
                                                       .stride = n,
                                                       .x = x.singles.data(),
                                                       .rows = rows,
                                                       .v = v.data(),
                                                       .out = out.data(),
                                                       .previous = previous.singles.data(),
                                                       .previous_rows = rows + 2,
                                                       .w = w.data(),
                                                       .columns = found.data()});
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), static_cast<size_t>(n) * sizeof(double)), 0);
      EXPECT_EQ(std::memcmp(out.data(), products.data(), static_cast<size_t>(rows) * sizeof(double)), 0);
    }
}

}  // namespace
}  // namespace heddle::ops::simd
