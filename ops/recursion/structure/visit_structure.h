// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"
#include "ops/recursion/structure/structure_program.h"

namespace heddle::ops {

/// The nodes of a structure that are reached from the roots, and what they do. Nodes that go the same way
/// through the function are of one class: they run the same operators.
struct VisitedStructure {
  struct Class {
    std::vector<bool> decisions;  ///< Of each of its nodes.
    int32_t calls = 0;            ///< Of each of its nodes,
    int32_t number_count = 0;     ///< numbers given to its operators.
  };
  std::vector<Class> classes;
  /// Nodes of one class and one height: 0 without calls; else one more than the highest child.
  struct Batch {
    int32_t node_class = 0, height = 0;
    int64_t size = 0;
  };
  std::vector<Batch> batches;
  struct Visit {
    int32_t node = 0;  ///< What the script calls it.
    int32_t batch = 0;
    int32_t subtree = 0;  ///< Nodes visited from the node on, with it, until all its calls were.
  };
  /// Depth first, root after root, a node before those that it calls, and these in the order of the calls.
  std::vector<Visit> visits;
  /// Numbers of visits: the calls of the first node in their order, those of the second, ...
  std::vector<int32_t> children;
  std::vector<double> numbers;  ///< That are given to operators, in the same order.
  std::vector<int32_t> roots;   ///< Visits of the roots.
  /// No call met a node that had been visited before: the visits of a subtree are those from its node on.
  bool is_tree = true;
  /// The visits at which those of a root begin that has no node in common with what was visited before.
  std::vector<int32_t> components;
};

/// Runs a structure program for roots and all nodes that they reach, each node once, without recursion. What
/// it makes for the matrices serves all later calls, which then cost only their own nodes. One thread at a
/// time.
class StructureVisitor {
 public:
  static constexpr int32_t kNoLimit = std::numeric_limits<int32_t>::max();

  /// `program` outlives it. `matrices` are dense. A node may make so many decisions.
  StructureVisitor(const StructureProgram& program, std::vector<Matrix> matrices,
                   std::span<const double> uniforms, int32_t most_decisions);
  ~StructureVisitor();

  /// It is there until the next visit. kFailedPrecondition where a node reads past the structure, and with
  /// nodes where calls go in a circle; `function` is named in that error. nullptr where only the interpreter
  /// can tell what the script means (numbers that are no nodes, NaN as a condition, variables without a
  /// value, too many decisions): why() tells which.
  Result<const VisitedStructure*> Visit(std::span<const int64_t> roots, std::string_view function);
  const std::string& why() const;
  /// What it holds beside the matrices.
  size_t bytes() const;

  /// The nodes that are called by each of `nodes`, in order, without going on to them. nullopt as above, and
  /// where a node reads past the structure.
  std::optional<std::vector<int64_t>> CallsOf(std::span<const int64_t> nodes);

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace heddle::ops
