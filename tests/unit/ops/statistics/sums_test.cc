// SPDX-License-Identifier: Apache-2.0
// mean, moment and cov of cells with weights, on several ranks.
#include <algorithm>

#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;

Value Order(int64_t order) { return Value(Scalar(order)); }

void ExpectForRanks(const std::string& op, const Inputs& inputs) {
  Invocation call(op, inputs);
  const int64_t rows = inputs[0]->matrix().rows();
  for (const int32_t ranks : {1, 2, 3, 8}) testing::ExpectStagesMatch(call, rows, ranks);
}

TEST(SumsTest, RanksTogetherFindTheStatisticOfOne) {
  for (const int64_t rows : {1, 64, 65, 130, 1000})
    for (const int64_t columns : {1, 9})
      for (const Matrix& form : testing::Forms(RandomCells(rows, columns, 3))) {
        const Value x(form), y(RandomCells(rows, columns, 4, 1));
        Matrix weights = RandomCells(rows, columns, 5, 1);
        std::transform(weights.data(), weights.data() + weights.cells(), weights.mutable_data(),
                       [](double cell) { return cell * cell; });
        for (const int64_t order : {0, 2, 3, 4}) {
          ExpectForRanks("moment", {x, Order(order)});
          ExpectForRanks("weightedMoment", {x, Value(weights), Order(order)});
        }
        ExpectForRanks("cov", {x, y, std::nullopt});
        ExpectForRanks("cov", {x, y, Value(weights)});
        ExpectForRanks("cov", {x, y, Value(*FilledMatrix(rows, columns, 1e-9))});
        ExpectForRanks("weightedMean", {x, Value(weights)});
      }
}

// Sums beyond the largest double on the way, cells that are no numbers.
TEST(SumsTest, RanksTogetherKeepWhatLeavesTheRange) {
  Matrix large = *FilledMatrix(1000, 3, 1e308), infinite = RandomCells(1000, 3, 1, 1);
  large.mutable_data()[17] = -1e308;
  infinite.mutable_data()[2500] = HUGE_VAL;
  for (const Matrix& x : {large, infinite}) {
    ExpectForRanks("moment", {Value(x), Order(0)});
    ExpectForRanks("weightedMean", {Value(x), Value(*FilledMatrix(1000, 3, 0.5))});
    ExpectForRanks("cov", {Value(x), Value(*FilledMatrix(1000, 3, 0.5)), std::nullopt});
  }
}

TEST(SumsTest, AnOrderThatThereIsNotFailsOnEveryRank) {
  Invocation call("moment", {Value(RandomCells(500, 2, 1)), Order(5)});
  call.scalars[1] = nullptr;
  Status failed;
  EXPECT_TRUE(testing::RunStages(call, Distribution::SplitRows(500, 3).split, &failed).empty());
  EXPECT_EQ(failed.message(), "moment: the order must be 0, 2, 3 or 4, not 5.0");
}

}  // namespace
}  // namespace heddle::ops
