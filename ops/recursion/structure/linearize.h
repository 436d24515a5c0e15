// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/recursion/structure/visit_structure.h"

namespace heddle::ops {

/// A structure as arrays: which nodes are computed together, and where their children are. Each node has a
/// place. Nodes of one class are next to each other, and among them nodes of one height (0 without calls;
/// else one more than the highest child). So a batch, the nodes of one class and height, is a range of
/// places. In it nodes are in depth-first order, root after root, so the nodes of a batch that are in one
/// subtree, or in subtrees that follow each other, are a range of places, too.
struct Linearized {
  struct Batch {
    int32_t node_class = 0;
    int64_t begin = 0, end = 0;  ///< Places.
  };
  std::vector<Batch> batches;  ///< In the order in which they can be computed: by height.
  struct Class {
    std::vector<bool> decisions;  ///< Of each node of the class.
    int64_t begin = 0, end = 0;   ///< Places.
    int32_t calls = 0;            ///< Of each node,
    int32_t number_count = 0;     ///< numbers that the structure program gives to its operators.
    /// Places of the children: that of call c of the node at `begin + i` is at c * (end - begin) + i.
    std::vector<int32_t> children;
    std::vector<double> numbers;  ///< Laid out in the same way.
  };
  std::vector<Class> classes;
  std::vector<int64_t> nodes;  ///< By place.
  std::vector<int32_t> roots;  ///< Places.
  /// By place: the number of the node in depth-first order, root after root, a node before those that it
  /// calls.
  std::vector<int32_t> order;
  /// The numbers at which the nodes of those roots begin that share no node with earlier roots.
  std::vector<int32_t> components;
  bool is_tree = false;  ///< No node is called twice.
  /// Of a tree, by place: how many nodes the subtree has. Their numbers follow that of the node itself. Empty
  /// where nodes are shared.
  std::vector<int32_t> subtrees;
  /// The part of a batch whose numbers in `order` are in [first, end).
  Batch Within(const Batch& batch, int32_t first, int32_t end) const;
  int64_t levels = 0;
};

/// O(nodes + calls).
Linearized Linearize(const VisitedStructure& visited);

}  // namespace heddle::ops
