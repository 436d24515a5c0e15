// SPDX-License-Identifier: Apache-2.0
#include "ops/base/graph_run.h"

#include <gtest/gtest.h>

#include <string>

#include "ops/base/operator.h"

namespace heddle::ops {
namespace {

constexpr char kSquare[] = " : matrix double 2x2 dense @ \"a.dml\":7:3\n";
constexpr char kScalar[] = " : scalar double 0x0 dense @ \"a.dml\":7:3\n";

Graph Parsed(const std::string& text) {
  Result<Graph> graph = Graph::Parse(text);
  HEDDLE_CHECK(graph.ok(), graph.status().ToString().c_str());
  return *std::move(graph);
}

Matrix Square(double a, double b, double c, double d) {
  Matrix matrix = *Matrix::Dense(2, 2);
  const double cells[] = {a, b, c, d};
  std::copy(std::begin(cells), std::end(cells), matrix.mutable_data());
  return matrix;
}

Status RunNode(const Graph& graph, NodeId id, GraphValues* values, bool reads_last = false) {
  OperatorStep step{.node = id, .op = FindOperator(graph[id].op)};
  SetSizes(graph, &step);
  step.reads_last = reads_last;
  KernelContext context;
  return values->Run(step, CatalogKernels(), context);
}

TEST(GraphRunTest, NodesReadWhatEarlierNodesLeft) {
  const Graph graph = Parsed(std::string("%0 = variable() name=\"X\"") + kSquare + "%1 = literal() value=2" +
                             kScalar + "%2 = *(%0, %1)" + kSquare + "%3 = sum(%2)" + kScalar);
  const GraphLayout layout(graph);
  GraphValues values(graph, layout);
  const Value x(Square(1, 2, 3, 4));
  values.Refer(0, &x);
  ASSERT_EQ(StepOf(graph[1]).kind, GraphStep::Kind::kLiteral);
  values.Own(1)[0] = Value(*StepOf(graph[1]).literal);
  ASSERT_TRUE(RunNode(graph, 2, &values).ok());
  ASSERT_TRUE(RunNode(graph, 3, &values).ok());
  EXPECT_EQ(values.Of(3)->scalar().AsDouble(), 20);
  EXPECT_EQ(values.Of(kNoNode), nullptr);
  values.Reset(0);
  EXPECT_NE(values.Of(0), &x) << "the reference is gone";
}

TEST(GraphRunTest, ANodeThatNamesAResultHasThatOfTheTuple) {
  Graph graph = Parsed(std::string("%0 = variable() name=\"X\"") + kSquare + "%1 = eigen(%0)" + kSquare +
                       "%2 = result(%1) index=0" + kSquare + "%3 = result(%1) index=1" + kSquare);
  graph[1].info = ValueInfo::OfTuple();
  graph[1].results = {ValueInfo::OfMatrix({2, 1}), ValueInfo::OfMatrix({2, 2})};
  const GraphLayout layout(graph);
  GraphValues values(graph, layout);
  const Value x(Square(3, 0, 0, 2));
  values.Refer(0, &x);
  ASSERT_EQ(values.Own(1).size(), 2u);
  ASSERT_TRUE(RunNode(graph, 1, &values).ok());
  EXPECT_EQ(values.Of(2)->shape(), (Shape{2, 1}));
  EXPECT_EQ(values.Of(3)->shape(), (Shape{2, 2}));
  EXPECT_EQ(values.Of(3), &values.Own(1)[1]);
}

TEST(GraphRunTest, AnErrorHasThePlaceOfItsNode) {
  const Graph graph = Parsed(std::string("%0 = variable() name=\"X\"") + kSquare + "%1 = inv(%0)" + kSquare);
  const GraphLayout layout(graph);
  GraphValues values(graph, layout);
  const Value singular(Square(0, 0, 0, 0));
  values.Refer(0, &singular);
  const Status status = RunNode(graph, 1, &values);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.position().line, 7);
}

}  // namespace
}  // namespace heddle::ops
