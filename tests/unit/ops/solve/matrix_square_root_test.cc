// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

Invocation Root(Matrix a) { return Invocation("sqrtMatrixJava", {Value(std::move(a))}); }

void ExpectSquaresTo(const Matrix& root, const Matrix& a, double tolerance) {
  ASSERT_EQ(root.shape(), a.shape());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) {
      double sum = 0;
      for (int64_t k = 0; k < a.rows(); ++k) sum += root.At(i, k) * root.At(k, j);
      EXPECT_NEAR(sum, a.At(i, j), tolerance) << i << " " << j;
    }
  }
}

// X with a diagonal that makes every eigenvalue's real part positive.
Matrix Dominant(int64_t n, bool symmetric) {
  const Matrix x = RandomCells(n, n, 11, 1);
  Result<Matrix> a = Matrix::Dense(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      a->mutable_data()[i * n + j] = (symmetric ? x.At(std::min(i, j), std::max(i, j)) : x.At(i, j)) +
                                     (i == j ? 4.0 * static_cast<double>(n) : 0);
  return *std::move(a);
}

TEST(MatrixSquareRootTest, SquaresToTheMatrix) {
  for (const int64_t n : {1, 2, 3, 8, 40}) {
    for (const bool symmetric : {false, true}) {
      const Matrix a = Dominant(n, symmetric);
      for (const Matrix& form : Forms(a))
        ExpectSquaresTo(Root(form).RunMatrix(), a, 1e-12 * static_cast<double>(n * n));
    }
  }
  ExpectSquaresTo(Root(Rows({{0, -1}, {1, 0}})).RunMatrix(), Rows({{0, -1}, {1, 0}}), 1e-15);
  ExpectSquaresTo(Root(Rows({{1, 1}, {0, 1}})).RunMatrix(), Rows({{1, 1}, {0, 1}}), 1e-15);
  EXPECT_EQ(Root(Matrix()).RunMatrix().shape(), (Shape{0, 0}));
}

TEST(MatrixSquareRootTest, IsThePrincipalRoot) {
  // As SystemDS 3.4 prints it.
  const Matrix root = Root(Rows({{4, 1}, {1, 3}})).RunMatrix();
  EXPECT_NEAR(root.At(0, 0), 1.981577633135, 1e-12);
  EXPECT_NEAR(root.At(0, 1), 0.270832206094, 1e-12);
  EXPECT_NEAR(root.At(1, 1), 1.710745427041, 1e-12);
  EXPECT_TRUE(Matrix::SameCells(Root(Rows({{9}})).RunMatrix(), Rows({{3}})));
  ExpectSquaresTo(Root(Rows({{0, 0}, {0, 4}})).RunMatrix(), Rows({{0, 0}, {0, 4}}), 0);
}

TEST(MatrixSquareRootTest, MatricesWithoutARealRootAreErrors) {
  EXPECT_EQ(Root(Rows({{-4, 0}, {0, 3}})).Error(),
            "sqrtMatrixJava: the matrix has no real square root: its eigenvalue -4.0 is negative");
  EXPECT_EQ(Root(Rows({{-4, 1}, {0, 3}})).Error(),
            "sqrtMatrixJava: the matrix has no real square root: its eigenvalue -4.0 is negative");
  EXPECT_EQ(Root(Rows({{0, 1}, {0, 0}})).Error(), "sqrtMatrixJava: the matrix is singular and not symmetric");
  EXPECT_EQ(Root(Rows({{1, 2, 3}})).Error(), "sqrtMatrixJava: needs a square matrix, got 1x3");
  EXPECT_NE(Root(Rows({{NAN}})).Error(), "");
}

}  // namespace
}  // namespace heddle::ops
