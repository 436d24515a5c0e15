// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/plan_cache.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/control_channel_in_process.h"

namespace heddle::engine {
namespace {

Result<Plan> TwoRankPlan() {
  Plan plan;
  plan.ranks = 2;
  plan.peak_bytes = {0, 0};
  return plan;
}

Result<Plan> NotHere() { return Internal("only rank 0 makes plans"); }

class PlanCacheTest : public testing::Test {
 protected:
  std::vector<std::unique_ptr<ControlChannel>> channels_ = InProcessChannels(2);
  PlanCache zero_{0, 2, channels_[0].get(), 2};
  PlanCache one_{1, 2, channels_[1].get(), 2};
  DivergenceGuard guard_;
};

TEST_F(PlanCacheTest, RankZeroMakesAPlanOnceAndTheOthersReceiveIt) {
  guard_.AddPlan(3, 0xabc);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(zero_.Obtain(0xabc, guard_, TwoRankPlan).ok());
    const Result<std::shared_ptr<const Plan>> received = one_.Obtain(0xabc, guard_, NotHere);
    ASSERT_TRUE(received.ok()) << received.status().ToString();
    EXPECT_EQ((*received)->key, 0xabcu);
    EXPECT_EQ((*received)->ranks, 2);
  }
  EXPECT_EQ(zero_.misses(), 1);
  EXPECT_EQ(one_.hits(), 1);
}

TEST_F(PlanCacheTest, AFailureToMakeAPlanIsTheSameErrorOnEveryRank) {
  const auto fail = [] { return Result<Plan>(ResourceExhausted("too large").At({"a.dml", 3, 4})); };
  const Status zero = zero_.Obtain(1, guard_, fail).status();
  const Status one = one_.Obtain(1, guard_, NotHere).status();
  EXPECT_EQ(zero.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(one.ToString(), zero.ToString());
  EXPECT_TRUE(zero.is_on_every_rank() && one.is_on_every_rank());
}

TEST_F(PlanCacheTest, RanksThatTookDifferentWaysAreToldApart) {
  DivergenceGuard other;
  guard_.AddDecision(4, "TRUE");
  other.AddDecision(4, "FALSE");
  ASSERT_TRUE(zero_.Obtain(1, guard_, TwoRankPlan).ok());
  const Status status = one_.Obtain(1, other, NotHere).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.ToString().find("block 4 decided TRUE"), std::string::npos) << status.ToString();
  EXPECT_NE(status.ToString().find("block 4 decided FALSE"), std::string::npos) << status.ToString();
}

TEST_F(PlanCacheTest, RanksCompareNotesWithoutAPlan) {
  guard_.AddDecision(1, "5");
  ASSERT_TRUE(zero_.Compare(guard_).ok());
  EXPECT_TRUE(one_.Compare(guard_).ok());
  ASSERT_TRUE(zero_.Compare(guard_).ok());
  guard_.AddDecision(1, "6");
  EXPECT_EQ(one_.Compare(guard_).code(), StatusCode::kInternal);
}

TEST_F(PlanCacheTest, ATextOfRankZeroReachesAllInItsTurn) {
  const auto text = [] { return std::string("seen\n\nand told"); };
  const auto not_here = [] { return std::string("only rank 0 says"); };
  EXPECT_EQ(*zero_.Share(5, guard_, text), text());
  EXPECT_EQ(*one_.Share(5, guard_, not_here), text());
  // Neither another one nor a plan stands for it.
  ASSERT_TRUE(zero_.Share(6, guard_, text).ok());
  EXPECT_EQ(one_.Share(7, guard_, not_here).status().code(), StatusCode::kInternal);
  ASSERT_TRUE(zero_.Obtain(8, guard_, TwoRankPlan).ok());
  EXPECT_EQ(one_.Share(8, guard_, not_here).status().code(), StatusCode::kInternal);
  ASSERT_TRUE(zero_.Share(9, guard_, text).ok());
  EXPECT_EQ(one_.Obtain(9, guard_, NotHere).status().code(), StatusCode::kInternal);
}

TEST_F(PlanCacheTest, TheLeastRecentlyUsedPlanIsForgotten) {
  PlanCache cache(0, 1, nullptr, 2);
  const auto make = [] { return Result<Plan>(Plan{}); };
  for (const uint64_t key : {1, 2, 1, 3, 1, 2}) ASSERT_TRUE(cache.Obtain(key, guard_, make).ok());
  EXPECT_EQ(cache.misses(), 4);  // 1, 2, 3, and 2 again
  EXPECT_EQ(cache.hits(), 2);
}

// Names take much memory: a loop in which a frame grows makes a plan a round, all for wider and wider frames.
TEST_F(PlanCacheTest, PlansOfWideFramesMakeRoomForEachOther) {
  PlanCache cache(0, 1, nullptr);
  Schema schema;
  schema.types.assign(700000, ColumnType::kString);
  const auto wide = [&] {
    Plan plan;
    plan.live_in.push_back(
        {.variable = "F", .info = ValueInfo::OfFrame(1, std::make_shared<const Schema>(schema))});
    return Result<Plan>(std::move(plan));
  };
  const auto small = [] { return Result<Plan>(Plan{}); };
  ASSERT_TRUE(cache.Obtain(1, guard_, wide).ok());
  ASSERT_TRUE(cache.Obtain(2, guard_, small).ok());
  ASSERT_TRUE(cache.Obtain(1, guard_, wide).ok());
  EXPECT_EQ(cache.hits(), 1);
  ASSERT_TRUE(cache.Obtain(3, guard_, wide).ok());  // Beside it there is no room for 1.
  ASSERT_TRUE(cache.Obtain(3, guard_, wide).ok());
  EXPECT_EQ(cache.hits(), 2);
  ASSERT_TRUE(cache.Obtain(1, guard_, wide).ok());
  EXPECT_EQ(cache.hits(), 2);
}

TEST_F(PlanCacheTest, PlansMadeAheadAreHits) {
  Plan plan = *TwoRankPlan();
  plan.key = 77;
  ASSERT_TRUE(zero_.AddText(plan.ToText()).ok());
  EXPECT_TRUE(zero_.Obtain(77, guard_, NotHere).ok());
  plan.ranks = 3;
  EXPECT_FALSE(zero_.AddText(plan.ToText()).ok());
}

}  // namespace
}  // namespace heddle::engine
