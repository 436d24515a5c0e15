// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "ops/catalog.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Invocation Call(std::string name, Inputs inputs) { return Invocation(std::move(name), std::move(inputs)); }

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix c = *FilledMatrix(a.rows(), b.columns(), 0);
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < b.columns(); ++j)
      for (int64_t k = 0; k < a.columns(); ++k)
        c.mutable_data()[i * b.columns() + j] += a.At(i, k) * b.At(k, j);
  return c;
}

// A %*% t(A), symmetric to the last bit.
Matrix TimesItsTranspose(const Matrix& a) {
  Matrix c = *FilledMatrix(a.rows(), a.rows(), 0);
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.rows(); ++j)
      for (int64_t k = 0; k < a.columns(); ++k) c.mutable_data()[i * a.rows() + j] += a.At(i, k) * a.At(j, k);
  return c;
}

void ExpectNear(const Matrix& a, const Matrix& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.columns(); ++j) EXPECT_NEAR(a.At(i, j), b.At(i, j), tolerance) << i << "," << j;
}

// Eigen looks at the flag in each of its steps: no factorization is finished once its kernel was cancelled.
TEST(SolveTest, ACancelledFactorizationSaysSo) {
  const std::atomic<bool> cancelled = true;
  const Matrix a = RandomCells(60, 60, 1, 1);
  const Matrix symmetric = TimesItsTranspose(a);
  for (const char* name : {"inv", "solve", "det", "cholesky", "lu", "qr", "svd", "eigen", "sqrtMatrixJava"}) {
    Inputs inputs = {symmetric};
    if (std::string_view(name) == "solve") inputs.push_back(RandomCells(60, 1, 2, 1));
    Invocation call(name, inputs);
    call.context.cancelled = &cancelled;
    const Result<std::vector<Value>> result = call.RunSeveralRows(0, 0, 0);
    EXPECT_EQ(result.status().code(), StatusCode::kCancelled) << name << result.status().ToString();
    call.context.cancelled = nullptr;
    EXPECT_TRUE(call.RunSeveralRows(0, 0, 0).ok()) << name;
  }
}

// Wherever Eigen is when somebody cancels, the kernel ends and the next one works.
TEST(SolveTest, CancelledAtAnyMomentNothingIsBroken) {
  const Matrix a = RandomCells(120, 120, 1, 1);
  for (const char* name : {"inv", "det", "lu", "svd", "eigen", "sqrtMatrixJava"}) {
    Invocation call(name, {TimesItsTranspose(a)});
    const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
    ASSERT_TRUE(whole.ok()) << name;
    for (int microseconds = 1; microseconds < 20'000; microseconds = 2 * microseconds + 1) {
      std::atomic<bool> cancelled = false;
      call.context.cancelled = &cancelled;
      std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        cancelled = true;
      });
      const Result<std::vector<Value>> result = call.RunSeveralRows(0, 0, 0);
      canceller.join();
      EXPECT_TRUE(result.ok() || result.status().code() == StatusCode::kCancelled) << name;
    }
    call.context.cancelled = nullptr;
    const Result<std::vector<Value>> again = call.RunSeveralRows(0, 0, 0);
    ASSERT_TRUE(again.ok()) << name;
    for (size_t i = 0; i < whole->size(); ++i) {
      if (!(*whole)[i].IsMatrix()) continue;
      EXPECT_TRUE(Matrix::SameCells((*again)[i].matrix(), (*whole)[i].matrix())) << name;
    }
  }
}

// inv() solves for some columns at a time, of which there are several from 512 on.
TEST(SolveTest, LargeInverses) {
  for (const int64_t n : {511, 512, 600}) {
    Matrix a = RandomCells(n, n, 1, 3);
    for (int64_t i = 0; i < n; ++i) a.mutable_data()[i * n + i] += 30;
    const Matrix inverse = Call("inv", {a}).RunMatrix();
    double worst = 0;
    for (int64_t j = 0; j < n; j += 37)  // columns of A %*% inv(A)
      for (int64_t i = 0; i < n; i += 41) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += a.At(i, k) * inverse.At(k, j);
        worst = std::max(worst, std::abs(sum - (i == j ? 1 : 0)));
      }
    EXPECT_LT(worst, 1e-12) << n;
  }
}

TEST(SolveTest, SolvesSquareSystems) {
  ExpectNear(Call("solve", {Rows({{2, 1}, {1, 3}}), Rows({{3}, {5}})}).RunMatrix(), Rows({{0.8}, {1.4}}),
             1e-15);
  for (int64_t n : {1, 5, 40}) {
    const Matrix a = RandomCells(n, n, 1, 1);
    const Matrix x = RandomCells(n, 1, 2, 1);
    for (const Matrix& form : Forms(a))
      ExpectNear(Call("solve", {form, Product(a, x)}).RunMatrix(), x, 1e-10);
  }
}

TEST(SolveTest, MinimisesTheResidualOfTallSystems) {
  // The line through (0, 1), (1, 2), (2, 4): normal equations by hand give 5/6 and 3/2.
  ExpectNear(Call("solve", {Rows({{1, 0}, {1, 1}, {1, 2}}), Rows({{1}, {2}, {4}})}).RunMatrix(),
             Rows({{5.0 / 6}, {1.5}}), 1e-14);
}

TEST(SolveTest, ReportsSingularMatricesAndShapes) {
  StatusCode code;
  EXPECT_EQ(Call("solve", {Rows({{1, 2}, {2, 4}}), Rows({{1}, {2}})}).Error(&code),
            "solve: the 2x2 matrix is singular");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(Call("solve", {Rows({{0}}), Rows({{1}})}).Error(), "solve: the 1x1 matrix is singular");
  EXPECT_EQ(Call("solve", {Rows({{1, 2}}), Rows({{1}})}).Error(&code),
            "solve: the matrix has more columns than rows: 1x2");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Call("solve", {Rows({{1}}), Rows({{1}, {2}})}).Error(),
            "solve: numbers of rows differ: 1x1 and 2x1");
  EXPECT_EQ(Call("inv", {Rows({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})}).Error(),
            "inv: the 3x3 matrix is singular");
  EXPECT_EQ(Call("solve", {Rows({{1, 0}, {0, 1e-30}}), Rows({{1}, {1}})}).Error(), "")
      << "badly scaled is not singular";
}

// Squares of these cells are no numbers of 64 bits; powers of two leave the digits as they are.
TEST(SolveTest, ColumnsOfAnySize) {
  const double power = 0x1p+1000;
  for (const auto& [first, second] : {std::pair{power, power}, {1 / power, 1 / power}, {power, 1 / power}}) {
    SCOPED_TRACE(::testing::Message() << first << ", " << second);
    const Matrix a = Rows({{2 * first, second}, {first, 3 * second}});
    const Matrix x = Call("solve", {Rows({{2, 1}, {1, 3}}), Rows({{3}, {5}})}).RunMatrix();
    EXPECT_TRUE(Matrix::SameCells(Call("solve", {a, Rows({{3}, {5}})}).RunMatrix(),
                                  Rows({{x.At(0, 0) / first}, {x.At(1, 0) / second}})));
    const Matrix inverse = Call("inv", {Rows({{2, 1}, {1, 3}})}).RunMatrix();
    EXPECT_TRUE(Matrix::SameCells(Call("inv", {a}).RunMatrix(),
                                  Rows({{inverse.At(0, 0) / first, inverse.At(0, 1) / first},
                                        {inverse.At(1, 0) / second, inverse.At(1, 1) / second}})));
  }
  ExpectNear(Call("solve", {Rows({{5e-324}}), Rows({{5e-324}})}).RunMatrix(), Rows({{1}}), 0);
  EXPECT_EQ(Call("solve", {Rows({{1e300, 2e300}, {2e300, 4e300}}), Rows({{1}, {2}})}).Error(),
            "solve: the 2x2 matrix is singular");
}

TEST(InvTest, GivesTheIdentityWithItsArgument) {
  for (int64_t n : {1, 4, 33}) {
    const Matrix a = RandomCells(n, n, 3, 1);
    Matrix identity = *FilledMatrix(n, n, 0);
    for (int64_t i = 0; i < n; ++i) identity.mutable_data()[i * n + i] = 1;
    ExpectNear(Product(a, Call("inv", {a}).RunMatrix()), identity, 1e-9);
  }
  EXPECT_EQ(Call("inv", {Rows({{1, 2}})}).Error(), "inv: needs a square matrix, got 1x2");
}

TEST(CholeskyTest, FactorsPositiveDefiniteMatrices) {
  ExpectNear(Call("cholesky", {Rows({{4, 2}, {2, 5}})}).RunMatrix(), Rows({{2, 0}, {1, 2}}), 1e-15);
  EXPECT_EQ(Call("cholesky", {Rows({{1, 2}, {2, 1}})}).Error(),
            "cholesky: the 2x2 matrix is not positive definite");
  EXPECT_EQ(Call("cholesky", {Rows({{4, 1}, {2, 5}})}).Error(),
            "cholesky: the 2x2 matrix is not symmetric: cells [1,2] and [2,1] are 1 and 2");
}

TEST(DetTest, KnownDeterminants) {
  EXPECT_EQ(Call("det", {Rows({{3}})}).Run().scalar().AsDouble(), 3);
  EXPECT_DOUBLE_EQ(Call("det", {Rows({{1, 2}, {3, 4}})}).Run().scalar().AsDouble(), -2);
  EXPECT_EQ(Call("det", {Rows({{0, 1}, {1, 0}})}).Run().scalar().AsDouble(), -1);
  EXPECT_EQ(Call("det", {Rows({{1, 2}, {2, 4}})}).Run().scalar().AsDouble(), 0);
  // The product of the pivots leaves the range of doubles on the way, below and above, or at its end.
  EXPECT_DOUBLE_EQ(
      Call("det", {Rows({{1e-200, 0, 0}, {0, 1e-200, 0}, {0, 0, 1e300}})}).Run().scalar().AsDouble(), 1e-100);
  EXPECT_DOUBLE_EQ(
      Call("det", {Rows({{1e200, 0, 0}, {0, -1e200, 0}, {0, 0, 1e-300}})}).Run().scalar().AsDouble(), -1e100);
  Matrix scaled = *FilledMatrix(700, 700, 0);
  for (int64_t i = 0; i < 700; ++i)
    scaled.mutable_data()[i * 701] = i % 2 == 0 ? 1e10 : i < 350 ? 2e-10 : 0.5e-10;
  EXPECT_NEAR(Call("det", {scaled}).Run().scalar().AsDouble(), 1, 1e-12);
  EXPECT_EQ(Call("det", {Rows({{1e200, 0}, {0, -1e200}})}).Run().scalar().AsDouble(), -kInfinity);
  EXPECT_EQ(Call("det", {Rows({{1e-200, 0}, {0, 1e-200}})}).Run().scalar().AsDouble(), 0);
  EXPECT_EQ(Call("det", {Rows({{0x1p-600, 0}, {0, 0x1p-474}})}).Run().scalar().AsDouble(), 0x1p-1074);
}

TEST(SolveTest, TheSameBitsEveryTime) {
  const Matrix a = RandomCells(150, 150, 4, 1);
  const Matrix b = RandomCells(150, 1, 5, 1);
  const Matrix once = Call("solve", {a, b}).RunMatrix(1);
  EXPECT_TRUE(Matrix::SameCells(once, Call("solve", {a, b}).RunMatrix(2)));
}

}  // namespace
}  // namespace heddle::ops
