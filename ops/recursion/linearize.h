// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/recursion/structure_program.h"

namespace heddle::ops {

/// A structure as arrays: which nodes are computed together, and where their children stand. Nodes have
/// places: those of one class next to each other, in them those of one height (0: no calls; else one more
/// than the highest child). So a batch, nodes of one class and height, is a range of places.
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
  int64_t levels = 0;
};

/// Heights by counting, without recursion; O(nodes + calls). kFailedPrecondition, with nodes, where calls go
/// in a circle. `function` is named in the error.
Result<Linearized> Linearize(VisitedStructure visited, std::string_view function);

}  // namespace heddle::ops
