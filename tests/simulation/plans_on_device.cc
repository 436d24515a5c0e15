// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/plans_on_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "actor/simulation.h"
#include "core/environment/random.h"
#include "core/programs/residence.h"
#include "ops/cells/storage.h"
#include "ops/device/opencl/opencl_devices.h"
#include "ops/device/run/device_act.h"
#include "ops/frame/row_pieces.h"
#include "ops/panels/panel_store.h"
#include "ops/panels/spill_files.h"
#include "tests/support/watched_cells.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::testing_support {
namespace {

using actor::KernelBody;
using actor::PlanInstance;
using scheduler::GraphUnderTest;
using scheduler::MatrixOf;

// The waits of the copies of one run.
struct Waits {
  int64_t count = 0;
  int64_t hasty = -1;
  std::vector<std::shared_ptr<void>> held;  // What commands use that nobody has waited for.
};

// A copy, whose wait for its commands may be left out.
class HastyAct : public ops::DeviceAct {
 public:
  HastyAct(const Surroundings& surroundings, std::unique_ptr<ops::DeviceAct> act, Waits* waits)
      : DeviceAct(surroundings), act_(std::move(act)), waits_(*waits) {}
  ~HastyAct() override {
    if (!is_hasty_) return;
    waits_.held.push_back(act_);
    waits_.held.push_back(results_);
  }
  HastyAct(const HastyAct&) = delete;
  HastyAct& operator=(const HastyAct&) = delete;

 protected:
  Status Advance() override {
    const auto is_ready = std::make_shared<bool>(false);
    act_->Step([is_ready] { *is_ready = true; });
    if (act_->next() == Place::kDone && *is_ready) {
      if (is_hasty_) results_->assign(given_.results.begin(), given_.results.end());
      Done();
      return act_->status();
    }
    if (*is_ready || waits_.count++ == waits_.hasty) {
      is_hasty_ |= !*is_ready;
      GoOn(act_->next());
      return OkStatus();
    }
    HEDDLE_ASSIGN_OR_RETURN(const ops::DeviceStreams::Stream stream, Stream());
    WaitThen(*stream.queue, act_->next());
    return OkStatus();
  }

 private:
  const std::shared_ptr<ops::DeviceAct> act_;
  Waits& waits_;
  bool is_hasty_ = false;
  const std::shared_ptr<std::vector<Value>> results_ = std::make_shared<std::vector<Value>>();
};

// The body of real plans, which sees to it that tasks of a device find dense matrices there, and others in
// the memory of the host, with cells that are there.
class StrictBody : public actor::TaskBody {
 public:
  StrictBody(const PlanInstance& instance, ops::KernelContext& context, const DeviceRun& run, Waits* waits)
      : plan_(instance.plan()),
        context_(context),
        run_(run),
        waits_(*waits),
        body_(instance, ops::CatalogKernels(), context) {
    for (const actor::Actor& actor : instance.actors()) tasks_.push_back(&actor.task());
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
    std::unique_ptr<ops::DeviceAct> begun = body_.BeginOnDevice(
        number, inputs, act, results, streams, ends_with_its_commands || run_.ends_with_commands);
    const Task& task = *tasks_[number];
    if (begun == nullptr || task.phase != Phase::kTransfer) return begun;
    return std::make_unique<HastyAct>(
        ops::DeviceAct::Surroundings{.device = task.id.device(),
                                     .stream = plan_.streams[task.id.stream()].kind,
                                     .streams = streams,
                                     .context = context_,
                                     .user = "a test",
                                     .results = results},
        std::move(begun), &waits_);
  }
  KernelBody& body() { return body_; }

 private:
  Status CheckMemories(size_t number, std::span<const Value* const> inputs) const {
    const Task& task = *tasks_[number];
    for (const Value* input : inputs) {
      if (input == nullptr || !input->IsMatrix()) continue;
      if (!input->matrix().IsOnDevice() && HasCellsTooSoon(input->matrix()))
        return Internal("task {} has cells that nothing has read back yet", task.id.index());
      if (task.phase == Phase::kTransfer || task.kind == TaskKind::kSink || task.kind == TaskKind::kRepeat)
        continue;
      if (input->matrix().IsOnDevice() == !task.id.device().IsHost()) continue;
      return Internal("task {} has cells in another memory than its device's", task.id.index());
    }
    return OkStatus();
  }
  static bool HasCellsTooSoon(const Matrix& matrix) {
    if (!matrix.IsDense() || matrix.element_type() != ElementType::kFloat64) return false;
    for (int64_t i = 0; i < matrix.cells(); ++i)
      if (IsFilled(matrix.data() + i, 8, kTooSoon)) return true;
    return false;
  }

  const Plan& plan_;
  ops::KernelContext& context_;
  const DeviceRun& run_;
  Waits& waits_;
  KernelBody body_;
  std::vector<const Task*> tasks_;
};

// Commands of the device in the time of a simulation.
class CommandsOf : public actor::OutsideEvents {
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

Graph RandomGraph(SeededRandom& random, int64_t rows) {
  GraphUnderTest write;
  const ValueInfo of_wide = MatrixOf(rows, kColumnsOfCase), of_narrow = MatrixOf(rows, 1);
  std::vector<NodeId> wide, narrow;
  for (const char* name : {"X0", "X1"}) wide.push_back(write.Variable(name, of_wide));
  narrow.push_back(write.Variable("v", of_narrow));
  const auto of = [&](const std::vector<NodeId>& some) { return some[random.Below(some.size())]; };
  const size_t operators = 4 + random.Below(8);
  for (size_t i = 0; i < operators; ++i) {
    const std::string name = "y" + std::to_string(i);
    switch (random.Below(9)) {
      case 0: wide.push_back(write.Op("abs", {of(wide)}, of_wide)); break;
      case 1: wide.push_back(write.Op("+", {of(wide), of(wide)}, of_wide)); break;
      case 2: wide.push_back(write.Op("*", {of(wide), of(narrow)}, of_wide)); break;
      case 3: narrow.push_back(write.Op("rowSums", {of(wide)}, of_narrow)); break;
      case 4: write.Assign(name, write.Op("colSums", {of(wide)}, MatrixOf(1, kColumnsOfCase))); break;
      case 5:
        write.Assign(name, write.Op("t%*%", {of(wide), of(narrow)}, MatrixOf(kColumnsOfCase, 1)));
        break;
      case 6: wide.push_back(write.Op("rowcumsum", {of(wide)}, of_wide)); break;  // The host's.
      case 7: wide.push_back(write.Op("rev", {of(wide)}, of_wide)); break;
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

}  // namespace

ops::ComputeDevice* RealDevice() {
  const Result<ops::DeviceSet*> set = ops::OpenClDevices();
  return set.ok() && !(*set)->devices().empty() ? (*set)->devices().front() : nullptr;
}

Result<Pieces> RunPlan(const Plan& plan, const Pieces& live_in, const DeviceRun& run, SimulatedDevice* device,
                       DeviceRunReport* report) {
  const std::unique_ptr<ops::SpillFiles> files = ops::MakeSpillFiles("");
  const std::unique_ptr<ops::PanelStore> store = ops::MakePanelStore(*files, /*least_panel_bytes=*/1);
  Waits waits{.hasty = run.hasty_wait};
  ops::KernelContext context;
  context.devices = device;
  context.panels = store.get();
  Pieces live_out(live_in.size());
  {
    HEDDLE_ASSIGN_OR_RETURN(
        const std::unique_ptr<actor::Simulation> simulation,
        actor::Simulation::Create(std::make_shared<const Plan>(plan), [&](const PlanInstance& instance) {
          return std::make_unique<StrictBody>(instance, context, run, &waits);
        }));
    const auto body = [&](size_t rank) -> KernelBody& {
      return static_cast<StrictBody&>(simulation->body(static_cast<uint32_t>(rank))).body();
    };
    for (size_t rank = 0; rank < live_in.size(); ++rank)
      HEDDLE_RETURN_IF_ERROR(body(rank).Begin(live_in[rank]));
    std::optional<CommandsOf> commands;
    if (device != nullptr) commands.emplace(*device, simulation->clock());
    const Status status =
        simulation->Run(1, {.seed = run.seed,
                            .most_delay_ns = run.most_delay_ns,
                            .outside = commands.has_value() ? &*commands : nullptr});
    if (report != nullptr) *report = {.waits = waits.count, .makespan = simulation->clock().MonotonicNs()};
    // What a hasty act has left behind ends before what it uses.
    while (device != nullptr && device->NextNs() != INT64_MAX) device->Happen();
    HEDDLE_RETURN_IF_ERROR(status);
    std::map<std::string, actor::FoundSize> sizes;
    for (size_t rank = 0; rank < live_in.size(); ++rank) body(rank).TakeResults(&live_out[rank], &sizes);
  }
  for (auto& variables : live_out)
    for (auto& [name, value] : variables) {
      if (value.IsPanels()) {
        HEDDLE_ASSIGN_OR_RETURN(value, value.panels()->Rows(0, value.shape().rows));
      }
      if (!value.IsMatrix()) continue;
      HEDDLE_ASSIGN_OR_RETURN(Matrix cells, ToDense(value.matrix()));
      value = Value(std::move(cells));
    }
  return live_out;
}

CaseOnDevice::CaseOnDevice(uint64_t seed, int64_t rows, int32_t most_ranks) {
  SeededRandom random(seed);
  graph = RandomGraph(random, rows);
  ranks = 1 + static_cast<int32_t>(random.Below(static_cast<uint64_t>(most_ranks)));
  live_in.resize(static_cast<size_t>(ranks));
  for (const Node& node : graph.nodes) {
    if (!node.Is("variable")) continue;
    const Distribution distribution =
        random.Below(2) == 0 ? Distribution::One() : Distribution::SplitRows(rows, ranks);
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

Plan CaseOnDevice::PlanOf(std::optional<scheduler::DeviceOptions> device, int64_t panel_bytes) const {
  Result<Plan> plan = scheduler::Schedule(graph, where,
                                          {.ranks = ranks,
                                           .min_distributed_bytes = 0,
                                           .in_panels = panel_bytes > 0,
                                           .panel_bytes = panel_bytes,
                                           .device = std::move(device)});
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return plan.ok() ? *std::move(plan) : Plan();
}

Graph ExpOfPanels(int64_t rows) {
  const ValueInfo info = MatrixOf(rows, kColumnsOfCase);
  GraphUnderTest write;
  write.Assign("Y", write.Op("exp", {write.Op("abs", {write.Variable("X", info)}, info)}, info));
  return std::move(write.graph);
}

scheduler::DeviceOptions OptionsOfDevice(uint64_t seed) {
  scheduler::DeviceOptions options;
  options.device = kGpu;
  using Rule = scheduler::DeviceOptions::Rule;
  options.rule = seed % 3 == 0 ? Rule::kAll : Rule::kRandom;
  options.seed = seed;
  return options;
}

void ExpectSame(const Pieces& expected, const Pieces& actual) {
  for (size_t rank = 0; rank < expected.size(); ++rank)
    for (const auto& [name, value] : expected[rank]) {
      auto found = actual[rank].find(name);
      if (found == actual[rank].end()) found = actual[rank].find(NameOnDevice(name));
      ASSERT_TRUE(found != actual[rank].end()) << name << " on " << rank;
      EXPECT_TRUE(Matrix::SameCells(value.matrix(), found->second.matrix())) << name << " on " << rank;
    }
}

}  // namespace heddle::testing_support
