// SPDX-License-Identifier: Apache-2.0
// Runs of several plans in flight at once on the same ranks: each does what it does alone, whatever the
// others do.
#include <gtest/gtest.h>

#include <deque>

#include "actor/run_number.h"
#include "actor/simulation.h"
#include "scheduler/liveness.h"
#include "tests/simulation/hash_body.h"
#include "tests/simulation/random_plan.h"

namespace heddle::actor {
namespace {

constexpr uint32_t kLaneCount = 3;

// Random plans, a lane each, and what their tasks did.
class LanesTest : public testing::Test {
 protected:
  // `failing_lane`: its first act of a task fails; -1: none does.
  void Create(uint64_t seed, int failing_lane = -1) {
    plans_.clear();
    traces_.assign(kLaneCount, HashTrace());
    for (uint64_t next = seed * 7; plans_.size() < kLaneCount; ++next) {
      Plan plan = RandomPlan(next, {.most_tasks = 20, .most_ranks = 3});
      if (scheduler::AssignSlots(&plan).ok()) plans_.push_back(std::make_shared<const Plan>(std::move(plan)));
    }
    auto simulation = Simulation::CreateLanes(plans_, [&](const PlanInstance& instance) {
      size_t lane = 0;
      while (plans_[lane].get() != &instance.plan()) ++lane;
      const bool fails = static_cast<int>(lane) == failing_lane;
      const TaskId failing = fails ? plans_[lane]->tasks[0].id : TaskId{UINT64_MAX};
      return std::make_unique<HashBody>(instance, traces_[lane], failing);
    });
    ASSERT_TRUE(simulation.ok()) << simulation.status().ToString();
    simulation_ = *std::move(simulation);
  }
  Status StatusOfLane(uint32_t lane) {
    for (uint32_t rank = 0; rank < static_cast<uint32_t>(plans_[lane]->ranks); ++rank)
      if (!simulation_->StatusOf(rank, lane).ok()) return simulation_->StatusOf(rank, lane);
    return OkStatus();
  }
  void ExpectWhole(uint32_t lane) {
    EXPECT_TRUE(StatusOfLane(lane).ok()) << StatusOfLane(lane).ToString();
    EXPECT_EQ(traces_[lane].received, EvaluateInSequence(*plans_[lane])) << "lane " << lane;
  }

  std::vector<std::shared_ptr<const Plan>> plans_;
  std::deque<HashTrace> traces_;
  std::unique_ptr<Simulation> simulation_;
};

TEST_F(LanesTest, EachRunEndsAsItWouldAlone) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Create(seed);
    for (uint32_t run = 1; run <= 2; ++run) {
      for (HashTrace& trace : traces_) trace = HashTrace();
      const Status status = simulation_->Run(run, {.seed = seed + 1000 * run});
      ASSERT_TRUE(status.ok()) << status.ToString();
      for (uint32_t lane = 0; lane < kLaneCount; ++lane) ExpectWhole(lane);
    }
    if (HasFailure()) return;
  }
}

TEST_F(LanesTest, WhatComesBeforeARunBeginsIsBoundedByItsPlan) {
  int64_t early = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Create(seed);
    const Status status = simulation_->Run(1, {.seed = seed});
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (uint32_t lane = 0; lane < kLaneCount; ++lane) {
      for (uint32_t rank = 0; rank < static_cast<uint32_t>(plans_[lane]->ranks); ++rank) {
        EXPECT_LE(simulation_->EarlyMessagesOf(rank, lane), MostEarlyMessages(*plans_[lane], rank));
        early += simulation_->EarlyMessagesOf(rank, lane);
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(early, 100);
}

TEST_F(LanesTest, AnErrorEndsTheRunsOfItsLaneAlone) {
  int failed = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Create(seed, /*failing_lane=*/1);
    const Status status = simulation_->Run(1, {.seed = seed});
    // A copy of a register of another rank has no act that could fail.
    failed += !status.ok();
    ASSERT_EQ(status.ok(), StatusOfLane(1).ok());
    ExpectWhole(0);
    ExpectWhole(2);
    // What the failed run left behind changes nothing in the next one.
    for (HashTrace& trace : traces_) trace = HashTrace();
    (void)simulation_->Run(2, {.seed = seed + 7});
    ExpectWhole(0);
    ExpectWhole(2);
    if (HasFailure()) return;
  }
  EXPECT_GT(failed, 100);
}

TEST_F(LanesTest, ACancelledRunLeavesTheOthersAlone) {
  int cancelled = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Create(seed);
    const Status status =
        simulation_->Run(1, {.seed = seed, .abort_at_step = static_cast<int64_t>(seed % 60)});
    ASSERT_TRUE(status.ok() || status.code() == StatusCode::kCancelled) << status.ToString();
    int ended = 0;
    for (uint32_t lane = 0; lane < kLaneCount; ++lane) {
      if (StatusOfLane(lane).ok()) {
        ExpectWhole(lane);
      } else {
        ++ended;
      }
    }
    ASSERT_LE(ended, 1);
    cancelled += ended;
    if (HasFailure()) return;
  }
  EXPECT_GT(cancelled, 50);
}

TEST(RunNumberTest, PlacesOfALaneWrapAround) {
  EXPECT_EQ(MakeRun(0, 7), 7u);
  EXPECT_EQ(LaneOf(MakeRun(200, 0x1ffffff)), 200u);
  EXPECT_TRUE(ComesAfter(MakeRun(3, 8), MakeRun(3, 7)));
  EXPECT_FALSE(ComesAfter(MakeRun(3, 7), MakeRun(3, 7)));
  EXPECT_FALSE(ComesAfter(MakeRun(3, 6), MakeRun(3, 7)));
  EXPECT_TRUE(ComesAfter(MakeRun(3, 0), MakeRun(3, 0xffffff)));
  EXPECT_FALSE(ComesAfter(MakeRun(3, 0xffffff), MakeRun(3, 0)));
}

}  // namespace
}  // namespace heddle::actor
