// SPDX-License-Identifier: Apache-2.0
// eigen, svd, qr, lu: what the factors promise, and the same by the plain loops of tests/reference.
#include "tests/reference/decompositions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Invocation Eigen(const Matrix& a) { return Invocation("eigen", {a}); }
Invocation Svd(const Matrix& x) { return Invocation("svd", {x}); }
Invocation Qr(const Matrix& x) { return Invocation("qr", {x}); }
Invocation Lu(const Matrix& a) { return Invocation("lu", {a}); }

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix c = *FilledMatrix(a.rows(), b.columns(), 0);
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < b.columns(); ++j)
      for (int64_t k = 0; k < a.columns(); ++k)
        c.mutable_data()[i * b.columns() + j] += a.At(i, k) * b.At(k, j);
  return c;
}

Matrix Transposed(const Matrix& a) {
  Matrix result = *Matrix::Dense(a.columns(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.columns(); ++j) result.mutable_data()[j * a.rows() + i] = a.At(i, j);
  return result;
}

Matrix Identity(int64_t n, double value = 1) {
  Matrix result = *FilledMatrix(n, n, 0);
  for (int64_t i = 0; i < n; ++i) result.mutable_data()[i * n + i] = value;
  return result;
}

Matrix Symmetric(int64_t n, uint32_t seed) {
  Matrix a = RandomCells(n, n, seed, 1);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) a.mutable_data()[i * n + j] = a.At(j, i);
  return a;
}

void ExpectNear(const Matrix& a, const Matrix& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.columns(); ++j) ASSERT_NEAR(a.At(i, j), b.At(i, j), tolerance) << i << "," << j;
}

void ExpectSameFactors(const std::vector<Matrix>& a, const std::vector<Matrix>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectNear(a[i], b[i], tolerance);
  }
}

TEST(EigenTest, ValuesAscendAndVectorsAreOrthonormal) {
  for (const int64_t n : {1, 2, 5, 33, 80}) {
    SCOPED_TRACE(n);
    const Matrix a = Symmetric(n, static_cast<uint32_t>(n));
    for (const Matrix& form : Forms(a)) {
      const std::vector<Matrix> factors = Eigen(form).RunMatrices();
      Matrix scaled = Identity(n);
      for (int64_t j = 0; j < n; ++j) scaled.mutable_data()[j * n + j] = factors[0].At(j, 0);
      for (int64_t j = 1; j < n; ++j) EXPECT_LE(factors[0].At(j - 1, 0), factors[0].At(j, 0));
      ExpectNear(Product(a, factors[1]), Product(factors[1], scaled), 1e-12 * static_cast<double>(n));
      ExpectNear(Product(Transposed(factors[1]), factors[1]), Identity(n), 1e-13 * static_cast<double>(n));
    }
    ExpectSameFactors(Eigen(a).RunMatrices(), reference::Eigen(a), 1e-10);
  }
}

// Ranks of one and none, values that are equal or nearly so, sizes from 1e-200 to 1e200, whole panels of rows
// and one more; more rotations than are gathered at once. Threads change no bit.
TEST(EigenTest, SymmetricMatricesOfEveryKind) {
  const auto copy_of = [](const Matrix& x) {
    Matrix copy = *Matrix::Dense(x.rows(), x.columns());
    std::copy_n(x.data(), x.cells(), copy.mutable_data());
    return copy;
  };
  for (const int64_t n : {1, 2, 15, 16, 17, 160}) {
    const Matrix random = Symmetric(n, 9);
    std::vector<Matrix> kinds = {random, Identity(n, -3), *FilledMatrix(n, n, 0), *FilledMatrix(n, n, 1)};
    for (const double scale : {1e-200, 1e200}) {
      Matrix scaled = copy_of(random);
      for (int64_t k = 0; k < n * n; ++k) scaled.mutable_data()[k] *= scale;
      kinds.push_back(scaled);
    }
    Matrix graded = copy_of(random), tridiagonal = *FilledMatrix(n, n, 0), close = Identity(n, 1);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        graded.mutable_data()[i * n + j] *= std::exp2(-static_cast<double>(i + j) / 4);
        if (std::abs(i - j) == 1) tridiagonal.mutable_data()[i * n + j] = 1;
        if (std::abs(i - j) == 1) close.mutable_data()[i * n + j] = 1e-14;
      }
    kinds.insert(kinds.end(), {graded, tridiagonal, close});
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      SCOPED_TRACE(::testing::Message() << n << ", kind " << kind);
      const Matrix& a = kinds[kind];
      const std::vector<Matrix> factors = Eigen(a).RunMatrices();
      Invocation on_threads = Eigen(a);
      const std::vector<Value> same = *on_threads.RunSeveralRows(0, 0, 0, 3);
      double largest = 0;
      for (int64_t k = 0; k < n * n; ++k) largest = std::max(largest, std::abs(a.data()[k]));
      const double error = 1e-14 * static_cast<double>(n) * largest;
      Matrix scaled_vectors = copy_of(factors[1]);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) scaled_vectors.mutable_data()[i * n + j] *= factors[0].At(j, 0);
      ExpectNear(Product(a, factors[1]), scaled_vectors, error);
      ExpectNear(Product(Transposed(factors[1]), factors[1]), Identity(n), 1e-14 * static_cast<double>(n));
      for (int64_t i = 1; i < n; ++i) EXPECT_LE(factors[0].At(i - 1, 0), factors[0].At(i, 0));
      for (size_t f = 0; f < 2; ++f) EXPECT_TRUE(Matrix::SameCells(factors[f], same[f].matrix()));
    }
  }
}

TEST(EigenTest, TheFirstLargestCellOfAVectorIsPositive) {
  const std::vector<Matrix> factors = Eigen(Rows({{2, 0}, {0, -3}})).RunMatrices();
  ExpectSameFactors(factors, {Rows({{-3}, {2}}), Rows({{0, 1}, {1, 0}})}, 0);
  const Matrix vectors = Eigen(Symmetric(20, 4)).RunMatrices()[1];
  for (int64_t j = 0; j < 20; ++j) {
    int64_t largest = 0;
    for (int64_t i = 1; i < 20; ++i)
      if (std::abs(vectors.At(i, j)) > std::abs(vectors.At(largest, j))) largest = i;
    EXPECT_GT(vectors.At(largest, j), 0) << j;
  }
}

TEST(EigenTest, EqualValuesAndEmptyMatrices) {
  ExpectSameFactors(Eigen(Identity(3, 2)).RunMatrices(), {Rows({{2}, {2}, {2}}), Identity(3)}, 0);
  const std::vector<Matrix> nothing = Eigen(*Matrix::Dense(0, 0)).RunMatrices();
  EXPECT_EQ(nothing[0].shape(), (Shape{0, 1}));
  EXPECT_EQ(nothing[1].shape(), (Shape{0, 0}));
}

// Matrices with a known real spectrum: triangular ones, turned by a rotation or mixed by a product.
TEST(EigenTest, OfMatricesThatAreNotSymmetric) {
  ExpectSameFactors(Eigen(Rows({{2, 0}, {1, 1}})).RunMatrices(),
                    {Rows({{1}, {2}}), Rows({{0, std::sqrt(0.5)}, {1, std::sqrt(0.5)}})}, 1e-15);
  for (const int64_t n : {3, 10, 40}) {
    SCOPED_TRACE(n);
    // A = V diag(1..n) V^-1 with V = I + a strictly lower triangle, whose inverse is a forward substitution.
    const Matrix cells = RandomCells(n, n, 9, 1);
    Matrix v = Identity(n), inverse = Identity(n), a = *Matrix::Dense(n, n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < i; ++j)
        v.mutable_data()[i * n + j] = cells.At(i, j) / static_cast<double>(4 * n);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j + 1; i < n; ++i) {
        double sum = 0;
        for (int64_t k = j; k < i; ++k) sum += v.At(i, k) * inverse.At(k, j);
        inverse.mutable_data()[i * n + j] = -sum;
      }
    Matrix spectrum = Identity(n);
    for (int64_t j = 0; j < n; ++j) spectrum.mutable_data()[j * n + j] = static_cast<double>(j + 1);
    a = Product(Product(v, spectrum), inverse);
    a.mutable_data()[n - 1] += 1e-3;  // Not triangular; the values stay real and apart.
    for (const Matrix& form : Forms(a)) {
      const std::vector<Matrix> factors = Eigen(form).RunMatrices();
      Matrix scaled = Identity(n);
      for (int64_t j = 0; j < n; ++j) {
        scaled.mutable_data()[j * n + j] = factors[0].At(j, 0);
        EXPECT_NEAR(factors[0].At(j, 0), static_cast<double>(j + 1), 0.1);
        double squares = 0;
        for (int64_t i = 0; i < n; ++i) squares += factors[1].At(i, j) * factors[1].At(i, j);
        EXPECT_NEAR(squares, 1, 1e-14);
      }
      ExpectNear(Product(a, factors[1]), Product(factors[1], scaled), 1e-11);
    }
  }
}

TEST(EigenTest, ReportsWhatHasNoSuchFactors) {
  StatusCode code;
  EXPECT_EQ(Eigen(Rows({{1, 2}})).Error(&code), "eigen: needs a square matrix, got 1x2");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Eigen(Rows({{0, -2}, {2, 0}})).Error(&code),
            "eigen: the 2x2 matrix has complex eigenvalues, 0.0 +- 2.0i among them");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(Eigen(Rows({{1, kNaN}, {kNaN, 1}})).Error(),
            "eigen: the 2x2 matrix has a cell that is no finite number: [1,2] is NaN");
  EXPECT_EQ(Eigen(Rows({{1, 2}, {2, -kInfinity}})).Error(),
            "eigen: the 2x2 matrix has a cell that is no finite number: [2,2] is -Infinity");
  EXPECT_EQ(Eigen(Rows({{1e9, 1e-3}, {2e-3, 1}})).Error(), "") << "symmetric to the rounding of its largest";
}

TEST(SvdTest, TheFactorsMultiplyToTheMatrix) {
  for (const Shape shape : {Shape{1, 1}, Shape{4, 3}, Shape{3, 4}, Shape{40, 7}, Shape{30, 50}}) {
    SCOPED_TRACE(fmt::format("{}", shape));
    const Matrix x = RandomCells(shape.rows, shape.columns, 5, 1);
    const int64_t k = std::min(shape.rows, shape.columns);
    for (const Matrix& form : Forms(x)) {
      const std::vector<Matrix> factors = Svd(form).RunMatrices();
      ExpectNear(Product(Product(factors[0], factors[1]), Transposed(factors[2])), x, 1e-12);
      ExpectNear(Product(Transposed(factors[0]), factors[0]), Identity(k), 1e-13);
      ExpectNear(Product(Transposed(factors[2]), factors[2]), Identity(k), 1e-13);
      for (int64_t j = 0; j < k; ++j) {
        EXPECT_GE(factors[1].At(j, j), j + 1 < k ? factors[1].At(j + 1, j + 1) : 0);
        for (int64_t i = 0; i < k; ++i) EXPECT_EQ(i != j ? factors[1].At(i, j) : 0, 0);
      }
    }
    ExpectSameFactors(Svd(x).RunMatrices(), reference::SingularValues(x), 1e-10);
  }
}

TEST(SvdTest, DependentColumnsAndErrors) {
  const Matrix x = Rows({{1, 2}, {2, 4}, {3, 6}});
  const std::vector<Matrix> factors = Svd(x).RunMatrices();
  EXPECT_NEAR(factors[1].At(0, 0), std::sqrt(70.0), 1e-13);
  EXPECT_NEAR(factors[1].At(1, 1), 0, 1e-14);
  ExpectNear(Product(Transposed(factors[0]), factors[0]), Identity(2), 1e-14);
  EXPECT_EQ(Svd(*Matrix::Dense(3, 0)).RunMatrices()[0].shape(), (Shape{3, 0}));
  EXPECT_EQ(Svd(Rows({{1, 2}, {kNaN, 4}})).Error(),
            "svd: the 2x2 matrix has a cell that is no finite number: [2,1] is NaN");
}

// Q as scripts make it of the vectors.
Matrix QOf(const Matrix& h) {
  Matrix q = Identity(h.rows());
  for (int64_t j = std::min(h.rows(), h.columns()); j-- > 0;) {
    double squares = 0;
    for (int64_t i = 0; i < h.rows(); ++i) squares += h.At(i, j) * h.At(i, j);
    for (int64_t c = 0; c < h.rows(); ++c) {
      double product = 0;
      for (int64_t i = 0; i < h.rows(); ++i) product += h.At(i, j) * q.At(i, c);
      for (int64_t i = 0; i < h.rows(); ++i)
        q.mutable_data()[i * h.rows() + c] -= h.At(i, j) * product * (2 / squares);
    }
  }
  return q;
}

TEST(QrTest, TheReflectionsGiveTheMatrix) {
  for (const Shape shape : {Shape{1, 1}, Shape{4, 3}, Shape{3, 5}, Shape{50, 20}, Shape{30, 30}}) {
    SCOPED_TRACE(fmt::format("{}", shape));
    const Matrix x = RandomCells(shape.rows, shape.columns, 6, 1);
    for (const Matrix& form : Forms(x)) {
      const std::vector<Matrix> factors = Qr(form).RunMatrices();
      const Matrix q = QOf(factors[0]);
      ExpectNear(Product(Transposed(q), q), Identity(shape.rows), 1e-13);
      ExpectNear(Product(q, factors[1]), x, 1e-12);
      for (int64_t j = 0; j < shape.columns; ++j) {
        for (int64_t i = j + 1; i < shape.rows; ++i) EXPECT_EQ(factors[1].At(i, j), 0);
        for (int64_t i = 0; i < j && i < shape.rows; ++i) EXPECT_EQ(factors[0].At(i, j), 0);
      }
    }
    ExpectSameFactors(Qr(x).RunMatrices(), reference::Qr(x), 1e-11);
  }
}

// The vectors that SystemDS 3.3 prints for this matrix.
TEST(QrTest, HoldsHouseholderVectorsAsSystemDs) {
  const std::vector<Matrix> factors = Qr(Rows({{1, 2, 3}, {4, 5, 6}, {7, 8, 10}, {1, 0, 2}})).RunMatrices();
  ExpectNear(factors[0],
             Rows({{1.1221694443563053, 0, 0},
                   {0.4886777774252209, 1.0139724112898445, 0},
                   {0.8551861104941365, 0.5307891082842936, 1.5987314674726734},
                   {0.12216944435630522, 0.84738875036757, -0.8009498298008553}}),
             1e-14);
  ExpectNear(factors[1],
             Rows({{-8.18535277187245, -9.529216659791807, -12.094774991274216},
                   {0, 1.481225793303056, 0.5038182970418545},
                   {0, 0, 1.5692625765032449},
                   {0, 0, 0}}),
             1e-14);
}

TEST(QrTest, ColumnsOfZerosAreReflectedToo) {
  const Matrix x = Rows({{0, 1}, {0, 2}, {0, 2}});
  const std::vector<Matrix> factors = Qr(x).RunMatrices();
  EXPECT_EQ(factors[0].At(0, 0), 2);
  ExpectNear(Product(QOf(factors[0]), factors[1]), x, 1e-15);
  ExpectSameFactors(Qr(Identity(2)).RunMatrices(), {Identity(2, 2), Identity(2, -1)}, 0);
  EXPECT_TRUE(std::isnan(Qr(Rows({{1, 2}, {kNaN, 4}})).RunMatrices()[1].At(0, 0)));
}

TEST(LuTest, ThePermutedMatrixIsTheProduct) {
  for (const int64_t n : {1, 3, 20, 65}) {
    SCOPED_TRACE(n);
    const Matrix a = RandomCells(n, n, 7, 1);
    for (const Matrix& form : Forms(a)) {
      const std::vector<Matrix> factors = Lu(form).RunMatrices();
      ExpectNear(Product(factors[0], a), Product(factors[1], factors[2]), 1e-12);
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(factors[1].At(i, i), 1);
        for (int64_t j = i + 1; j < n; ++j) {
          EXPECT_LE(std::abs(factors[1].At(j, i)), 1);
          EXPECT_EQ(factors[1].At(i, j), 0);
          EXPECT_EQ(factors[2].At(j, i), 0);
        }
      }
    }
    ExpectSameFactors(Lu(a).RunMatrices(), reference::Lu(a), 1e-10);
  }
}

TEST(LuTest, ReportsSingularMatricesAndShapes) {
  StatusCode code;
  EXPECT_EQ(Lu(Rows({{1, 2}, {2, 4}})).Error(&code), "lu: the 2x2 matrix is singular");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(Lu(Rows({{0}})).Error(), "lu: the 1x1 matrix is singular");
  EXPECT_EQ(Lu(Rows({{1, 2}})).Error(), "lu: needs a square matrix, got 1x2");
  EXPECT_EQ(Lu(Rows({{1e-20, 0}, {0, 1e20}})).Error(), "") << "badly scaled is not singular";
  EXPECT_EQ(Lu(Rows({{1e-300, 0}, {0, 1e300}})).Error(), "") << "its squares are no numbers";
}

}  // namespace
}  // namespace heddle::ops
