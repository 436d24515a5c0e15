// SPDX-License-Identifier: Apache-2.0
// Plans in panels (docs/streaming.md) as the scheduler makes them, in interleavings tried at random with all
// checks of debug builds: passes that share memory never meet there, and the guard edges between what
// collects in one pass and what spreads in a later one are why.
#include <gtest/gtest.h>

#include <random>

#include "actor/simulation.h"
#include "scheduler/memory_of_plan.h"
#include "scheduler/schedule.h"
#include "tests/simulation/hash_body.h"
#include "tests/support/seeds.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::actor {
namespace {

constexpr int64_t kRows = 10'000;

// Operators by rows, reductions, and what reads both, of values of which some are panels.
Graph RandomGraph(std::mt19937_64& random) {
  scheduler::GraphUnderTest write;
  constexpr int64_t kColumns = 20;
  const ValueInfo info = scheduler::MatrixOf(kRows, kColumns), row = scheduler::MatrixOf(1, kColumns);
  std::vector<NodeId> matrices{write.Variable("v0", info), write.Variable("v1", info)};
  std::vector<NodeId> rows;
  const auto some = [&] { return matrices[random() % matrices.size()]; };
  const size_t operators = 5 + random() % 10;
  for (size_t i = 0; i < operators; ++i) {
    const NodeId a = some();
    switch (random() % 6) {
      case 0: write.Assign("out" + std::to_string(i), a); break;
      case 1:
        write.Assign("sum" + std::to_string(i),
                     write.Op("sum", {a}, ValueInfo::OfScalar(ValueType::kDouble)));
        break;
      case 2: rows.push_back(write.Op("colMeans", {a}, row)); break;
      case 3:
        if (!rows.empty()) {
          matrices.push_back(write.Op("-", {a, rows[random() % rows.size()]}, info));
          break;
        }
        [[fallthrough]];
      default: matrices.push_back(write.Op("+", {a, some()}, info));
    }
  }
  write.Assign("last", matrices.back());
  return std::move(write.graph);
}

Plan RandomPanelPlan(uint64_t seed) {
  std::mt19937_64 random(seed);
  const Graph graph = RandomGraph(random);
  scheduler::ScheduleOptions options;
  options.ranks = 1 + static_cast<int32_t>(random() % 3);
  options.min_distributed_bytes = 0;
  options.in_panels = true;
  options.panel_bytes = int64_t{64 << 10} << (random() % 4);
  std::map<std::string, Distribution> live_in;
  for (const char* const name : {"v0", "v1"}) {
    live_in[name] = options.ranks == 1 ? Distribution::One() : Distribution::SplitRows(kRows, options.ranks);
    if (random() % 2 == 0) options.panelled.insert(name);
  }
  Result<Plan> plan = scheduler::Schedule(graph, live_in, options);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  if (!plan.ok()) return Plan();
  // What is checked is what registers take: nothing here holds panels beside them.
  for (int32_t rank = 0; rank < plan->ranks; ++rank)
    plan->peak_bytes[static_cast<size_t>(rank)] -= scheduler::InTransitOn(*plan, rank).of_panels;
  return *std::move(plan);
}

Status Simulate(const Plan& plan, uint64_t seed) {
  HashTrace trace;
  auto simulation = Simulation::Create(std::make_shared<const Plan>(plan), [&](const PlanInstance& instance) {
    return std::make_unique<HashBody>(instance, trace);
  });
  HEDDLE_RETURN_IF_ERROR(simulation.status());
  HEDDLE_RETURN_IF_ERROR((*simulation)->Run(1, {.seed = seed}));
  return trace.received == EvaluateInSequence(plan) ? OkStatus() : Internal("other values than in sequence");
}

bool Spreads(const Task& task) { return task.kind == TaskKind::kUnpack || task.kind == TaskKind::kRepeat; }

// The edges that let a pass begin when what collects in an earlier one has done so: (control register, task).
std::vector<std::pair<RegisterId, TaskId>> GuardsOf(const Plan& plan) {
  std::map<TaskId, const Task*> tasks;
  for (const Task& task : plan.tasks) tasks[task.id] = &task;
  std::vector<std::pair<RegisterId, TaskId>> guards;
  for (const Register& reg : plan.registers) {
    if (!reg.control || reg.consumers.empty()) continue;
    const TaskKind from = tasks.at(reg.producer)->kind;
    if (from != TaskKind::kPack && from != TaskKind::kAccumulate) continue;
    for (const TaskId reader : reg.consumers)
      if (Spreads(*tasks.at(reader))) guards.emplace_back(reg.id, reader);
  }
  return guards;
}

TEST(PanelPlansTest, NoInterleavingNeedsMoreThanTheBlock) {
  const testing_support::Seeds seeds = testing_support::SeedsOf(60);
  size_t in_panels = 0, guards = 0;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    const Plan plan = RandomPanelPlan(seed);
    in_panels += std::any_of(plan.tasks.begin(), plan.tasks.end(), Spreads);
    guards += GuardsOf(plan).size();
    for (uint64_t order = 0; order < 3; ++order) {
      const Status status = Simulate(plan, seed + 1000 * order);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }
  EXPECT_EQ(in_panels, seeds.count());
  EXPECT_GT(guards, seeds.count() / 2);
}

TEST(PanelPlansTest, PassesWithoutTheirGuardsMeet) {
  int plans = 0, found = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    Plan plan = RandomPanelPlan(seed);
    const auto guards = GuardsOf(plan);
    for (const auto& [id, waiting] : guards) {
      std::erase(plan.registers[static_cast<size_t>(id)].consumers, waiting);
      for (Task& task : plan.tasks)
        if (task.id == waiting) std::erase(task.control_in, id);
    }
    plans += !guards.empty();
    for (uint64_t order = 0; order < 100 && !guards.empty(); ++order) {
      const Status status = Simulate(plan, seed + 1000 * order);
      if (status.message().find("I8") == std::string::npos) continue;
      ++found;
      break;
    }
  }
  EXPECT_GT(plans, 10);
  // Where nothing was at the place before, or another edge says the same, nothing meets.
  EXPECT_GT(found, plans / 3);
  std::printf("%d of %d plans need their guards\n", found, plans);
}

}  // namespace
}  // namespace heddle::actor
