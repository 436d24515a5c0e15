// SPDX-License-Identifier: Apache-2.0
#include "scheduler/estimate.h"

#include <gtest/gtest.h>

#include "ops/base/operator.h"

namespace heddle::scheduler {
namespace {

const ops::MachineConstants kOneThread = ops::BuiltInConstants(1);

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
  // 10^7 cells of 8 bytes read and written, 28 bytes a nanosecond.
  const Graph graph = OneOperator("abs", {10'000'000, 1}, {10'000'000, 1});
  EXPECT_EQ(EstimateNs(graph, TaskOf(1), ops::BuiltInConstants(1)), 160'000'000 / 28);
}

// exp is 18 units of work a cell, 8 of them a nanosecond on each thread; a fused operator of it and the
// scheduler go by the same table.
TEST(EstimateTest, WorkByTheTableOfFusion) {
  const Graph graph = OneOperator("exp", {10'000'000, 1}, {10'000'000, 1});
  const double work = ops::FindOperator("exp")->fusion.work;
  for (const int threads : {1, 2, 8})
    EXPECT_EQ(EstimateNs(graph, TaskOf(1), ops::BuiltInConstants(threads)),
              static_cast<int64_t>(std::max(1e7 * work / (8 * threads),
                                            1.6e8 / ops::BuiltInConstants(threads).read_bytes_per_ns)));
}

TEST(EstimateTest, AShareOfTheRowsCostsItsShare) {
  const Graph graph = OneOperator("abs", {10'000'000, 1}, {10'000'000, 1});
  Task task = TaskOf(1);
  task.total_rows = task.row_end = 10'000'000;
  const int64_t whole = EstimateNs(graph, task, kOneThread);
  task.row_end = 2'500'000;
  EXPECT_EQ(EstimateNs(graph, task, kOneThread), whole / 4);
}

TEST(EstimateTest, WhatComputesNothingCostsNothing) {
  const Graph graph = OneOperator("abs", {10'000'000, 1}, {10'000'000, 1});
  EXPECT_EQ(EstimateNs(graph, TaskOf(0), kOneThread), 0);
  EXPECT_EQ(EstimateNs(graph, TaskOf(1, Phase::kSlice), kOneThread), 0);
  EXPECT_EQ(EstimateNs(graph, TaskOf(kNoNode), kOneThread), 0);
  Task copy = TaskOf(1);
  copy.kind = TaskKind::kCopy;
  EXPECT_EQ(EstimateNs(graph, copy, kOneThread), 0);
  EXPECT_EQ(EstimateNs(graph, TaskOf(1, Phase::kGather), kOneThread), 160'000'000 / 28);
}

TEST(EstimateTest, UnknownSizesCostNothingAndFilesHaveNoBound) {
  EXPECT_EQ(EstimateNs(OneOperator("abs", {kUnknown, kUnknown}, {kUnknown, kUnknown}), TaskOf(1), kOneThread),
            0);
  EXPECT_EQ(EstimateNs(OneOperator("write", {4, 4}, {4, 4}), TaskOf(1), kOneThread), kUnboundedCost);
  EXPECT_EQ(EstimateNs(OneOperator("read", {4, 4}, {4, 4}), TaskOf(1), kOneThread), kUnboundedCost);
}

}  // namespace
}  // namespace heddle::scheduler
