// SPDX-License-Identifier: Apache-2.0
// Reductions that are finished in parts give the bytes of one process, however their units are cut, in
// whatever steps and in which order the lists of the ranks are joined.
#include "ops/reduction/payload_parts.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/environment/random.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Inputs;
using testing::Invocation;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Matrix Random(int64_t rows, int64_t columns, SeededRandom& random, uint64_t one_in = 1) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < matrix.cells(); ++i)
    matrix.mutable_data()[i] =
        random.Below(one_in) == 0 ? static_cast<double>(random.Below(2'000'001)) / 1e6 - 1 : 0.0;
  return matrix;
}

class PartsOf {
 public:
  /// By the `way`-th of the forms that finish the operator in parts.
  PartsOf(Invocation& call, int64_t rows, int32_t ranks, SeededRandom& random, size_t way)
      : call_(call), random_(random), form_(PartsFormsOf(*call.op)[way].second), ranks_(ranks) {
    const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
    EXPECT_TRUE(inferred.ok()) << inferred.status().ToString();
    call.SetInfos(*inferred);
    cuts_ = Distribution::SplitRows(rows, ranks).split;
    units_ = form_->units(call.node, call.infos, 0);
    for (int32_t rank = 0; rank < ranks; ++rank) lists_.push_back(Partial(rank));
  }

  const PayloadUnits& units() const { return units_; }

  // Units are cut anywhere; each part is joined in steps of its own.
  Value Run() {
    std::vector<int64_t> bounds = {0, units_.count};
    for (uint64_t i = random_.Below(6); i > 0; --i)
      bounds.push_back(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(units_.count) + 1)));
    std::sort(bounds.begin(), bounds.end());
    std::vector<Value> parts;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) parts.push_back(Finish(bounds[i], bounds[i + 1]));
    std::vector<const Value*> pointers;
    for (const Value& part : parts) pointers.push_back(&part);
    const Result<Value> all = JoinRows(pointers);
    EXPECT_TRUE(all.ok()) << all.status().ToString();
    return units_.by_rows ? *all : Stage(kAssembleParts, 0, units_.count, {*all});
  }

 private:
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(high - low) + 1));
  }

  Value Partial(int32_t rank) {
    std::vector<Value> pieces(call_.inputs.size());
    std::vector<const Value*> pointers;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (!call_.inputs[i]) {
        pointers.push_back(nullptr);
        continue;
      }
      const bool by_rows = InputUseOf(call_.node, call_.infos, static_cast<int>(i)) == InputUse::kRows;
      pieces[i] =
          by_rows ? *SliceRows(*call_.inputs[i], cuts_.Begin(rank), cuts_.End(rank)) : *call_.inputs[i];
      pointers.push_back(&pieces[i]);
    }
    const Result<Value> list = CatalogKernels().Run({.node = call_.node,
                                                     .phase = Phase::kPartial,
                                                     .inputs = pointers,
                                                     .input_infos = call_.infos,
                                                     .row_begin = cuts_.Begin(rank),
                                                     .row_end = cuts_.End(rank),
                                                     .total_rows = cuts_.Length(),
                                                     .context = call_.context});
    EXPECT_TRUE(list.ok()) << list.status().ToString();
    return list.ok() ? *list : Value();
  }

  Value Stage(ReductionStage stage, int64_t begin, int64_t end, const std::vector<Value>& inputs) {
    std::vector<const Value*> pointers;
    for (const Value& input : inputs) pointers.push_back(&input);
    const StagePlace place{.form = *form_, .stage = stage, .rows = cuts_, .result_rows = cuts_};
    const Result<Value> made = CatalogKernels().Run({.node = call_.node,
                                                     .phase = Phase::kStage,
                                                     .inputs = pointers,
                                                     .input_infos = call_.infos,
                                                     .row_begin = begin,
                                                     .row_end = end,
                                                     .total_rows = units_.count,
                                                     .context = call_.context,
                                                     .stage = &place});
    EXPECT_TRUE(made.ok()) << call_.node.op << " " << stage << ": " << made.status().ToString();
    return made.ok() ? *made : Value();
  }

  Value Finish(int64_t begin, int64_t end) {
    std::vector<Value> lists = lists_;
    int64_t low = 0, high = units_.count;  // What all of them have.
    for (uint64_t step = random_.Below(4); step > 0; --step) {
      low = Between(low, begin);
      high = Between(end, high);
      std::vector<Value> some;
      for (uint64_t take = 1 + random_.Below(lists.size()); take > 0; --take) {
        const auto at = lists.begin() + static_cast<int64_t>(random_.Below(lists.size()));
        some.push_back(*at);
        lists.erase(at);
      }
      lists.push_back(Stage(kJoinParts, low, high, some));
    }
    return Stage(kFinishPart, begin, end, lists);
  }

  Invocation& call_;
  SeededRandom& random_;
  const StagedForm* const form_;
  const int32_t ranks_;
  Split cuts_;
  PayloadUnits units_;
  std::vector<Value> lists_;
};

void ExpectSame(Invocation call, int64_t rows, uint64_t seed, size_t way = 0) {
  const Result<Value> whole = call.RunRows(0, 0, 0);
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  SeededRandom random(seed);
  for (int32_t ranks = 1; ranks <= 9; ++ranks) {
    SCOPED_TRACE(::testing::Message() << call.node.op << ", seed " << seed << ", " << ranks << " ranks");
    PartsOf parts(call, rows, ranks, random, way);
    ASSERT_GT(parts.units().count, 1);
    const Value made = parts.Run();
    ASSERT_TRUE(made.IsMatrix());
    EXPECT_EQ(made.matrix().shape(), whole->matrix().shape());
    EXPECT_TRUE(Matrix::SameCells(made.matrix(), whole->matrix()));
  }
}

constexpr int64_t kRows[] = {1, 63, 64, 65, 200, 1000, 2049, 5001};

TEST(PayloadPartsTest, ColumnAggregates) {
  constexpr const char* kAggregates[] = {"colSums",  "colMeans", "colMins", "colMaxs",
                                         "colProds", "colVars",  "colSds"};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = kRows[random.Below(8)], columns = 9 + static_cast<int64_t>(random.Below(60));
    Matrix x = Random(rows, columns, random, 1 + random.Below(3));
    if (random.Below(3) == 0) x = *AsSparse(x);
    ExpectSame(Invocation(kAggregates[seed % 7], {Value(x)}), rows, seed);
  }
}

// Sums that leave the range of doubles and come back, beside infinite cells and NaN, which stay what they
// are.
TEST(PayloadPartsTest, SumsBeyondTheLargestDouble) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = 1 + static_cast<int64_t>(random.Below(1500)), columns = 12;
    Matrix x = Random(rows, columns, random);
    double* const cells = x.mutable_data();
    for (int64_t i = 0; i < rows; ++i) {
      if (random.Below(2) == 0) cells[i * columns + 1] = (i % 2 == 0 ? 1 : -1) * 1.7e308;
      cells[i * columns + 5] = (2 * i < rows ? 1 : -1) * 1.7e308;
      cells[i * columns + 7] = 1e200 * cells[i * columns + 7];
    }
    cells[3] = kInfinity;
    if (rows > 1) cells[(rows - 1) * columns + 4] = std::numeric_limits<double>::quiet_NaN();
    constexpr const char* kAggregates[] = {"colSums", "colMeans", "colVars", "colSds"};
    ExpectSame(Invocation(kAggregates[seed % 4], {Value(x)}), rows, seed);
  }
}

TEST(PayloadPartsTest, TransposedProducts) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = kRows[random.Below(8)], n = 2 + static_cast<int64_t>(random.Below(70));
    const int64_t k = random.Below(2) == 0 ? 5 + static_cast<int64_t>(random.Below(4))
                                           : 9 + static_cast<int64_t>(random.Below(60));
    Matrix x = Random(rows, n, random, 1 + random.Below(3)), y = Random(rows, k, random);
    if (random.Below(3) == 0) x = *AsSparse(x);
    ExpectSame(Invocation("t%*%", {Value(x), Value(y)}), rows, seed);
  }
}

// Lists of t(X) %*% X have half of the cells, and the parts of ranks about as many each; or each rank gets
// whole rows of the result, which need not be put together.
TEST(PayloadPartsTest, SymmetricProducts) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = kRows[random.Below(8)], n = 9 + static_cast<int64_t>(random.Below(300));
    Invocation call("t%*%", {Value(Random(rows, n, random)), std::nullopt});
    call.inputs[1] = call.inputs[0];
    call.infos[1] = call.infos[0];
    call.node.inputs = {0, 0};
    ExpectSame(call, rows, seed);
    ExpectSame(call, rows, seed, 1);
    const PayloadUnits by_rows = PartsFormsOf(*call.op)[1].second->units(call.node, call.infos, 0);
    EXPECT_TRUE(by_rows.by_rows);
    EXPECT_EQ(by_rows.bytes, 8 * static_cast<double>(n * n));
    const PayloadUnits units = PartsFormOf(*call.op).second->units(call.node, call.infos, 0);
    EXPECT_TRUE(units.triangle);
    EXPECT_EQ(units.bytes, 8 * static_cast<double>(units.RowsBefore(n)));
    EXPECT_EQ(units.RowsBefore(n), n * (n + 1) / 2);
  }
}

// Of groups a list has those that occur.
TEST(PayloadPartsTest, GroupedAggregates) {
  constexpr const char* kFunctions[] = {"sum", "count", "mean", "variance", "min", "max"};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = kRows[random.Below(8)], columns = 1 + static_cast<int64_t>(random.Below(4));
    const auto groups = 2 + random.Below(random.Below(2) == 0 ? 9 : 3000);
    Matrix x = Random(rows, columns, random), group = *Matrix::Dense(rows, 1);
    for (int64_t i = 0; i < rows; ++i)
      group.mutable_data()[i] = 1 + static_cast<double>(random.Below(groups));
    if (seed % 5 == 0)
      for (int64_t i = 0; i < x.cells(); ++i) x.mutable_data()[i] = (i % 2 == 0 ? 1 : -1) * 1.7e308;
    ExpectSame(Invocation("aggregate",
                          {Value(x), Value(group), std::nullopt, Value(Scalar(static_cast<double>(groups)))},
                          {{"fn", Scalar(std::string(kFunctions[seed % 6]))}}),
               rows, seed);
  }
}

}  // namespace
}  // namespace heddle::ops
