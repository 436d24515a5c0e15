// SPDX-License-Identifier: Apache-2.0
// Values that the ranks have by columns.
#include <gtest/gtest.h>

#include <map>

#include "scheduler/candidates.h"
#include "scheduler/place.h"
#include "scheduler/transition.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

Distribution ByColumns(int64_t columns, int32_t ranks) {
  Distribution split = Distribution::SplitRows(columns, ranks);
  split.split.axis = Axis::kColumns;
  return split;
}

std::vector<Placement> PlaceAll(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                                const ScheduleOptions& options) {
  const Result<Plan> plan = Schedule(graph, live_in, options);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  if (plan.ok()) {
    const Result<Plan> parsed = Plan::Parse(plan->ToText());
    EXPECT_TRUE(parsed.ok() && parsed->ToText() == plan->ToText());
  }
  const Result<std::vector<Placement>> placements = Place(graph, live_in, options);
  EXPECT_TRUE(placements.ok()) << placements.status().ToString();
  return placements.ok() ? *placements : std::vector<Placement>(graph.nodes.size());
}

// The largest value that a plan copies between ranks, in bytes.
int64_t LargestCopy(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                    const ScheduleOptions& options) {
  const Result<Plan> plan = Schedule(graph, live_in, options);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  int64_t largest = 0;
  for (const Task& task : plan->tasks)
    if (task.kind == TaskKind::kCopy)
      largest = std::max(largest, plan->registers[static_cast<size_t>(task.produced[0])].bytes);
  return largest;
}

// A transpose turns the axis; what reads its columns finds them where the rows were.
TEST(ColumnsTest, ATransposeOfATallMatrixMovesNothing) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(1'000'000, 20));
  const NodeId turned = g.Op("t", {x}, MatrixOf(20, 1'000'000));
  const NodeId cells = g.Op("exp", {turned}, MatrixOf(20, 1'000'000));
  const NodeId sums = g.Op("colSums", {cells}, MatrixOf(1, 1'000'000));
  g.Assign("Y", cells);
  g.Assign("s", sums);
  const ScheduleOptions options{.ranks = 4};
  const std::map<std::string, Distribution> live_in = {{"X", Distribution::SplitRows(1'000'000, 4)}};
  const std::vector<Placement> placements = PlaceAll(g.graph, live_in, options);
  for (const NodeId id : {turned, cells, sums})
    EXPECT_EQ(placements[static_cast<size_t>(id)].result, ByColumns(1'000'000, 4)) << id;
  EXPECT_EQ(LargestCopy(g.graph, live_in, options), 0);
}

// And back: the transpose of columns has rows.
TEST(ColumnsTest, ATransposeOfColumnsHasRows) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(20, 1'000'000));
  const NodeId turned = g.Op("t", {x}, MatrixOf(1'000'000, 20));
  const NodeId sums = g.Op("rowSums", {turned}, MatrixOf(1'000'000, 1));
  g.Assign("s", sums);
  const std::map<std::string, Distribution> live_in = {{"X", ByColumns(1'000'000, 4)}};
  const std::vector<Placement> placements = PlaceAll(g.graph, live_in, {.ranks = 4});
  EXPECT_EQ(placements[static_cast<size_t>(turned)].result, Distribution::SplitRows(1'000'000, 4));
  EXPECT_EQ(LargestCopy(g.graph, live_in, {.ranks = 4}), 0);
}

// A wide matrix that one rank has is shared out by columns where there is work for all of them.
TEST(ColumnsTest, WideMatricesAreSharedOutByCost) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(10, 1'000'000));
  NodeId y = x;
  for (int i = 0; i < 30; ++i) y = g.Op("sin", {y}, MatrixOf(10, 1'000'000));
  g.Assign("s", g.Op("colSums", {y}, MatrixOf(1, 1'000'000)));
  const std::vector<Placement> placements =
      PlaceAll(g.graph, {{"X", Distribution::One()}}, {.ranks = 4, .live_out = {{"s", Distribution::One()}}});
  EXPECT_EQ(placements[static_cast<size_t>(y)].result, ByColumns(1'000'000, 4));
  // One addition is not worth sending it away and back.
  GraphUnderTest cheap;
  const NodeId z = cheap.Variable("X", MatrixOf(10, 1'000'000));
  const NodeId sums = cheap.Op("colSums", {z}, MatrixOf(1, 1'000'000));
  cheap.Assign("s", sums);
  const std::vector<Placement> stays = PlaceAll(cheap.graph, {{"X", Distribution::One()}},
                                                {.ranks = 4, .live_out = {{"s", Distribution::One()}}});
  EXPECT_TRUE(stays[static_cast<size_t>(sums)].result.IsOne());
}

// Uneven columns stay where they are; a rank may have none.
TEST(ColumnsTest, UnevenColumnsStay) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(10, 1'000'000));
  const NodeId y = g.Op("abs", {x}, MatrixOf(10, 1'000'000));
  g.Assign("Y", y);
  Distribution uneven = ByColumns(1'000'000, 3);
  uneven.split.cuts = {0, 400'001, 400'001, 1'000'000};
  EXPECT_EQ(PlaceAll(g.graph, {{"X", uneven}}, {.ranks = 3})[static_cast<size_t>(y)].result, uneven);
}

// What is there by columns and read by rows goes to rows, if it has enough of them for all.
TEST(ColumnsTest, RowsAreMadeOfColumnsWhereRowsAreRead) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(2000, 3000));
  const NodeId sums = g.Op("rowSums", {x}, MatrixOf(2000, 1));
  g.Assign("s", sums);
  const std::vector<Placement> placements = PlaceAll(g.graph, {{"X", ByColumns(3000, 4)}}, {.ranks = 4});
  EXPECT_EQ(placements[static_cast<size_t>(sums)].inputs[0], Distribution::SplitRows(2000, 4));
}

// With fewer rows than a granule each rank gets some of them, rather than one all.
TEST(ColumnsTest, FewRowsAreSharedOutWhereColumnsAre) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(10, 1'000'000));
  const NodeId sums = g.Op("rowSums", {x}, MatrixOf(10, 1));
  const NodeId roots = g.Op("sqrt", {sums}, MatrixOf(10, 1));
  g.Assign("s", roots);
  const std::vector<Placement> placements = PlaceAll(g.graph, {{"X", ByColumns(1'000'000, 4)}}, {.ranks = 4});
  const Distribution few{.kind = Distribution::Kind::kSplit, .split = {.cuts = {0, 2, 5, 7, 10}}};
  EXPECT_EQ(placements[static_cast<size_t>(sums)].inputs[0], few);
  EXPECT_FALSE(placements[static_cast<size_t>(roots)].split);
}

// A range of columns that is known is fetched, or stays where it is.
TEST(ColumnsTest, RangesOfColumns) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(10, 1'000'000));
  const auto literal = [&](int64_t value) {
    Node node;
    node.op = "literal";
    node.info = ValueInfo::OfScalar(ValueType::kInteger);
    node.SetAttribute("value", Scalar(value));
    return g.graph.Add(node);
  };
  const NodeId first = literal(200'001), last = literal(700'000);
  const NodeId range = g.Op("index", {x, kNoNode, kNoNode, first, last}, MatrixOf(10, 500'000));
  g.Assign("Y", g.Op("abs", {range}, MatrixOf(10, 500'000)));
  const std::map<std::string, Distribution> live_in = {{"X", ByColumns(1'000'000, 4)}};
  const Placement placement = PlaceAll(g.graph, live_in, {.ranks = 4})[static_cast<size_t>(range)];
  EXPECT_TRUE(placement.moves_rows);
  EXPECT_EQ(placement.result.split.axis, Axis::kColumns);
  EXPECT_EQ(placement.result.split.Length(), 500'000);
}

// Each rank reads all of the operand that it does not have by columns.
TEST(ColumnsTest, WhatEveryRankReadsCountsWhole) {
  GraphUnderTest g;
  const NodeId a = g.Variable("A", MatrixOf(1'000'000, 100)), b = g.Variable("B", MatrixOf(100, 200));
  const NodeId product = g.Op("%*%", {a, b}, MatrixOf(1'000'000, 200));
  g.Assign("C", product);
  Distribution columns = ByColumns(200, 100);
  for (int32_t rank = 0; rank <= 100; ++rank) columns.split.cuts[static_cast<size_t>(rank)] = 2 * rank;
  const ScheduleOptions options{.ranks = 100};
  const std::map<std::string, Distribution> live_in = {{"A", Distribution::Each()}, {"B", columns}};
  CandidateFinder finder(g.graph, live_in, options);
  int found = 0;
  for (const CandidateFinder::Candidate& candidate : finder.Of(product)) {
    if (candidate.placement.result != columns) continue;
    ++found;
    EXPECT_GE(candidate.own_ns, 8.0 * 1'000'000 * 100 / options.constants.read_bytes_per_ns);
  }
  EXPECT_GT(found, 0);
}

// A wide matrix of random numbers is made by columns where columns are read.
TEST(ColumnsTest, RandomColumnsAreMadeWhereTheyAreRead) {
  for (const char* op : {"rand", "matrix"}) {
    GraphUnderTest g;
    const auto number = [&] {
      Node node;
      node.op = "literal";
      node.info = ValueInfo::OfScalar(ValueType::kDouble);
      node.SetAttribute("value", Scalar(1.0));
      return g.graph.Add(node);
    };
    std::vector<NodeId> inputs = {number(), number(), number()};
    const NodeId x = g.Op(op, inputs, MatrixOf(10, 4'000'000));
    NodeId y = x;
    for (int i = 0; i < 3; ++i) y = g.Op("sin", {y}, MatrixOf(10, 4'000'000));
    g.Assign("s", g.Op("colSums", {y}, MatrixOf(1, 4'000'000)));
    const std::vector<Placement> placements = PlaceAll(g.graph, {}, {.ranks = 4});
    EXPECT_EQ(placements[static_cast<size_t>(x)].result, ByColumns(4'000'000, 4)) << op;
    EXPECT_EQ(placements[static_cast<size_t>(y)].result, ByColumns(4'000'000, 4)) << op;
  }
}

// Nothing of X moves: not for its product with a column, for t(X) %*% Y, for a range of one column whose
// place only the run tells.
TEST(ColumnsTest, ProductsAndRangesLeaveTheColumnsWhereTheyAre) {
  const std::map<std::string, Distribution> live_in = {{"X", ByColumns(4'000'000, 4)},
                                                       {"v", Distribution::SplitRows(4'000'000, 4)},
                                                       {"Y", Distribution::Each()},
                                                       {"i", Distribution::Each()}};
  for (const int kind : {0, 1, 2}) {
    GraphUnderTest g;
    const NodeId x = g.Variable("X", MatrixOf(10, 4'000'000));
    if (kind == 0) {
      const NodeId v = g.Variable("v", MatrixOf(4'000'000, 1));
      g.Assign("s", g.Op("%*%", {x, v}, MatrixOf(10, 1)));
    } else if (kind == 1) {
      const NodeId y = g.Variable("Y", MatrixOf(10, 3));
      const NodeId product = g.Op("t%*%", {x, y}, MatrixOf(4'000'000, 3));
      g.Assign("s", product);
      EXPECT_EQ(PlaceAll(g.graph, live_in, {.ranks = 4})[static_cast<size_t>(product)].result,
                Distribution::SplitRows(4'000'000, 4));
    } else {
      const NodeId i = g.Variable("i", ValueInfo::OfScalar(ValueType::kInteger));
      g.Assign("s", g.Op("index", {x, kNoNode, kNoNode, i, i}, MatrixOf(10, 1)));
    }
    // Of v the rows that meet chunks of columns.
    EXPECT_LT(LargestCopy(g.graph, live_in, {.ranks = 4}), 1'000'000) << kind;
  }
}

// Few rows of at most a chunk of columns: each rank gets some of them.
TEST(ColumnsTest, SumsOfFewRowsShareOutPanels) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(60, 60'000));
  const NodeId sum = g.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble));
  g.Assign("s", sum);
  const std::map<std::string, Distribution> live_in = {{"X", ByColumns(60'000, 4)}};
  EXPECT_NE(PlaceAll(g.graph, live_in, {.ranks = 4})[static_cast<size_t>(sum)].staged, nullptr);
  const Result<Plan> plan = Schedule(g.graph, live_in, {.ranks = 4});
  ASSERT_TRUE(plan.ok());
  for (const Register& reg : plan->registers) EXPECT_FALSE(reg.info.shape == Shape(60, 60'000)) << reg.id;
}

}  // namespace
}  // namespace heddle::scheduler
