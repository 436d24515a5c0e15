// SPDX-License-Identifier: Apache-2.0
// Products of few rows with a packed matrix, and of the matrices of nodes: the chains of plain loops.
#include "ops/product/few_rows.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/values/matrix.h"
#include "ops/recursion/body/packed_weights.h"
#include "ops/recursion/run/node_products.h"
#include "ops/simd/transpose.h"
#include "tests/reference/matmul.h"

namespace heddle::ops {
namespace {

Matrix Random(int64_t rows, int64_t columns, ElementType type, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> cell(-1, 1);
  Matrix matrix = *Matrix::Dense(rows, columns, type);
  for (int64_t i = 0; i < matrix.cells(); ++i) {
    if (type == ElementType::kFloat64)
      matrix.mutable_data<double>()[i] = cell(random);
    else
      matrix.mutable_data<float>()[i] = static_cast<float>(cell(random));
  }
  return matrix;
}

Matrix Reference(const Matrix& a, const Matrix& b) {
  return a.element_type() == ElementType::kFloat32 ? reference::MultiplySingles(a, b)
                                                   : reference::Multiply(a, b);
}

class FewRowsTest : public testing::TestWithParam<ElementType> {};

TEST_P(FewRowsTest, RowsThatLieApartHaveTheChainsOfPlainLoops) {
  for (const int64_t columns : {9, 24, 47, 48, 49, 100})
    for (const int64_t terms : {1, 7, 65, 256, 600}) {
      const Matrix b = Random(terms, columns, GetParam(), 1);
      const PackedWeights weights(b);
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15, 64, 65}) {
        const Matrix a = Random(rows, terms, GetParam(), 2);
        // Rows of A and C are parts of wider ones; what is beside those of C stays as it is.
        constexpr int64_t kBeside = 3;
        Matrix wide = Random(rows, terms + kBeside, GetParam(), 3);
        Matrix product = Random(rows, columns + kBeside, GetParam(), 4);
        const Matrix before = Random(rows, columns + kBeside, GetParam(), 4), expected = Reference(a, b);
        const auto run = [&](auto zero) {
          using Cell = decltype(zero);
          for (int64_t i = 0; i < rows; ++i)
            std::copy_n(a.data<Cell>() + i * terms, terms, wide.mutable_data<Cell>() + i * wide.columns());
          weights.Multiply(wide.data<Cell>(), wide.columns(), rows, product.mutable_data<Cell>(),
                           product.columns(), nullptr);
        };
        if (GetParam() == ElementType::kFloat64)
          run(0.0);
        else
          run(0.0F);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < product.columns(); ++j)
            ASSERT_EQ(product.At(i, j), j < columns ? expected.At(i, j) : before.At(i, j))
                << rows << " x " << terms << " x " << columns << " at " << i << ", " << j;
      }
    }
}

TEST_P(FewRowsTest, MatricesOfNodesAreMultipliedAndTurned) {
  for (const int64_t rows : {1, 2, 3, 4, 10, 33})
    for (const int64_t terms : {1, 9, 64, 130})
      for (const int64_t columns : {9, 31, 64, 600}) {
        const Matrix a = Random(rows, terms, GetParam(), 5), b = Random(terms, columns, GetParam(), 6);
        Matrix product = *Matrix::Dense(rows, columns, GetParam()),
               turned = *Matrix::Dense(columns, terms, GetParam());
        const auto run = [&](auto zero) {
          using Cell = decltype(zero);
          ops::Run(NodeProduct<Cell>{.m = rows,
                                     .n = columns,
                                     .k = terms,
                                     .a = a.data<Cell>(),
                                     .b = b.data<Cell>(),
                                     .c = product.mutable_data<Cell>()});
          simd::Transpose(b.data<Cell>(), columns, terms, columns, turned.mutable_data<Cell>(), terms);
        };
        if (GetParam() == ElementType::kFloat64)
          run(0.0);
        else
          run(0.0F);
        EXPECT_TRUE(Matrix::SameCells(product, Reference(a, b)))
            << rows << " x " << terms << " x " << columns;
        for (int64_t i = 0; i < terms; ++i)
          for (int64_t j = 0; j < columns; ++j) ASSERT_EQ(turned.At(j, i), b.At(i, j));
      }
}

INSTANTIATE_TEST_SUITE_P(Cells, FewRowsTest, testing::Values(ElementType::kFloat64, ElementType::kFloat32),
                         [](const auto& type) {
                           return type.param == ElementType::kFloat64 ? "Doubles" : "Floats";
                         });

}  // namespace
}  // namespace heddle::ops
