// SPDX-License-Identifier: Apache-2.0
// What plans take of the memory of a device, and how values that it has no room for go through it in panels.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "scheduler/devices/scratch_on_device.h"
#include "scheduler/plan_memory.h"
#include "tests/unit/scheduler/device_plans.h"

namespace heddle::scheduler {
namespace {

TEST(DeviceMemoryTest, MemoryOfTheDeviceIsItsOwn) {
  const Result<Plan> plan = PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  // There X and exp(X), sums and the result, which take the place of nothing; here X and rowcumsum(X).
  EXPECT_GE(PeakOnDevice(*plan, kGpu), 3 * 16'000'000);
  EXPECT_LT(PeakOnDevice(*plan, kGpu), 4 * 16'000'000);
  EXPECT_GE(plan->peak_bytes[0], 2 * 16'000'000);
  EXPECT_LT(plan->peak_bytes[0], 3 * 16'000'000);
}

// Where the device computes in the memory of the host, what is there counts beside what is here.
TEST(DeviceMemoryTest, MemoryOfADeviceOfTheHostIsTheRanks) {
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
TEST(DeviceMemoryTest, MemoryOfADeviceOfTheHostCountsBesideOpenSizes) {
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
TEST(DeviceMemoryTest, EntriesOfCsrMatricesCount) {
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
TEST(DeviceMemoryTest, WhatTheDeviceHasNoRoomForGoesThroughItInPanels) {
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
TEST(DeviceMemoryTest, WhatAllPanelsReadIsCopiedOnce) {
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
TEST(DeviceMemoryTest, PanelsAreAsHighAsTheDeviceHasRoom) {
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
TEST(DeviceMemoryTest, OperatorsInStagesAreTheHosts) {
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
TEST(DeviceMemoryTest, WhatActsOnceAndHasNoRoomIsTheHosts) {
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
TEST(DeviceMemoryTest, WhatOperatorsWorkWithThereCounts) {
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
TEST(DeviceMemoryTest, MatricesThatAreTooLargeStayHere) {
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

}  // namespace
}  // namespace heddle::scheduler
