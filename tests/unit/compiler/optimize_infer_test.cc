// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/optimize/infer.h"

namespace heddle::compiler {
namespace {

// The last block's graph: what a session infers when it enters it. Sizes and values before it stay open.
Graph LastBlock(const std::string& script) {
  Diagnostics diagnostics;
  CompileOptions options;
  options.disabled_passes = {"propagate-constants", "fold-constants"};
  Result<Program> program = CompileScript(script, options, &diagnostics);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return program->main.back().graph;
}

// print(1) in an if keeps what is before and after it in blocks of their own.
constexpr const char* kCut = "if (sum(rand(rows=1, cols=1)) > 2) print(1)\n";

const ValueInfo& InfoOf(const InferOutcome& outcome, std::string_view op) {
  for (const Node& node : outcome.graph.nodes)
    if (node.Is(op)) return node.info;
  ADD_FAILURE() << "no " << op;
  return outcome.graph.nodes[0].info;
}

TEST(InferTest, SizesComeFromLiveInsAndTheirValues) {
  const Graph graph = LastBlock(std::string("X = table(seq(1, 2), seq(1, 2))\nn = 3\n") + kCut +
                                "Y = X %*% rand(rows=ncol(X), cols=n * 2)\nprint(Y)");
  LiveIns live_in;
  live_in["X"] = {ValueInfo::OfMatrix({100, 7}), std::nullopt};
  live_in["n"] = {ValueInfo::OfScalar(ValueType::kInteger), Scalar(4)};
  const InferOutcome outcome = InferShapes(graph, live_in, nullptr);
  ASSERT_TRUE(outcome.error.ok()) << outcome.error.ToString();
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(InfoOf(outcome, "rand").shape, (Shape{7, 8}));
  EXPECT_EQ(InfoOf(outcome, "%*%").shape, (Shape{100, 8}));
}

TEST(InferTest, EachResultHasItsSize) {
  const Graph graph = LastBlock(std::string("X = rand(rows=5, cols=3)\n") + kCut +
                                "[U, S, V] = svd(X)\nprint(U)\nprint(nrow(V))");
  for (const Shape x : {Shape{10, 4}, Shape{kUnknown, 4}}) {
    LiveIns live_in;
    live_in["X"] = {ValueInfo::OfMatrix(x), std::nullopt};
    const InferOutcome outcome = InferShapes(graph, live_in, nullptr);
    ASSERT_TRUE(outcome.error.ok()) << outcome.error.ToString();
    EXPECT_EQ(outcome.complete, x.IsKnown());
    EXPECT_EQ(InfoOf(outcome, "svd").data_type, DataType::kTuple);
    EXPECT_EQ(InfoOf(outcome, "result").shape, (Shape{x.rows, x.IsKnown() ? 4 : kUnknown}));
  }
  LiveIns unknown;
  unknown["X"] = {};
  const InferOutcome outcome = InferShapes(graph, unknown, nullptr);
  EXPECT_TRUE(outcome.error.ok());
  EXPECT_EQ(InfoOf(outcome, "svd").data_type, DataType::kUnknown);
  EXPECT_EQ(InfoOf(outcome, "result").data_type, DataType::kUnknown);
}

TEST(InferTest, WhatDependsOnAnUnknownScalarStaysUnknown) {
  const Graph graph = LastBlock(std::string("n = sum(rand(rows=1, cols=1))\n") + kCut +
                                "Y = t(rand(rows=n, cols=2))\nprint(Y)");
  LiveIns live_in;
  live_in["n"] = {ValueInfo::OfScalar(ValueType::kDouble), std::nullopt};
  const InferOutcome outcome = InferShapes(graph, live_in, nullptr);
  EXPECT_TRUE(outcome.error.ok());
  EXPECT_FALSE(outcome.complete);
  EXPECT_EQ(InfoOf(outcome, "rand").shape, (Shape{kUnknown, 2}));
  EXPECT_EQ(InfoOf(outcome, "t").shape, (Shape{2, kUnknown}));
}

TEST(InferTest, AWrongShapeIsAnErrorOfTheRunAtItsOperator) {
  const Graph graph =
      LastBlock(std::string("X = matrix(1, 2, 2)\n") + kCut + "print(\"before\")\nY = X %*% X\nprint(Y)");
  LiveIns live_in;
  live_in["X"] = {ValueInfo::OfMatrix({3, 7}), std::nullopt};
  const InferOutcome outcome = InferShapes(graph, live_in, nullptr);
  EXPECT_EQ(outcome.error.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(outcome.error.position(), (SourcePosition{"script.dml", 4, 7}));
  ASSERT_NE(outcome.failed, kNoNode);
  EXPECT_TRUE(outcome.graph[outcome.failed].Is("%*%"));
}

TEST(InferTest, AMissingVariableIsNamed) {
  const Graph graph =
      LastBlock(std::string("x = 1\n") + "if (sum(rand(rows=1, cols=1)) > 2) y = 2\nprint(y + x)");
  LiveIns live_in;
  live_in["x"] = {ValueInfo::OfScalar(ValueType::kInteger), Scalar(1)};
  const InferOutcome outcome = InferShapes(graph, live_in, nullptr);
  EXPECT_EQ(outcome.error.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(outcome.error.message(), "variable 'y' has no value here");
}

TEST(InferTest, KnownScalarsAreEvaluatedAsTheRunDoes) {
  const Graph graph = LastBlock(std::string("n = 3\n") + kCut + "print(\"n = \" + n / 2)");
  LiveIns live_in;
  live_in["n"] = {ValueInfo::OfScalar(ValueType::kInteger), Scalar(5)};
  const InferOutcome outcome = InferShapes(graph, live_in, nullptr);
  std::vector<std::string> texts;
  for (const std::optional<Scalar>& value : outcome.values)
    if (value && value->IsString()) texts.push_back(value->AsString());
  EXPECT_EQ(texts, (std::vector<std::string>{"n = ", "n = 2.5"}));
}

}  // namespace
}  // namespace heddle::compiler
