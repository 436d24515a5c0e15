// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/liveness.h"
#include "scheduler/schedule.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

constexpr int64_t kRows = 100'000, kColumns = 100;  // 80 MB

int64_t Count(const Plan& plan, TaskKind kind) {
  return std::count_if(plan.tasks.begin(), plan.tasks.end(),
                       [&](const Task& task) { return task.kind == kind; });
}

Result<Plan> InMemory(const Graph& graph, int64_t memory_bytes, std::set<std::string> panelled = {}) {
  ScheduleOptions options;
  options.memory_bytes = memory_bytes;
  options.in_panels = true;
  options.panelled = std::move(panelled);
  std::map<std::string, Distribution> live_in;
  for (const Node& node : graph.nodes)
    if (node.Is("variable")) live_in[node.Text("name")] = Distribution::One();
  return Schedule(graph, live_in, options);
}

// sum(X - colMeans(X)) of an X that is panels: two passes, which read X each.
TEST(PanelPlanTest, WhatDependsOnAReductionIsAPassOfItsOwn) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  const NodeId means = g.Op("colMeans", {x}, MatrixOf(1, kColumns));
  const NodeId centered = g.Op("-", {x, means}, MatrixOf(kRows, kColumns));
  g.Assign("s", g.Op("sum", {centered}, ValueInfo::OfScalar(ValueType::kDouble)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_LE(plan->peak_bytes[0], 20 << 20);
  EXPECT_EQ(Count(*plan, TaskKind::kUnpack), 2);
  EXPECT_EQ(Count(*plan, TaskKind::kRepeat), 1) << "colMeans(X), for each panel of the second pass";
  EXPECT_EQ(Count(*plan, TaskKind::kPack), 2);
  EXPECT_EQ(Count(*plan, TaskKind::kAccumulate), 0) << "no panel is kept";
  EXPECT_TRUE(CheckLive(*plan).ok());
}

// One pass serves all that reads X at the same time.
TEST(PanelPlanTest, WhatReadsTheSameRowsSharesAPass) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  g.Assign("a", g.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble)));
  g.Assign("b", g.Op("colSums", {x}, MatrixOf(1, kColumns)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Count(*plan, TaskKind::kUnpack), 1);
}

// t(read("X")) %*% read("y"): the rows of both are made in the pass that reads them, and nothing is kept.
TEST(PanelPlanTest, FilesThatOnePassReadsAreReadInIt) {
  GraphUnderTest g;
  const NodeId path = g.Op("literal", {}, ValueInfo::OfScalar(ValueType::kString));
  g.graph[path].SetAttribute("value", Scalar("f"));
  const NodeId x = g.Op("read", {path}, MatrixOf(kRows, kColumns));
  const NodeId y = g.Op("read", {path}, MatrixOf(kRows, kColumns));
  g.graph[y].after = {x};
  const NodeId product = g.Op("t%*%", {x, y}, MatrixOf(kColumns, kColumns));
  const NodeId print =
      g.Op("print", {g.Op("sum", {product}, ValueInfo::OfScalar(ValueType::kDouble))}, ValueInfo());
  g.graph[print].after = {y};
  g.Assign("b", product);
  const Result<Plan> plan = InMemory(g.graph, 20 << 20);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(CheckLive(*plan).ok());
  for (const Task& task : plan->tasks)
    EXPECT_FALSE(task.node == x && task.phase == Phase::kPanels) << "a handle, whose rows may be kept";
  // Who comes after the second file comes after the first one.
  for (const Task& task : plan->tasks) {
    if (task.node != print) continue;
    EXPECT_EQ(task.control_in.size(), 2u);
  }
}

// What a later pass reads is kept, what a variable becomes, too.
TEST(PanelPlanTest, RowsThatAreReadLaterAreCollected) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  const NodeId y = g.Op("exp", {x}, MatrixOf(kRows, kColumns));
  const NodeId means = g.Op("colMeans", {y}, MatrixOf(1, kColumns));
  g.Assign("Z", g.Op("-", {y, means}, MatrixOf(kRows, kColumns)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Count(*plan, TaskKind::kAccumulate), 2);
  EXPECT_LE(plan->peak_bytes[0], 20 << 20);
}

TEST(PanelPlanTest, WhatNeedsAValueWholeIsRefusedWithTheNumbers) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  g.Assign("Y", g.Op("cumsum", {x}, MatrixOf(kRows, kColumns)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  EXPECT_EQ(plan.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(plan.status().ToString().find("the limit is 20971520 bytes"), std::string::npos)
      << plan.status().ToString();
}

// Panels are granules, and a plan in panels has the text of any other.
TEST(PanelPlanTest, PanelsAreMultiplesOfTheGranule) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  g.Assign("s", g.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  for (const Task& task : plan->tasks) EXPECT_EQ(task.panel_rows % 2048, 0);
  const Result<Plan> parsed = Plan::Parse(plan->ToText());
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->ToText(), plan->ToText());
}

}  // namespace
}  // namespace heddle::scheduler
