// SPDX-License-Identifier: Apache-2.0
// Any operator graph: random plans finish in every interleaving tried, with the result of a sequential
// evaluation and all slots free; and what would break a plan, a slot or an order edge too few, is found by
// the same checks.
#include <gtest/gtest.h>

#include <algorithm>

#include "actor/simulation.h"
#include "scheduler/liveness.h"
#include "scheduler/schedule.h"
#include "tests/simulation/hash_body.h"
#include "tests/simulation/plan_writer.h"
#include "tests/simulation/random_plan.h"
#include "tests/support/seeds.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::actor {
namespace {

// 2,000 seeds for every change, and never fewer than the counts below were made for; HEDDLE_SEEDS=100000 for
// a night.
testing_support::Seeds SeedsOf(uint64_t usual) {
  testing_support::Seeds seeds = testing_support::SeedsOf(usual);
  seeds.end = std::max(seeds.end, seeds.begin + usual);
  return seeds;
}

Result<std::unique_ptr<Simulation>> Simulate(const Plan& plan, HashTrace& trace,
                                             TaskId failing = TaskId{UINT64_MAX}) {
  return Simulation::Create(std::make_shared<const Plan>(plan),
                            [&trace, failing](const PlanInstance& instance) {
                              return std::make_unique<HashBody>(instance, trace, failing);
                            });
}

// False for the few plans that no number of slots saves (a repeat that has to give back its input before the
// piece that would free it can come). That such a plan is rejected with reason is checked here.
bool MakeLive(Plan* plan) {
  const Status status = scheduler::AssignSlots(plan);
  if (status.ok()) return true;
  Plan generous = *plan;
  for (Register& reg : generous.registers) reg.slots = 64;
  HashTrace trace;
  auto simulation = Simulate(generous, trace);
  EXPECT_TRUE(simulation.ok());
  const Status run = (*simulation)->Run(1, {});
  EXPECT_NE(run.message().find("stalled"), std::string::npos) << status.ToString() << run.ToString();
  return false;
}

bool AllSlotsFree(Simulation& simulation, const Plan& plan) {
  for (uint32_t rank = 0; rank < static_cast<uint32_t>(plan.ranks); ++rank) {
    for (const Actor& actor : simulation.instance(rank).actors()) {
      for (const RegisterState* produced : actor.produced()) {
        if (produced->outstanding() != 0 || !produced->HasFreeSlot()) return false;
      }
    }
  }
  return true;
}

// Every act of a task comes after the acts whose pieces or permissions it needs; from the plan's control
// registers alone.
Status CheckControlOrder(const Plan& plan, const HashTrace& trace) {
  std::map<TaskId, const Task*> tasks;
  for (const Task& task : plan.tasks) tasks[task.id] = &task;
  const auto published = [](const Task& task, int64_t acts) {
    return task.kind == TaskKind::kAccumulate || task.kind == TaskKind::kPack ? acts / task.rate : acts;
  };
  const auto needed = [](const Task& task, int64_t act) {
    return (task.kind == TaskKind::kRepeat || task.kind == TaskKind::kUnpack ? act / task.rate : act) + 1;
  };
  // A pack calls its body once a period, so its acts cannot be told from the trace.
  const auto is_counted = [](const Task& task) { return task.kind != TaskKind::kPack; };
  std::map<TaskId, int64_t> acts;
  for (TaskId id : trace.acts) {
    const Task& task = *tasks.at(id);
    for (RegisterId control : task.control_in) {
      const Task& before = *tasks.at(plan.registers[static_cast<size_t>(control)].producer);
      if (!is_counted(task) || !is_counted(before)) continue;
      if (before.kind == TaskKind::kCopy && !before.consumed.empty()) continue;  // Its acts are pulls.
      if (published(before, acts[before.id]) < needed(task, acts[id])) {
        return Internal("act {} of task {} came before its permission by task {}", acts[id], id.index(),
                        before.id.index());
      }
    }
    ++acts[id];
  }
  return OkStatus();
}

// Operators in stages, of which some ranks send more than others: a quantile of what order() sorts, beside a
// median, on three ranks.
TEST(ExchangesTest, OperatorsInStagesEndOnEveryRank) {
  scheduler::GraphUnderTest write;
  const ValueInfo column = scheduler::MatrixOf(10'000, 1), number = ValueInfo::OfScalar(ValueType::kDouble);
  const NodeId x = write.Variable("x", column), p = write.Variable("p", scheduler::MatrixOf(2, 1));
  const NodeId sorted = write.Op("order", {x}, column);
  const NodeId middle = write.Op("quantile", {sorted, p}, scheduler::MatrixOf(2, 1));
  const NodeId median = write.Op("median", {x}, number);
  const NodeId scaled = write.Op("*", {sorted, median}, column);
  write.Assign("y", write.Op("cumsum", {scaled}, column));
  write.Assign("middle", middle);
  const Result<Plan> plan = scheduler::Schedule(
      write.graph, {{"x", Distribution::SplitRows(10'000, 3)}, {"p", Distribution::Each()}},
      {.ranks = 3, .min_distributed_bytes = 0});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_GT(plan->staged.size(), 3u);
  const testing_support::Seeds seeds = SeedsOf(300);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    HashTrace trace;
    auto simulation = Simulate(*plan, trace);
    ASSERT_TRUE(simulation.ok()) << simulation.status().ToString();
    const Status run = (*simulation)->Run(1, {.seed = seed});
    ASSERT_TRUE(run.ok()) << "seed " << seed << ": " << run.ToString();
  }
}

// Two ranks, of which each sends the other one value and then another that follows from what it has got.
// Other readers of what the first value is made from are served between it and the end of its edge. Where
// that end comes after the second value has been sent, no value is left that it could travel with, and each
// rank has the end that the other's second edge waits for.
TEST(ExchangesTest, TheEndOfAnEdgeWaitsForNoOtherEdgeToTheRank) {
  constexpr uint32_t kRanks = 2;
  PlanWriter writer(kRanks);
  const auto compute = [&](uint32_t rank, RegisterId input) {
    return writer.Output(writer.Add(TaskKind::kCompute, rank, kCompute, {input}));
  };
  const auto copy = [&](uint32_t rank, RegisterId input) {
    return writer.Output(writer.Add(TaskKind::kCopy, rank, kNetwork, {input}));
  };
  RegisterId first[kRanks], second[kRanks];
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const RegisterId source = writer.Output(writer.Add(TaskKind::kSource, rank, kCompute, {}));
    first[rank] = compute(rank, source);
    for (int reader = 0; reader < 5; ++reader) writer.Add(TaskKind::kSink, rank, kCompute, {source});
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) second[rank] = compute(rank, copy(rank, first[1 - rank]));
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    writer.Add(TaskKind::kSink, rank, kCompute, {copy(rank, second[1 - rank])});
  const Plan plan = writer.Finish();
  const testing_support::Seeds seeds = SeedsOf(1000);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    HashTrace trace;
    auto simulation = Simulate(plan, trace);
    ASSERT_TRUE(simulation.ok()) << simulation.status().ToString();
    const Status run = (*simulation)->Run(1, {.seed = seed});
    ASSERT_TRUE(run.ok()) << "seed " << seed << ": " << run.ToString();
  }
}

TEST(RandomPlansTest, FinishWithTheSequentialResultAndAllSlotsFree) {
  int64_t acts = 0;
  uint64_t plans = 0;
  int multi_rank = 0;
  const testing_support::Seeds seeds = SeedsOf(2000);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Plan plan = RandomPlan(seed);
    if (!MakeLive(&plan)) continue;
    ASSERT_TRUE(scheduler::CheckLive(plan).ok());
    HashTrace trace;
    auto simulation = Simulate(plan, trace);
    ASSERT_TRUE(simulation.ok()) << simulation.status().ToString();
    const Status status = (*simulation)->Run(1, {.seed = seed});
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(trace.received, EvaluateInSequence(plan));
    ASSERT_TRUE(AllSlotsFree(**simulation, plan));
    ASSERT_TRUE(CheckControlOrder(plan, trace).ok());
    acts += (*simulation)->acts();
    multi_rank += plan.ranks > 1;
    ++plans;
  }
  EXPECT_GT(plans, seeds.count() * 98 / 100);
  EXPECT_GT(acts, 100'000);
  EXPECT_GT(multi_rank, 1000);
}

TEST(RandomPlansTest, OneMoreSlotOnAnyRegisterChangesNothing) {
  const testing_support::Seeds seeds = SeedsOf(200);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Plan plan = RandomPlan(seed);
    if (!MakeLive(&plan)) continue;
    for (Register& reg : plan.registers)
      reg.slots += static_cast<int32_t>((seed + static_cast<uint64_t>(reg.id)) % 3);
    HashTrace trace;
    auto simulation = Simulate(plan, trace);
    ASSERT_TRUE(simulation.ok());
    const Status status = (*simulation)->Run(1, {.seed = seed ^ 0xabcd});
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(trace.received, EvaluateInSequence(plan));
  }
}

TEST(RandomPlansTest, AnAbortAtAnyStepFreesAllSlotsAndTheNextRunIsWhole) {
  int aborted = 0;
  const testing_support::Seeds seeds = SeedsOf(400);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Plan plan = RandomPlan(seed, {.most_tasks = 16});
    if (!MakeLive(&plan)) continue;
    HashTrace trace;
    auto simulation = Simulate(plan, trace);
    ASSERT_TRUE(simulation.ok());
    ASSERT_TRUE((*simulation)->Run(1, {.seed = seed}).ok());
    const auto at = static_cast<int64_t>(seed * 7919 % static_cast<uint64_t>((*simulation)->steps() + 1));
    const Status status = (*simulation)->Run(2, {.seed = seed, .abort_at_step = at});
    ASSERT_TRUE(status.ok() || status.code() == StatusCode::kCancelled) << status.ToString();
    ASSERT_TRUE(AllSlotsFree(**simulation, plan));
    aborted += !status.ok();
    trace = HashTrace();
    const Status again = (*simulation)->Run(3, {.seed = seed + 1});
    ASSERT_TRUE(again.ok()) << again.ToString();
    ASSERT_EQ(trace.received, EvaluateInSequence(plan));
  }
  EXPECT_GT(aborted, 200);
}

TEST(RandomPlansTest, AFailingTaskEndsTheRunOnEveryRankWithItsError) {
  int failed = 0;
  const testing_support::Seeds seeds = SeedsOf(400);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Plan plan = RandomPlan(seed, {.most_tasks = 20});
    if (!MakeLive(&plan)) continue;
    const Task& failing = plan.tasks[seed % plan.tasks.size()];
    if (failing.kind == TaskKind::kCopy) continue;  // Its acts are pulls: no kernel to fail.
    HashTrace trace;
    auto simulation = Simulate(plan, trace, failing.id);
    ASSERT_TRUE(simulation.ok());
    const Status status = (*simulation)->Run(1, {.seed = seed});
    ASSERT_EQ(status.code(), StatusCode::kAborted) << status.ToString();
    ASSERT_TRUE(AllSlotsFree(**simulation, plan));
    ++failed;
  }
  EXPECT_GT(failed, 200);
}

// The token game of the scheduler and the actors agree about every assignment of slots, live or not.
TEST(RandomPlansTest, TheActorsStallExactlyWhereTheTokenGameDoes) {
  int live = 0;
  int stalled = 0;
  const testing_support::Seeds seeds = SeedsOf(1000);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Plan plan = RandomPlan(seed, {.most_tasks = 30});
    for (Register& reg : plan.registers)
      reg.slots = 1 + static_cast<int32_t>((seed * 31 + static_cast<uint64_t>(reg.id) * 17) % 3);
    HashTrace trace;
    auto simulation = Simulate(plan, trace);
    ASSERT_TRUE(simulation.ok());
    const Status status = (*simulation)->Run(1, {.seed = seed});
    ASSERT_EQ(status.ok(), scheduler::CheckLive(plan).ok()) << status.ToString();
    if (!status.ok()) {
      ASSERT_NE(status.message().find("stalled"), std::string::npos) << status.ToString();
    }
    (status.ok() ? live : stalled) += 1;
  }
  EXPECT_GT(live, 300);
  EXPECT_GT(stalled, 30);
}

// Mutation: a slot fewer than the planner gave is found by the simulation whenever the plan needed it.
TEST(RandomPlansTest, RemovingANeededSlotIsFound) {
  int needed = 0;
  int found = 0;
  const testing_support::Seeds seeds = SeedsOf(500);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Plan plan = RandomPlan(seed);
    if (!MakeLive(&plan)) continue;
    for (size_t i = 0; i < plan.registers.size(); ++i) {
      if (plan.registers[i].slots == 1) continue;
      Plan mutant = plan;
      --mutant.registers[i].slots;
      if (scheduler::CheckLive(mutant).ok()) continue;
      ++needed;
      HashTrace trace;
      auto simulation = Simulate(mutant, trace);
      ASSERT_TRUE(simulation.ok());
      found += !(*simulation)->Run(1, {.seed = seed}).ok();
    }
  }
  EXPECT_GT(needed, 20);
  EXPECT_EQ(found, needed);
}

// Mutation: an order edge that the plan lost shows up as acts out of order in some interleaving.
TEST(RandomPlansTest, RemovingAnOrderEdgeIsFound) {
  int plans = 0;
  int found = 0;
  const testing_support::Seeds seeds = SeedsOf(300);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    Plan plan = RandomPlan(seed);
    if (!MakeLive(&plan)) continue;
    Plan mutant = plan;
    for (Task& task : mutant.tasks) {
      // Copies and sources keep theirs: it is what makes them act at all, or at their rate.
      if (task.control_in.empty() || task.consumed.empty()) continue;
      for (RegisterId control : task.control_in) {
        std::erase(mutant.registers[static_cast<size_t>(control)].consumers, task.id);
      }
      task.control_in.clear();
    }
    ++plans;
    bool differs = false;
    for (uint64_t order = 0; order < 4 && !differs; ++order) {
      HashTrace trace;
      auto simulation = Simulate(mutant, trace);
      ASSERT_TRUE(simulation.ok());
      differs =
          !(*simulation)->Run(1, {.seed = seed + 1000 * order}).ok() || !CheckControlOrder(plan, trace).ok();
    }
    found += differs;
  }
  EXPECT_GT(found, plans / 10);
}

TEST(RandomPlansTest, OneSeedIsOneInterleaving) {
  Plan plan = RandomPlan(5);
  ASSERT_TRUE(scheduler::AssignSlots(&plan).ok());
  HashTrace first;
  HashTrace second;
  HashTrace other;
  const auto run = [&](HashTrace& trace, uint64_t seed) {
    auto simulation = Simulate(plan, trace);
    return simulation.ok() && (*simulation)->Run(1, {.seed = seed}).ok();
  };
  ASSERT_TRUE(run(first, 1) && run(second, 1) && run(other, 2));
  EXPECT_EQ(first.acts, second.acts);
  EXPECT_NE(first.acts, other.acts);
}

}  // namespace
}  // namespace heddle::actor
