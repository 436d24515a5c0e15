// SPDX-License-Identifier: Apache-2.0
#include "scheduler/place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/values/panels.h"
#include "scheduler/liveness.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

Distribution At(std::vector<int64_t> cuts) {
  return {.kind = Distribution::Kind::kSplit, .split = {.cuts = std::move(cuts)}};
}

// Schedules it, too: what is placed can be built, parsed back and finishes.
std::vector<Placement> PlaceAll(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                                const ScheduleOptions& options, PlacementReport* report = nullptr) {
  const Result<Plan> plan = Schedule(graph, live_in, options);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  if (plan.ok()) {
    EXPECT_TRUE(CheckLive(*plan).ok());
    const Result<Plan> parsed = Plan::Parse(plan->ToText());
    EXPECT_TRUE(parsed.ok() && parsed->ToText() == plan->ToText());
  }
  Result<std::vector<Placement>> placements = Place(graph, live_in, options, report);
  EXPECT_TRUE(placements.ok()) << placements.status().ToString();
  return placements.ok() ? *std::move(placements) : std::vector<Placement>(graph.nodes.size());
}

// What is left of removeEmpty has rows wherever they were. Cells are computed there; for a sum the rows
// between a cut and the granule below move.
TEST(PlaceTest, UnevenRowsStayForCellsAndMoveToGranulesForSums) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 50));
  const NodeId y = g.Op("abs", {x}, MatrixOf(100'000, 50));
  g.Assign("y", y);
  const Distribution uneven = At({0, 35'001, 66'002, 100'000});
  EXPECT_EQ(PlaceAll(g.graph, {{"X", uneven}}, {.ranks = 3})[1].result, uneven);
  const NodeId sum = g.Op("colSums", {x}, MatrixOf(1, 50));
  g.Assign("s", sum);
  const Distribution wanted =
      PlaceAll(g.graph, {{"X", uneven}}, {.ranks = 3})[static_cast<size_t>(sum)].inputs[0];
  const int64_t granule = Granule(100'000);
  EXPECT_EQ(wanted, At({0, 35'001 / granule * granule, 66'002 / granule * granule, 100'000}))
      << wanted.ToText();
}

// Small vectors that every rank needs are computed on each, rather than on one and sent: w is one message
// away from the sums, not two.
TEST(PlaceTest, WhatAllNeedIsComputedOnEach) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 50));
  const NodeId w = g.Variable("w", MatrixOf(50, 1));
  const NodeId xw = g.Op("%*%", {x, w}, MatrixOf(100'000, 1));
  const NodeId gradient = g.Op("t%*%", {x, xw}, MatrixOf(50, 1));
  const NodeId next = g.Op("-", {w, gradient}, MatrixOf(50, 1));
  const NodeId again = g.Op("%*%", {x, next}, MatrixOf(100'000, 1));
  g.Assign("z", again);
  PlacementReport report;
  const std::vector<Placement> placements =
      PlaceAll(g.graph, {{"X", Distribution::SplitRows(100'000, 4)}, {"w", Distribution::Each()}},
               {.ranks = 4}, &report);
  EXPECT_TRUE(report.is_exact);
  EXPECT_TRUE(placements[static_cast<size_t>(gradient)].result.IsEach());
  EXPECT_TRUE(placements[static_cast<size_t>(next)].result.IsEach());
  const std::vector<Alternative>& ways = report.alternatives[static_cast<size_t>(next)];
  ASSERT_EQ(ways.size(), 2u);
  EXPECT_LE(ways[0].cost_ns, ways[1].cost_ns);
  EXPECT_TRUE(ways[1].placement.result.IsOne());
}

// What only one rank reads is made there alone.
TEST(PlaceTest, WhatOneNeedsIsComputedOnOne) {
  GraphUnderTest g;
  const NodeId a = g.Variable("A", MatrixOf(300, 300));
  const NodeId solved = g.Op("inv", {a}, MatrixOf(300, 300));
  const NodeId text = g.Op("toString", {solved}, ValueInfo::OfScalar(ValueType::kString));
  g.Op("print", {text}, ValueInfo());
  const std::vector<Placement> placements = PlaceAll(g.graph, {{"A", Distribution::One()}}, {.ranks = 4});
  EXPECT_EQ(placements[static_cast<size_t>(solved)].result, Distribution::One());
}

// Two factorizations that do not depend on each other are on two ranks, and what follows each is with it.
TEST(PlaceTest, IndependentFactorizationsRunOnDifferentRanks) {
  GraphUnderTest g;
  std::vector<NodeId> last;
  for (const char* name : {"A", "B"}) {
    const NodeId a = g.Variable(name, MatrixOf(2'000, 2'000));
    const NodeId inverse = g.Op("inv", {a}, MatrixOf(2'000, 2'000));
    last.push_back(g.Op("cholesky", {inverse}, MatrixOf(2'000, 2'000)));
    g.Assign(std::string(name) + "2", last.back());
  }
  const std::map<std::string, Distribution> live_in = {{"A", Distribution::One()},
                                                       {"B", Distribution::One()}};
  const std::vector<Placement> placements =
      PlaceAll(g.graph, live_in, {.ranks = 4, .min_distributed_bytes = INT64_MAX});
  const Distribution& first = placements[static_cast<size_t>(last[0])].result;
  const Distribution& second = placements[static_cast<size_t>(last[1])].result;
  ASSERT_TRUE(first.IsOne() && second.IsOne());
  EXPECT_NE(first.rank, second.rank);
  EXPECT_EQ(placements[static_cast<size_t>(last[0] - 1)].result, first);
  EXPECT_EQ(placements[static_cast<size_t>(last[1] - 1)].result, second);
  EXPECT_EQ(placements[static_cast<size_t>(last[1] + 1)].result, second);
}

// rbind of split values: each rank fetches what is of its rows; nobody has all.
TEST(PlaceTest, BoundRowsAreFetched) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 10)), y = g.Variable("Y", MatrixOf(30'000, 10));
  const NodeId bound = g.Op("rbind", {x, y}, MatrixOf(130'000, 10));
  g.Assign("Z", bound);
  const std::map<std::string, Distribution> live_in = {{"X", Distribution::SplitRows(100'000, 3)},
                                                       {"Y", At({0, 10, 30'000, 30'000})}};
  const Result<Plan> plan = Schedule(g.graph, live_in, {.ranks = 3});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->live_out[0].distribution, Distribution::SplitRows(130'000, 3));
  EXPECT_TRUE(plan->whole.empty());
  for (const Register& reg : plan->registers) EXPECT_LT(reg.info.shape.rows, 100'000) << reg.id;
}

// A sum over split rows that all ranks get: what a rank says in a round of a loop, and how long the way of a
// value is, grow with the logarithm of the ranks.
TEST(ScheduleTest, ARoundTakesLogarithmicallyManyHopsAndMessagesOfARank) {
  for (const int32_t ranks : {2, 4, 5, 8, 16, 64, 1000}) {
    GraphUnderTest g;
    const NodeId x = g.Variable("X", MatrixOf(int64_t{1} << 21, 10));
    const NodeId sum = g.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble));
    g.Assign("s", sum);
    const Result<Plan> plan =
        Schedule(g.graph, {{"X", Distribution::SplitRows(int64_t{1} << 21, ranks)}}, {.ranks = ranks});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    ASSERT_TRUE(Verify(*plan).ok());
    ASSERT_TRUE(CheckLive(*plan).ok());
    int32_t levels = 0;
    while (1 << levels < ranks) ++levels;
    const int32_t most = ranks <= 4 ? ranks - 1 : levels;
    std::vector<int32_t> sends(static_cast<size_t>(ranks)), receives(static_cast<size_t>(ranks));
    std::map<TaskId, int32_t> hops;
    for (size_t changed = 1; changed > 0;) {  // Tasks are sorted by rank, not by the way of values.
      changed = 0;
      for (const Register& reg : plan->registers)
        for (const TaskId reader : reg.consumers) {
          const int32_t after = hops[reg.producer] + (reader.rank() != reg.producer.rank());
          if (hops[reader] < after) hops[reader] = after, ++changed;
        }
    }
    for (const Register& reg : plan->registers)
      for (const TaskId reader : reg.consumers)
        if (reader.rank() != reg.producer.rank()) ++sends[reg.producer.rank()], ++receives[reader.rank()];
    int32_t longest = 0;
    for (const auto& [task, count] : hops) longest = std::max(longest, count);
    EXPECT_LE(longest, 2 * (ranks <= 4 ? 1 : levels)) << ranks;
    for (size_t rank = 0; rank < sends.size(); ++rank) {
      EXPECT_LE(sends[rank], most) << ranks;
      EXPECT_LE(receives[rank], most) << ranks;
    }
  }
}

// A plan for 1,024 ranks: soon made, small, and no rank sends or receives more than a few messages for an
// operator.
TEST(PlaceTest, ManyRanksNeedFewMessagesEach) {
  GraphUnderTest g;
  constexpr int32_t kRanks = 1024;
  const NodeId x = g.Variable("X", MatrixOf(100'000'000, 10));
  NodeId w = g.Variable("w", MatrixOf(10, 1));
  for (int i = 0; i < 20; ++i) {
    const NodeId xw = g.Op("%*%", {x, w}, MatrixOf(100'000'000, 1));
    const NodeId gradient = g.Op("t%*%", {x, xw}, MatrixOf(10, 1));
    w = g.Op("-", {w, gradient}, MatrixOf(10, 1));
  }
  g.Assign("w", w);
  const std::map<std::string, Distribution> live_in = {{"X", Distribution::SplitRows(100'000'000, kRanks)},
                                                       {"w", Distribution::Each()}};
  const Result<Plan> plan = Schedule(g.graph, live_in, {.ranks = kRanks});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  std::map<uint32_t, int> copies, served;
  for (const Task& task : plan->tasks) {
    if (task.kind != TaskKind::kCopy) continue;
    ++copies[task.id.rank()];
    ++served[plan->registers[static_cast<size_t>(task.consumed[0])].producer.rank()];
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_LE(copies[rank], 20 * 11) << rank;
    EXPECT_LE(served[rank], 20 * 11) << rank;
  }
  EXPECT_LE(plan->ToText().size() / plan->tasks.size(), 250u);
}

}  // namespace
}  // namespace heddle::scheduler
