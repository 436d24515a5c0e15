// SPDX-License-Identifier: Apache-2.0
// Plans for ranks that have a device: what it can run is on its streams, and values are copied where the
// other side reads them, once.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "scheduler/devices/choose_device.h"
#include "scheduler/devices/scratch_on_device.h"
#include "scheduler/liveness.h"
#include "scheduler/nodes_in_panels.h"
#include "scheduler/place.h"
#include "scheduler/plan_builder.h"
#include "scheduler/plan_memory.h"
#include "scheduler/schedule.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

constexpr Device kGpu = {DeviceType::kOpenCl, 0};

struct Counts {
  int on_device = 0, copies_in = 0, copies_out = 0;
  bool operator==(const Counts&) const = default;
};

Counts CountTasks(const Plan& plan) {
  Counts counts;
  for (const Task& task : plan.tasks) {
    const StreamKind kind = plan.streams[task.id.stream()].kind;
    if (task.id.device().IsHost()) continue;
    EXPECT_EQ(task.phase == Phase::kTransfer, kind != StreamKind::kCompute);
    counts.on_device += kind == StreamKind::kCompute;
    counts.copies_in += kind == StreamKind::kCopyIn;
    counts.copies_out += kind == StreamKind::kCopyOut;
  }
  return counts;
}

Result<Plan> PlanOf(const GraphUnderTest& g, const std::map<std::string, Distribution>& live_in,
                    ScheduleOptions options) {
  if (!options.device) options.device.emplace();
  options.device->device = kGpu;
  HEDDLE_ASSIGN_OR_RETURN(Plan plan, Schedule(g.graph, live_in, options));
  EXPECT_TRUE(CheckLive(plan).ok());
  const Result<Plan> parsed = Plan::Parse(plan.ToText());
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  if (parsed.ok()) {
    EXPECT_EQ(parsed->ToText(), plan.ToText());
  }
  return plan;
}

// exp(X) and rowSums(exp(X)) there; rowcumsum(X) here.
GraphUnderTest ExpAndSums() {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  const NodeId y = g.Op("exp", {x}, MatrixOf(100'000, 20));
  const NodeId s = g.Op("rowSums", {y}, MatrixOf(100'000, 1));
  const NodeId q = g.Op("*", {y, s}, MatrixOf(100'000, 20));
  const NodeId t = g.Op("rowcumsum", {x}, MatrixOf(100'000, 20));
  g.Assign("Q", q);
  g.Assign("T", t);
  return g;
}

TEST(DevicePlanTest, EachValueIsCopiedOnce) {
  const Result<Plan> plan = PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 3, .copies_in = 1, .copies_out = 0}));
}

TEST(DevicePlanTest, EveryRankHasItsOwn) {
  const Result<Plan> plan =
      PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, {.ranks = 3, .min_distributed_bytes = 0});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const Counts counts = CountTasks(*plan);
  EXPECT_EQ(counts.on_device, 9);
  EXPECT_EQ(counts.copies_in, 3);
  EXPECT_EQ(counts.copies_out, 0);
}

// A small value that every rank computes for itself is read by the host of each.
TEST(DevicePlanTest, WhatEveryRankComputesComesBack) {
  GraphUnderTest g;
  const NodeId v = g.Variable("v", MatrixOf(40, 3));
  const NodeId e = g.Op("exp", {v}, MatrixOf(40, 3));
  g.Assign("T", g.Op("rowcumsum", {e}, MatrixOf(40, 3)));
  const Result<Plan> plan = PlanOf(g, {{"v", Distribution::Each()}}, {.ranks = 2});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const Counts counts = CountTasks(*plan);
  EXPECT_GT(counts.on_device, 0);
  EXPECT_EQ(counts.copies_out, counts.on_device);
}

TEST(DevicePlanTest, ReductionsComeBackToTheHost) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  const NodeId v = g.Variable("v", MatrixOf(20, 1));
  g.Assign("q", g.Op("t%*%", {x, g.Op("%*%", {x, v}, MatrixOf(100'000, 1))}, MatrixOf(20, 1)));
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}, {"v", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 2, .copies_in = 2, .copies_out = 0}));
  for (const Register& reg : plan->registers)
    if (plan->streams[reg.producer.stream()].kind == StreamKind::kCopyIn) {
      EXPECT_EQ(reg.device, kGpu);
    }
}

// Operators with kernels of their own leave what they make on the device: no copy between them.
TEST(DevicePlanTest, WideProductsAndMovesStay) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  const NodeId c = g.Op("t%*%", {x, x}, MatrixOf(20, 20));
  const NodeId p = g.Op("%*%", {x, g.Op("exp", {c}, MatrixOf(20, 20))}, MatrixOf(100'000, 20));
  g.Assign("q", g.Op("cumsum", {g.Op("t", {p}, MatrixOf(20, 100'000))}, MatrixOf(20, 100'000)));
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 5, .copies_in = 1, .copies_out = 0}));
}

const Binding* Find(const std::vector<Binding>& bindings, const std::string& variable) {
  const auto found = std::find_if(bindings.begin(), bindings.end(),
                                  [&](const Binding& binding) { return binding.variable == variable; });
  return found == bindings.end() ? nullptr : &*found;
}

// What the next block finds there: Q as it was made, X with the copy that this one has made.
TEST(DevicePlanTest, VariablesStayOnTheDevice) {
  for (const int ranks : {1, 3}) {
    const Result<Plan> plan = PlanOf(ExpAndSums(), {{"X", Distribution::One()}},
                                     {.ranks = ranks, .min_distributed_bytes = ranks == 1 ? 8 << 20 : 0});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    ASSERT_NE(Find(plan->live_out, "Q"), nullptr);
    EXPECT_EQ(Find(plan->live_out, "Q")->device, kGpu);
    EXPECT_EQ(Find(plan->live_out, "T")->device, Device());
    // Of several ranks each has copied its rows alone.
    ASSERT_EQ(Find(plan->live_out, "X") != nullptr, ranks == 1);
    if (ranks == 1) {
      EXPECT_EQ(Find(plan->live_out, "X")->device, kGpu);
    }
  }
}

ScheduleOptions WithX(Residence residence) {
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{.residences = {{"X", residence}}};
  return options;
}

TEST(DevicePlanTest, AVariableThatIsThereIsNotCopiedAgain) {
  const Result<Plan> both =
      PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, WithX({.on_host = true, .on_device = true}));
  ASSERT_TRUE(both.ok()) << both.status().ToString();
  EXPECT_EQ(CountTasks(*both), (Counts{.on_device = 3, .copies_in = 0, .copies_out = 0}));
  EXPECT_EQ(both->live_in.size(), 2U);
  EXPECT_EQ(Find(both->live_out, "X"), nullptr);
  // rowcumsum(X) reads what is copied from the device, and the copy stays.
  const Result<Plan> there =
      PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, WithX({.on_host = false, .on_device = true}));
  ASSERT_TRUE(there.ok()) << there.status().ToString();
  EXPECT_EQ(CountTasks(*there), (Counts{.on_device = 3, .copies_in = 0, .copies_out = 1}));
  EXPECT_EQ(there->live_in.size(), 1U);
  EXPECT_EQ(there->live_in[0].device, kGpu);
  ASSERT_NE(Find(there->live_out, "X"), nullptr);
  EXPECT_EQ(Find(there->live_out, "X")->device, Device());
}

// What is replaced leaves no copy behind.
TEST(DevicePlanTest, AVariableThatIsReplacedKeepsNoCopy) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  g.Assign("X", g.Op("exp", {x}, MatrixOf(100'000, 20)));
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  ASSERT_EQ(plan->live_out.size(), 1U);
  EXPECT_EQ(plan->live_out[0].device, kGpu);
}

// X[1, 1] = 0 waits for the copy of X, so that it may write over X, where X is replaced; not where the
// variable keeps the cells, of which the update makes others anyway.
TEST(DevicePlanTest, AnUpdateWaitsForACopyThatLetsItWriteInPlace) {
  for (const char* const name : {"X", "Y"}) {
    GraphUnderTest g;
    const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
    const NodeId v = g.Variable("v", MatrixOf(1, 1));
    g.Assign("E", g.Op("exp", {x}, MatrixOf(100'000, 20)));
    const NodeId one = g.Variable("one", ValueInfo::OfScalar(ValueType::kDouble));
    const NodeId update = g.Op("indexAssign", {x, v, one, one, one, one}, MatrixOf(100'000, 20));
    g.Assign(name, update);
    const Result<Plan> plan =
        PlanOf(g, {{"X", Distribution::One()}, {"v", Distribution::One()}, {"one", Distribution::Each()}},
               {.ranks = 1});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    const auto found = std::find_if(plan->tasks.begin(), plan->tasks.end(),
                                    [&](const Task& task) { return task.node == update; });
    ASSERT_NE(found, plan->tasks.end());
    const Register& updated = plan->registers[static_cast<size_t>(found->consumed[0])];
    const auto is_copy = [&](TaskId id) {
      return plan->streams[id.stream()].kind == StreamKind::kCopyIn;
    };
    EXPECT_TRUE(std::any_of(updated.consumers.begin(), updated.consumers.end(), is_copy));
    const bool waits = std::any_of(found->control_in.begin(), found->control_in.end(), [&](RegisterId id) {
      return is_copy(plan->registers[static_cast<size_t>(id)].producer);
    });
    EXPECT_EQ(waits, std::string_view(name) == "X");
    EXPECT_EQ(found->control_in.size(), waits ? 1U : 0U);
  }
}

TEST(DevicePlanTest, MemoryOfTheDeviceIsItsOwn) {
  const Result<Plan> plan = PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  // There X and exp(X), sums and the result, which take the place of nothing; here X and rowcumsum(X).
  EXPECT_GE(PeakOnDevice(*plan, kGpu), 3 * 16'000'000);
  EXPECT_LT(PeakOnDevice(*plan, kGpu), 4 * 16'000'000);
  EXPECT_GE(plan->peak_bytes[0], 2 * 16'000'000);
  EXPECT_LT(plan->peak_bytes[0], 3 * 16'000'000);
}

// Where the device computes in the memory of the host, what is there counts beside what is here.
TEST(DevicePlanTest, MemoryOfADeviceOfTheHostIsTheRanks) {
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{};
  const Result<Plan> other = PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  options.device->description = {.device = kGpu, .is_host = true};
  const Result<Plan> plan = PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const int64_t there = PeakOnDevice(*plan, kGpu) + ScratchOnDevice(*plan, options.device->description);
  EXPECT_EQ(plan->peak_bytes[0], other->peak_bytes[0] + there);
  EXPECT_EQ(plan->pool_bytes[0], other->pool_bytes[0] + there);
  // A limit that is enough for what is here refuses both; in panels both have room.
  options.memory_bytes = plan->peak_bytes[0] - 1;
  EXPECT_EQ(Schedule(ExpAndSums().graph, {{"X", Distribution::One()}}, options).status().code(),
            StatusCode::kResourceExhausted);
  options.memory_bytes = 60'000'000;
  options.in_panels = true;
  const Result<Plan> in_panels = PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(in_panels.ok()) << in_panels.status().ToString();
  EXPECT_LE(in_panels->peak_bytes[0], 60'000'000);
  EXPECT_GT(PeakOnDevice(*in_panels, kGpu), 0);
  EXPECT_GT(CountTasks(*in_panels).on_device, 0);
}

// So it does where sizes are known only when the plan runs.
TEST(DevicePlanTest, MemoryOfADeviceOfTheHostCountsBesideOpenSizes) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  g.Assign("Y", g.Op("exp", {x}, MatrixOf(100'000, 20)));
  const NodeId margin = g.Op("literal", {}, ValueInfo::OfScalar(ValueType::kString));
  g.graph[margin].SetAttribute("value", Scalar("rows"));
  g.Assign("R", g.Op("removeEmpty", {x, margin}, MatrixOf(kUnknown, 20)));
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{};
  const Result<Plan> other = PlanOf(g, {{"X", Distribution::One()}}, options);
  options.device->description = {.device = kGpu, .is_host = true};
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok() && other.ok()) << plan.status().ToString();
  const int64_t there = plan->pool_bytes[0] - other->pool_bytes[0];
  EXPECT_GE(there, 2 * 16'000'000);
  EXPECT_EQ(MostPoolBytes(*plan)[0], MostPoolBytes(*other)[0] + there);
  EXPECT_GT(MostPoolBytes(*other)[0], other->pool_bytes[0]);
}

// Entries of CSR matrices count as far as somebody has counted those of variables: of cells that are computed
// one by one, and of copies. A product keeps all that one of its factors has.
TEST(DevicePlanTest, EntriesOfCsrMatricesCount) {
  GraphUnderTest g;
  const ValueInfo info = ValueInfo::OfMatrix({100'000, 20}, Format::kSparse);
  const NodeId x = g.Variable("X", info), y = g.Variable("Y", info), z = g.Variable("Z", info);
  const NodeId product = g.Op("*", {x, y}, info);
  g.Assign("S", g.Op("+", {product, x}, info));
  g.Assign("T", g.Op("abs", {z}, info));
  const Result<Plan> plain = PlanOf(
      g, {{"X", Distribution::One()}, {"Y", Distribution::One()}, {"Z", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plain.ok()) << plain.status().ToString();
  ScheduleOptions options{.ranks = 1, .most_entries = {{"X", std::vector<int64_t>(7, 1000)},
                                                       {"Y", std::vector<int64_t>(7, 3000)}}};
  const Result<Plan> plan = PlanOf(
      g, {{"X", Distribution::One()}, {"Y", Distribution::One()}, {"Z", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  constexpr int64_t kEntryBytes = 12, kOffsetBytes = 800'008;
  std::multiset<int64_t> entries;
  for (const Register& reg : plan->registers) {
    if (reg.control || reg.info.format != Format::kSparse) continue;
    if (reg.device.IsHost()) {
      EXPECT_EQ(reg.bytes, kOffsetBytes);
    } else {
      entries.insert((reg.bytes - kOffsetBytes) / kEntryBytes);
    }
  }
  // Z and abs(Z), the copies of X and Y, their product, and the sum.
  EXPECT_EQ(entries, (std::multiset<int64_t>{0, 0, 1000, 3000, 3000, 4000}));
  EXPECT_GE(PeakOnDevice(*plan, kGpu), PeakOnDevice(*plain, kGpu) + 7000 * kEntryBytes);
}

// Rows go there a panel at a time: X for two operators, what they make back, and nothing of what is between.
TEST(DevicePlanTest, WhatTheDeviceHasNoRoomForGoesThroughItInPanels) {
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{.memory_bytes = 40'000'000};
  const Result<Plan> plan = PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 3, .copies_in = 1, .copies_out = 1}));
  for (const Task& task : plan->tasks)
    if (!task.id.device().IsHost() && task.phase != Phase::kTransfer) {
      EXPECT_GT(task.panel_rows, 0);
    }
  // X, exp(X), its sums and the product, of two panels each.
  int on_device = 0;
  int64_t bytes = 0;
  for (const Register& reg : plan->registers) {
    if (reg.device.IsHost()) continue;
    ++on_device;
    EXPECT_EQ(reg.slots, 2);
    bytes += reg.slots * reg.bytes;
  }
  EXPECT_EQ(on_device, 4);
  EXPECT_EQ(PeakOnDevice(*plan, kGpu), bytes);
  EXPECT_LE(bytes, 40'000'000);
}

// v is copied there once, and each panel of X is multiplied with it; the lists of t(X) %*% q are the host's.
TEST(DevicePlanTest, WhatAllPanelsReadIsCopiedOnce) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  const NodeId v = g.Variable("v", MatrixOf(20, 1));
  g.Assign("q", g.Op("t%*%", {x, g.Op("%*%", {x, v}, MatrixOf(100'000, 1))}, MatrixOf(20, 1)));
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{.memory_bytes = 4'000'000};
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}, {"v", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 2, .copies_in = 2, .copies_out = 0}));
  int repeated = 0;
  for (const Task& task : plan->tasks) {
    if (task.kind != TaskKind::kRepeat || task.consumed.empty()) continue;
    const Register& source = plan->registers[static_cast<size_t>(task.consumed[0])];
    const Register& made = plan->registers[static_cast<size_t>(task.produced[0])];
    EXPECT_EQ(source.device, kGpu);
    EXPECT_EQ(made.device, kGpu);
    EXPECT_EQ(source.slots, 1);
    EXPECT_EQ(made.bytes, 0) << "the cells are those of what is repeated";
    ++repeated;
  }
  EXPECT_EQ(repeated, 1);
  EXPECT_LE(PeakOnDevice(*plan, kGpu), 4'000'000);
}

// Half of the memory, half of the rows. Where two panels of everything are too much, operators copy within
// their acts.
TEST(DevicePlanTest, PanelsAreAsHighAsTheDeviceHasRoom) {
  int64_t last = INT64_MAX;
  for (const int64_t memory : {40'000'000, 20'000'000, 10'000'000, 5'000'000}) {
    ScheduleOptions options{.ranks = 1};
    options.device = DeviceOptions{.memory_bytes = memory};
    const Result<Plan> plan = PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, options);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    int64_t height = 0;
    for (const Task& task : plan->tasks)
      if (!task.id.device().IsHost()) height = std::max(height, task.panel_rows);
    EXPECT_GT(height, 0);
    EXPECT_LE(height, last);
    last = height;
    EXPECT_LE(PeakOnDevice(*plan, kGpu), memory);
    EXPECT_GT(PeakOnDevice(*plan, kGpu), 0);
  }
  // Panels that are reduced are granules, of 2048 rows here.
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  g.Assign("s", g.Op("colSums", {g.Op("exp", {x}, MatrixOf(100'000, 20))}, MatrixOf(1, 20)));
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{.memory_bytes = 1'000'000};
  const Result<Plan> none = PlanOf(g, {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(none.ok()) << none.status().ToString();
  EXPECT_EQ(CountTasks(*none), (Counts{.on_device = 2}));
  EXPECT_EQ(PeakOnDevice(*none, kGpu), 0);
}

// What reads panels as it needs them, and makes some, is the processor's; what is cut into panels of them is
// copied.
TEST(DevicePlanTest, OperatorsInStagesAreTheHosts) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  const NodeId r = g.Op("rev", {g.Op("exp", {x}, MatrixOf(100'000, 20))}, MatrixOf(100'000, 20));
  g.Assign("s", g.Op("colSums", {g.Op("abs", {r}, MatrixOf(100'000, 20))}, MatrixOf(1, 20)));
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{.memory_bytes = 4'000'000};
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 3, .copies_in = 2, .copies_out = 1}));
  for (const Task& task : plan->tasks)
    if (task.node == r) {
      EXPECT_TRUE(task.id.device().IsHost() || task.phase == Phase::kTransfer);
    }
}

// What acts once in a plan in panels has all that it reads and makes there at once: what has no room for that
// is the host's, and keeps nothing else from the device.
TEST(DevicePlanTest, WhatActsOnceAndHasNoRoomIsTheHosts) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20)), v = g.Variable("v", MatrixOf(20, 20));
  const NodeId both = g.Op("rbind", {x, x}, MatrixOf(200'000, 20));
  const NodeId turned = g.Op("t", {v}, MatrixOf(20, 20));
  const NodeId product = g.Op("%*%", {both, turned}, MatrixOf(200'000, 20));
  g.Assign("Y", product);
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{.memory_bytes = 8'000'000};
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}, {"v", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  std::set<NodeId> there;
  for (const Task& task : plan->tasks)
    if (!task.id.device().IsHost() && task.phase != Phase::kTransfer) there.insert(task.node);
  EXPECT_EQ(there, std::set<NodeId>({turned, product}));
  // v and panels of rbind(X, X) in, panels of Y out.
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 2, .copies_in = 2, .copies_out = 1}));
  EXPECT_LE(PeakOnDevice(*plan, kGpu), 8'000'000);
}

// What an operator works with there counts: t(X) %*% X keeps payloads of leaves.
TEST(DevicePlanTest, WhatOperatorsWorkWithThereCounts) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 200));
  g.Assign("C", g.Op("t%*%", {x, x}, MatrixOf(200, 200)));
  ScheduleOptions options{.ranks = 1};
  options.device = DeviceOptions{
      .description = {.memory_bytes = int64_t{1} << 40, .largest_allocation_bytes = int64_t{1} << 40}};
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  ops::DeviceDescription device = options.device->description;
  device.device = kGpu;
  // 49 leaves of 2048 rows, with a payload of 320 KB each.
  const int64_t scratch = ScratchOnDevice(*plan, device);
  EXPECT_GT(scratch, 49 * 320'000);
  EXPECT_LT(scratch, 2 * 49 * 320'000);
  const int64_t values = PeakOnDevice(*plan, kGpu);
  EXPECT_GT(values, 160'000'000);
  const auto is_whole = [&](int64_t memory_bytes) {
    options.device->memory_bytes = memory_bytes;
    const Result<Plan> tried = PlanOf(g, {{"X", Distribution::One()}}, options);
    EXPECT_TRUE(tried.ok()) << tried.status().ToString();
    return tried.ok() && std::all_of(tried->tasks.begin(), tried->tasks.end(),
                                     [](const Task& task) { return task.panel_rows == 0; });
  };
  EXPECT_TRUE(is_whole(values + scratch));
  EXPECT_FALSE(is_whole(values + scratch - 1));
}

// A matrix larger than the device gives at once is not there, however much memory it has.
TEST(DevicePlanTest, MatricesThatAreTooLargeStayHere) {
  for (const DeviceOptions::Rule rule :
       {DeviceOptions::Rule::kAll, DeviceOptions::Rule::kByCost, DeviceOptions::Rule::kRandom}) {
    DeviceOptions options{.rule = rule, .seed = 3, .rates = {1e15, 1e15, 1e15, 1e15, 0}};
    const GraphUnderTest g = ExpAndSums();
    const std::vector<double> host_ns(g.graph.nodes.size(), 1e9);
    options.description.largest_allocation_bytes = 16'000'000;
    const std::vector<bool> fitting = ChooseDevice(g.graph, host_ns, 1, nullptr, options);
    EXPECT_GT(std::count(fitting.begin(), fitting.end(), true), 0);
    options.description.largest_allocation_bytes -= 1;
    const std::vector<bool> large = ChooseDevice(g.graph, host_ns, 1, nullptr, options);
    EXPECT_EQ(std::count(large.begin(), large.end(), true), 0);
    EXPECT_EQ(CanRunOn(g.graph, 1, 1, true, options).message(),
              "on a device: a matrix of 16000000 bytes, where it gives 15999999 at once");
    // Two ranks have half of the rows each; in panels there are a few.
    EXPECT_EQ(ChooseDevice(g.graph, host_ns, 2, nullptr, options), fitting);
    const std::vector<NodeInPanels> panels(g.graph.nodes.size(), {.pass = 0, .acts = 8});
    EXPECT_EQ(ChooseDevice(g.graph, host_ns, 1, &panels, options),
              ChooseDevice(g.graph, host_ns, 1, &panels, {.rule = rule, .seed = 3, .rates = options.rates}));
  }
}

// ---- By cost. A device of ten times the processor's rates, whose copies take as long as the processor
// takes.
ScheduleOptions ByCost(double reads) {
  ScheduleOptions options{.ranks = 1};
  const double host = options.constants.read_bytes_per_ns * 1e9;
  options.device = DeviceOptions{.rule = DeviceOptions::Rule::kByCost,
                                 .rates = {.copy_in = host,
                                           .copy_out = host,
                                           .memory = 10 * host,
                                           .fma = 10e9 * options.constants.work_per_ns,
                                           .launch_ns = 5e3},
                                 .reads = {{"X", reads}}};
  return options;
}

GraphUnderTest OneSum() {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  g.Assign("s", g.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble)));
  return g;
}

TEST(DevicePlanTest, ByCostACopyMustPay) {
  const auto count = [](const GraphUnderTest& g, ScheduleOptions options) {
    const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}}, std::move(options));
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? CountTasks(*plan) : Counts();
  };
  // A sum that is computed once is not worth the copy; one of a hundred rounds is, and one of what is there.
  EXPECT_EQ(count(OneSum(), ByCost(1)), Counts());
  EXPECT_EQ(count(OneSum(), ByCost(100)), (Counts{.on_device = 1, .copies_in = 1}));
  ScheduleOptions there = ByCost(1);
  there.device->residences = {{"X", {.on_host = true, .on_device = true}}};
  EXPECT_EQ(count(OneSum(), there), (Counts{.on_device = 1}));
  // Small values stay here: a launch takes longer than they take.
  GraphUnderTest small;
  const NodeId x = small.Variable("X", MatrixOf(10, 10));
  small.Assign("s", small.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble)));
  EXPECT_EQ(count(small, ByCost(100)), Counts());
}

// In panels, too, operators of a pass go there together, and what another pass computes stays here: X, which
// each pass reads anew, is worth a copy for ten operators and not for one.
TEST(DevicePlanTest, ByCostWholePassesGo) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  NodeId y = x;
  for (int i = 0; i < 10; ++i) y = g.Op("exp", {y}, MatrixOf(100'000, 20));
  const NodeId means = g.Op("colMeans", {y}, MatrixOf(1, 20));
  const NodeId centred = g.Op("-", {x, means}, MatrixOf(100'000, 20));
  g.Assign("s", g.Op("sum", {centred}, ValueInfo::OfScalar(ValueType::kDouble)));
  ScheduleOptions options = ByCost(100);  // Of loops: a plan in panels copies in each round.
  options.in_panels = true;
  options.panel_bytes = 4 << 20;
  options.device->rates.launch_ns = 10;
  options.device->rates.copy_in /= 4;
  const Result<Plan> plan = PlanOf(g, {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  std::set<NodeId> there;
  for (const Task& task : plan->tasks)
    if (!task.id.device().IsHost() && task.phase != Phase::kTransfer) there.insert(task.node);
  std::set<NodeId> expected;
  for (NodeId id = x + 1; id <= means; ++id) expected.insert(id);
  EXPECT_EQ(there, expected);
  EXPECT_EQ(CountTasks(*plan).copies_in, 1);
}

// What plans in panels make of nodes: passes, and what reads panels as it needs them.
TEST(DevicePlanTest, NodesOfPlansInPanels) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  const NodeId means = g.Op("colMeans", {x}, MatrixOf(1, 20));
  const NodeId centred = g.Op("-", {x, means}, MatrixOf(100'000, 20));
  const NodeId turned = g.Op("rev", {centred}, MatrixOf(100'000, 20));
  const NodeId sums = g.Op("rowSums", {turned}, MatrixOf(100'000, 1));
  const NodeId root = g.Op("sqrt", {means}, MatrixOf(1, 20));
  g.Assign("s", sums);
  g.Assign("r", root);
  const ScheduleOptions options{.ranks = 1};
  const Result<std::vector<Placement>> placements = Place(g.graph, {{"X", Distribution::One()}}, options);
  ASSERT_TRUE(placements.ok()) << placements.status().ToString();
  const Plan plan = PlanBuilder(g.graph, *placements, 1).Build();
  const std::vector<NodeInPanels> nodes = NodesInPanels(
      plan, {.pass_bytes = 4 << 20, .stage_bytes = 4 << 20, .whole_bytes = 0});
  const auto of = [&](NodeId id) { return nodes[static_cast<size_t>(id)]; };
  EXPECT_GE(of(means).pass, 0);
  EXPECT_GT(of(means).acts, 2);
  EXPECT_GE(of(centred).pass, 0);
  EXPECT_NE(of(centred).pass, of(means).pass);
  EXPECT_NE(of(sums).pass, of(centred).pass);
  EXPECT_EQ(of(root).pass, NodeInPanels::kOnce);
  EXPECT_EQ(of(turned).pass, NodeInPanels::kOnce);
  for (const NodeId id : {means, centred, sums, root}) EXPECT_FALSE(of(id).is_hosts) << id;
  EXPECT_TRUE(of(turned).is_hosts);
}

TEST(DevicePlanTest, RandomPlacementsDiffer) {
  std::set<std::vector<bool>> all;
  const GraphUnderTest g = ExpAndSums();
  for (uint64_t seed = 0; seed < 20; ++seed)
    all.insert(ChooseDevice(g.graph, {}, 1, nullptr, {.rule = DeviceOptions::Rule::kRandom, .seed = seed}));
  EXPECT_GT(all.size(), 3U);
}

TEST(DevicePlanTest, OptionsAreRead) {
  EXPECT_EQ(ParseDevices("opencl:0")->rule, DeviceOptions::Rule::kAll);
  EXPECT_EQ(ParseDevices("opencl:3/cost")->rule, DeviceOptions::Rule::kByCost);
  EXPECT_EQ(ParseDevices("opencl:3/cost")->device.index, 3U);
  EXPECT_EQ(ParseDevices("opencl:1/random:17")->seed, 17U);
  for (const char* const wrong : {"", "cpu", "opencl", "opencl:0/", "opencl:0/random:", "opencl:0/random:x",
                                  "opencl:0/costs", "opencl:0/random:1 "})
    EXPECT_FALSE(ParseDevices(wrong)) << wrong;
}

TEST(DevicePlanTest, WithoutADeviceNothingChanges) {
  const Result<Plan> plan = Schedule(ExpAndSums().graph, {{"X", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountTasks(*plan), Counts());
  EXPECT_EQ(plan->streams, StandardStreams());
}

}  // namespace
}  // namespace heddle::scheduler
