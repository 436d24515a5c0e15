// SPDX-License-Identifier: Apache-2.0
// Plans for many ranks, run in a simulation whose acts and links take the time of the cost model.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "actor/simulation.h"
#include "scheduler/schedule.h"
#include "tests/simulation/hash_body.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::actor {
namespace {

constexpr int64_t kRows = 50'000'000;

// Up to 64 ranks for every change; HEDDLE_RANKS=1024 by hand.
int32_t MostRanks() {
  const char* wanted = std::getenv("HEDDLE_RANKS");
  return wanted == nullptr ? 64 : std::max(64, std::atoi(wanted));
}

// Rounds of gradient descent, each with so many operators cell by cell on the rows of every rank.
Graph Descent(int rounds, int cellwise) {
  scheduler::GraphUnderTest write;
  const NodeId x = write.Variable("X", scheduler::MatrixOf(kRows, 10));
  NodeId w = write.Variable("w", scheduler::MatrixOf(10, 1));
  for (int round = 0; round < rounds; ++round) {
    NodeId rows = write.Op("%*%", {x, w}, scheduler::MatrixOf(kRows, 1));
    for (int i = 0; i < cellwise; ++i) rows = write.Op("abs", {rows}, scheduler::MatrixOf(kRows, 1));
    const NodeId gradient = write.Op("t%*%", {x, rows}, scheduler::MatrixOf(10, 1));
    w = write.Op("-", {w, gradient}, scheduler::MatrixOf(10, 1));
  }
  write.Assign("w", w);
  return std::move(write.graph);
}

// The links of the simulated cluster, and what plans know of them.
constexpr SimulatedTimes kTimes = {.message_ns = 20'000, .send_bytes_per_ns = 1};

ops::MachineConstants ConstantsOf(const SimulatedTimes& times) {
  ops::MachineConstants constants = ops::BuiltInConstants(1);
  constants.links = {.bytes_per_ns = times.send_bytes_per_ns,
                     .message_ns = static_cast<double>(times.message_ns),
                     .measured = true};
  return constants;
}

struct Cost {
  int64_t most_sends = 0;  // Of the rank that sends most.
  int64_t ns = 0;          // Of the whole run.
};

Cost CostOf(int32_t ranks, int rounds, int cellwise) {
  const Result<Plan> plan = scheduler::Schedule(
      Descent(rounds, cellwise), {{"X", Distribution::SplitRows(kRows, ranks)}, {"w", Distribution::Each()}},
      {.ranks = ranks, .constants = ConstantsOf(kTimes)});
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  if (!plan.ok()) return {};
  HashTrace trace;
  auto simulation = Simulation::Create(
      std::make_shared<const Plan>(*plan),
      [&trace](const PlanInstance& instance) { return std::make_unique<HashBody>(instance, trace); });
  EXPECT_TRUE(simulation.ok()) << simulation.status().ToString();
  if (!simulation.ok()) return {};
  // Odd, so that messages wait for each other.
  const Status run = (*simulation)->Run(1, {.seed = 1, .check_invariants = false, .times = kTimes});
  EXPECT_TRUE(run.ok()) << run.ToString();
  Cost cost{.ns = (*simulation)->clock().MonotonicNs()};
  for (int32_t rank = 0; rank < ranks; ++rank)
    cost.most_sends = std::max(cost.most_sends, (*simulation)->SendsOf(static_cast<uint32_t>(rank)));
  return cost;
}

TEST(ScaleTest, MessagesOfARoundGrowWithTheLogarithmOfTheRanks) {
  constexpr int kRounds = 5;
  for (int32_t ranks = 4; ranks <= MostRanks(); ranks *= 4) {
    const Cost cost = CostOf(ranks, kRounds, 2);
    RecordProperty("sends_" + std::to_string(ranks), std::to_string(cost.most_sends));
    const int levels = std::bit_width(static_cast<uint32_t>(ranks - 1));
    EXPECT_LE(cost.most_sends, kRounds * 6 * levels) << ranks << " ranks";
  }
}

TEST(ScaleTest, OperatorsCellByCellCauseNoMessages) {
  EXPECT_EQ(CostOf(16, 3, 2).most_sends, CostOf(16, 3, 40).most_sends);
}

// Rows are shared out, and what is added to a round by more ranks are the levels of two trees.
TEST(ScaleTest, MoreRanksTakeLessTime) {
  int64_t before_ns = CostOf(1, 5, 2).ns;
  for (int32_t ranks = 4; ranks <= 64; ranks *= 4) {
    const int64_t ns = CostOf(ranks, 5, 2).ns;
    EXPECT_LT(ns, before_ns / 2) << ranks << " ranks";
    before_ns = ns;
  }
}

}  // namespace
}  // namespace heddle::actor
