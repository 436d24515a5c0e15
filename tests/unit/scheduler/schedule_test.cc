// SPDX-License-Identifier: Apache-2.0
#include "scheduler/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/programs/fused_operator.h"
#include "core/values/panels.h"
#include "scheduler/liveness.h"
#include "scheduler/plan_builder.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

// t(X) %*% (X %*% w) with a large X and a small w: the inner loop of every regression.
GraphUnderTest NormalEquations(int64_t rows, int64_t columns) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(rows, columns));
  const NodeId w = g.Variable("w", MatrixOf(columns, 1));
  const NodeId xw = g.Op("%*%", {x, w}, MatrixOf(rows, 1));
  const NodeId q = g.Op("t%*%", {x, xw}, MatrixOf(columns, 1));
  g.Assign("q", q);
  return g;
}

std::vector<const Task*> TasksOf(const Plan& plan, NodeId node, Phase phase) {
  std::vector<const Task*> tasks;
  for (const Task& task : plan.tasks)
    if (task.node == node && task.phase == phase && task.kind != TaskKind::kCopy) tasks.push_back(&task);
  return tasks;
}

// Z = X %*% Y; X[1, 1] = 5; the assignment writes over the cells of X, so it comes after the product. Not
// where a variable keeps X, or where X is sent to other ranks: it copies X there and waits for nobody.
TEST(ScheduleTest, AnUpdateComesAfterTheReadersOfTheOldValue) {
  for (const bool kept : {false, true}) {
    GraphUnderTest g;
    const NodeId x = g.Variable("X", MatrixOf(50, 50)), y = g.Variable("Y", MatrixOf(50, 2));
    const NodeId z = g.Op("%*%", {x, y}, MatrixOf(50, 2));
    if (kept) g.Assign("W", x);
    const NodeId five = g.Op("literal", {}, ValueInfo::OfScalar(ValueType::kDouble));
    const NodeId one = g.Op("literal", {}, ValueInfo::OfScalar(ValueType::kInteger));
    g.graph[five].SetAttribute("value", Scalar(5.0));
    g.graph[one].SetAttribute("value", Scalar(int64_t{1}));
    const NodeId assigned = g.Op("indexAssign", {x, five, one, one, one, one}, MatrixOf(50, 50));
    g.Assign("X", assigned);
    g.Assign("Z", z);
    const Result<Plan> plan =
        Schedule(g.graph, {{"X", Distribution::One()}, {"Y", Distribution::One()}}, {.ranks = 1});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    ASSERT_EQ(TasksOf(*plan, assigned, Phase::kWhole).size(), 1u);
    const Task& task = *TasksOf(*plan, assigned, Phase::kWhole)[0];
    const TaskId product = TasksOf(*plan, z, Phase::kWhole)[0]->id;
    const bool waits = std::any_of(task.control_in.begin(), task.control_in.end(), [&](RegisterId id) {
      return plan->registers[static_cast<size_t>(id)].producer == product;
    });
    EXPECT_EQ(waits, !kept);
    EXPECT_TRUE(CheckLive(*plan).ok());
  }
}

// The task and whatever it waits for, back to the beginning.
std::set<TaskId> AllBefore(const Plan& plan, TaskId task) {
  std::set<TaskId> before = {task};
  for (size_t size = 0; size != before.size();) {
    size = before.size();
    for (const Register& reg : plan.registers)
      for (const TaskId consumer : reg.consumers)
        if (before.contains(consumer)) before.insert(reg.producer);
  }
  return before;
}

// X = read("f"); write(s, "f"): rank 0 writes when every rank has read its rows, and when every rank has come
// to this plan, so that whatever it read in plans before is behind it.
TEST(ScheduleTest, AWriteComesAfterTheReadsBeforeItOnEveryRank) {
  for (const bool reads : {true, false}) {
    GraphUnderTest g;
    const NodeId path = g.Op("literal", {}, ValueInfo::OfScalar(ValueType::kString));
    g.graph[path].SetAttribute("value", Scalar("f"));
    NodeId read = kNoNode;
    if (reads) read = g.Op("read", {path}, MatrixOf(100'000, 50));
    const NodeId print = g.Op("print", {path}, ValueInfo());
    if (reads) g.graph[print].after = {read};
    const NodeId write = g.Op("write", {path, path}, ValueInfo());
    g.graph[write].after = {print};
    const Result<Plan> plan = Schedule(g.graph, {}, {.ranks = 3});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(CheckLive(*plan).ok());
    ASSERT_EQ(TasksOf(*plan, write, Phase::kWhole).size(), 1u);
    const std::set<TaskId> before = AllBefore(*plan, TasksOf(*plan, write, Phase::kWhole)[0]->id);
    std::set<uint32_t> ranks;
    for (const TaskId task : before) ranks.insert(task.rank());
    EXPECT_EQ(ranks, (std::set<uint32_t>{0, 1, 2}));
    for (const Task* task : TasksOf(*plan, read, Phase::kWhole))
      EXPECT_TRUE(before.contains(task->id)) << task->id.rank();
    EXPECT_EQ(TasksOf(*plan, read, Phase::kWhole).size(), reads ? 3u : 0u);
  }
}

// print(s); X = read("f"): where a rank cannot read its rows the run ends on all, but not before rank 0 has
// printed.
TEST(ScheduleTest, WhatMayFailOnARankComesAfterThePrintsBeforeIt) {
  GraphUnderTest g;
  const NodeId path = g.Op("literal", {}, ValueInfo::OfScalar(ValueType::kString));
  g.graph[path].SetAttribute("value", Scalar("f"));
  const NodeId print = g.Op("print", {path}, ValueInfo());
  const NodeId first = g.Op("read", {path}, MatrixOf(100'000, 50));
  g.graph[first].after = {print};
  const NodeId second = g.Op("read", {path}, MatrixOf(100'000, 50));
  g.graph[second].after = {print, first};
  const Result<Plan> plan = Schedule(g.graph, {}, {.ranks = 3});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(CheckLive(*plan).ok());
  const TaskId printed = TasksOf(*plan, print, Phase::kWhole)[0]->id;
  for (const NodeId read : {first, second}) {
    ASSERT_EQ(TasksOf(*plan, read, Phase::kWhole).size(), 3u);
    for (const Task* task : TasksOf(*plan, read, Phase::kWhole))
      EXPECT_TRUE(AllBefore(*plan, task->id).contains(printed)) << task->id.rank();
  }
  const auto tells = [&](const Task& task) { return task.node == print && task.phase == Phase::kReady; };
  EXPECT_EQ(std::count_if(plan->tasks.begin(), plan->tasks.end(), tells), 2) << "each rank is told once";
}

std::vector<Shape> DataShapes(const Plan& plan, const Task& task) {
  std::vector<Shape> shapes;
  for (const RegisterId id : task.produced)
    if (!plan.registers[static_cast<size_t>(id)].control)
      shapes.push_back(plan.registers[static_cast<size_t>(id)].info.shape);
  return shapes;
}

// [w, V] = eigen(A); Z = X %*% V with the rows of X on all ranks: V is sent to them, w is not, and nothing
// computes "result".
TEST(ScheduleTest, EachResultIsARegisterOfOneTask) {
  GraphUnderTest g;
  const NodeId a = g.Variable("A", MatrixOf(1'000, 1'000)), x = g.Variable("X", MatrixOf(100'000, 1'000));
  const NodeId eigen = g.Op("eigen", {a}, ValueInfo::OfTuple());
  g.graph[eigen].results = {MatrixOf(1'000, 1), MatrixOf(1'000, 1'000)};
  const NodeId w = g.graph.Add(ResultOf(g.graph, eigen, 0)), v = g.graph.Add(ResultOf(g.graph, eigen, 1));
  g.Assign("w", w);
  g.Assign("Z", g.Op("%*%", {x, v}, MatrixOf(100'000, 1'000)));
  const Result<Plan> plan = Schedule(
      g.graph, {{"A", Distribution::One()}, {"X", Distribution::SplitRows(100'000, 3)}}, {.ranks = 3});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(CheckLive(*plan).ok());
  ASSERT_EQ(TasksOf(*plan, eigen, Phase::kWhole).size(), 1u);
  const Task& task = *TasksOf(*plan, eigen, Phase::kWhole)[0];
  EXPECT_EQ(DataShapes(*plan, task), (std::vector<Shape>{{1'000, 1}, {1'000, 1'000}}));
  EXPECT_TRUE(TasksOf(*plan, w, Phase::kWhole).empty());
  EXPECT_TRUE(TasksOf(*plan, v, Phase::kWhole).empty());
  const auto copies_of = [&](RegisterId id) {
    const std::vector<TaskId>& consumers = plan->registers[static_cast<size_t>(id)].consumers;
    return std::count_if(consumers.begin(), consumers.end(),
                         [](TaskId reader) { return reader.rank() != 0; });
  };
  EXPECT_EQ(copies_of(task.produced[0]), 0);
  EXPECT_EQ(copies_of(task.produced[1]), 2);
}

// An operator that makes two results row by row: each rank has its rows of both, and one that is needed whole
// is gathered.
TEST(ScheduleTest, ResultsOfRowsAreSplitAlike) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(1'000, 6));
  const NodeId rows = g.Op("qr", {x}, ValueInfo::OfTuple());
  g.graph[rows].results = {MatrixOf(1'000, 2), MatrixOf(1'000, 6)};
  const NodeId a = g.graph.Add(ResultOf(g.graph, rows, 0)), b = g.graph.Add(ResultOf(g.graph, rows, 1));
  g.Assign("a", a);
  g.Assign("b", b);
  std::vector<Placement> placements(g.graph.nodes.size());
  const Distribution split = Distribution::SplitRows(1'000, 2);
  placements[0].result = split;
  placements[1] = {split, true, ops::RowRule::kRowWise, {split}, split.split, 1'000};
  for (size_t i = 2; i < 5; ++i) placements[i] = {.result = split, .inputs = {split}};
  placements[5] = {.result = Distribution::One(), .inputs = {Distribution::One()}};
  const Plan plan = PlanBuilder(g.graph, placements, 2).Build();
  EXPECT_TRUE(Verify(plan).ok()) << Verify(plan).ToString();
  ASSERT_EQ(TasksOf(plan, rows, Phase::kWhole).size(), 2u);
  for (int32_t rank = 0; rank < 2; ++rank) {
    const int64_t own = CutRow(1'000, rank + 1, 2) - CutRow(1'000, rank, 2);
    EXPECT_EQ(DataShapes(plan, *TasksOf(plan, rows, Phase::kWhole)[static_cast<size_t>(rank)]),
              (std::vector<Shape>{{own, 2}, {own, 6}}));
  }
  ASSERT_EQ(TasksOf(plan, b, Phase::kGather).size(), 1u);
  EXPECT_EQ(DataShapes(plan, *TasksOf(plan, b, Phase::kGather)[0]), (std::vector<Shape>{{1'000, 6}}));
  EXPECT_TRUE(TasksOf(plan, a, Phase::kGather).empty());
}

// Two sums of one pass over rows on three ranks: partial lists, and one finish that makes both.
TEST(ScheduleTest, AReductionOfSeveralResultsFinishesThemTogether) {
  FusedOperator sums;
  sums.kind = FusionTemplate::kMultiAggregate;
  GraphUnderTest body;
  const NodeId in = body.Variable("0", MatrixOf(100'000, 50));
  sums.roots = {body.Op("sum", {in}, ValueInfo::OfScalar(ValueType::kDouble)),
                body.Op("max", {in}, ValueInfo::OfScalar(ValueType::kDouble))};
  sums.body = body.graph;
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 50));
  const NodeId fused = g.Op("fusedSeveral", {x}, ValueInfo::OfTuple());
  g.graph[fused].fused = std::make_shared<const FusedOperator>(sums);
  g.graph[fused].results.assign(2, ValueInfo::OfScalar(ValueType::kDouble));
  g.Assign("s", g.graph.Add(ResultOf(g.graph, fused, 0)));
  g.Assign("m", g.graph.Add(ResultOf(g.graph, fused, 1)));
  const Result<Plan> plan = Schedule(g.graph, {{"X", Distribution::SplitRows(100'000, 3)}}, {.ranks = 3});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(CheckLive(*plan).ok());
  ASSERT_EQ(TasksOf(*plan, fused, Phase::kPartial).size(), 3u);
  for (const Task* task : TasksOf(*plan, fused, Phase::kPartial))
    EXPECT_EQ(DataShapes(*plan, *task), (std::vector<Shape>{{kUnknown, kUnknown}}));
  ASSERT_EQ(TasksOf(*plan, fused, Phase::kFinish).size(), 3u) << "every rank has the scalars";
  EXPECT_EQ(DataShapes(*plan, *TasksOf(*plan, fused, Phase::kFinish)[0]),
            (std::vector<Shape>{{0, 0}, {0, 0}}));
}

TEST(ScheduleTest, LargeRowsAreSplitAndReductionsFinishOnEachRank) {
  const GraphUnderTest g = NormalEquations(100'000, 50);
  const Result<Plan> plan = Schedule(
      g.graph, {{"X", Distribution::SplitRows(100'000, 3)}, {"w", Distribution::One()}}, {.ranks = 3});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(TasksOf(*plan, 2, Phase::kWhole).size(), 3u);
  EXPECT_EQ(TasksOf(*plan, 3, Phase::kPartial).size(), 3u);
  EXPECT_EQ(TasksOf(*plan, 3, Phase::kFinish).size(), 3u);
  // The panels cover all rows, cut at granules.
  int64_t next = 0;
  for (const Task* task : TasksOf(*plan, 3, Phase::kPartial)) {
    EXPECT_EQ(task->row_begin, next);
    EXPECT_EQ(task->row_begin % Granule(100'000), 0);
    next = task->row_end;
  }
  EXPECT_EQ(next, 100'000);
  ASSERT_EQ(plan->live_out.size(), 1u);
  EXPECT_EQ(plan->live_out[0].distribution, Distribution::Each());
  EXPECT_TRUE(CheckLive(*plan).ok());
}

// Roots of trees are few and each is much work: every rank has its share, however small the rows are.
TEST(ScheduleTest, RowsThatAreMuchWorkAreSharedOutEvenly) {
  for (const int64_t roots : {1, 2, 5}) {
    GraphUnderTest g;
    const NodeId column = g.Variable("roots", MatrixOf(roots, 1)), w = g.Variable("W", MatrixOf(4, 4));
    const NodeId rows = g.Op("recursive", {column, w}, MatrixOf(roots, 5));
    g.graph[rows].SetAttribute("even.rows", true);
    g.Assign("rows", rows);
    const Result<Plan> plan =
        Schedule(g.graph, {{"roots", Distribution::Each()}, {"W", Distribution::One()}}, {.ranks = 3});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(CheckLive(*plan).ok());
    const std::vector<const Task*> parts = TasksOf(*plan, rows, Phase::kPartial);
    EXPECT_EQ(TasksOf(*plan, rows, Phase::kWhole).size(), roots == 1 ? 1u : 0u);
    ASSERT_EQ(parts.size(), roots == 1 ? 0u : 3u);
    EXPECT_EQ(TasksOf(*plan, rows, Phase::kFinish).size(), parts.size());
    EXPECT_EQ(plan->live_out[0].distribution, roots == 1 ? Distribution::One() : Distribution::Each());
    int64_t next = 0;
    for (const Task* part : parts) {
      EXPECT_EQ(part->row_begin, next);
      EXPECT_LE(part->row_end - part->row_begin, (roots + 2) / 3);
      next = part->row_end;
    }
    EXPECT_EQ(next, roots == 1 ? 0 : roots);
  }
}

TEST(ScheduleTest, SmallDataStaysOnOneWorker) {
  const GraphUnderTest g = NormalEquations(1000, 5);
  const Result<Plan> plan =
      Schedule(g.graph, {{"X", Distribution::One()}, {"w", Distribution::One()}}, {.ranks = 4});
  ASSERT_TRUE(plan.ok());
  for (const Task& task : plan->tasks) EXPECT_EQ(task.id.rank(), 0u);
}

TEST(ScheduleTest, ZeroMinimumSplitsWhatHasMoreThanOneGranule) {
  const GraphUnderTest g = NormalEquations(1000, 5);
  const Result<Plan> plan = Schedule(g.graph, {{"X", Distribution::One()}, {"w", Distribution::One()}},
                                     {.ranks = 4, .min_distributed_bytes = 0});
  ASSERT_TRUE(plan.ok());
  std::set<uint32_t> ranks;
  for (const Task* task : TasksOf(*plan, 3, Phase::kPartial)) ranks.insert(task->id.rank());
  EXPECT_EQ(ranks.size(), 4u);
}

TEST(ScheduleTest, EveryCrossRankEdgeIsACopy) {
  const GraphUnderTest g = NormalEquations(100'000, 50);
  const Result<Plan> plan =
      Schedule(g.graph, {{"X", Distribution::One()}, {"w", Distribution::One()}}, {.ranks = 4});
  ASSERT_TRUE(plan.ok());
  int copies = 0;
  for (const Register& reg : plan->registers) {
    for (TaskId id : reg.consumers) {
      if (id.rank() == reg.producer.rank()) continue;
      const auto consumer = std::find_if(plan->tasks.begin(), plan->tasks.end(),
                                         [&](const Task& task) { return task.id == id; });
      ASSERT_NE(consumer, plan->tasks.end());
      EXPECT_EQ(consumer->kind, TaskKind::kCopy);
      ++copies;
    }
  }
  EXPECT_GE(copies, 9);  // X to 3 ranks, w to 3, three partial results back
}

TEST(ScheduleTest, AValueIsBroadcastOnceForAllItsReaders) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 50));
  const NodeId w = g.Variable("w", MatrixOf(50, 1));
  g.Assign("a", g.Op("%*%", {x, w}, MatrixOf(100'000, 1)));
  g.Assign("b", g.Op("%*%", {x, w}, MatrixOf(100'000, 1)));
  const Result<Plan> plan = Schedule(
      g.graph, {{"X", Distribution::SplitRows(100'000, 2)}, {"w", Distribution::One()}}, {.ranks = 2});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(std::count_if(plan->tasks.begin(), plan->tasks.end(),
                          [](const Task& t) { return t.kind == TaskKind::kCopy; }),
            1);
}

// Rows of which each rank has as many as it likes are brought to rank 0, a whole value to all ranks.
TEST(ScheduleTest, VariablesAreBroughtToWhereTheyAreWanted) {
  GraphUnderTest g;
  g.Assign("parts", g.Variable("parts", MatrixOf(5, 2)));
  g.Assign("whole", g.Variable("whole", MatrixOf(3, 3)));
  const Distribution parts = {.kind = Distribution::Kind::kSplit, .split = {Axis::kRows, {0, 0, 4, 5}}};
  ScheduleOptions options{.ranks = 3};
  options.live_out = {{"parts", Distribution::One()}, {"whole", Distribution::Each()}};
  const Result<Plan> plan = Schedule(g.graph, {{"parts", parts}, {"whole", Distribution::One()}}, options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(CheckLive(*plan).ok());
  ASSERT_EQ(plan->live_out.size(), 2u);
  EXPECT_EQ(plan->live_out[0].distribution, Distribution::One());
  EXPECT_EQ(plan->live_out[1].distribution, Distribution::Each());
  EXPECT_EQ(TasksOf(*plan, 0, Phase::kGather).size(), 1u);
  EXPECT_EQ(TasksOf(*plan, 3, Phase::kWhole).size(), 3u) << "every rank has the whole value";
}

TEST(ScheduleTest, EffectsKeepScriptOrderByControlRegisters) {
  GraphUnderTest g;
  Node literal;
  literal.op = "literal";
  literal.SetAttribute("value", "hello");
  literal.info = ValueInfo::OfScalar(ValueType::kString);
  const NodeId text = g.graph.Add(literal);
  const NodeId first = g.Op("print", {text}, {});
  const NodeId second = g.Op("print", {text}, {});
  g.graph[second].after = {first};
  const Result<Plan> plan = Schedule(g.graph, {}, {.ranks = 2});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const Task* before = TasksOf(*plan, first, Phase::kWhole)[0];
  const Task* after = TasksOf(*plan, second, Phase::kWhole)[0];
  ASSERT_EQ(after->control_in.size(), 1u);
  EXPECT_EQ(plan->registers[static_cast<size_t>(after->control_in[0])].producer, before->id);
  EXPECT_EQ(before->id.rank(), 0u);
}

// A range of which each rank has its part already, or gets it, has no task of its own: what comes after it
// comes after what is before it.
TEST(ScheduleTest, EffectsKeepTheirOrderAroundColumnsThatAreOnlyMoved) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(5, 70'000));
  const auto literal = [&](Scalar value, ValueType type) {
    const NodeId node = g.Op("literal", {}, ValueInfo::OfScalar(type));
    g.graph[node].SetAttribute("value", std::move(value));
    return node;
  };
  const NodeId text = literal(Scalar("hello"), ValueType::kString);
  const NodeId column = literal(Scalar(int64_t{8}), ValueType::kInteger);
  const NodeId first = g.Op("print", {text}, {});
  const NodeId range = g.Op("index", {x, kNoNode, kNoNode, column, column}, MatrixOf(5, 1));
  g.graph[range].after = {first};
  g.Assign("Z", g.Op("*", {x, range}, MatrixOf(5, 70'000)));
  const NodeId second = g.Op("print", {text}, {});
  g.graph[second].after = {range};
  const Distribution columns = {.kind = Distribution::Kind::kSplit,
                                .split = {Axis::kColumns, {0, 32'768, 70'000}}};
  const Result<Plan> plan = Schedule(g.graph, {{"X", columns}}, {.ranks = 2, .min_distributed_bytes = 0});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  ASSERT_TRUE(TasksOf(*plan, range, Phase::kWhole).empty()) << "its columns are only moved";
  const Task& after = *TasksOf(*plan, second, Phase::kWhole)[0];
  EXPECT_TRUE(AllBefore(*plan, after.id).contains(TasksOf(*plan, first, Phase::kWhole)[0]->id));
}

TEST(ScheduleTest, TooLittleMemoryIsRefusedWithTheNumbers) {
  const GraphUnderTest g = NormalEquations(100'000, 50);
  const Result<Plan> plan =
      Schedule(g.graph, {{"X", Distribution::SplitRows(100'000, 1)}, {"w", Distribution::One()}},
               {.ranks = 1, .memory_bytes = 1 << 20});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(plan.status().message().find("needs 4"), std::string::npos) << plan.status().ToString();
  EXPECT_NE(plan.status().ToString().find("100000x50"), std::string::npos) << plan.status().ToString();
}

ValueInfo FrameOf(int64_t rows) {
  return ValueInfo::OfFrame(rows, std::make_shared<const Schema>(
                                      Schema{{ColumnType::kString, ColumnType::kFloat64}, {"name", "age"}}));
}

TEST(ScheduleTest, AFrameIsCutGatheredAndCountedLikeAMatrix) {
  GraphUnderTest g;
  const NodeId f = g.Variable("F", FrameOf(1000));
  g.Assign("G", f);
  g.Assign("H", f);
  const Result<Plan> plan = Schedule(g.graph, {{"F", Distribution::SplitRows(1000, 2)}},
                                     {.ranks = 2, .live_out = {{"H", Distribution::One()}}});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(CheckLive(*plan).ok());
  EXPECT_EQ(TasksOf(*plan, f, Phase::kGather).size(), 1u);
  ASSERT_EQ(plan->live_out.size(), 2u);
  EXPECT_EQ(plan->live_out[0].distribution, Distribution::SplitRows(1000, 2));
  EXPECT_EQ(plan->live_out[1].distribution, Distribution::One());
  int64_t rows = 0;
  for (const Register& reg : plan->registers) {
    if (!reg.info.IsFrame()) continue;
    EXPECT_EQ(reg.info.schema->names, (std::vector<std::string>{"name", "age"}));
    EXPECT_EQ(reg.bytes, (reg.info.shape.rows + 1) * 8 + reg.info.shape.rows * 8);
    if (plan->tasks[0].id.rank() == 0 && reg.info.shape.rows < 1000) rows += reg.info.shape.rows;
  }
  EXPECT_EQ(rows, 1000 + CutRow(1000, 2, 2) - CutRow(1000, 1, 2)) << "both pieces, and a copy of rank 1's";
  EXPECT_TRUE(Plan::Parse(plan->ToText())->ToText() == plan->ToText());
}

TEST(ScheduleTest, TheColumnsOfAFrameAreToldWhereThePlanDoesNotKnowThem) {
  for (const ValueInfo& info : {FrameOf(1000), FrameOf(kUnknown), ValueInfo::OfFrame(1000, nullptr)}) {
    GraphUnderTest g;
    const NodeId assign = g.Assign("G", g.Variable("F", info));
    const Result<Plan> plan = Schedule(g.graph, {{"F", Distribution::One()}}, {.ranks = 2});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_EQ(TasksOf(*plan, assign, Phase::kShape).size(), info.IsSized() ? 0u : 3u)
        << "one tells, each rank hears";
  }
}

TEST(ScheduleTest, SameInputGivesTheSamePlan) {
  const GraphUnderTest g = NormalEquations(100'000, 50);
  const ScheduleOptions options{.ranks = 3};
  const std::map<std::string, Distribution> live_in = {{"X", Distribution::SplitRows(100'000, 3)},
                                                       {"w", Distribution::One()}};
  EXPECT_EQ(Schedule(g.graph, live_in, options)->ToText(), Schedule(g.graph, live_in, options)->ToText());
}

TEST(CutRowTest, CutsAreGranulesInOrderAndAboutEven) {
  for (int64_t rows : {0, 1, 63, 64, 65, 999, 32'560, 1'000'000}) {
    for (int workers : {1, 2, 3, 4, 7}) {
      EXPECT_EQ(CutRow(rows, 0, workers), 0);
      EXPECT_EQ(CutRow(rows, workers, workers), rows);
      for (int w = 1; w < workers; ++w) {
        EXPECT_LE(CutRow(rows, w - 1, workers), CutRow(rows, w, workers));
        if (CutRow(rows, w, workers) != rows) {
          EXPECT_EQ(CutRow(rows, w, workers) % Granule(rows), 0);
        }
      }
    }
  }
  for (int w = 0; w < 4; ++w) {
    const int64_t share = CutRow(32'560, w + 1, 4) - CutRow(32'560, w, 4);
    EXPECT_GT(share, 6'000);
    EXPECT_LT(share, 10'500);
  }
}

}  // namespace
}  // namespace heddle::scheduler
