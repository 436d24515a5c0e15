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

Distribution RandomDistribution(SeededRandom& random, const Shape& shape, int32_t ranks) {
  const Axis axis = random.Below(2) == 0 ? Axis::kRows : Axis::kColumns;
  const int64_t length = axis == Axis::kRows ? shape.rows : shape.columns;
  Distribution split = Distribution::SplitRows(length, ranks);
  switch (random.Below(5)) {
    case 0: return Distribution::One(static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks))));
    case 1: return Distribution::Each();
    case 2: break;
    default:
      for (int32_t rank = 1; rank < ranks; ++rank)
        split.split.cuts[static_cast<size_t>(rank)] =
            static_cast<int64_t>(random.Below(static_cast<uint64_t>(length + 1)));
      std::sort(split.split.cuts.begin(), split.split.cuts.end());
  }
  split.split.axis = axis;
  return split;
}

// What the copies of a plan carry between ranks, in bytes, from one distribution of X to another.
int64_t CopiedBytes(const Shape& shape, const Distribution& from, const Distribution& to, int32_t ranks) {
  Graph graph;
  Node variable;
  variable.op = "variable";
  variable.info = ValueInfo::OfMatrix(shape);
  variable.SetAttribute("name", "X");
  Node assign = variable;
  assign.op = "assign";
  assign.inputs = {graph.Add(variable)};
  graph.Add(assign);
  std::vector<Placement> placements(2);
  placements[0].result = from;
  placements[1] = {.result = to, .inputs = {to}};
  const ScheduleOptions options{.ranks = ranks};
  const Plan plan = PlanBuilder(graph, placements, options).Build();
  EXPECT_TRUE(Verify(plan).ok()) << Verify(plan).ToString() << plan.ToText();
  const Result<Plan> parsed = Plan::Parse(plan.ToText());
  EXPECT_TRUE(parsed.ok() && parsed->ToText() == plan.ToText());
  int64_t bytes = 0;
  for (const Task& task : plan.tasks)
    if (task.kind == TaskKind::kCopy) bytes += plan.registers[static_cast<size_t>(task.produced[0])].bytes;
  return bytes;
}

// The model counts the bytes that the plan sends, for whatever cuts of rows or columns, ranks without any
// among them.
TEST(TransitionTest, CountsWhatThePlanCopies) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededRandom random(seed);
    const auto ranks = 1 + static_cast<int32_t>(random.Below(kMostDirectRanks));
    const auto length = [&] {
      return static_cast<int64_t>(random.Below(2) == 0 ? random.Below(9) : random.Below(5000));
    };
    const Shape shape{length(), length()};
    const Distribution from = RandomDistribution(random, shape, ranks),
                       to = RandomDistribution(random, shape, ranks);
    const auto bytes = static_cast<double>(KnownBytes(ValueInfo::OfMatrix(shape)));
    EXPECT_NEAR(TransitionOf(bytes, from, to, ranks).sent_bytes,
                static_cast<double>(CopiedBytes(shape, from, to, ranks)), 1e-6 * bytes)
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
  Distribution columns = At({0, 5, 10});
  columns.split.axis = Axis::kColumns;
  EXPECT_EQ(TransitionOf(100, even, columns, 2).sent_bytes, 50);
  EXPECT_EQ(TransitionOf(100, uneven, columns, 2).slowest_bytes, 45);
  EXPECT_EQ(TransitionOf(100, columns, Distribution::Each(), 2).sent_bytes, 100);
}

TEST(TransitionTest, TimeGoesByTheRatesOfTheLinks) {
  ops::MachineConstants constants = ops::BuiltInConstants(1);
  constants.links = {.bytes_per_ns = 2, .message_ns = 1000, .measured = true};
  EXPECT_EQ(NanosecondsOf(Transition{.sent_bytes = 9e9, .slowest_bytes = 500, .messages = 3}, constants),
            3250);
}

}  // namespace
}  // namespace heddle::scheduler
