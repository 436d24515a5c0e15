// SPDX-License-Identifier: Apache-2.0
// Operators that gradient() forms, against literal loops: cumulative_backward, table_backward,
// eigen_backward, det_backward and density (ranks_backward is in statistics_test.cc). That they are
// derivatives is shown by tests/property/gradient_test.cc and tests/scripts/cases/gradient_statistics.dml.
#include <cmath>
#include <limits>

#include "tests/reference/aggregate.h"
#include "tests/reference/catalog.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

void ExpectNear(const Matrix& got, const Matrix& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  for (int64_t i = 0; i < got.rows(); ++i)
    for (int64_t j = 0; j < got.columns(); ++j) {
      const double x = got.At(i, j), y = expected.At(i, j);
      EXPECT_TRUE(std::fabs(x - y) <= 1e-10 * (1 + std::fabs(y)) || (std::isnan(x) && std::isnan(y)))
          << i << " " << j << ": " << x << " " << y;
    }
}

TEST(CumulativeBackwardTest, IsTheDefinitionAlsoAtZeros) {
  for (const char* of : {"cumprod", "cummin", "cummax"}) {
    for (const int64_t m : {0, 1, 2, 40}) {
      SCOPED_TRACE(::testing::Message() << of << " of " << m << " rows");
      Matrix x = RandomCells(m, 3, 5);
      for (int64_t i = 0; i < m; ++i) {  // One zero in the first column, several in the second, equal cells.
        if (i == 3) x.mutable_data()[3 * i] = 0;
        if (i % 5 == 2) x.mutable_data()[3 * i + 1] = 0;
        if (i % 2 == 1) x.mutable_data()[3 * i + 2] = x.At(i - 1, 2);
      }
      const Matrix y = reference::Cumulative(of, x), dy = RandomCells(m, 3, 6);
      Invocation call("cumulative_backward", {x, y, dy}, {{"of", Scalar(std::string(of))}});
      ExpectNear(call.RunMatrix(), reference::CumulativeAdjoint(of, x, y, dy));
    }
  }
}

TEST(TableBackwardTest, GivesEachWeightTheAdjointOfItsCell) {
  const Matrix a = Rows({{1}, {2}, {1}, {3}, {kNaN}, {2.7}}), b = Rows({{2}, {1}, {2}, {9}, {1}, {1}});
  const Matrix table = Rows({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  const Matrix w = Rows({{0.5}, {1}, {2}, {3}, {4}, {kNaN}});
  EXPECT_TRUE(Matrix::SameCells(Invocation("table_backward", {a, b, w, table}).RunMatrix(),
                                Rows({{2}, {4}, {2}, {0}, {0}, {0}})));
  EXPECT_EQ(Invocation("table_backward", {a, b, Value(Scalar(2.0)), table}).Run().scalar().AsDouble(), 12);
  const Value keys(a), columns(b), cells(table);
  for (const Value& weights : {Value(w), Value(Scalar(2.0))}) {
    Invocation call("table_backward", {a, b, weights, table});
    const std::vector<const Value*> given = {&keys, &columns, &weights, &cells};
    const Value expected = reference::FindKernel("table_backward")(call.node, given), got = call.Run();
    if (got.IsScalar())
      EXPECT_EQ(got.scalar(), expected.scalar());
    else
      EXPECT_TRUE(Matrix::SameCells(got.matrix(), expected.matrix()));
  }
}

// Keys of several columns, and weights with a column more, which does not count.
TEST(TableBackwardTest, WeightsHaveTheirOwnShape) {
  const Matrix a = Rows({{1, 2}, {2, 1}}), table = Rows({{5, 6}, {7, 8}});
  EXPECT_TRUE(
      Matrix::SameCells(Invocation("table_backward", {a, a, Rows({{1, 1, 9}, {1, 1, 9}}), table}).RunMatrix(),
                        Rows({{5, 8, 0}, {8, 5, 0}})));
}

TEST(EigenBackwardTest, IsTheDefinitionForEitherResult) {
  const Matrix a = Rows({{4, 1, 0.5}, {1, 3, 0.25}, {0.5, 0.25, 1}});
  const std::vector<Matrix> factors = Invocation("eigen", {a}).RunMatrices();
  const Matrix of_values = Rows({{1}, {2}, {3}}), of_vectors = Rows({{1, 2, 3}, {4, 5, 6}, {7, 8, 10}});
  const Value x(a), values(factors[0]), vectors(factors[1]), dvalues(of_values), dvectors(of_vectors);
  for (const bool has_values : {true, false}) {
    for (const bool has_vectors : {true, false}) {
      const auto given = [](bool is_given, const Value& value) {
        return is_given ? std::optional<Value>(value) : std::nullopt;
      };
      Invocation call("eigen_backward",
                      {a, factors[0], factors[1], given(has_values, dvalues), given(has_vectors, dvectors)});
      const std::vector<const Value*> inputs = {&x, &values, &vectors, has_values ? &dvalues : nullptr,
                                                has_vectors ? &dvectors : nullptr};
      ExpectNear(call.RunMatrix(), reference::FindKernel("eigen_backward")(call.node, inputs).matrix());
    }
  }
}

TEST(EigenBackwardTest, EqualValuesGiveNoInfinityAndOthersAreRefused) {
  const Matrix one = Rows({{2, 0}, {0, 2}}), values = Rows({{2}, {2}}), dy = Rows({{1, 2}, {3, 4}});
  ExpectNear(
      Invocation("eigen_backward", {one, values, Rows({{1, 0}, {0, 1}}), std::nullopt, dy}).RunMatrix(),
      Rows({{0, 0}, {0, 0}}));
  const Matrix skew = Rows({{2, 1}, {0, 3}});
  StatusCode code;
  EXPECT_EQ(Invocation("eigen_backward", {skew, values, skew, values, std::nullopt}).RunTimeError(&code),
            "gradient(): eigen() has a derivative where its matrix is symmetric, and this one is not");
}

// Of rank n, n - 1 and n - 2.
TEST(DeterminantBackwardTest, IsTheDefinitionAlsoWhereTheMatrixIsSingular) {
  const double scale = 1.5;
  const Value dy(Scalar{scale});
  for (int64_t n = 1; n <= 7; ++n) {
    for (int64_t copied = 0; copied < std::min<int64_t>(n, 3); ++copied) {
      Matrix a = RandomCells(n, n, static_cast<uint32_t>(10 * n + copied));
      for (int64_t i = 0; i < copied; ++i)
        for (int64_t j = 0; j < n; ++j)
          a.mutable_data()[i * n + j] = a.At(n - 1, j) * static_cast<double>(i + 2);
      SCOPED_TRACE(::testing::Message() << n << " " << copied);
      const Value x(a);
      const std::vector<const Value*> inputs = {&x, &dy};
      Invocation call("det_backward", {a, dy});
      ExpectNear(call.RunMatrix(), reference::FindKernel("det_backward")(call.node, inputs).matrix());
    }
  }
}

TEST(DeterminantBackwardTest, NothingOnTheWayLeavesTheRangeOfDoubles) {
  const auto of = [](const Matrix& a, double dy) {
    return Invocation("det_backward", {a, Value(Scalar{dy})}).RunMatrix();
  };
  EXPECT_TRUE(Matrix::SameCells(of(Rows({{1e-200, 0}, {0, 1e200}}), 1), Rows({{1e200, 0}, {0, 1e-200}})));
  // The cofactors are infinite, what is asked for is not.
  const Matrix large = of(Rows({{0x1p600, 0, 0}, {0, 0x1p600, 0}, {0, 0, 0x1p-300}}), 0x1p-900);
  EXPECT_TRUE(Matrix::SameCells(large, Rows({{0x1p-600, 0, 0}, {0, 0x1p-600, 0}, {0, 0, 0x1p300}})));
  EXPECT_TRUE(Matrix::SameCells(of(Rows({{0, 0}, {0, 0}}), 1), Rows({{0, 0}, {0, 0}})));
  EXPECT_TRUE(Matrix::SameCells(of(Rows({{1, kNaN}, {0, 1}}), 1), Rows({{kNaN, kNaN}, {kNaN, kNaN}})));
  EXPECT_EQ(of(*Matrix::Dense(0, 0), 1).shape(), (Shape{0, 0}));
}

// SciPy 1.10: norm.pdf, expon.pdf, chi2.pdf, f.pdf, t.pdf.
TEST(DensityTest, HasTheValuesOfSciPy) {
  const auto density = [](const char* dist, double x, std::optional<double> df, std::optional<double> df2) {
    const auto number = [](std::optional<double> value) {
      return value ? std::optional<Value>(Scalar(*value)) : std::nullopt;
    };
    const bool is_f = dist == std::string("f");
    return Invocation("density",
                      {Value(Scalar(x)), std::nullopt, std::nullopt, is_f ? std::nullopt : number(df),
                       is_f ? number(df) : std::nullopt, number(df2), std::nullopt},
                      {{"dist", Scalar(std::string(dist))}})
        .Run()
        .scalar()
        .AsDouble();
  };
  EXPECT_NEAR(density("normal", 0.3, {}, {}), 0.3813878154605241, 1e-15);
  EXPECT_NEAR(density("exp", 0.3, {}, {}), 0.7408182206817179, 1e-15);
  EXPECT_NEAR(density("chisq", 3.7, 5, {}), 0.14881496470326588, 1e-15);
  EXPECT_NEAR(density("t", 0.0, 1, {}), 0.3183098861837907, 1e-15);
  EXPECT_NEAR(density("f", 1.0, 2, 2), 0.25, 1e-15);
  EXPECT_EQ(density("exp", 0, {}, {}), 1);
  EXPECT_EQ(density("exp", -1e-9, {}, {}), 0);
  EXPECT_EQ(density("chisq", 0, 2, {}), 0.5);
  EXPECT_EQ(density("chisq", 0, 3, {}), 0);
  EXPECT_EQ(density("chisq", 0, 1, {}), kInfinity);
  EXPECT_EQ(density("f", 0, 1, 3), kInfinity);
  EXPECT_EQ(density("f", -1, 1, 3), 0);
  EXPECT_EQ(density("normal", kInfinity, {}, {}), 0);
  EXPECT_EQ(density("t", -kInfinity, 3, {}), 0);
  EXPECT_TRUE(std::isnan(density("normal", kNaN, {}, {})));
}

}  // namespace
}  // namespace heddle::ops
