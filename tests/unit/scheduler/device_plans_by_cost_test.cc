// SPDX-License-Identifier: Apache-2.0
// Plans whose operators run on a device where that is faster.
#include <gtest/gtest.h>

#include <set>

#include "scheduler/nodes_in_panels.h"
#include "scheduler/place.h"
#include "scheduler/plan_builder.h"
#include "tests/unit/scheduler/device_plans.h"

namespace heddle::scheduler {
namespace {

// A device of ten times the processor's rates, whose copies take as long as the processor
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

TEST(DevicePlansByCostTest, ByCostACopyMustPay) {
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
TEST(DevicePlansByCostTest, ByCostWholePassesGo) {
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
TEST(DevicePlansByCostTest, NodesOfPlansInPanels) {
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

}  // namespace
}  // namespace heddle::scheduler
