// SPDX-License-Identifier: Apache-2.0
#include "scheduler/transition.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/environment/random.h"
#include "core/programs/plan.h"
#include "scheduler/plan_builder.h"

namespace heddle::scheduler {
namespace {

Distribution At(std::vector<int64_t> cuts) {
  return {.kind = Distribution::Kind::kSplit, .split = {.cuts = std::move(cuts)}};
}

Distribution RandomDistribution(SeededRandom& random, int64_t rows, int32_t ranks) {
  switch (random.Below(4)) {
    case 0: return Distribution::One(static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks))));
    case 1: return Distribution::Each();
    case 2: return Distribution::SplitRows(rows, ranks);
    default: break;
  }
  std::vector<int64_t> cuts = {0, rows};
  for (int32_t rank = 1; rank < ranks; ++rank)
    cuts.push_back(static_cast<int64_t>(random.Below(static_cast<uint64_t>(rows + 1))));
  std::sort(cuts.begin(), cuts.end());
  return At(std::move(cuts));
}

// What the copies of a plan carry between ranks, in bytes, from one distribution of X to another.
int64_t CopiedBytes(int64_t rows, const Distribution& from, const Distribution& to, int32_t ranks) {
  Graph graph;
  Node variable;
  variable.op = "variable";
  variable.info = ValueInfo::OfMatrix({rows, 3});
  variable.SetAttribute("name", "X");
  Node assign = variable;
  assign.op = "assign";
  assign.inputs = {graph.Add(variable)};
  graph.Add(assign);
  std::vector<Placement> placements(2);
  placements[0].result = from;
  placements[1] = {.result = to, .inputs = {to}};
  const Plan plan = PlanBuilder(graph, placements, ranks).Build();
  EXPECT_TRUE(Verify(plan).ok()) << Verify(plan).ToString() << plan.ToText();
  const Result<Plan> parsed = Plan::Parse(plan.ToText());
  EXPECT_TRUE(parsed.ok() && parsed->ToText() == plan.ToText());
  int64_t bytes = 0;
  for (const Task& task : plan.tasks)
    if (task.kind == TaskKind::kCopy) bytes += plan.registers[static_cast<size_t>(task.produced[0])].bytes;
  return bytes;
}

// The model counts the bytes that the plan sends, for whatever cuts, ranks without rows among them.
TEST(TransitionTest, CountsWhatThePlanCopies) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededRandom random(seed);
    const auto ranks = 1 + static_cast<int32_t>(random.Below(kMostDirectRanks));
    const auto rows = static_cast<int64_t>(random.Below(2) == 0 ? random.Below(9) : random.Below(5000));
    const Distribution from = RandomDistribution(random, rows, ranks),
                       to = RandomDistribution(random, rows, ranks);
    const auto bytes = static_cast<double>(KnownBytes(ValueInfo::OfMatrix({rows, 3})));
    if (rows == 0 && from != to && !from.IsEach()) continue;  // An empty piece still costs its header.
    EXPECT_NEAR(TransitionOf(bytes, from, to, ranks).sent_bytes,
                static_cast<double>(CopiedBytes(rows, from, to, ranks)), 1e-6 * bytes)
        << from.ToText() << " to " << to.ToText();
  }
}

TEST(TransitionTest, TheSlowestRankDecides) {
  const Distribution even = At({0, 50, 100}), uneven = At({0, 90, 100});
  EXPECT_EQ(TransitionOf(100, even, uneven, 2).slowest_bytes, 40);
  EXPECT_EQ(TransitionOf(100, uneven, Distribution::Each(), 2).slowest_bytes, 90);
  EXPECT_EQ(TransitionOf(100, even, even, 2).messages, 0);
  EXPECT_EQ(TransitionOf(100, Distribution::Each(), uneven, 2).slowest_bytes, 0);
  EXPECT_EQ(TransitionOf(100, Distribution::One(1), Distribution::One(), 2).slowest_bytes, 100);
}

}  // namespace
}  // namespace heddle::scheduler
