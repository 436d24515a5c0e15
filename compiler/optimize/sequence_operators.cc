// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "ops/base/operator.h"
#include "ops/neural/lstm.h"

namespace heddle::compiler {
namespace {

// What the steps of a layer leave has a row for each step where scripts see it. Inside of a graph it has a
// row for each sequence, and is regrouped only where something else than the gradient of the layer reads it.
class SequenceOperators {
 public:
  explicit SequenceOperators(const Graph& graph) : graph_(graph) {}

  bool ChangesAny() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                       [&](const Node& node) { return IsKnown(node); });
  }

  Result<Graph> Rewrite() {
    for (const Node& node : graph_.nodes) {
      Node copy = node;
      for (NodeId& input : copy.inputs)
        if (input != kNoNode) input = new_ids_[static_cast<size_t>(input)];
      for (NodeId& earlier : copy.after) earlier = new_ids_[static_cast<size_t>(earlier)];
      if (IsKnown(node)) {
        HEDDLE_RETURN_IF_ERROR(MakeByRows(node, &copy));
      } else if (IsOfSteps(node)) {
        new_ids_.push_back(Regrouped(RowsOf(node), node.info, node.position));
        continue;
      }
      new_ids_.push_back(made_.Add(std::move(copy)));
    }
    return std::move(made_);
  }

 private:
  static constexpr size_t kSequenceMatrix = 0, kFirstCache = 8;  // Inputs.
  static constexpr size_t kFirstOfSteps = 2;                     // Of the results of lstm.

  bool IsKnown(const Node& node) const {
    if (ops::ByRowsOf(node) == nullptr || node.results.empty()) return false;
    return std::all_of(node.results.begin(), node.results.end(),
                       [](const ValueInfo& result) { return result.shape.IsKnown(); }) &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
             return input == kNoNode || !graph_[input].info.IsMatrix() || graph_[input].info.shape.IsKnown();
           });
  }
  bool IsLayer(const Node& node) const { return IsKnown(node) && node.inputs.size() <= kFirstCache - 2; }
  // A result of lstm that has a row for each step.
  bool IsOfSteps(const Node& node) const {
    return node.Is("result") && IsLayer(graph_[node.inputs[0]]) && node.ResultIndex() >= kFirstOfSteps;
  }

  // The same value with a row for each sequence.
  NodeId RowsOf(const Node& of_steps) {
    const NodeId tuple = new_ids_[static_cast<size_t>(of_steps.inputs[0])];
    Node result = ResultOf(made_, tuple, of_steps.ResultIndex());
    result.position = of_steps.position;
    return made_.Add(std::move(result));
  }

  Status MakeByRows(const Node& node, Node* copy) {
    copy->op = std::string(ops::ByRowsOf(node)->name);
    const int64_t sequences = graph_[node.inputs[kSequenceMatrix]].info.shape.rows;
    for (size_t i = kFirstCache; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoNode) continue;
      const Node& cache = graph_[node.inputs[i]];
      ValueInfo info = cache.info;
      info.shape = {sequences, sequences == 0 ? 0 : cache.info.shape.Cells() / sequences};
      copy->inputs[i] = IsOfSteps(cache) ? RowsOf(cache) : Regrouped(copy->inputs[i], info, node.position);
    }
    std::vector<ValueInfo> infos;
    for (const NodeId input : copy->inputs)
      infos.push_back(input == kNoNode ? ValueInfo{} : made_[input].info);
    const std::vector<const Scalar*> scalars(infos.size(), nullptr);
    std::vector<ValueInfo> results;
    HEDDLE_RETURN_IF_ERROR(
        ops::Infer({.node = *copy, .inputs = infos, .scalars = scalars}, &results).status());
    for (size_t i = 0; i < results.size(); ++i)
      if (IsLayer(node) && i >= kFirstOfSteps) copy->results[i].shape = results[i].shape;
    return OkStatus();
  }

  NodeId Regrouped(NodeId input, const ValueInfo& info, const SourcePosition& position) {
    Node literal;
    literal.op = "literal";
    literal.info = ValueInfo::OfScalar(ValueType::kInteger);
    literal.SetAttribute("value", Scalar(info.shape.rows));
    literal.position = position;
    Node node;
    node.op = "regroup";
    node.inputs = {input, made_.Add(std::move(literal))};
    node.info = info;
    node.position = position;
    return made_.Add(std::move(node));
  }

  const Graph& graph_;
  Graph made_;
  std::vector<NodeId> new_ids_;
};

}  // namespace

Result<Graph> ShareOutSequences(Graph graph, const PassOptions& options) {
  SequenceOperators operators(graph);
  if (!operators.ChangesAny()) return graph;
  if (options.sizes_matter != nullptr) *options.sizes_matter = true;
  return operators.Rewrite();
}

}  // namespace heddle::compiler
