// SPDX-License-Identifier: Apache-2.0
// Plans for ranks that have a device: what it can run is on its streams, and values are copied where the
// other side reads them, once.
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/liveness.h"
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
  options.device = kGpu;
  HEDDLE_ASSIGN_OR_RETURN(Plan plan, Schedule(g.graph, live_in, options));
  EXPECT_TRUE(CheckLive(plan).ok());
  const Result<Plan> parsed = Plan::Parse(plan.ToText());
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  if (parsed.ok()) {
    EXPECT_EQ(parsed->ToText(), plan.ToText());
  }
  return plan;
}

// exp(X) and rowSums(exp(X)) there; rowcumsum(X) here; Y and the sums come back.
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
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 3, .copies_in = 1, .copies_out = 1}));
}

TEST(DevicePlanTest, EveryRankHasItsOwn) {
  const Result<Plan> plan =
      PlanOf(ExpAndSums(), {{"X", Distribution::One()}}, {.ranks = 3, .min_distributed_bytes = 0});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const Counts counts = CountTasks(*plan);
  EXPECT_EQ(counts.on_device, 9);
  EXPECT_EQ(counts.copies_in, 3);
  EXPECT_EQ(counts.copies_out, 3);
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
  EXPECT_EQ(CountTasks(*plan), (Counts{.on_device = 5, .copies_in = 1, .copies_out = 1}));
}

TEST(DevicePlanTest, WithoutADeviceNothingChanges) {
  const Result<Plan> plan = Schedule(ExpAndSums().graph, {{"X", Distribution::One()}}, {.ranks = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountTasks(*plan), Counts());
  EXPECT_EQ(plan->streams, StandardStreams());
}

}  // namespace
}  // namespace heddle::scheduler
