// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/recursion/structure/visit_structure.h"

namespace heddle::ops {

/// A structure as arrays: which nodes are computed together, and where their children stand. Nodes have
/// places: those of one class next to each other, in them those of one height (0: no calls; else one more
/// than the highest child). So a batch, nodes of one class and height, is a range of places; in it they stand
/// depth first, root after root, so that of a subtree, and of subtrees behind each other, all nodes of a
/// batch are a range of places, too.
struct Linearized {
  struct Batch {
    int32_t node_class = 0;
    int64_t begin = 0, end = 0;  ///< Places.
  };
  std::vector<Batch> batches;  ///< In the order in which they can be computed: by height.
  struct Class {
    std::vector<bool> path;
    int64_t begin = 0, end = 0;  ///< Places.
    int32_t calls = 0;           ///< Of each node of the class,
    int32_t given = 0;           ///< numbers given to its operators.
    /// Places of the children: that of call c of the node at `begin + i` is at c * (end - begin) + i.
    std::vector<int32_t> children;
    std::vector<double> numbers;  ///< Laid out in the same way.
  };
  std::vector<Class> classes;
  std::vector<int64_t> nodes;  ///< By place.
  std::vector<int32_t> roots;  ///< Places.
  std::vector<int32_t> order;  ///< By place: the number of each node depth first, root after root, a node
                               ///< before those that it calls, each where it is met first.
  /// The numbers at which the nodes of a root begin that has none in common with those before.
  std::vector<int32_t> components;
  /// No node is called twice. Then, by place, the number of nodes of its subtree: these are the numbers from
  /// its own on. Empty where nodes are shared.
  bool is_tree = false;
  std::vector<int32_t> subtrees;
  /// The places of the nodes of `batch` whose numbers in `order` are from `first` to before `end`: from
  /// `begin` of the result to before its `end`.
  Batch Within(const Batch& batch, int32_t first, int32_t end) const;
  int64_t levels = 0;
};

/// O(nodes + calls).
Linearized Linearize(const VisitedStructure& visited);

}  // namespace heddle::ops
