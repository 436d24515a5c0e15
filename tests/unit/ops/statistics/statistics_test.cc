// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tests/reference/catalog.h"
#include "tests/unit/ops/run_operator.h"

// quantile and its relatives, moments and covariance. Numbers that look arbitrary are what Apache
// SystemDS 3.4 prints.
namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double NumberOf(const std::string& op, Inputs inputs) {
  return Invocation(op, std::move(inputs)).Run().scalar().AsDouble();
}

const Matrix& Eight() {
  static const Matrix x = Rows({{5}, {1}, {4}, {2}, {3}, {9}, {7}, {8}});
  return x;
}
const Matrix& Weights() {
  static const Matrix w = Rows({{2}, {1}, {1}, {2}, {3}, {1}, {1}, {1}});
  return w;
}
Value N(double number) { return Value(Scalar(number)); }

TEST(QuantileTest, IsTheValueAtARankOrTheMeanOfTwo) {
  for (const Matrix& x : Forms(Eight())) {
    EXPECT_EQ(NumberOf("median", {x, std::nullopt}), 4.5);
    EXPECT_EQ(NumberOf("quantile", {x, N(0.26)}), 3.0);  // 0.26 * 8 is not whole
    EXPECT_EQ(NumberOf("quantile", {x, N(0.25)}), 2.5);
    EXPECT_EQ(NumberOf("quantile", {x, N(0)}), 1.0);
    EXPECT_EQ(NumberOf("quantile", {x, N(1)}), 9.0);
    EXPECT_TRUE(
        Matrix::SameCells(Invocation("quantile", {x, Rows({{0}, {0.25}, {0.5}, {0.75}, {1}})}).RunMatrix(),
                          Rows({{1}, {2}, {4}, {7}, {9}})));
  }
  EXPECT_EQ(NumberOf("median", {Eight().Rows(0, 7)}), 4.0);
  EXPECT_EQ(NumberOf("median", {Eight().Rows(0, 1)}), 5.0);
}

// R 4.2: quantile(c(5, 1, 4, 2, 3, 9, 7, 8, 6, 10), p, type = 2) and type = 1.
TEST(QuantileTest, ANumberIsOfRsType2AndAColumnOfType1) {
  const Matrix x = Rows({{5}, {1}, {4}, {2}, {3}, {9}, {7}, {8}, {6}, {10}});
  const double p[] = {0.1, 0.12, 0.3, 0.35, 0.55, 0.7, 0.95};
  const double two[] = {1.5, 2, 3.5, 4, 6, 7.5, 10}, one[] = {1, 2, 3, 4, 6, 7, 10};
  for (size_t i = 0; i < std::size(p); ++i) {
    EXPECT_EQ(NumberOf("quantile", {x, N(p[i])}), two[i]) << p[i];
    EXPECT_EQ(Invocation("quantile", {x, Rows({{p[i]}})}).RunMatrix().At(0, 0), one[i]) << p[i];
  }
}

TEST(QuantileTest, OfNaNIsNaN) {
  const Matrix x = Rows({{kNaN}, {2}, {1}, {7}}), w = Rows({{1}, {1}, {2}, {1}}),
               none = Rows({{0}, {1}, {2}, {1}});
  for (const char* op : {"median", "interQuartileMean"}) {
    EXPECT_TRUE(std::isnan(NumberOf(op, {x, std::nullopt}))) << op;
    EXPECT_TRUE(std::isnan(NumberOf(op, {x, w}))) << op;
    EXPECT_FALSE(std::isnan(NumberOf(op, {x, none}))) << op << ": the cell that is NaN counts 0 times";
  }
  EXPECT_TRUE(std::isnan(NumberOf("quantile", {x, N(0)})));
  EXPECT_TRUE(std::isnan(NumberOf("weightedQuantile", {x, w, N(0.5)})));
  EXPECT_TRUE(std::isnan(Invocation("quantile", {x, Rows({{0.1}})}).RunMatrix().At(0, 0)));
  EXPECT_EQ(NumberOf("median", {x, none}), 1.5);
}

// Of two that are too large to be added up, of infinite ones, and of none between them.
TEST(QuantileTest, TheMeanOfTwoDoesNotOverflow) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(NumberOf("median", {Rows({{kLargest}, {kLargest}})}), kLargest);
  EXPECT_EQ(NumberOf("median", {Rows({{kInfinity}, {kInfinity}})}), kInfinity);
  EXPECT_TRUE(std::isnan(NumberOf("median", {Rows({{kInfinity}, {-kInfinity}})})));
  EXPECT_EQ(NumberOf("interQuartileMean", {Rows({{-kInfinity}, {1}, {2}, {kInfinity}})}), 1.5);
}

TEST(RanksBackwardTest, AgreesWithTheReference) {
  Matrix x = RandomCells(60, 1, 5), w = *Matrix::Dense(60, 1);
  for (int64_t i = 0; i < 60; ++i) {
    x.mutable_data()[i] = std::floor(8 * x.data()[i]) / 8;  // equal cells
    w.mutable_data()[i] = static_cast<double>((i * 7) % 4);
  }
  const Matrix p = Rows({{0}, {0.1}, {0.5}, {0.77}, {1}}), dy = Rows({{1}, {2}, {3}, {4}, {5}});
  for (const bool weighted : {false, true}) {
    const std::optional<Value> weights = weighted ? std::optional<Value>(w) : std::nullopt;
    const std::vector<std::pair<const char*, std::pair<std::optional<Value>, Value>>> cases = {
        {"median", {std::nullopt, N(3)}},
        {"quantile", {N(0.3), N(2)}},
        {"quantile", {N(0.31), N(2)}},
        {"quantile", {p, dy}},
        {"interQuartileMean", {std::nullopt, N(7)}}};
    for (const auto& [of, rest] : cases) {
      SCOPED_TRACE(of);
      Invocation call("ranks_backward", {x, rest.second, weights, rest.first},
                      {{"of", Scalar(std::string(of))}});
      const Value values(x);
      const std::vector<const Value*> given = {&values, &rest.second, weights ? &*weights : nullptr,
                                               rest.first ? &*rest.first : nullptr};
      const Matrix got = call.RunMatrix(),
                   expected = reference::FindKernel("ranks_backward")(call.node, given).matrix();
      for (int64_t i = 0; i < 60; ++i) EXPECT_NEAR(got.At(i, 0), expected.At(i, 0), 1e-12) << i;
    }
  }
}

TEST(RanksBackwardTest, EqualCellsShareAndNaNStaysNaN) {
  const auto of_median = [](const Matrix& x, std::optional<Value> w) {
    return Invocation("ranks_backward", {x, N(1), std::move(w), std::nullopt}, {{"of", Scalar("median")}})
        .RunMatrix();
  };
  EXPECT_TRUE(
      Matrix::SameCells(of_median(Rows({{2}, {1}, {2}, {9}}), std::nullopt), Rows({{0.5}, {0}, {0.5}, {0}})));
  EXPECT_TRUE(Matrix::SameCells(of_median(Rows({{2}, {1}, {2}, {9}}), Rows({{3}, {1}, {1}, {0}})),
                                Rows({{0.75}, {0}, {0.25}, {0}})));
  EXPECT_TRUE(std::isnan(of_median(Rows({{2}, {kNaN}, {3}}), std::nullopt).At(0, 0)));
}

TEST(QuantileTest, WeightsSayHowOftenValuesCount) {
  // 12 values: 1 2 2 3 3 3 4 5 5 7 8 9.
  const double expected[] = {2, 2, 3, 3, 3.5, 5, 5, 7, 8};
  for (int k = 1; k <= 9; ++k)
    EXPECT_EQ(NumberOf("weightedQuantile", {Eight(), Weights(), N(k / 10.0)}), expected[k - 1]) << k;
  EXPECT_EQ(NumberOf("median", {Eight(), Weights()}), 3.5);
  EXPECT_EQ(NumberOf("median", {Rows({{1}, {2}}), Rows({{2}, {2}})}), 1.5);
  EXPECT_EQ(NumberOf("median", {Rows({{1}, {2}, {3}, {4}, {5}}), Rows({{3}, {1}, {1}, {2}, {1}})}), 2.5);
  EXPECT_EQ(NumberOf("weightedQuantile", {Rows({{3}, {1}, {2}}), Rows({{0}, {5}, {0}}), N(0.9)}), 1.0);
}

TEST(QuantileTest, TheMeanOfTheMiddleHalfCutsValuesAtItsEnds) {
  EXPECT_EQ(NumberOf("interQuartileMean", {Eight()}), 4.75);
  EXPECT_EQ(NumberOf("interQuartileMean", {Eight().Rows(0, 7)}), 4.071428571428571);
  EXPECT_EQ(NumberOf("interQuartileMean", {Eight().Rows(0, 5)}), 3.0);
  EXPECT_EQ(NumberOf("interQuartileMean", {Eight().Rows(0, 3)}), 3.6666666666666665);
  EXPECT_EQ(NumberOf("interQuartileMean", {Eight().Rows(0, 1)}), 5.0);
  EXPECT_EQ(NumberOf("interQuartileMean", {Eight(), Weights()}), 3.8333333333333335);
}

TEST(QuantileTest, AgreesWithTheReferenceOnRandomColumns) {
  for (const int64_t n : {1, 2, 3, 10, 101, 500}) {
    const Matrix x = RandomCells(n, 1, static_cast<uint32_t>(n));
    Matrix w = *Matrix::Dense(n, 1);
    for (int64_t i = 0; i < n; ++i) w.mutable_data()[i] = static_cast<double>(1 + (i * 7 + n) % 4);
    for (const double p : {0.0, 0.1, 0.25, 0.5, 0.77, 1.0}) {
      for (const bool weighted : {false, true}) {
        Inputs inputs = weighted ? Inputs{x, w, N(p)} : Inputs{x, N(p)};
        Invocation call(weighted ? "weightedQuantile" : "quantile", inputs);
        std::vector<const Value*> given;
        for (const auto& input : inputs) given.push_back(&*input);
        EXPECT_EQ(call.Run().scalar().AsDouble(),
                  reference::FindKernel("quantile")(call.node, given).scalar().AsDouble())
            << n << " values, p = " << p << (weighted ? ", weighted" : "");
      }
    }
    const Value values(x), weights(w);
    const std::vector<const Value*> given = {&values, &weights};
    EXPECT_NEAR(NumberOf("interQuartileMean", {x, w}),
                reference::FindKernel("interQuartileMean")(Node(), given).scalar().AsDouble(), 1e-12)
        << n;
  }
}

TEST(QuantileTest, SaysWhatIsWrong) {
  StatusCode code;
  EXPECT_EQ(Invocation("quantile", {Rows({{1, 2}}), N(0.5)}).Error(&code),
            "quantile: needs a column vector, got 1x2");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Invocation("quantile", {Eight(), N(1.5)}).Error(),
            "quantile: p must be between 0 and 1, not 1.5");
  EXPECT_EQ(Invocation("quantile", {Eight(), N(-0.5)}).RunTimeError(&code),
            "quantile: p must be between 0 and 1, not -0.5");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(Invocation("quantile", {Eight(), Rows({{0.5, 0.5}})}).Error(),
            "quantile: p must be a number or a column, not 1x2");
  EXPECT_EQ(Invocation("median", {*Matrix::Dense(0, 1)}).Error(), "median: the column has no rows");
  EXPECT_EQ(Invocation("median", {Eight(), Rows({{1}})}).Error(),
            "median: the weights are 1x1 beside values of 8x1");
  EXPECT_EQ(Invocation("median", {Rows({{1}, {2}}), Rows({{1}, {0.5}})}).Error(),
            "median: weights are counts, but one is 0.5");
  EXPECT_EQ(Invocation("median", {Rows({{1}, {2}}), Rows({{0}, {0}})}).Error(), "median: all weights are 0");
}

TEST(MomentTest, IsCentredAndDividedByTheNumberOfCells) {
  EXPECT_DOUBLE_EQ(NumberOf("moment", {Eight(), N(0)}), 4.875);
  EXPECT_DOUBLE_EQ(NumberOf("moment", {Eight(), N(2)}), 7.359375);
  EXPECT_DOUBLE_EQ(NumberOf("moment", {Eight(), N(3)}), 2.63671875);
  EXPECT_DOUBLE_EQ(NumberOf("moment", {Eight(), N(4)}), 89.003173828125);
  EXPECT_DOUBLE_EQ(NumberOf("cov", {Eight(), Weights()}), -0.9285714285714286);
  EXPECT_EQ(NumberOf("cov", {Rows({{3}}), Rows({{4}})}), 0.0);
}

// Cells that count twice are cells that are there twice.
TEST(MomentTest, WeightsSayHowOftenCellsCount) {
  const Matrix x = Rows({{1}, {4}, {6}}), y = Rows({{2}, {1}, {5}}), w = Rows({{2}, {1}, {3}});
  const Matrix many_x = Rows({{1}, {1}, {4}, {6}, {6}, {6}}), many_y = Rows({{2}, {2}, {1}, {5}, {5}, {5}});
  EXPECT_DOUBLE_EQ(NumberOf("weightedMean", {x, w}), NumberOf("mean", {many_x}));
  for (const double k : {0.0, 2.0, 3.0, 4.0})
    EXPECT_DOUBLE_EQ(NumberOf("weightedMoment", {x, w, N(k)}), NumberOf("moment", {many_x, N(k)})) << k;
  EXPECT_DOUBLE_EQ(NumberOf("cov", {x, y, w}), NumberOf("cov", {many_x, many_y}));
}

TEST(MomentTest, AgreesWithTheReferenceOnRandomMatrices) {
  const Matrix x = RandomCells(300, 17, 1), y = RandomCells(300, 17, 2), w = RandomCells(300, 17, 3, 1);
  const Value a(x), b(y), c(w);
  const Value k(Scalar(3));
  const std::vector<const Value*> moment = {&a, &k}, covariance = {&a, &b, &c};
  for (const Matrix& form : Forms(x)) {
    EXPECT_NEAR(NumberOf("moment", {form, N(3)}),
                reference::FindKernel("moment")(Node(), moment).scalar().AsDouble(), 1e-12);
    EXPECT_NEAR(NumberOf("cov", {form, y, w}),
                reference::FindKernel("cov")(Node(), covariance).scalar().AsDouble(), 1e-9);
  }
}

TEST(MomentTest, SaysWhatIsWrong) {
  StatusCode code;
  EXPECT_EQ(Invocation("moment", {Eight(), N(1)}).Error(&code),
            "moment: the order must be 0, 2, 3 or 4, not 1.0");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Invocation("moment", {Eight(), N(5)}).RunTimeError(&code),
            "moment: the order must be 0, 2, 3 or 4, not 5.0");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(Invocation("cov", {Eight(), Rows({{1}})}).Error(),
            "cov: the matrices differ in shape: 8x1 and 1x1");
  EXPECT_EQ(Invocation("weightedMean", {*Matrix::Dense(0, 1), *Matrix::Dense(0, 1)}).Error(),
            "mean: the 0x1 matrix has no cells");
}

}  // namespace
}  // namespace heddle::ops
