// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/memory_text.h"

#include <gtest/gtest.h>

#include "scheduler/schedule.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::engine {
namespace {

using scheduler::GraphUnderTest;
using scheduler::MatrixOf;

// The plan of rev(X) in panels, on two ranks.
Plan PlanOfRev(const Distribution& where) {
  GraphUnderTest g;
  const ValueInfo info = MatrixOf(100'000, 100);
  g.Assign("Y", g.Op("rev", {g.Variable("X", info)}, info));
  scheduler::ScheduleOptions options;
  options.ranks = 2;
  options.min_distributed_bytes = where.IsEach() ? int64_t{1} << 40 : 0;
  options.memory_bytes = 20 << 20;
  options.in_panels = true;
  options.panelled = {"X"};
  options.live_out = {{"Y", where}};
  Result<Plan> plan = scheduler::Schedule(g.graph, {{"X", where}}, options);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return plan.ok() ? *std::move(plan) : Plan();
}

TEST(MemoryTextTest, RanksThatComputeANodeTogetherShareItsPanels) {
  const Plan plan = PlanOfRev(Distribution::SplitRows(100'000, 2));
  ASSERT_EQ(plan.staged.size(), 1u);
  const size_t panels = (plan.staged[0].rows.cuts.size() - 1) / 2;
  const std::string text = LinesOfMemory(plan, nullptr);
  EXPECT_NE(text.find(fmt::format("in stages over {} panels", panels)), std::string::npos) << text;
}

TEST(MemoryTextTest, ARankThatComputesANodeAloneHasAllPanels) {
  const Plan plan = PlanOfRev(Distribution::Each());
  ASSERT_EQ(plan.staged.size(), 1u);
  const size_t panels = plan.staged[0].rows.cuts.size() - 1;
  EXPECT_GT(panels, 2u);
  const std::string text = LinesOfMemory(plan, nullptr);
  EXPECT_NE(text.find(fmt::format("in stages over {} panels", panels)), std::string::npos) << text;
}

}  // namespace
}  // namespace heddle::engine
