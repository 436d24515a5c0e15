// SPDX-License-Identifier: Apache-2.0
// Which operators of a plan become one operator of phases.
#include "compiler/fuse/phases.h"

#include <algorithm>

#include "compiler/fuse/fuse.h"
#include "ops/fused/fused.h"
#include "tests/unit/fuse/graph_maker.h"
#include "tests/unit/fuse/meaning.h"

namespace heddle::compiler {
namespace {

struct Outcome {
  Graph graph;
  std::vector<PhasedOperator> phased;
  // Operators that stand alone, but variables, literals, assignments and results.
  std::vector<std::string> alone;
};

Outcome OutcomeOf(const Graph& graph, FuseOptions options = {}) {
  options.can_run = ops::CanRunFused;
  const Result<Graph> fused = Fuse(graph, options, nullptr);
  EXPECT_TRUE(fused.ok()) << fused.status().ToString();
  if (!fused.ok()) return {};
  Meaning meaning;
  EXPECT_EQ(meaning.Of(*fused), meaning.Of(graph)) << fused->ToText();
  Outcome outcome{*fused, {}, {}};
  for (const Node& node : fused->nodes) {
    if (node.Is("phased"))
      outcome.phased.push_back(*node.phased);
    else if (!node.Is("variable") && !node.Is("literal") && !node.Is("assign") && !node.Is("result"))
      outcome.alone.push_back(node.op);
  }
  return outcome;
}

int PhasesIn(const PhasedOperator& phased) {
  const std::vector<int> phases = PhasesOf(phased.body);
  return *std::max_element(phases.begin(), phases.end()) + 1;
}

// Assigns what batch norm makes of x.
void BatchNorm(GraphMaker* make, NodeId x, const std::string& name) {
  const NodeId centred = make->Add("-", {x, make->Add("colMeans", {x})});
  const NodeId variance = make->Add("colMeans", {make->Add("^", {centred, make->Literal(2.0)})});
  const NodeId deviation = make->Add("sqrt", {make->Add("+", {variance, make->Literal(1e-5)})});
  make->Assign(name, make->Add("/", {centred, deviation}));
}

// Means, squares, their root and the result: reductions over all rows that rows need again.
TEST(PhasesTest, BatchNormIsOneOperator) {
  GraphMaker make;
  BatchNorm(&make, make.Matrix("X", 8192, 1024), "Y");
  const Outcome outcome = OutcomeOf(make.graph());
  ASSERT_EQ(outcome.phased.size(), 1u) << outcome.graph.ToText();
  EXPECT_TRUE(outcome.alone.empty()) << outcome.graph.ToText();
  EXPECT_EQ(outcome.phased[0].roots.size(), 1u);
  EXPECT_GE(PhasesIn(outcome.phased[0]), 3);
}

// The statistics of the columns come from one pass, and the result from another.
TEST(PhasesTest, ScalingReadsItsInputTwice) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 100000, 100);
  make.Assign("Z", make.Add("/", {make.Add("-", {x, make.Add("colMeans", {x})}), make.Add("colSds", {x})}));
  const Outcome outcome = OutcomeOf(make.graph());
  ASSERT_EQ(outcome.phased.size(), 1u) << outcome.graph.ToText();
  EXPECT_TRUE(outcome.alone.empty()) << outcome.graph.ToText();
  EXPECT_EQ(PhasesIn(outcome.phased[0]), 2);
}

TEST(PhasesTest, OneOperatorStaysWhatItIs) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 8192, 1024), y = make.Matrix("Y", 8192, 1024);
  make.Assign("Z", make.Add("exp", {make.Add("+", {x, y})}));
  const Outcome outcome = OutcomeOf(make.graph());
  EXPECT_TRUE(outcome.phased.empty()) << outcome.graph.ToText();
  EXPECT_EQ(outcome.alone, std::vector<std::string>{"fused"});
}

// Twenty parameters of an optimiser step, which share no rows.
TEST(PhasesTest, SmallOperatorsAreOneWhateverTheyRead) {
  GraphMaker make;
  for (int i = 0; i < 20; ++i) {
    const NodeId w = make.Matrix("w" + std::to_string(i), 10 + i, 64),
                 g = make.Matrix("g" + std::to_string(i), 10 + i, 64);
    make.Assign("w" + std::to_string(i), make.Add("-", {w, make.Add("*", {g, make.Literal(0.01)})}));
  }
  const Outcome outcome = OutcomeOf(make.graph());
  ASSERT_EQ(outcome.phased.size(), 1u) << outcome.graph.ToText();
  EXPECT_EQ(outcome.phased[0].roots.size(), 20u);
  EXPECT_EQ(PhasesIn(outcome.phased[0]), 1);
}

// Large ones that share nothing keep their own tasks: their inputs would be held longer for nothing.
TEST(PhasesTest, LargeOperatorsThatShareNothingStayApart) {
  GraphMaker make;
  for (const char* name : {"A", "B"})
    make.Assign(name, make.Add("exp", {make.Matrix(name, 100000, 10 + name[0])}));
  EXPECT_TRUE(OutcomeOf(make.graph()).phased.empty());
}

// What lies on both sides of a third operator cannot be one.
TEST(PhasesTest, NoWayLeadsOutAndBackIn) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 2000, 2000);
  const NodeId scaled = make.Add("/", {x, make.Add("colSums", {x})});
  const NodeId inverse = make.Add("inv", {scaled});
  const NodeId centred = make.Add("-", {inverse, make.Add("colMeans", {inverse})});
  make.Assign("Y", make.Add("+", {centred, scaled}));
  const Outcome outcome = OutcomeOf(make.graph());
  EXPECT_EQ(outcome.phased.size(), 2u) << outcome.graph.ToText();
  EXPECT_EQ(outcome.alone, std::vector<std::string>{"inv"});
}

TEST(PhasesTest, ScalarsAtTheEndsStayOutside) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1000, 50), a = make.Scalar("a");
  const NodeId mean = make.Add("/", {make.Add("sum", {x}), make.Add("*", {a, make.Literal(3.0)})});
  const NodeId total = make.Add("sum", {make.Add("exp", {make.Add("-", {x, mean})})});
  make.Assign("t", make.Add("sqrt", {total}));
  const Outcome outcome = OutcomeOf(make.graph());
  ASSERT_EQ(outcome.phased.size(), 1u) << outcome.graph.ToText();
  EXPECT_EQ(outcome.alone, (std::vector<std::string>{"*", "sqrt"}));
}

// Reductions over the rows of all workers go between them by the plan.
TEST(PhasesTest, RowsOfSeveralWorkersStayWithThem) {
  GraphMaker make;
  BatchNorm(&make, make.Matrix("X", 100000, 100), "Y");
  FuseOptions options;
  options.ranks = 2;
  options.min_distributed_bytes = 8 << 20;
  const Outcome outcome = OutcomeOf(make.graph(), options);
  for (const PhasedOperator& phased : outcome.phased)
    for (const Node& node : phased.body.nodes) EXPECT_LE(node.info.shape.rows, 1) << outcome.graph.ToText();
}

TEST(PhasesTest, LittleMemoryKeepsThemApart) {
  GraphMaker make;
  BatchNorm(&make, make.Matrix("X", 8192, 1024), "Y");
  FuseOptions options;
  options.memory_budget = 200 << 20;
  const Outcome outcome = OutcomeOf(make.graph(), options);
  for (const PhasedOperator& phased : outcome.phased)
    for (const Node& node : phased.body.nodes) EXPECT_LE(node.info.shape.rows, 1) << outcome.graph.ToText();
}

// Ranges that may fail, small products and what is between them; ranges keep their order.
TEST(PhasesTest, OneHeadOfAttentionIsOneOperator) {
  GraphMaker make;
  const NodeId q = make.Matrix("Q", 1024, 512), k = make.Matrix("K", 1024, 512),
               v = make.Matrix("V", 1024, 512);
  std::vector<NodeId> bounds;
  for (const char* name : {"first", "last", "left", "right"}) bounds.push_back(make.Scalar(name));
  NodeId earlier = kNoNode;
  const auto range_of = [&](NodeId x) {
    const NodeId range = make.Add("index", {x, bounds[0], bounds[1], bounds[2], bounds[3]});
    make.graph()[range].info = ValueInfo::OfMatrix({128, 64});
    if (earlier != kNoNode) make.graph()[range].after = {earlier};
    return earlier = range;
  };
  const NodeId queries = range_of(q), keys = range_of(k);
  const NodeId scores = make.Add("%*%", {queries, make.Add("t", {keys})});
  const NodeId e = make.Add("exp", {make.Add("-", {scores, make.Add("rowMaxs", {scores})})});
  const NodeId weights = make.Add("/", {e, make.Add("rowSums", {e})});
  make.Assign("A", make.Add("%*%", {weights, range_of(v)}));
  make.Assign("P", weights);
  const Outcome outcome = OutcomeOf(make.graph());
  EXPECT_TRUE(outcome.alone.empty()) << outcome.graph.ToText();
  ASSERT_EQ(outcome.phased.size(), 1u);
  const std::vector<int> phases = PhasesOf(outcome.phased[0].body);
  int ranges = 0, last_phase = -1;
  for (NodeId id = 0; id < outcome.phased[0].body.size(); ++id) {
    if (!outcome.phased[0].body[id].Is("index")) continue;
    ++ranges;
    EXPECT_GT(phases[static_cast<size_t>(id)], last_phase);
    last_phase = phases[static_cast<size_t>(id)];
  }
  EXPECT_EQ(ranges, 3);
}

// What is ordered before and behind members is so before and behind all of them, results or not.
void ExpectRangeBetweenPrints(bool is_result) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 100, 50), bound = make.Scalar("i");
  Node print{.op = "print", .inputs = {make.Literal(heddle::Scalar("text"))}, .info = ValueInfo::OfTuple()};
  print.info = ValueInfo::OfScalar(ValueType::kString);
  const NodeId first = make.graph().Add(print);
  const NodeId row = make.Add("index", {x, bound, bound, kNoNode, kNoNode});
  make.graph()[row].info = ValueInfo::OfMatrix({1, 50});
  make.graph()[row].after = {first};
  make.Assign("Y", make.Add("*", {make.Add("exp", {row}), make.Add("t", {make.Add("t", {row})})}));
  if (is_result) make.Assign("R", row);
  print.after = {row};
  make.graph().Add(print);
  const Outcome outcome = OutcomeOf(make.graph());
  ASSERT_EQ(outcome.phased.size(), 1u) << outcome.graph.ToText();
  std::vector<const Node*> order;
  for (const Node& node : outcome.graph.nodes)
    if (node.Is("print") || node.Is("phased")) order.push_back(&node);
  ASSERT_EQ(order.size(), 3u);
  EXPECT_TRUE(order[0]->Is("print") && order[1]->Is("phased") && order[2]->Is("print"));
  ASSERT_EQ(order[1]->after.size(), 1u);
  ASSERT_EQ(order[2]->after.size(), 1u);
  EXPECT_EQ(&outcome.graph[order[1]->after[0]], order[0]);
  EXPECT_EQ(&outcome.graph[order[2]->after[0]], order[1]);
}

TEST(PhasesTest, RangesComeBehindWhatActsBeforeThem) {
  ExpectRangeBetweenPrints(/*is_result=*/false);
  ExpectRangeBetweenPrints(/*is_result=*/true);
}

TEST(PhasesTest, SmallProductsAreBoundariesWhereThereAreTooMany) {
  GraphMaker make;
  NodeId x = make.Matrix("X", 16, 16);
  const NodeId b = make.Matrix("B", 16, 16);
  constexpr int kProducts = 150;
  for (int i = 0; i < kProducts; ++i) x = make.Add("abs", {make.Add("t", {make.Add("%*%", {x, b})})});
  make.Assign("Y", x);
  const Outcome outcome = OutcomeOf(make.graph());
  EXPECT_EQ(std::count(outcome.alone.begin(), outcome.alone.end(), "%*%"), kProducts);
}

// Effects, what may fail and what is ordered have tasks of their own.
TEST(PhasesTest, WhatIsOrderedStaysAlone) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 20, 20);
  const NodeId sums = make.Add("colSums", {make.Add("exp", {x})});
  const NodeId inverse = make.Add("inv", {make.Add("+", {x, sums})});
  make.Assign("Y", make.Add("*", {inverse, make.Add("colMeans", {inverse})}));
  const Outcome outcome = OutcomeOf(make.graph());
  EXPECT_EQ(outcome.alone, std::vector<std::string>{"inv"}) << outcome.graph.ToText();
  EXPECT_EQ(outcome.phased.size(), 2u);
}

}  // namespace
}  // namespace heddle::compiler
