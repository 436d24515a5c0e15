// SPDX-License-Identifier: Apache-2.0
// Products of a dense left operand that is 0 almost everywhere (ops/simd/product/few_nonzeros.h).
#include "ops/simd/product/few_nonzeros.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ops/catalog.h"
#include "tests/reference/matmul.h"
#include "tests/unit/ops/aggregate_cases.h"

namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

// Which group each row belongs to, as numbers: some rows to none, to two, by a weight, or by NaN.
std::vector<double> Groups(int64_t rows, int64_t stride, int64_t n, std::mt19937_64& random) {
  std::vector<double> x(static_cast<size_t>(rows * stride), 7.5);  // Between the rows, too.
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; ++j)
      x[static_cast<size_t>(i * stride + j)] = std::copysign(0.0, random() % 2 == 0 ? 1 : -1);
    const auto group = [&]() -> double& {
      return x[static_cast<size_t>(i * stride) + random() % static_cast<uint64_t>(n)];
    };
    if (random() % 8 != 0) group() = 1;
    if (random() % 32 == 0) group() = -0.375;
    if (random() % 64 == 0) group() = kNaN;
  }
  return x;
}

std::vector<double> Cells(int64_t count, bool finite, std::mt19937_64& random) {
  std::vector<double> cells(static_cast<size_t>(count));
  for (double& cell : cells) {
    cell = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
    if (!finite && random() % 64 == 0) cell = random() % 2 == 0 ? kNaN : -kInfinity;
  }
  return cells;
}

TEST(FewNonzerosTest, EachCellIsTheChainOverAllRows) {
  std::mt19937_64 random(5);
  for (const int64_t n : {4, 5, 10, 63, 64, 65, 130, 512})
    for (const int64_t k : {16, 17, 31, 100})
      for (const int64_t rows : {1, 15, 16, 47})
        for (const bool finite : {true, false}) {
          const int64_t x_stride = n + 3, y_stride = k + 1;
          const std::vector<double> x = Groups(rows, x_stride, n, random),
                                    y = Cells(rows * y_stride, finite, random);
          std::vector<double> out = Cells(n * k, true, random), expected = out;
          out.push_back(0.25);
          const int64_t done =
              simd::AddFewNonzeros(x.data(), rows, x_stride, n, y.data(), y_stride, k, out.data());
          EXPECT_TRUE(n < 10 || done == rows) << n << " " << rows << " " << done;
          for (int64_t i = 0; i < done; ++i)
            for (int64_t j = 0; j < n; ++j)
              for (int64_t c = 0; c < k; ++c) {
                double& chain = expected[static_cast<size_t>(j * k + c)];
                chain = std::fma(x[static_cast<size_t>(i * x_stride + j)],
                                 y[static_cast<size_t>(i * y_stride + c)], chain);
              }
          EXPECT_EQ(out.back(), 0.25) << "written beyond the cells";
          for (size_t cell = 0; cell < expected.size(); ++cell) {
            if (std::isnan(expected[cell]))
              ASSERT_TRUE(std::isnan(out[cell])) << n << "x" << k << " cell " << cell;
            else
              ASSERT_EQ(std::bit_cast<uint64_t>(out[cell] + 0.0),
                        std::bit_cast<uint64_t>(expected[cell] + 0.0))
                  << n << "x" << k << " cell " << cell;
          }
        }
}

TEST(FewNonzerosTest, StopsBeforeRowsOfManyCells) {
  std::mt19937_64 random(6);
  const int64_t n = 10, k = 20, rows = 64;
  std::vector<double> x(rows * n, 0.0), out(n * k, 0.0);
  const std::vector<double> y = Cells(rows * k, true, random);
  const auto added = [&] { return simd::AddFewNonzeros(x.data(), rows, n, n, y.data(), k, k, out.data()); };
  EXPECT_EQ(added(), rows);
  std::fill(x.begin() + 40 * n, x.end(), 1.0);
  EXPECT_EQ(added(), 32);
  std::fill(x.begin(), x.end(), 1.0);
  EXPECT_EQ(added(), 0);
}

// Rows of groups first, then dense ones, then groups: the operator has the cells of its definition.
TEST(FewNonzerosTest, TheOperatorHasTheCellsOfTheDefinition) {
  std::mt19937_64 random(7);
  for (const int64_t n : {5, 10, 70})
    for (const int64_t k : {12, 40, 100})
      for (const bool finite : {true, false}) {
        const int64_t rows = 3000;
        std::vector<double> x = Groups(rows, n, n, random);
        for (int64_t cell = 1500 * n; cell < 1700 * n; ++cell) x[static_cast<size_t>(cell)] = 0.5;
        const std::vector<double> y = Cells(rows * k, finite, random);
        const auto matrix = [&](const std::vector<double>& cells, int64_t columns) {
          Matrix filled = *Matrix::Dense(rows, columns);
          std::copy(cells.begin(), cells.end(), filled.mutable_data());
          return filled;
        };
        const Matrix left = matrix(x, n), right = matrix(y, k),
                     expected = reference::TransposedMultiply(left, right);
        OnOneAndTwoThreads([&] {
          EXPECT_TRUE(Matrix::SameCells(
              OperatorRun(OperatorNamed(MatmulOperators(), "t%*%"), {left, right}).Result1(), expected))
              << n << "x" << k;
        });
        EXPECT_TRUE(Matrix::SameCells(
            OperatorRun(OperatorNamed(MatmulOperators(), "t%*%"), {left, right}).Split(3), expected))
            << n << "x" << k << " on three workers";
      }
}

}  // namespace
}  // namespace heddle::ops
