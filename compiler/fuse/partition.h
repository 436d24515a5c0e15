// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/fuse/dag.h"
#include "compiler/fuse/memo.h"

namespace heddle::compiler::fusion {

/// A decision about an edge: 1 stores the value of `target` in memory for `consumer`, 0 lets the consumer's
/// operator compute it inside.
struct Point {
  NodeId consumer = kNoNode;
  NodeId target = kNoNode;
  bool operator==(const Point&) const = default;
};

/// In partitions of at most so many points the search compares plans by what they cost with their stitches.
constexpr size_t kMostStitchedPoints = 10;

/// A set of nodes whose plan depends on no other node: entries connect them, or they may share a pass over
/// the same rows. Sets that are connected by passes alone stay apart where together they would have more than
/// kMostStitchedPoints points. Partitions are optimised one by one. All lists ascend.
struct Partition {
  std::vector<NodeId> nodes;
  std::vector<NodeId> roots;            ///< No entry refers to them, except entries of Stitch.
  std::vector<NodeId> inputs;           ///< Matrices outside the partition that its nodes read.
  std::vector<NodeId> materialization;  ///< Matrices of the partition that several consumers read.
  std::vector<NodeId> external;  ///< Nodes that are no roots and that something outside reads: always stored.
  std::vector<Point> points;     ///< Of targets with several consumers, then of changes of template.
};

std::vector<Partition> FindPartitions(const Dag& dag, const Memo& memo);

/// "(8->7) (9->7)".
std::string ToText(const std::vector<Point>& points);

}  // namespace heddle::compiler::fusion
