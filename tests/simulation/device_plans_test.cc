// SPDX-License-Identifier: Apache-2.0
// Plans with a device, on a device whose memory the host must not touch and whose commands are late
// (tests/support/simulated_device.h), in every interleaving tried: the cells are those of the processor,
// however operators are shared out, and plans that forget a copy are found. On machines without an OpenCL
// device, which runs the kernels, these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actor/simulation.h"
#include "core/environment/random.h"
#include "ops/base/operator.h"
#include "ops/cells/storage.h"
#include "ops/device/opencl/opencl_devices.h"
#include "ops/frame/row_pieces.h"
#include "scheduler/schedule.h"
#include "tests/support/seeds.h"
#include "tests/support/simulated_device.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::actor {
namespace {

using scheduler::GraphUnderTest;
using scheduler::MatrixOf;
using testing_support::SimulatedDevice;

constexpr int64_t kRows = 150, kColumns = 4;
constexpr Device kGpu = {DeviceType::kOpenCl, 0};

ops::ComputeDevice* RealDevice() {
  const Result<ops::DeviceSet*> set = ops::OpenClDevices();
  return set.ok() && !(*set)->devices().empty() ? (*set)->devices().front() : nullptr;
}

// The body of real plans, which sees to it that tasks of a device find dense matrices there, and others in
// the memory of the host.
class StrictBody : public TaskBody {
 public:
  StrictBody(const PlanInstance& instance, ops::KernelContext& context)
      : body_(instance, ops::CatalogKernels(), context) {
    for (const Actor& actor : instance.actors()) tasks_.push_back(&actor.task());
  }
  Status Perform(size_t number, std::span<const Value* const> inputs, int64_t act,
                 std::span<Value> results) override {
    HEDDLE_RETURN_IF_ERROR(CheckMemories(number, inputs));
    return body_.Perform(number, inputs, act, results);
  }
  std::unique_ptr<ops::DeviceAct> BeginOnDevice(size_t number, std::span<const Value* const> inputs,
                                                int64_t act, std::span<Value> results,
                                                ops::DeviceStreams& streams,
                                                bool ends_with_its_commands) override {
    if (!CheckMemories(number, inputs).ok()) return nullptr;  // Perform tells it.
    return body_.BeginOnDevice(number, inputs, act, results, streams, ends_with_its_commands);
  }
  KernelBody& body() { return body_; }

 private:
  Status CheckMemories(size_t number, std::span<const Value* const> inputs) const {
    const Task& task = *tasks_[number];
    for (const Value* input : inputs) {
      if (input == nullptr || !input->IsMatrix() || task.phase == Phase::kTransfer) continue;
      if (task.kind == TaskKind::kSink) continue;
      if (input->matrix().IsOnDevice() == !task.id.device().IsHost()) continue;
      return Internal("task {} has cells in another memory than its device's", task.id.index());
    }
    return OkStatus();
  }

  KernelBody body_;
  std::vector<const Task*> tasks_;
};

// Commands of the device in the time of a simulation.
class CommandsOf : public OutsideEvents {
 public:
  CommandsOf(SimulatedDevice& device, Clock& clock) : device_(device) { device_.Follow(&clock); }
  ~CommandsOf() override { device_.Follow(nullptr); }
  CommandsOf(const CommandsOf&) = delete;
  CommandsOf& operator=(const CommandsOf&) = delete;
  int64_t NextNs() override { return device_.NextNs(); }
  void Happen() override { device_.Happen(); }

 private:
  SimulatedDevice& device_;
};

using Pieces = std::vector<std::map<std::string, Value>>;  // By rank: variables.

// The live-outs of a run, each in the memory of the host.
Result<Pieces> RunPlan(const Plan& plan, const Pieces& live_in, uint64_t seed, SimulatedDevice* device) {
  ops::KernelContext context;
  context.devices = device;
  HEDDLE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Simulation> simulation,
      Simulation::Create(std::make_shared<const Plan>(plan), [&](const PlanInstance& instance) {
        return std::make_unique<StrictBody>(instance, context);
      }));
  const auto body = [&](size_t rank) -> KernelBody& {
    return static_cast<StrictBody&>(simulation->body(static_cast<uint32_t>(rank))).body();
  };
  for (size_t rank = 0; rank < live_in.size(); ++rank)
    HEDDLE_RETURN_IF_ERROR(body(rank).Begin(live_in[rank]));
  std::optional<CommandsOf> commands;
  if (device != nullptr) commands.emplace(*device, simulation->clock());
  HEDDLE_RETURN_IF_ERROR(
      simulation->Run(1, {.seed = seed, .outside = commands.has_value() ? &*commands : nullptr}));
  Pieces live_out(live_in.size());
  std::map<std::string, FoundSize> sizes;
  for (size_t rank = 0; rank < live_in.size(); ++rank) {
    body(rank).TakeResults(&live_out[rank], &sizes);
    for (auto& [name, value] : live_out[rank])
      if (value.IsMatrix()) {
        HEDDLE_ASSIGN_OR_RETURN(Matrix cells, ToDense(value.matrix()));
        value = Value(std::move(cells));
      }
  }
  return live_out;
}

// A script of operators of which devices run most, and the processor some, over matrices of two widths.
Graph RandomGraph(SeededRandom& random) {
  GraphUnderTest write;
  std::vector<NodeId> wide, narrow;
  for (const char* name : {"X0", "X1"}) wide.push_back(write.Variable(name, MatrixOf(kRows, kColumns)));
  narrow.push_back(write.Variable("v", MatrixOf(kRows, 1)));
  const auto of = [&](const std::vector<NodeId>& some) { return some[random.Below(some.size())]; };
  const size_t operators = 4 + random.Below(8);
  for (size_t i = 0; i < operators; ++i) {
    const std::string name = "y" + std::to_string(i);
    switch (random.Below(8)) {
      case 0: wide.push_back(write.Op("abs", {of(wide)}, MatrixOf(kRows, kColumns))); break;
      case 1: wide.push_back(write.Op("+", {of(wide), of(wide)}, MatrixOf(kRows, kColumns))); break;
      case 2: wide.push_back(write.Op("*", {of(wide), of(narrow)}, MatrixOf(kRows, kColumns))); break;
      case 3: narrow.push_back(write.Op("rowSums", {of(wide)}, MatrixOf(kRows, 1))); break;
      case 4: write.Assign(name, write.Op("colSums", {of(wide)}, MatrixOf(1, kColumns))); break;
      case 5: write.Assign(name, write.Op("t%*%", {of(wide), of(narrow)}, MatrixOf(kColumns, 1))); break;
      case 6: wide.push_back(write.Op("rev", {of(wide)}, MatrixOf(kRows, kColumns))); break;  // The host's.
      default: write.Assign(name, of(wide));
    }
  }
  write.Assign("last", wide.back());
  write.Assign("column", narrow.back());
  return std::move(write.graph);
}

Value RandomCells(const Shape& shape, SeededRandom& random) {
  Matrix matrix = *Matrix::Dense(shape.rows, shape.columns);
  for (int64_t i = 0; i < matrix.cells(); ++i)
    matrix.mutable_data()[i] = static_cast<double>(random.Below(2'000'001)) / 1e6 - 1;
  return Value(std::move(matrix));
}

struct Case {
  Graph graph;
  int32_t ranks = 1;
  std::map<std::string, Distribution> where;
  Pieces live_in;

  explicit Case(uint64_t seed) {
    SeededRandom random(seed);
    graph = RandomGraph(random);
    ranks = 1 + static_cast<int32_t>(random.Below(3));
    live_in.resize(static_cast<size_t>(ranks));
    for (const Node& node : graph.nodes) {
      if (!node.Is("variable")) continue;
      const Distribution distribution =
          random.Below(2) == 0 ? Distribution::One() : Distribution::SplitRows(kRows, ranks);
      where[node.Text("name")] = distribution;
      const Value cells = RandomCells(node.info.shape, random);
      for (int32_t rank = 0; rank < ranks; ++rank)
        if (distribution.IsHeldBy(rank))
          live_in[static_cast<size_t>(rank)][node.Text("name")] =
              distribution.IsSplit()
                  ? *ops::SliceRows(cells, distribution.split.Begin(rank), distribution.split.End(rank))
                  : cells;
    }
  }
  Plan PlanOf(std::optional<scheduler::DeviceOptions> device) const {
    Result<Plan> plan = scheduler::Schedule(
        graph, where, {.ranks = ranks, .min_distributed_bytes = 0, .device = std::move(device)});
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? *std::move(plan) : Plan();
  }
};

scheduler::DeviceOptions OnDevice(uint64_t seed) {
  scheduler::DeviceOptions options;
  options.device = kGpu;
  using Rule = scheduler::DeviceOptions::Rule;
  options.rule = seed % 3 == 0 ? Rule::kAll : Rule::kRandom;
  options.seed = seed;
  return options;
}

class DevicePlansTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RealDevice() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  }
};

// A variable that stays on the device comes out under another name, and is compared under its own.
void ExpectSame(const Pieces& expected, const Pieces& actual) {
  for (size_t rank = 0; rank < expected.size(); ++rank)
    for (const auto& [name, value] : expected[rank]) {
      auto found = actual[rank].find(name);
      if (found == actual[rank].end()) found = actual[rank].find(NameOnDevice(name));
      ASSERT_TRUE(found != actual[rank].end()) << name << " on " << rank;
      EXPECT_TRUE(Matrix::SameCells(value.matrix(), found->second.matrix())) << name << " on " << rank;
    }
}

TEST_F(DevicePlansTest, HaveTheCellsOfTheProcessorInEveryOrder) {
  int64_t launches = 0;
  const testing_support::Seeds seeds = testing_support::SeedsOf(25);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    const Case some(seed);
    const Result<Pieces> expected = RunPlan(some.PlanOf(std::nullopt), some.live_in, seed, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    SimulatedDevice device(*RealDevice(), {.seed = seed});
    {
      const Result<Pieces> actual = RunPlan(some.PlanOf(OnDevice(seed)), some.live_in, seed, &device);
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      ExpectSame(*expected, *actual);
    }
    EXPECT_TRUE(device.faults().empty()) << testing::PrintToString(device.faults());
    EXPECT_EQ(device.bytes_in_use(), 0);
    launches += device.launches();
  }
  EXPECT_GT(launches, 30);
}

// A task reads another register than before, as a planner does that forgets a copy.
Plan ReadInstead(Plan plan, size_t task, RegisterId copy, RegisterId source) {
  Task& reader = plan.tasks[task];
  std::replace(reader.consumed.begin(), reader.consumed.end(), copy, source);
  std::erase(plan.registers[static_cast<size_t>(copy)].consumers, reader.id);
  std::vector<TaskId>& consumers = plan.registers[static_cast<size_t>(source)].consumers;
  std::erase(consumers, reader.id);
  consumers.push_back(reader.id);
  return plan;
}

// Every reader of every copy takes what is copied instead, one at a time: as without the copy, in or back.
TEST_F(DevicePlansTest, ACopyThatIsLeftOutIsFound) {
  int mutants[2] = {0, 0};
  for (uint64_t seed = 0; seed < 9; ++seed) {
    const Case some(seed);
    const Plan plan = some.PlanOf(OnDevice(seed));
    for (const Task& transfer : plan.tasks) {
      if (transfer.phase != Phase::kTransfer) continue;
      const RegisterId copy = transfer.produced[0], source = transfer.consumed[0];
      for (size_t i = 0; i < plan.tasks.size(); ++i) {
        const Task& reader = plan.tasks[i];
        if (reader.id.rank() != transfer.id.rank() || reader.kind != TaskKind::kCompute ||
            std::find(reader.consumed.begin(), reader.consumed.end(), copy) == reader.consumed.end())
          continue;
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", task " << i << " of " << plan.ToText());
        const Plan mutant = ReadInstead(plan, i, copy, source);
        EXPECT_NE(Verify(mutant).message().find("memory of"), std::string::npos) << Verify(mutant).message();
        SimulatedDevice device(*RealDevice(), {.seed = seed});
        const Status status = RunPlan(mutant, some.live_in, seed, &device).status();
        EXPECT_NE(status.message().find("cells in another memory than its device's"), std::string::npos)
            << status.ToString();
        ++mutants[transfer.id.device() == plan.registers[static_cast<size_t>(copy)].device];
      }
    }
  }
  EXPECT_GT(mutants[0], 3);
  EXPECT_GT(mutants[1], 10);
}

// A register that does not know of a reader gives its memory back before: the plan is refused, and a run of
// it does not end.
TEST_F(DevicePlansTest, MemoryThatIsGivenBackBeforeItsLastReaderIsFound) {
  int mutants = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Case some(seed);
    const Plan plan = some.PlanOf(OnDevice(seed));
    for (size_t r = 0; r < plan.registers.size(); ++r) {
      if (plan.registers[r].device.IsHost() || plan.registers[r].consumers.empty()) continue;
      Plan mutant = plan;
      mutant.registers[r].consumers.pop_back();
      EXPECT_NE(Verify(mutant).message().find("lists other consumers"), std::string::npos);
      SimulatedDevice device(*RealDevice(), {.seed = seed});
      EXPECT_FALSE(RunPlan(mutant, some.live_in, seed, &device).ok()) << "register " << r;
      ++mutants;
    }
  }
  EXPECT_GT(mutants, 10);
}

}  // namespace
}  // namespace heddle::actor
