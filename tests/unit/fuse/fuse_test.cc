// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/fuse.h"

#include <gtest/gtest.h>

#include <functional>

#include "compiler/fuse/memo.h"
#include "compiler/optimize/rewrite.h"
#include "tests/unit/fuse/examples.h"
#include "tests/unit/fuse/meaning.h"
#include "tests/unit/fuse/random_graph.h"

namespace heddle::compiler {
namespace {

constexpr FusionMode kModes[] = {FusionMode::kOff, FusionMode::kAll, FusionMode::kNoRedundancy,
                                 FusionMode::kCost};

Graph Fused(const Graph& graph, FuseOptions options, FuseReport* report = nullptr) {
  const Result<Graph> result = Fuse(graph, options, report);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? WithoutPhases(*result) : Graph();
}

Graph Fused(const Graph& graph, FusionMode mode, uint64_t seed = 0) {
  FuseOptions options;
  options.mode = mode;
  options.seed = seed;
  return Fused(graph, options);
}

std::vector<FusedOperator> OperatorsOf(const Graph& graph) {
  std::vector<FusedOperator> operators;
  for (const Node& node : graph.nodes)
    if (IsFused(node)) operators.push_back(*node.fused);
  return operators;
}

int CountOf(const Graph& graph, std::string_view op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [op](const Node& node) { return node.Is(op); }));
}

TEST(FuseTest, EveryPlanMeansWhatTheGraphMeans) {
  int fused_operators = 0;
  std::map<FusionTemplate, int> kinds;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Graph graph = RandomGraph(seed).Make(5 + static_cast<int>(seed % 15));
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Meaning meaning;
    const std::vector<std::string> wanted = meaning.Of(graph);
    const auto check = [&](FusionMode mode, uint64_t plan_seed) {
      const Graph fused = Fused(graph, mode, plan_seed);
      ASSERT_TRUE(Verify(fused).ok()) << Verify(fused).ToString();
      ASSERT_EQ(meaning.Of(fused), wanted) << Name(mode) << " " << plan_seed << "\n"
                                           << graph.ToText() << fused.ToText();
      for (const FusedOperator& fused_operator : OperatorsOf(fused)) {
        ++fused_operators;
        ++kinds[fused_operator.kind];
      }
    };
    for (FusionMode mode : kModes) check(mode, 0);
    for (uint64_t plan = 0; plan < 20; ++plan) check(FusionMode::kRandom, plan);
    if (HasFatalFailure()) break;
  }
  EXPECT_GT(fused_operators, 3000);
  EXPECT_EQ(kinds.size(), kFusionTemplates) << "every template occurs";
}

// Pairs are merged one by one: what is one already may lead from a later pair out and back in.
TEST(FuseTest, NoOrderOfMergesMakesACircle) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = RandomGraph(seed).Make(40);
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    Meaning meaning;
    const std::vector<std::string> wanted = meaning.Of(graph);
    for (uint64_t plan = 0; plan < 20; ++plan)
      ASSERT_EQ(meaning.Of(Fused(graph, FusionMode::kRandom, plan)), wanted) << plan;
    ASSERT_EQ(meaning.Of(Fused(graph, FusionMode::kAll)), wanted);
  }
}

TEST(FuseTest, RandomPlansDiffer) {
  std::set<std::string> plans;
  for (uint64_t seed = 0; seed < 20; ++seed)
    plans.insert(Fused(ExampleE(), FusionMode::kRandom, seed).ToText());
  EXPECT_GE(plans.size(), 10u);
  EXPECT_EQ(Fused(ExampleE(), FusionMode::kRandom, 7).ToText(),
            Fused(ExampleE(), FusionMode::kRandom, 7).ToText());
}

TEST(FuseTest, ModesThatAreNoneAreNamed) {
  FuseOptions options;
  EXPECT_TRUE(SetMode("random:7", &options).ok());
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(SetMode("random:x", &options).message(), "'x' is no seed of a fusion plan");
  EXPECT_EQ(SetMode("sometimes", &options).message(), "unknown fusion mode sometimes");
}

TEST(FuseTest, OffLeavesTheGraphAlone) {
  EXPECT_EQ(Fused(ExampleB(), FusionMode::kOff).ToText(), ExampleB().ToText());
}

TEST(FuseTest, NoRedundancyComputesNothingTwice) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Graph graph = RandomGraph(seed).Make(20);
    for (NodeId id = 0; id < graph.size(); ++id) graph[id].position = {"block.dml", id + 1, 1};
    const Graph fused = Fused(graph, FusionMode::kNoRedundancy);
    std::set<int> lines;
    for (const Node& node : fused.nodes)
      if (!IsFused(node) && !node.Is("result") && node.position.IsKnown()) lines.insert(node.position.line);
    for (const FusedOperator& fused_operator : OperatorsOf(fused))
      for (const Node& node : fused_operator.body.nodes) {
        if (node.Is("variable") || node.Is("literal")) continue;
        EXPECT_TRUE(lines.insert(node.position.line).second) << "seed " << seed << "\n"
                                                             << graph.ToText() << fused.ToText();
      }
  }
}

TEST(FuseTest, TheMultinomialLoopIsOneRowOperator) {
  const Graph fused = Fused(ExampleB(), FusionMode::kCost);
  const std::vector<FusedOperator> operators = OperatorsOf(fused);
  ASSERT_EQ(operators.size(), 1u) << fused.ToText();
  EXPECT_EQ(operators[0].kind, FusionTemplate::kRow);
  EXPECT_EQ(operators[0].driver, 1);
  EXPECT_EQ(operators[0].ToText(),
            "row driver=1 roots=(%11)\n"
            "%0 = variable() name=\"0\" : matrix double 1000000x6 dense\n"
            "%1 = literal() value=1 : scalar integer 0x0 dense\n"
            "%2 = literal() value=5 : scalar integer 0x0 dense\n"
            "%3 = index(%0, _, _, %1, %2) : matrix double 1000000x5 dense\n"
            "%4 = variable() name=\"1\" : matrix double 1000000x100 dense\n"
            "%5 = variable() name=\"2\" : matrix double 100x5 dense\n"
            "%6 = %*%(%4, %5) : matrix double 1000000x5 dense\n"
            "%7 = *(%3, %6) : matrix double 1000000x5 dense\n"
            "%8 = rowSums(%7) : matrix double 1000000x1 dense\n"
            "%9 = *(%3, %8) : matrix double 1000000x5 dense\n"
            "%10 = -(%7, %9) : matrix double 1000000x5 dense\n"
            "%11 = t%*%(%4, %10) : matrix double 100x5 dense\n");
}

TEST(FuseTest, AColumnAndARowAreRepeatedInside) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 20000, 100), u = make.Matrix("u", 20000, 1), v = make.Matrix("v", 1, 100);
  make.Assign("s", make.Add("sum", {make.Add("*", {x, make.Add("-", {u, v})})}));
  const Graph fused = Fused(make.graph(), FusionMode::kCost);
  EXPECT_EQ(CountOf(fused, "fused"), 1);
  EXPECT_EQ(CountOf(fused, "-"), 0);
  // Nothing but the two vectors.
  GraphMaker alone;
  const NodeId a = alone.Matrix("u", 20000, 1), b = alone.Matrix("v", 1, 100);
  alone.Assign("d", alone.Add("rowMins", {alone.Add("abs", {alone.Add("-", {a, b})})}));
  EXPECT_EQ(CountOf(Fused(alone.graph(), FusionMode::kCost), "fused"), 1);
}

TEST(FuseTest, SpreadsOfRowsAreComputedInside) {
  for (const Shape& shape : {Shape{20000, 100}, Shape{20, 100000}}) {
    GraphMaker make;
    const NodeId x = make.Matrix("X", shape.rows, shape.columns);
    const NodeId centred = make.Add("-", {x, make.Add("rowMeans", {x})});
    make.Assign("Z", make.Add("/", {centred, make.Add("rowSds", {x})}));
    const std::vector<FusedOperator> operators = OperatorsOf(Fused(make.graph(), FusionMode::kCost));
    ASSERT_EQ(operators.size(), 1u) << shape.rows;
    EXPECT_EQ(operators[0].kind, FusionTemplate::kRow);
  }
}

// Devices have kernels for products of dense matrices with more than 8 columns; others stay in the tiles.
TEST(FuseTest, WideProductsStandAloneWhereADeviceComputes) {
  for (const int64_t columns : {8, 9, 100}) {
    for (const bool is_transposed : {false, true}) {
      GraphMaker make;
      const NodeId x = make.Matrix("X", 20000, 40),
                   y = make.Matrix("Y", is_transposed ? 20000 : 40, columns);
      const NodeId product = is_transposed ? make.Add("t%*%", {make.Add("abs", {x}), y})
                                           : make.Add("abs", {make.Add("%*%", {x, y})});
      make.Assign("P", product);
      for (const bool fuses : {false, true}) {
        FuseOptions options;
        options.mode = FusionMode::kAll;
        options.fuses_wide_products = fuses;
        const Graph fused = Fused(make.graph(), options);
        const bool alone = !fuses && columns > 8;
        EXPECT_EQ(CountOf(fused, is_transposed ? "t%*%" : "%*%"), alone ? 1 : 0)
            << columns << " columns\n"
            << fused.ToText();
        EXPECT_EQ(Meaning().Of(fused), Meaning().Of(make.graph()));
      }
    }
  }
  GraphMaker make;  // Of CSR rows the device has no other kernel.
  const NodeId x = make.Matrix("X", 20000, 400, Format::kSparse), y = make.Matrix("Y", 400, 20);
  make.Assign("P", make.Add("exp", {make.Add("%*%", {x, y})}));
  FuseOptions options;
  options.mode = FusionMode::kAll;
  options.fuses_wide_products = false;
  EXPECT_EQ(CountOf(Fused(make.graph(), options), "%*%"), 0);
}

TEST(FuseTest, SumsOverSharedInputsBecomeOneOperator) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1000, 10), y = make.Matrix("Y", 1000, 10), z = make.Matrix("Z", 1000, 10);
  make.Assign("a", make.Add("sum", {make.Add("*", {x, y})}));
  make.Assign("b", make.Add("sum", {make.Add("*", {x, z})}));
  make.Assign("c", make.Add("max", {z}));
  const Graph fused = Fused(make.graph(), FusionMode::kCost);
  const std::vector<FusedOperator> operators = OperatorsOf(fused);
  ASSERT_EQ(operators.size(), 1u) << fused.ToText();
  EXPECT_EQ(operators[0].kind, FusionTemplate::kMultiAggregate);
  EXPECT_EQ(operators[0].roots.size(), 3u);
  EXPECT_EQ(CountOf(fused, "fusedSeveral"), 1);
  EXPECT_EQ(CountOf(fused, "result"), 3);
  EXPECT_EQ(CountOf(fused, "literal"), 0);
}

// a = sum(X*Y); b = sum((X-a)*Y) cannot be one pass, nor can two pairs that wait for each other.
TEST(FuseTest, AggregatesThatNeedEachOtherStayApart) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1000, 10), y = make.Matrix("Y", 1000, 10);
  const NodeId a1 = make.Add("sum", {x});
  const NodeId b1 = make.Add("min", {make.Add("-", {x, a1})});
  const NodeId b2 = make.Add("max", {y});
  const NodeId a2 = make.Add("sum", {make.Add("*", {make.Add("+", {y, b2}), x})});
  for (NodeId id : {a1, b1, b2, a2}) make.Assign("o" + std::to_string(id), id);
  Meaning meaning;
  const std::vector<std::string> wanted = meaning.Of(make.graph());
  for (uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(meaning.Of(Fused(make.graph(), FusionMode::kRandom, seed)), wanted);
  EXPECT_EQ(meaning.Of(Fused(make.graph(), FusionMode::kCost)), wanted);
}

TEST(FuseTest, EffectsKeepTheirOrderAndRangesLeaveIt) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1000, 10),
               text = make.Variable("text", ValueInfo::OfScalar(ValueType::kString));
  const NodeId one = make.Literal(heddle::Scalar(1)), three = make.Literal(heddle::Scalar(3));
  Graph& graph = make.graph();
  const NodeId first = make.Add("print", {text});
  const NodeId range = make.Add("index", {x, kNoNode, kNoNode, one, three});
  graph[range].after = {first};
  const NodeId second = make.Add("print", {text});
  graph[second].after = {range};
  make.Assign("y", make.Add("rowSums", {make.Add("exp", {range})}));
  const Graph fused = Fused(graph, FusionMode::kCost);
  EXPECT_EQ(OperatorsOf(fused).size(), 1u) << fused.ToText();
  std::vector<NodeId> prints;
  for (NodeId id = 0; id < fused.size(); ++id)
    if (fused[id].Is("print")) prints.push_back(id);
  ASSERT_EQ(prints.size(), 2u);
  EXPECT_EQ(fused[prints[1]].after, std::vector<NodeId>{prints[0]});
}

TEST(FuseTest, WhatTheExecutorRefusesIsNotFormed) {
  FuseOptions options;
  FuseReport report;
  options.can_run = [](const FusedOperator& fused) {
    return fused.kind == FusionTemplate::kRow ? Unimplemented("no rows today") : OkStatus();
  };
  const Graph fused = Fused(ExampleB(), options, &report);
  for (const FusedOperator& fused_operator : OperatorsOf(fused))
    EXPECT_NE(fused_operator.kind, FusionTemplate::kRow);
  ASSERT_FALSE(report.refused.empty());
  EXPECT_NE(ToText(report, /*with_costs=*/false).find("refused by the executor: " + report.refused[0]),
            std::string::npos);
  EXPECT_TRUE(report.refused[0].ends_with(": no rows today")) << report.refused[0];
  Meaning meaning;
  EXPECT_EQ(meaning.Of(fused), meaning.Of(ExampleB()));
}

// t is read twice; an operator that computes it beside something else is refused, so the search writes t
// first.
TEST(FuseTest, TheSearchAvoidsWhatTheExecutorRefuses) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 10000, 1000, Format::kSparse), e = make.Matrix("E", 10000, 1000);
  const NodeId t = make.Add("abs", {x});
  make.Assign("a", make.Add("rowSums", {make.Add("*", {t, e})}));
  make.Assign("b", make.Add("colSums", {make.Add("sqrt", {t})}));
  FuseOptions options;
  options.sparsity_of = [](std::string_view) { return 0.01; };
  FuseReport report;
  (void)Fused(make.graph(), options, &report);
  EXPECT_EQ(report.partitions[0].chosen, "00");  // Otherwise both compute it along the entries of X.
  options.can_run = [](const FusedOperator& fused) {
    const bool can_run = CountOf(fused.body, "abs") == 0 ||
                         (CountOf(fused.body, "rowSums") == 0 && CountOf(fused.body, "colSums") == 0);
    return can_run ? OkStatus() : Unimplemented("abs beside a sum");
  };
  const Graph fused = Fused(make.graph(), options, &report);
  EXPECT_EQ(report.partitions[0].chosen, "11");
  EXPECT_TRUE(report.refused.empty()) << report.refused[0];
  EXPECT_EQ(OperatorsOf(fused).size(), 2u);
}

// What has entries of two CSR matrices is made by itself; what follows goes along its entries.
TEST(FuseTest, SumsOfSparseMatricesAreNotComputedInside) {
  const auto operators_of = [](const std::function<NodeId(GraphMaker&, NodeId x, NodeId y)>& value) {
    GraphMaker make;
    const NodeId x = make.Matrix("X", 3000, 2000, Format::kSparse),
                 y = make.Matrix("Y", 3000, 2000, Format::kSparse);
    make.Assign("r", value(make, x, y));
    return OperatorsOf(Fused(make.graph(), FusionMode::kAll));
  };
  const auto united = operators_of([](GraphMaker& make, NodeId x, NodeId y) {
    return make.Add("abs", {make.Add("*", {make.Add("+", {x, y}), make.Literal(2.0)})});
  });
  ASSERT_EQ(united.size(), 1u);
  EXPECT_EQ(CountOf(united[0].body, "+"), 0) << united[0].ToText();
  EXPECT_EQ(CountOf(united[0].body, "abs"), 1) << united[0].ToText();
  const auto dense = [](GraphMaker& make) { return make.Matrix("D", 3000, 2000); };
  EXPECT_TRUE(operators_of([&](GraphMaker& make, NodeId x, NodeId) {
                return make.Add("sum", {make.Add("/", {x, dense(make)})});
              }).empty());
  EXPECT_TRUE(operators_of([&](GraphMaker& make, NodeId x, NodeId) {
                return make.Add("max", {make.Add("*", {x, dense(make)})});
              }).empty());
  // W says where cells are looked at, although X is read first.
  const auto driven = operators_of([](GraphMaker& make, NodeId x, NodeId y) {
    const NodeId w = make.Matrix("W", 3000, 2000, Format::kSparse);
    return make.Add("sum", {make.Add("*", {make.Add("+", {x, y}), w})});
  });
  ASSERT_EQ(driven.size(), 1u);
  for (const Node& node : driven[0].body.nodes)
    if (node.Is("*")) {
      EXPECT_EQ(driven[0].body[node.inputs[1]].Text("name"), std::to_string(driven[0].driver))
          << driven[0].ToText();
    }
  // Every cell of exp is computed anyway.
  const auto full = operators_of([](GraphMaker& make, NodeId x, NodeId y) {
    return make.Add("sum", {make.Add("exp", {make.Add("+", {x, y})})});
  });
  ASSERT_EQ(full.size(), 1u);
  EXPECT_EQ(CountOf(full[0].body, "+"), 1) << full[0].ToText();
}

TEST(FuseTest, ASparseDriverIsFoundForAnOuterOperator) {
  FuseOptions options;
  options.sparsity_of = [](std::string_view) { return 0.001; };
  const std::vector<FusedOperator> operators = OperatorsOf(Fused(ExampleD(), options));
  ASSERT_FALSE(operators.empty());
  for (const FusedOperator& fused : operators) {
    EXPECT_EQ(fused.kind, FusionTemplate::kOuter);
    for (const Node& node : fused.body.nodes)
      if (node.Is("variable") && node.Text("name") == std::to_string(fused.driver)) {
        EXPECT_EQ(node.info.format, Format::kSparse);
      }
  }
}

// sampledProduct(X, U, U): U row by row and U as a whole.
TEST(FuseTest, AnInputNeededByRowsAndWholeIsTwoInputs) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1000, 1000, Format::kSparse), u = make.Matrix("U", 1000, 5);
  make.Assign("y", make.Add("sum", {make.Add("*", {x, make.Add("sampledProduct", {x, u, u})})}));
  const Graph fused = Fused(make.graph(), FusionMode::kAll);
  ASSERT_EQ(CountOf(fused, "fused"), 1);
  for (const Node& node : fused.nodes)
    if (node.Is("fused")) {
      EXPECT_EQ(node.inputs, (std::vector<NodeId>{x, u, u}));
    }
}

TEST(FuseTest, TheReportTellsWhatWasDecided) {
  FuseOptions options;
  options.constants = ops::BuiltInConstants(2);
  FuseReport report;
  options.reported_plans = 3;
  std::string observed;
  options.observe = [&](std::string_view text) { observed = text; };
  Fused(ExampleC(), options, &report);
  ASSERT_EQ(report.partitions.size(), 1u);
  EXPECT_EQ(report.partitions[0].points, "(5->4) (7->4)");
  EXPECT_EQ(report.partitions[0].chosen, "00");
  EXPECT_EQ(report.partitions[0].gap, 0);
  EXPECT_EQ(observed, ToText(report, true));
  EXPECT_EQ(report.partitions[0].plans,
            (std::vector<std::string>{"150.3 ms: nothing", "150.3 ms: (5->4) (7->4)"}));
  EXPECT_NE(observed.find("cost: 150.3 ms; fuse all 150.3, no redundancy 150.3, cut everywhere 150.3\n"
                          "  2 of 2^2 plans costed; the chosen one is proven to be the best\n"),
            std::string::npos)
      << observed;
  report.partitions[0].gap = 0.031;
  EXPECT_NE(ToText(report, true).find("; the search was ended, the best costs at most 3.1 % less\n"),
            std::string::npos);
}

TEST(FuseTest, ModesHaveNames) {
  for (FusionMode mode : {FusionMode::kOff, FusionMode::kAll, FusionMode::kNoRedundancy, FusionMode::kCost,
                          FusionMode::kRandom})
    EXPECT_EQ(ParseFusionMode(Name(mode)), mode);
  EXPECT_EQ(ParseFusionMode("gen"), std::nullopt);
}

TEST(FuseTest, ModesOfAJobNameTheirSeed) {
  FuseOptions options;
  ASSERT_TRUE(SetMode("random:17", &options).ok());
  EXPECT_EQ(options.mode, FusionMode::kRandom);
  EXPECT_EQ(options.seed, 17u);
  ASSERT_TRUE(SetMode("all", &options).ok());
  EXPECT_EQ(options.mode, FusionMode::kAll);
  for (const char* wrong : {"random:", "random:x", "random:1x", "none", ""})
    EXPECT_EQ(SetMode(wrong, &options).code(), StatusCode::kInvalidArgument) << wrong;
}

double MillisecondsOf(const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const int64_t begin = SystemClock().MonotonicNs();
    run();
    best = std::min(best, static_cast<double>(SystemClock().MonotonicNs() - begin) / 1e6);
  }
  return best;
}

TEST(FuseTest, ExplorationIsLinear) {
  const auto explore = [](int operators) {
    const Graph graph = RandomGraph(1).Make(operators);
    return MillisecondsOf([&] {
      const fusion::Dag dag = fusion::MakeDag(graph, {});
      fusion::Memo memo = fusion::Explore(dag);
      fusion::Prune(dag, &memo);
    });
  };
  const double small = explore(500), large = explore(2000);
  EXPECT_LT(large, 50);
  EXPECT_LT(large, 10 * small + 1);
}

TEST(FuseTest, SmallBlocksTakeMilliseconds) {
  for (const Graph& graph : {ExampleA(), ExampleB(), ExampleC(), ExampleD(), ExampleE()})
    EXPECT_LT(MillisecondsOf([&] { Fused(graph, FusionMode::kCost); }), 20);
}

}  // namespace
}  // namespace heddle::compiler
