// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/group_aggregate.h"

#include <cmath>
#include <random>

#include "tests/unit/ops/run_phases.h"

namespace heddle::ops {
namespace {

using testing::Attributes;
using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;
using testing::RunPhases;

std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }
Invocation Call(Inputs inputs, std::string fn, int order = 2) {
  Attributes attributes = {{"fn", Scalar(fn)}};
  if (fn == "centralmoment") attributes.emplace_back("order", Scalar(order));
  return Invocation("aggregate", std::move(inputs), attributes);
}

Matrix Groups(int64_t rows, uint32_t most, uint32_t seed) {
  std::mt19937 random(seed);
  Result<Matrix> groups = Matrix::Dense(rows, 1);
  for (int64_t i = 0; i < rows; ++i)
    groups->mutable_data()[i] = static_cast<double>(random() % most + 1) + (random() % 2 == 0 ? 0.7 : 0);
  return *std::move(groups);
}
Matrix Weights(int64_t rows) {
  Result<Matrix> weights = Matrix::Dense(rows, 1);
  for (int64_t i = 0; i < rows; ++i) weights->mutable_data()[i] = static_cast<double>(i % 4) * 0.5 + 0.5;
  return *std::move(weights);
}

struct Function {
  const char* name;
  int order;
  bool exact;
};
constexpr Function kFunctions[] = {{"sum", 2, true},
                                   {"count", 2, true},
                                   {"min", 2, true},
                                   {"max", 2, true},
                                   {"mean", 2, false},
                                   {"variance", 2, false},
                                   {"centralmoment", 2, false},
                                   {"centralmoment", 3, false},
                                   {"centralmoment", 4, false}};

void ExpectSame(const Matrix& result, const Matrix& expected, const Function& function) {
  ASSERT_EQ(result.shape(), expected.shape()) << function.name;
  if (function.exact) {
    EXPECT_TRUE(Matrix::SameCells(result, expected)) << function.name;
    return;
  }
  for (int64_t k = 0; k < result.cells(); ++k) {
    const double x = result.data()[k], y = expected.data()[k];
    if (std::isnan(y))
      EXPECT_TRUE(std::isnan(x)) << function.name << function.order << " " << k;
    else
      EXPECT_NEAR(x, y, 1e-12 * std::max(1.0, std::fabs(y))) << function.name << function.order << " " << k;
  }
}

TEST(GroupAggregateTest, EqualsTheReferenceHoweverItIsDivided) {
  constexpr int64_t kGroups = 40;
  for (const int64_t rows : {1, 63, 64, 65, 1000, 9000}) {
    for (const int64_t columns : {1, 3}) {
      const Matrix x = RandomCells(rows, columns, 7, columns == 1 ? 2 : 10);
      const Matrix groups = Groups(rows, 33, 9), weights = Weights(rows);
      for (const Function& function : kFunctions) {
        for (const bool weighted : {false, true}) {
          const Matrix expected = reference::GroupAggregate(x, groups, weighted ? &weights : nullptr,
                                                            function.name, function.order, kGroups);
          const std::optional<Value> w = weighted ? std::optional<Value>(Value(weights)) : std::nullopt;
          std::optional<Matrix> first;
          for (const Matrix& form : Forms(x)) {
            Invocation call = Call({form, groups, w, S(kGroups)}, function.name, function.order);
            const Matrix result = call.RunMatrix(2);
            ExpectSame(result, expected, function);
            if (!first) first = result;
            EXPECT_TRUE(Matrix::SameCells(result, *first)) << "the form decides";
            for (const int workers : {1, 2, 3})
              EXPECT_TRUE(Matrix::SameCells(RunPhases(call, rows, workers).matrix(), result))
                  << function.name << function.order << " by " << workers << " workers, " << rows << " rows";
          }
        }
      }
    }
  }
}

// The numbers that SystemDS 3.4 prints.
TEST(GroupAggregateTest, EmptyGroupsAndSingleMembers) {
  const Matrix x = Rows({{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}});
  const Matrix g = Rows({{1}, {2}, {1}, {3}, {3}, {1}, {2}, {5}});
  const Matrix w = Rows({{1}, {2}, {1}, {1}, {2}, {1}, {3}, {1}});
  const auto run = [&](std::string fn, std::optional<Value> weights = std::nullopt) {
    return Call({x, g, weights}, std::move(fn)).RunMatrix();
  };
  EXPECT_TRUE(Matrix::SameCells(run("sum"), Rows({{10}, {9}, {9}, {0}, {8}})));
  EXPECT_TRUE(Matrix::SameCells(run("count"), Rows({{3}, {2}, {2}, {0}, {1}})));
  EXPECT_TRUE(Matrix::SameCells(run("mean"), Rows({{10.0 / 3}, {4.5}, {4.5}, {0}, {8}})));
  EXPECT_TRUE(Matrix::SameCells(run("min"), Rows({{1}, {2}, {4}, {0}, {8}})));
  EXPECT_TRUE(Matrix::SameCells(run("max"), Rows({{6}, {7}, {5}, {0}, {8}})));
  EXPECT_TRUE(Matrix::SameCells(run("max", Value(w)), Rows({{6}, {21}, {10}, {0}, {8}})));
  EXPECT_TRUE(Matrix::SameCells(run("count", Value(w)), Rows({{3}, {5}, {3}, {0}, {1}})));
  const Matrix variance = run("variance"), moment = run("centralmoment");
  EXPECT_NEAR(variance.At(0, 0), 6.333333333333333, 1e-14);
  EXPECT_EQ(variance.At(3, 0), 0);
  EXPECT_EQ(variance.At(4, 0), 0);
  EXPECT_NEAR(moment.At(0, 0), 4.222222222222222, 1e-14);
  EXPECT_TRUE(std::isnan(moment.At(3, 0)));
  EXPECT_EQ(moment.At(4, 0), 0);
  EXPECT_NEAR(run("variance", Value(w)).At(1, 0), 7.5, 1e-14);
}

TEST(GroupAggregateTest, GroupsOutsideTheResultAreDropped) {
  const Matrix x = Rows({{1, -1}, {2, -2}, {3, -3}});
  const Matrix g = Rows({{1}, {1e300}, {2}});
  EXPECT_TRUE(Matrix::SameCells(Call({x, g, std::nullopt, S(3)}, "sum").RunMatrix(),
                                Rows({{1, -1}, {3, -3}, {0, 0}})));
  EXPECT_EQ(Call({x, g, std::nullopt, S(0)}, "sum").RunMatrix().shape(), (Shape{0, 2}));
}

TEST(GroupAggregateTest, NanAndInfinityStayInTheirGroup) {
  const Matrix x = Rows({{NAN}, {1}, {INFINITY}, {-0.0}, {0.0}});
  const Matrix g = Rows({{1}, {1}, {2}, {3}, {3}});
  for (const char* fn : {"sum", "min", "max", "mean"}) {
    const Matrix result = Call({x, g}, fn).RunMatrix();
    EXPECT_TRUE(std::isnan(result.At(0, 0))) << fn;
    EXPECT_EQ(result.At(1, 0), INFINITY) << fn;
    EXPECT_EQ(result.At(2, 0), 0) << fn;
  }
  EXPECT_TRUE(std::signbit(Call({x, g}, "min").RunMatrix().At(2, 0)));
  EXPECT_FALSE(std::signbit(Call({x, g}, "max").RunMatrix().At(2, 0)));
}

TEST(GroupAggregateTest, ErrorsNameTheArgument) {
  const Matrix x = Rows({{1}, {2}, {3}});
  const auto with = [&](Matrix groups, std::string fn = "sum") {
    return Call({x, std::move(groups)}, std::move(fn)).Error();
  };
  EXPECT_EQ(with(Rows({{1}, {0.5}, {1}})), "aggregate: group 0.5 at row 2 is below 1");
  EXPECT_EQ(with(Rows({{1}, {1}, {NAN}})), "aggregate: group NaN at row 3 is below 1");
  EXPECT_EQ(with(Rows({{-INFINITY}, {1}, {1}})), "aggregate: group -Infinity at row 1 is below 1");
  EXPECT_EQ(with(Rows({{1}, {1}, {1e300}})), "aggregate: group 1.0E300 at row 3 is too large");
  EXPECT_EQ(with(Rows({{1}, {1}})), "aggregate: target is 3x1 but groups is 2x1");
  EXPECT_EQ(with(Rows({{1, 1, 1}})), "aggregate: groups must be a column, not 1x3");
  EXPECT_EQ(with(Rows({{1}, {1}, {1}}), "median"), "aggregate: unknown function fn=\"median\"");
  EXPECT_EQ(Call({x, x, Value(Rows({{1}}))}, "sum").Error(), "aggregate: target is 3x1 but weights is 1x1");
  EXPECT_EQ(Call({x, x}, "centralmoment", 5).Error(), "aggregate: order must be 2, 3 or 4, not 5");
  EXPECT_EQ(Invocation("aggregate", {x, x}, {{"fn", Scalar("centralmoment")}}).Error(),
            "aggregate: order is missing");
}

}  // namespace
}  // namespace heddle::ops
