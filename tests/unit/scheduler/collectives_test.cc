// SPDX-License-Identifier: Apache-2.0
// What ranks send for large values beside the least that is possible: for a value on all ranks 2 (n - 1) / n
// of its bytes where it is a sum of all (reduce-scatter and all-gather), its bytes where one rank has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ops/base/stages.h"
#include "scheduler/liveness.h"
#include "scheduler/plan_collectives.h"
#include "scheduler/schedule.h"
#include "scheduler/transition.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

struct Traffic {
  double sent = 0, received = 0;  // Bytes of the rank with most of them.
  double all = 0;                 // Of all ranks.
  int sends = 0, receives = 0;    // Messages of the rank with most.
  int hops = 0;                   // Copies behind each other.
};

// Bytes of a register; of lists, whose sizes only the run tells, where each has one node.
double BytesOf(const Plan& plan, const Register& reg, const std::map<TaskId, const Task*>& tasks) {
  const Task* task = tasks.at(reg.producer);
  if (reg.info.IsSized() || task->phase != Phase::kStage) return static_cast<double>(reg.bytes);
  const Node& node = plan.graph[task->node];
  std::vector<ValueInfo> inputs;
  for (const NodeId input : node.inputs) inputs.push_back(plan.graph[input].info);
  const ops::PayloadUnits units =
      ops::PartsFormOf(*ops::FindOperator(node.op)).second->units(node, inputs, 0);
  const auto rows = [&](int64_t unit) { return static_cast<double>(units.RowsBefore(unit)); };
  return units.bytes * (rows(task->row_end) - rows(task->row_begin)) / rows(units.count);
}

Traffic TrafficOf(const Plan& plan) {
  std::map<TaskId, const Task*> tasks;
  for (const Task& task : plan.tasks) tasks[task.id] = &task;
  const auto ranks = static_cast<size_t>(plan.ranks);
  std::vector<double> sent(ranks), received(ranks);
  std::vector<int> sends(ranks), receives(ranks);
  Traffic traffic;
  std::map<TaskId, int> hops;
  const std::function<int(const Task&)> hops_of = [&](const Task& task) {
    if (const auto known = hops.find(task.id); known != hops.end()) return known->second;
    int most = 0;
    for (const RegisterId id : task.consumed) {
      if (id < 0) continue;
      const Task& before = *tasks.at(plan.registers[static_cast<size_t>(id)].producer);
      most = std::max(most, hops_of(before) + (before.id.rank() != task.id.rank()));
    }
    return hops[task.id] = most;
  };
  for (const Task& task : plan.tasks) {
    traffic.hops = std::max(traffic.hops, hops_of(task));
    if (task.kind != TaskKind::kCopy || task.consumed.empty()) continue;
    const Register& reg = plan.registers[static_cast<size_t>(task.consumed[0])];
    const double bytes = BytesOf(plan, reg, tasks);
    sent[reg.producer.rank()] += bytes;
    received[task.id.rank()] += bytes;
    traffic.all += bytes;
    ++sends[reg.producer.rank()];
    ++receives[task.id.rank()];
  }
  traffic.sent = *std::max_element(sent.begin(), sent.end());
  traffic.received = *std::max_element(received.begin(), received.end());
  traffic.sends = *std::max_element(sends.begin(), sends.end());
  traffic.receives = *std::max_element(receives.begin(), receives.end());
  return traffic;
}

int LogOf(int32_t ranks) {
  int levels = 0;
  while (1 << levels < ranks) ++levels;
  return levels;
}

// A reduction of X, whose ranks have two granules each (a node of the tree), onto each rank.
Plan PlanOfReduction(const std::string& op, int64_t columns, int32_t ranks, Shape result,
                     const Distribution& to) {
  GraphUnderTest g;
  const int64_t rows = int64_t{16384} * std::max<int64_t>(ranks, 32);
  const NodeId x = g.Variable("X", MatrixOf(rows, columns));
  std::vector<NodeId> inputs = {x};
  if (op == "t%*%") inputs.push_back(x);
  const NodeId made = g.Op(op, inputs, ValueInfo::OfMatrix(result));
  g.Assign("s", made);
  const Result<Plan> plan = Schedule(g.graph, {{"X", Distribution::SplitRows(rows, ranks)}},
                                     {.ranks = ranks, .live_out = {{"s", to}}});
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  if (!plan.ok()) return {};
  EXPECT_TRUE(CheckLive(*plan).ok());
  const Result<Plan> parsed = Plan::Parse(plan->ToText());
  EXPECT_TRUE(parsed.ok() && parsed->ToText() == plan->ToText());
  return *plan;
}

constexpr int32_t kRanks[] = {2, 4, 8, 64, 1024};

void ExpectLeast(const Plan& plan, int32_t ranks, double bytes) {
  const Traffic traffic = TrafficOf(plan);
  const double least = 2.0 * (ranks - 1) / ranks * bytes;
  EXPECT_LE(traffic.sent, 1.1 * least);
  EXPECT_LE(traffic.received, 1.1 * least);
  EXPECT_LE(traffic.all, 1.1 * least * ranks);
  const int most = ranks <= kMostExchanged ? 2 * (ranks - 1) : 2 * LogOf(ranks);
  EXPECT_LE(traffic.sends, most);
  EXPECT_LE(traffic.receives, most);
  EXPECT_LE(traffic.hops, 2 * LogOf(ranks));
}

TEST(CollectivesTest, ColumnSumsOnEachRankMoveTheLeastBytes) {
  for (const int32_t ranks : kRanks) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const Plan plan = PlanOfReduction("colSums", 1'000'000, ranks, {1, 1'000'000}, Distribution::Each());
    ASSERT_EQ(plan.staged.size(), 1u);
    ExpectLeast(plan, ranks, 8e6);
  }
}

// Of t(X) %*% X the cells from the diagonal on: half of the bytes of the result.
TEST(CollectivesTest, SymmetricProductsOnEachRankMoveHalfOfTheBytes) {
  for (const int32_t ranks : kRanks) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const Plan plan = PlanOfReduction("t%*%", 2'000, ranks, {2'000, 2'000}, Distribution::Each());
    ASSERT_EQ(plan.staged.size(), 1u);
    ExpectLeast(plan, ranks, 8.0 * 2'000 * 2'001 / 2);
  }
}

TEST(CollectivesTest, ASymmetricProductOnOneRankIsGatheredFromItsParts) {
  for (const int32_t ranks : kRanks) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const Plan plan = PlanOfReduction("t%*%", 2'000, ranks, {2'000, 2'000}, Distribution::One());
    const double least = 8.0 * 2'000 * 2'001 / 2 * (ranks - 1) / ranks;
    const Traffic traffic = TrafficOf(plan);
    EXPECT_LE(traffic.received, 1.1 * 2 * least);
    EXPECT_LE(traffic.sent, 1.1 * 2 * least);
  }
}

// The other products stay where they are finished, by rows.
TEST(CollectivesTest, RowsOfALargeProductStayWhereTheyAreFinished) {
  for (const int32_t ranks : {2, 3, 4, 8, 16, 17, 40}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    GraphUnderTest g;
    const int64_t rows = int64_t{16384} * 64;
    const NodeId x = g.Variable("X", MatrixOf(rows, 8'192)), y = g.Variable("Y", MatrixOf(rows, 512));
    const NodeId made = g.Op("t%*%", {x, y}, MatrixOf(8'192, 512));
    g.Assign("s", g.Op("abs", {made}, MatrixOf(8'192, 512)));
    const std::map<std::string, Distribution> live_in = {{"X", Distribution::SplitRows(rows, ranks)},
                                                         {"Y", Distribution::SplitRows(rows, ranks)}};
    const Result<Plan> plan = Schedule(g.graph, live_in, {.ranks = ranks});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(CheckLive(*plan).ok());
    ASSERT_EQ(plan->staged.size(), 1u);
    EXPECT_EQ(plan->live_out[0].distribution, Distribution::SplitRows(8'192, ranks));
    for (const Register& reg : plan->registers)  // Nobody has the whole result.
      EXPECT_FALSE(reg.info.shape == Shape(8'192, 512)) << reg.id;
  }
}

// So does a symmetric one where its reader works row by row and lists have a node each: of several, half of
// the cells are less to send, also where they are put together then.
TEST(CollectivesTest, RowsOfASymmetricProductStayWhereRowsAreRead) {
  for (const int32_t ranks : {2, 4, 8}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    GraphUnderTest g;
    const int64_t rows = int64_t{16384} * 64, n = 4'096;
    const NodeId x = g.Variable("X", MatrixOf(rows, n));
    const NodeId made = g.Op("t%*%", {x, x}, MatrixOf(n, n));
    g.Assign("s", g.Op("abs", {made}, MatrixOf(n, n)));
    const Result<Plan> plan =
        Schedule(g.graph, {{"X", Distribution::SplitRows(rows, ranks)}},
                 {.ranks = ranks, .live_out = {{"s", Distribution::SplitRows(n, ranks)}}});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(CheckLive(*plan).ok());
    for (const Register& reg : plan->registers)  // Nobody has the whole result.
      EXPECT_FALSE(reg.info.shape == Shape(n, n)) << reg.id;
  }
}

TEST(CollectivesTest, LargeValuesGoToEachRankInChunks) {
  for (const int32_t ranks : {2, 3, 4, 5, 8, 64, 1023, 1024}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    GraphUnderTest g;
    g.Assign("Y", g.Variable("X", MatrixOf(100'000, 80)));
    const double bytes = 8.0 * 100'000 * 80;
    const Result<Plan> plan = Schedule(g.graph, {{"X", Distribution::One(ranks - 1)}},
                                       {.ranks = ranks, .live_out = {{"Y", Distribution::Each()}}});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(CheckLive(*plan).ok());
    const Traffic traffic = TrafficOf(*plan);
    EXPECT_LE(traffic.sent, 1.1 * bytes);
    EXPECT_LE(traffic.received, 1.1 * bytes);
    EXPECT_LE(traffic.all, 1.1 * bytes * (ranks - 1));
    EXPECT_LE(traffic.sends, ranks == 2 ? 1 : ChunksOf(bytes, ranks) + 2);
    EXPECT_LE(traffic.hops, LogOf(ranks) + 1);
    const Transition model = TransitionOf(bytes, Distribution::One(ranks - 1), Distribution::Each(), ranks);
    EXPECT_NEAR(model.sent_bytes, traffic.all, 1e-3 * traffic.all);
    EXPECT_NEAR(model.slowest_bytes, std::max(traffic.sent, traffic.received), 0.1 * bytes);
  }
}

TEST(CollectivesTest, RowsOfAllRanksGoToEachByDoubling) {
  for (const int32_t ranks : {2, 4, 8, 17, 64, 100, 1024}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    GraphUnderTest g;
    const int64_t rows = int64_t{8192} * std::max(ranks, 32);
    g.Assign("Y", g.Variable("X", MatrixOf(rows, 8)));
    const double bytes = 64.0 * static_cast<double>(rows);
    const Result<Plan> plan = Schedule(g.graph, {{"X", Distribution::SplitRows(rows, ranks)}},
                                       {.ranks = ranks, .live_out = {{"Y", Distribution::Each()}}});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(CheckLive(*plan).ok());
    const Traffic traffic = TrafficOf(*plan);
    EXPECT_LE(traffic.received, 1.1 * bytes * (ranks - 1) / ranks);
    EXPECT_LE(traffic.all, 1.1 * bytes * (ranks - 1));
    EXPECT_LE(traffic.receives, ranks <= kMostExchanged ? ranks - 1 : LogOf(ranks));
    if ((ranks & (ranks - 1)) == 0) {
      EXPECT_LE(traffic.sent, 1.1 * bytes * (ranks - 1) / ranks);
    }
  }
}

// Of the two trees of a broadcast each reaches every rank, and a rank that hands on in one is a leaf of the
// other.
TEST(CollectivesTest, InTwoTreesEachRankHandsOnInOne) {
  for (int32_t ranks = 2; ranks <= 200; ++ranks) {
    std::vector<int> children[2];
    for (const int tree : {0, 1}) {
      children[tree].assign(static_cast<size_t>(ranks), 0);
      for (int32_t number = 1; number < ranks; ++number) {
        ++children[tree][static_cast<size_t>(ParentInTree(number, tree, ranks))];
        int32_t at = number, steps = 0;
        for (; at != 0; ++steps) at = ParentInTree(at, tree, ranks);
        ASSERT_LE(steps, LogOf(ranks)) << number << " of " << ranks;
      }
      EXPECT_EQ(children[tree][0], 1) << ranks;
    }
    for (size_t number = 1; number < static_cast<size_t>(ranks); ++number) {
      EXPECT_LE(std::max(children[0][number], children[1][number]), 2) << ranks;
      EXPECT_EQ(std::min(children[0][number], children[1][number]), 0) << number << " of " << ranks;
    }
  }
}

// Lists go to one rank, or in parts to each, as the model says: the cuts give each rank several nodes.
TEST(CollectivesTest, TheModelCountsTheNodesOfLists) {
  for (const int32_t ranks : {2, 3, 5, 8}) {
    const Split cuts = Distribution::SplitRows(1'000'000, ranks).split;
    const std::vector<int> nodes = NodesOfLists(cuts);
    ASSERT_EQ(nodes.size(), static_cast<size_t>(ranks));
    double all = 0;
    for (const int count : nodes) {
      EXPECT_GE(count, 1);
      EXPECT_LE(count, 8);
      all += count;
    }
    EXPECT_EQ(ListsToOne(8, nodes, 1).sent_bytes, 8 * (all - nodes[1]));
    EXPECT_NEAR(ListsInParts(8, nodes).sent_bytes, 8 * all * (ranks - 1) / ranks, 1e-9);
    EXPECT_LT(ListsInParts(8, nodes).slowest_bytes, ListsToOne(8, nodes, 0).slowest_bytes);
  }
}

}  // namespace
}  // namespace heddle::scheduler
