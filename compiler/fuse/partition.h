// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/fuse/dag.h"
#include "compiler/fuse/memo.h"

namespace heddle::compiler::fusion {

/// A decision: 1 materialises `target` for `consumer`, 0 lets the consumer compute it inside.
struct Point {
  NodeId consumer = kNoNode;
  NodeId target = kNoNode;
  bool operator==(const Point&) const = default;
};

/// Up to so many points the cost of a plan that the search compares is that with its stitches.
constexpr size_t kMostStitchedPoints = 10;

/// Nodes that may share fused operators, or passes over the same rows, and none besides; but where there
/// would be more than kMostStitchedPoints points, those that only share passes are apart. Partitions are
/// optimised one by one. All lists ascend.
struct Partition {
  std::vector<NodeId> nodes;
  std::vector<NodeId> roots;            ///< No entry of the partition refers to them, but of Stitch.
  std::vector<NodeId> inputs;           ///< Matrices from outside that its nodes read.
  std::vector<NodeId> materialization;  ///< Matrices within that several consumers read.
  std::vector<NodeId> external;         ///< Not roots, and read from outside: materialised anyway.
  std::vector<Point> points;            ///< Several consumers first, then changes of template.
  /// Full aggregates among the roots that one pass computes: same shape below, independent; 2 or 3 each.
  std::vector<std::vector<NodeId>> aggregates;
};

std::vector<Partition> FindPartitions(const Dag& dag, const Memo& memo);

/// "(8->7) (9->7)".
std::string ToText(const std::vector<Point>& points);

}  // namespace heddle::compiler::fusion
