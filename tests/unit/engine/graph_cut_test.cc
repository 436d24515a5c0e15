// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/graph_cut.h"

#include <gtest/gtest.h>

namespace heddle::engine {
namespace {

// A graph in its text form, inferred with X (100 x 3) and n (5) known.
compiler::InferOutcome Inferred(const std::string& text, const std::set<NodeId>& waiting = {}) {
  compiler::LiveIns live_in;
  live_in["X"].info = ValueInfo::OfMatrix({100, 3});
  live_in["n"].info = ValueInfo::OfScalar(ValueType::kInteger);
  live_in["n"].value = 5;
  Result<Graph> graph = Graph::Parse(text);
  HEDDLE_CHECK(graph.ok(), graph.status().ToString().c_str());
  return compiler::InferShapes(*std::move(graph), live_in, nullptr, nullptr, ElementType::kFloat64, &waiting);
}

std::string Operators(const Graph& graph) {
  std::string names;
  for (const Node& node : graph.nodes) {
    if (!names.empty()) names += " ";
    names += node.op;
    if (node.Is("variable") || node.Is("assign")) names += ":" + node.Text("name");
  }
  return names;
}

constexpr char kRest[] = " : unknown unknown ?x? dense @ \"a.dml\":1:1\n";

std::string Lines(std::initializer_list<std::string> nodes) {
  std::string text;
  for (const std::string& node : nodes) text += node + kRest;
  return text;
}

TEST(GraphCutTest, WhatNeedsASizeThatOnlyARunTellsWaits) {
  const auto inferred = Inferred(Lines({
      "%0 = variable() name=\"X\"",
      "%1 = removeEmpty(%0) margin=\"rows\"",
      "%2 = t(%1)",
      "%3 = sum(%0)",
      "%4 = assign(%2) name=\"Y\"",
      "%5 = assign(%3) name=\"s\"",
  }));
  ASSERT_TRUE(inferred.error.ok()) << inferred.error.ToString();
  ASSERT_FALSE(inferred.complete);
  const Cut cut = CutGraph(inferred, 0);
  EXPECT_EQ(Operators(cut.first), "variable:X removeEmpty assign:%cut0_1 sum assign:%cut0_3");
  EXPECT_EQ(Operators(cut.rest), "variable:%cut0_1 t variable:%cut0_3 assign:Y assign:s");
  EXPECT_EQ(cut.temporaries, (std::vector<std::string>{"%cut0_1", "%cut0_3"}));
  EXPECT_TRUE(Verify(cut.first).ok());
  EXPECT_TRUE(Verify(cut.rest).ok());
}

// What is behind a cut reads results through variables, as a tuple is in none.
TEST(GraphCutTest, ResultsGoWithTheirTuple) {
  const auto inferred = Inferred(Lines({
      "%0 = variable() name=\"X\"",
      "%1 = removeEmpty(%0) margin=\"rows\"",
      "%2 = qr(%1)",
      "%3 = result(%2) index=0",
      "%4 = result(%2) index=1",
      "%5 = qr(%0)",
      "%6 = result(%5) index=1",
      "%7 = result(%5) index=0",
      "%8 = sum(%4)",
      "%9 = assign(%3) name=\"H\"",
      "%10 = assign(%8) name=\"s\"",
      "%11 = assign(%6) name=\"R\"",
  }));
  ASSERT_TRUE(inferred.error.ok()) << inferred.error.ToString();
  ASSERT_FALSE(inferred.complete);
  EXPECT_EQ(inferred.graph[6].info.shape, (Shape{100, 3}));
  EXPECT_EQ(inferred.graph[4].info.shape, (Shape{kUnknown, 3}));
  const Cut cut = CutGraph(inferred, 0);
  EXPECT_EQ(Operators(cut.first), "variable:X removeEmpty assign:%cut0_1 qr result assign:%cut0_6 result");
  EXPECT_EQ(Operators(cut.rest),
            "variable:%cut0_1 qr result result variable:%cut0_6 sum assign:H assign:s assign:R");
  EXPECT_TRUE(Verify(cut.first).ok()) << Verify(cut.first).ToString();
  EXPECT_TRUE(Verify(cut.rest).ok()) << Verify(cut.rest).ToString();
}

// A read waits for a write behind the results of an operator that had to come first.
TEST(GraphCutTest, ResultsBehindAWaitingReadGoWithTheirTuple) {
  const auto inferred = Inferred(Lines({
                                     "%0 = variable() name=\"X\"",
                                     "%1 = svd(%0)",
                                     "%2 = result(%1) index=0",
                                     "%3 = literal() value=\"f\"",
                                     "%4 = write(%2, %3) after(%1)",
                                     "%5 = read(%3) after(%4)",
                                     "%6 = result(%1) index=1",
                                     "%7 = assign(%6) name=\"S\"",
                                     "%8 = assign(%5) name=\"Y\"",
                                 }),
                                 {5});
  ASSERT_TRUE(inferred.error.ok()) << inferred.error.ToString();
  const Cut cut = CutGraph(inferred, 0);
  EXPECT_EQ(Operators(cut.first), "variable:X svd result literal write result assign:%cut0_6");
  EXPECT_EQ(Operators(cut.rest), "literal read variable:%cut0_6 assign:S assign:Y");
}

TEST(GraphCutTest, EffectsKeepTheirOrderAcrossACut) {
  const auto inferred = Inferred(Lines({
      "%0 = variable() name=\"X\"",
      "%1 = removeEmpty(%0) margin=\"rows\"",
      "%2 = toString(%1)",
      "%3 = print(%2)",
      "%4 = literal() value=\"later\"",
      "%5 = print(%4) after(%3)",
  }));
  ASSERT_TRUE(inferred.error.ok()) << inferred.error.ToString();
  ASSERT_FALSE(inferred.complete) << "removeEmpty leaves a size unknown";
  const Cut cut = CutGraph(inferred, 0);
  EXPECT_EQ(Operators(cut.first).find("print"), std::string::npos) << Operators(cut.first);
}

TEST(GraphCutTest, BeforeAFaultOnlyWhatActsRuns) {
  const auto inferred = Inferred(Lines({
      "%0 = literal() value=\"seen\"",
      "%1 = print(%0)",
      "%2 = variable() name=\"X\"",
      "%3 = sum(%2)",
      "%4 = variable() name=\"missing\"",
      "%5 = print(%4) after(%1)",
  }));
  ASSERT_EQ(inferred.failed, 4);
  const Cut cut = CutGraph(inferred, 0);
  EXPECT_EQ(Operators(cut.first), "literal print");
  // The second time nothing is left to do before the fault.
  compiler::LiveIns live_in;
  live_in["X"].info = ValueInfo::OfMatrix({100, 3});
  const auto again = compiler::InferShapes(cut.rest, live_in, nullptr);
  EXPECT_FALSE(again.error.ok());
  EXPECT_TRUE(CutGraph(again, 1).first.nodes.empty());
}

// A read that waits stops all that acts behind it, and nothing is computed early for its sake.
TEST(GraphCutTest, AReadWaitsForTheEffectsBeforeIt) {
  const std::string text = Lines({
      "%0 = variable() name=\"X\"",
      "%1 = sum(%0)",
      "%2 = t(%0)",
      "%3 = literal() value=\"f\"",
      "%4 = write(%1, %3)",
      "%5 = read(%3) after(%4)",
      "%6 = print(%1) after(%5)",
      "%7 = %*%(%5, %2)",
      "%8 = assign(%7) name=\"Y\"",
  });
  const Cut cut = CutGraph(Inferred(text, {5}), 0);
  EXPECT_EQ(Operators(cut.first), "variable:X sum assign:%cut0_1 literal write");
  EXPECT_EQ(Operators(cut.rest), "variable:X variable:%cut0_1 t literal read print %*% assign:Y");
  EXPECT_TRUE(Verify(cut.first).ok());
  EXPECT_TRUE(Verify(cut.rest).ok());
  // Without a write that may change it, it goes first as before.
  EXPECT_EQ(Operators(CutGraph(Inferred(text), 0).first),
            "variable:X sum t assign:%cut0_2 literal write read "
            "assign:%cut0_5 print");
}

TEST(GraphCutTest, AFaultBehindAReadThatWaitsComesLater) {
  const Cut cut = CutGraph(Inferred(Lines({
                                        "%0 = literal() value=\"f\"",
                                        "%1 = write(%0, %0)",
                                        "%2 = read(%0) after(%1)",
                                        "%3 = variable() name=\"missing\"",
                                        "%4 = print(%3) after(%2)",
                                    }),
                                    {2}),
                           0);
  EXPECT_EQ(Operators(cut.first), "literal write");
  EXPECT_EQ(Operators(cut.rest), "literal read variable:missing print");
}

}  // namespace
}  // namespace heddle::engine
