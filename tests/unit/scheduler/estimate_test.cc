// SPDX-License-Identifier: Apache-2.0
#include "scheduler/estimate.h"

#include <gtest/gtest.h>

namespace heddle::scheduler {
namespace {

Graph OneOperator(const std::string& op, Shape input, Shape result) {
  Graph graph;
  Node variable;
  variable.op = "variable";
  variable.SetAttribute("name", Scalar(std::string("X")));
  variable.info = ValueInfo::OfMatrix(input);
  graph.Add(variable);
  Node node;
  node.op = op;
  node.inputs = {0};
  node.info = ValueInfo::OfMatrix(result);
  graph.Add(node);
  return graph;
}

Task TaskOf(NodeId node, Phase phase = Phase::kWhole) {
  Task task;
  task.node = node;
  task.phase = phase;
  return task;
}

TEST(EstimateTest, BytesByTheBuiltInMachine) {
  // 10^7 cells read and written, 8 bytes a nanosecond.
  const Graph graph = OneOperator("abs", {10'000'000, 1}, {10'000'000, 1});
  const int64_t ns = EstimateNs(graph, TaskOf(1));
  EXPECT_GE(ns, 20'000'000);
  EXPECT_LE(ns, 200'000'000);
}

TEST(EstimateTest, AShareOfTheRowsCostsItsShare) {
  const Graph graph = OneOperator("abs", {10'000'000, 1}, {10'000'000, 1});
  Task task = TaskOf(1);
  task.total_rows = task.row_end = 10'000'000;
  const int64_t whole = EstimateNs(graph, task);
  task.row_end = 2'500'000;
  EXPECT_EQ(EstimateNs(graph, task), whole / 4);
}

TEST(EstimateTest, WhatComputesNothingCostsNothing) {
  const Graph graph = OneOperator("abs", {10'000'000, 1}, {10'000'000, 1});
  EXPECT_EQ(EstimateNs(graph, TaskOf(0)), 0);
  EXPECT_EQ(EstimateNs(graph, TaskOf(1, Phase::kSlice)), 0);
  EXPECT_EQ(EstimateNs(graph, TaskOf(kNoNode)), 0);
  Task copy = TaskOf(1);
  copy.kind = TaskKind::kCopy;
  EXPECT_EQ(EstimateNs(graph, copy), 0);
  EXPECT_GT(EstimateNs(graph, TaskOf(1, Phase::kGather)), 10'000'000);
}

TEST(EstimateTest, UnknownSizesCostNothingAndFilesHaveNoBound) {
  EXPECT_EQ(EstimateNs(OneOperator("abs", {kUnknown, kUnknown}, {kUnknown, kUnknown}), TaskOf(1)), 0);
  EXPECT_EQ(EstimateNs(OneOperator("write", {4, 4}, {4, 4}), TaskOf(1)), kUnboundedCost);
  EXPECT_EQ(EstimateNs(OneOperator("read", {4, 4}, {4, 4}), TaskOf(1)), kUnboundedCost);
}

}  // namespace
}  // namespace heddle::scheduler
