// SPDX-License-Identifier: Apache-2.0
#include "scheduler/memory_of_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/memory/block_pool.h"
#include "scheduler/passes/plan_passes.h"
#include "scheduler/plan_memory.h"
#include "scheduler/schedule.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

constexpr int64_t kRows = 100'000, kColumns = 100;  // 80 MB

// X is centred, and summed up: two passes in panels.
GraphUnderTest Centred(bool keeps) {
  GraphUnderTest test;
  const NodeId x = test.Variable("X", MatrixOf(kRows, kColumns));
  const NodeId means = test.Op("colMeans", {x}, MatrixOf(1, kColumns));
  const NodeId centred = test.Op("-", {x, means}, MatrixOf(kRows, kColumns));
  if (keeps) test.Assign("Y", centred);
  test.Assign("s", test.Op("sum", {centred}, ValueInfo::OfScalar(ValueType::kDouble)));
  return test;
}

Result<Plan> PlanOf(const Graph& graph, int64_t memory_bytes) {
  ScheduleOptions options;
  options.memory_bytes = memory_bytes;
  options.in_panels = memory_bytes > 0;
  if (options.in_panels) options.panelled = {"X"};
  return Schedule(graph, {{"X", Distribution::One()}}, options);
}

TEST(MemoryOfPlanTest, ValuesOfOnePlaceAreNotThereAtOneTime) {
  const Result<Plan> plan = PlanOf(Centred(/*keeps=*/false).graph, 0);
  ASSERT_TRUE(plan.ok());
  const MemoryOfPlan memory = MemoryOn(*plan, 0, /*threads=*/2);
  const int64_t block = BlockPool::ClassBytes(kRows * kColumns * 8);
  EXPECT_GE(memory.values, 2 * block);
  EXPECT_LT(memory.values, 2 * block + (1 << 20));  // Means and sums.
  EXPECT_GE(memory.values, plan->peak_bytes[0]);
  EXPECT_EQ(memory.panels, 0);
  EXPECT_TRUE(AssignsOfPanels(*plan).empty());
  EXPECT_TRUE(PassesOf(*plan, 0, plan->tasks.size()).empty());
}

TEST(MemoryOfPlanTest, PanelsThatAreKeptAreNoValues) {
  const int64_t memory_bytes = 16 << 20;
  const Result<Plan> plan = PlanOf(Centred(/*keeps=*/true).graph, memory_bytes);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const MemoryOfPlan memory = MemoryOn(*plan, 0, /*threads=*/2);
  EXPECT_LT(memory.values, memory_bytes);
  EXPECT_GT(memory.values, 0);
  EXPECT_EQ(memory.panels, kRows * kColumns * 8);  // Y; those of X are another plan's.
  ASSERT_EQ(AssignsOfPanels(*plan).size(), 1u);
  const std::vector<PlanPass> passes = PassesOf(*plan, 0, plan->tasks.size());
  ASSERT_EQ(passes.size(), 2u);
  for (const PlanPass& pass : passes) {
    EXPECT_GT(pass.acts, 1);
    EXPECT_FALSE(pass.starts.empty());
    EXPECT_FALSE(pass.ends.empty());
  }
}

TEST(MemoryOfPlanTest, BlocksAreRoundedAsThePoolRoundsThem) {
  EXPECT_EQ(BlockBytesOf(MatrixOf(1000, 1)), BlockPool::ClassBytes(8000));
  EXPECT_EQ(BlockBytesOf(ValueInfo::OfScalar(ValueType::kDouble)), 0);
}

}  // namespace
}  // namespace heddle::scheduler
