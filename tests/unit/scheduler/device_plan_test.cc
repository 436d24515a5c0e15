// SPDX-License-Identifier: Apache-2.0
// Plans for ranks that have a device: what it can run is on its streams, and values are copied where the
// other side reads them, once.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "scheduler/devices/choose_device.h"
#include "scheduler/plan_builder.h"
#include "tests/unit/scheduler/device_plans.h"

namespace heddle::scheduler {
namespace {

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
