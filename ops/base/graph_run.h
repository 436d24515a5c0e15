// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "core/values/value.h"
#include "ops/base/kernel.h"

// How a graph is run on the calling thread, node by node in order, values whole: by the blocks of a script
// that are too small for a plan, by operators of phases, and by what a fused operator looks at once more. Who
// runs a graph says where its variables come from and when a value goes; the rest is here.
namespace heddle::ops {

struct Operator;

/// What a node asks of whoever runs its graph. Names parts of the node, which stays where it is.
struct GraphStep {
  enum class Kind : uint8_t { kLiteral, kVariable, kAssign, kResult, kOperator };
  Kind kind = Kind::kOperator;
  const Operator* op = nullptr;       ///< Of kOperator; nullptr where the catalog has none of the name.
  const std::string* name = nullptr;  ///< Of kVariable and kAssign.
  const Scalar* literal = nullptr;    ///< Of kLiteral.
};
GraphStep StepOf(const Node& node);

/// What all runs of an operator on values of the same sizes have in common.
struct OperatorStep {
  NodeId node = kNoNode;
  const Operator* op = nullptr;  ///< nullptr: the kernels look it up.
  std::vector<ValueInfo> input_infos = {};
  int64_t row_begin = 0, row_end = 0, total_rows = 0;  ///< As in KernelCall.
  bool reads_last = false;  ///< Nobody reads the first input, a value of this graph, behind this step.
};
/// Takes the sizes of an inferred graph: all rows of the step's node.
void SetSizes(const Graph& graph, OperatorStep* step);
/// The call of the step, which outlives it, on those inputs of the node.
KernelCall CallOf(const Graph& graph, const OperatorStep& step, std::span<const Value* const> inputs,
                  KernelContext& context);

/// Where the values of a graph's nodes are among all of them: a node has one value, a tuple one for each
/// result, and the node that names a result has that of the tuple.
class GraphLayout {
 public:
  GraphLayout() = default;
  /// Of an inferred graph.
  explicit GraphLayout(const Graph& graph);

 private:
  friend class GraphValues;
  struct Place {
    size_t first = 0, count = 1;
  };
  std::vector<Place> places_;  // By node.
  size_t values_ = 0;
};

/// The values of the nodes of a graph while it runs. Graph and layout stay where they are.
class GraphValues {
 public:
  GraphValues(const Graph& graph, const GraphLayout& layout);
  GraphValues(const GraphValues&) = delete;
  GraphValues& operator=(const GraphValues&) = delete;

  /// What readers of the node get; nullptr for kNoNode.
  const Value* Of(NodeId node) const { return node == kNoNode ? nullptr : values_[Index(node)]; }
  /// From now on they get `value`, which is somebody else's and outlives the run.
  void Refer(NodeId node, const Value* value) { values_[Index(node)] = value; }
  /// What is in here of the node: what its operator makes.
  std::span<Value> Own(NodeId node) {
    const GraphLayout::Place& place = layout_.places_[Index(node)];
    return std::span(own_).subspan(place.first, place.count);
  }
  /// Readers get the node's own value again, which is empty.
  void Reset(NodeId node);

  /// Runs the operator of a step on the values of its inputs. Errors have the place of the node. Several
  /// threads may run steps that do not read what the others make.
  Status Run(const OperatorStep& step, const KernelSource& kernels, KernelContext& context);

 private:
  static size_t Index(NodeId id) { return static_cast<size_t>(id); }

  const Graph& graph_;
  const GraphLayout& layout_;
  std::vector<const Value*> values_;  // By node.
  std::vector<Value> own_;            // By the places of the layout.
};

}  // namespace heddle::ops
