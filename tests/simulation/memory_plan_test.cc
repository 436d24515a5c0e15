// SPDX-License-Identifier: Apache-2.0
// The memory that the scheduler plans is enough in every interleaving tried (I8), and a guard edge too
// few is found. Debug builds only: the others keep no ledger.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "actor/memory_ledger.h"
#include "actor/simulation.h"
#include "scheduler/schedule.h"
#include "tests/simulation/hash_body.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::actor {
namespace {

// A script of cell-wise operators on matrices of a few sizes, with sums and live-outs in between.
Graph RandomGraph(std::mt19937_64& random) {
  scheduler::GraphUnderTest write;
  Graph& graph = write.graph;
  std::vector<NodeId> matrices;
  static constexpr int64_t kColumns[] = {1, 1, 20, 50};
  const auto some_info = [&] { return scheduler::MatrixOf(10'000, kColumns[random() % 4]); };
  for (int i = 0; i < 2; ++i) matrices.push_back(write.Variable("v" + std::to_string(i), some_info()));
  const auto some = [&] { return matrices[random() % matrices.size()]; };
  const size_t operators = 6 + random() % 20;
  for (size_t i = 0; i < operators; ++i) {
    const NodeId a = some();
    const NodeId b = some();
    const bool fits = graph[a].info == graph[b].info;
    switch (random() % 6) {
      case 0: write.Assign("out" + std::to_string(i), a); break;
      case 1:
        write.Assign("sum" + std::to_string(i),
                     write.Op("sum", {a}, ValueInfo::OfScalar(ValueType::kDouble)));
        break;
      default:
        matrices.push_back(write.Op(
            fits ? "+" : "abs", fits ? std::vector<NodeId>{a, b} : std::vector<NodeId>{a}, graph[a].info));
    }
  }
  write.Assign("last", matrices.back());
  return std::move(write.graph);
}

Plan RandomScheduledPlan(uint64_t seed) {
  std::mt19937_64 random(seed);
  const Graph graph = RandomGraph(random);
  const auto ranks = 1 + static_cast<int32_t>(random() % 3);
  std::map<std::string, Distribution> live_in;
  for (const Node& node : graph.nodes)
    if (node.Is("variable"))
      live_in[node.Text("name")] =
          random() % 2 == 0 ? Distribution::One() : Distribution::SplitRows(node.info.shape.rows, ranks);
  Result<Plan> plan = scheduler::Schedule(graph, live_in, {.ranks = ranks, .min_distributed_bytes = 0});
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return plan.ok() ? *std::move(plan) : Plan();
}

Status Simulate(const Plan& plan, uint64_t seed) {
  HashTrace trace;
  auto simulation = Simulation::Create(std::make_shared<const Plan>(plan), [&](const PlanInstance& instance) {
    return std::make_unique<HashBody>(instance, trace);
  });
  return simulation.ok() ? (*simulation)->Run(1, {.seed = seed}) : simulation.status();
}

// The guard edges of a plan: (control register, position among its consumers). Effects, the other reason for
// control registers, do not occur in these graphs.
std::vector<std::pair<size_t, size_t>> GuardsOf(const Plan& plan) {
  std::vector<std::pair<size_t, size_t>> guards;
  for (size_t i = 0; i < plan.registers.size(); ++i) {
    if (!plan.registers[i].control) continue;
    for (size_t j = 0; j < plan.registers[i].consumers.size(); ++j) guards.emplace_back(i, j);
  }
  return guards;
}

Plan Without(const Plan& plan, std::pair<size_t, size_t> guard) {
  Plan mutant = plan;
  Register& reg = mutant.registers[guard.first];
  const TaskId waiting = reg.consumers[guard.second];
  std::erase(reg.consumers, waiting);
  for (Task& task : mutant.tasks)
    if (task.id == waiting) std::erase(task.control_in, reg.id);
  return mutant;
}

class MemoryPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    // I8 is asserted in debug builds only (presets dev, asan, tsan): there is nothing to see in
    // others.
    if (!kMemoryIsChecked) GTEST_SKIP() << "release builds keep no ledger";
  }
};

TEST_F(MemoryPlanTest, NoInterleavingNeedsMoreThanTheBlock) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    const Plan plan = RandomScheduledPlan(seed);
    for (uint64_t order = 0; order < 3; ++order) {
      const Status status = Simulate(plan, seed + 1000 * order);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }
}

// Removes `guards` and looks for an interleaving in which two registers meet.
bool IsFound(Plan mutant, const std::vector<std::pair<size_t, size_t>>& guards, uint64_t seed) {
  for (auto guard = guards.rbegin(); guard != guards.rend(); ++guard) mutant = Without(mutant, *guard);
  for (uint64_t order = 0; order < 40; ++order) {
    const Status status = Simulate(mutant, seed + 1000 * order);
    if (status.ok()) continue;
    EXPECT_NE(status.message().find("I8"), std::string::npos) << status.ToString();
    return true;
  }
  return false;
}

TEST_F(MemoryPlanTest, RemovingGuardsIsFound) {
  int guards = 0;
  int found = 0;
  int plans = 0;
  int found_plans = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Plan plan = RandomScheduledPlan(seed);
    const auto all = GuardsOf(plan);
    for (const auto& guard : all) found += IsFound(plan, {guard}, seed);
    guards += static_cast<int>(all.size());
    plans += !all.empty();
    found_plans += !all.empty() && IsFound(plan, all, seed);
  }
  EXPECT_GT(guards, 100);
  // A single guard may be one of several that say the same, or be implied by a way over another rank.
  EXPECT_GT(found, guards * 7 / 10);
  EXPECT_GT(found_plans, plans * 9 / 10);
}

// Against the bound that no plan beats: the bytes alive at once when tasks act in plan order.
TEST_F(MemoryPlanTest, BlocksAreHardlyLargerThanWhatIsAlive) {
  double blocks = 0;
  double alive = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Plan plan = RandomScheduledPlan(seed);
    for (uint32_t rank = 0; rank < static_cast<uint32_t>(plan.ranks); ++rank) {
      std::vector<const Task*> tasks;
      for (const Task& task : plan.tasks)
        if (task.id.rank() == rank) tasks.push_back(&task);
      const auto position = [&](TaskId id) {
        return static_cast<size_t>(
            std::find_if(tasks.begin(), tasks.end(), [&](const Task* task) { return task->id == id; }) -
            tasks.begin());
      };
      std::vector<int64_t> at(tasks.size() + 1, 0);
      for (const Register& reg : plan.registers) {
        if (reg.producer.rank() != rank || reg.bytes == 0) continue;
        const Task& producer = *tasks[position(reg.producer)];
        const bool is_live_in =
            plan.graph[producer.node].Is("variable") && producer.kind == TaskKind::kSource;
        size_t end = position(reg.producer);
        for (TaskId id : reg.consumers) {
          const size_t reader = position(id);  // Of another rank: behind the last.
          const bool keeps = reader < tasks.size() && tasks[reader]->kind == TaskKind::kSink;
          end = std::max(end, keeps ? tasks.size() : reader);
        }
        for (size_t i = is_live_in ? 0 : position(reg.producer); i <= (is_live_in ? tasks.size() : end); ++i)
          at[i] += reg.bytes;
      }
      alive += static_cast<double>(*std::max_element(at.begin(), at.end()));
      blocks += static_cast<double>(plan.peak_bytes[rank]);
    }
  }
  EXPECT_GE(blocks, alive);
  EXPECT_LE(blocks, 1.05 * alive) << blocks / alive;
}

}  // namespace
}  // namespace heddle::actor
