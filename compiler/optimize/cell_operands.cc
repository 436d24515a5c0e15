// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "ops/broadcast.h"

namespace heddle::compiler {
namespace {

bool IsText(const ValueInfo& info) { return info.IsScalar() && info.value_type == ValueType::kString; }

// One graph, whose operands of cell-wise operators become what rules, fusion and kernels know.
class CellOperands {
 public:
  explicit CellOperands(const Graph& graph) : graph_(graph) {}

  bool ChangesAny() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
      return RepeatsSingleCell(node) || HasText(node) || IsOuter(node);
    });
  }

  Graph Rewrite() {
    for (const Node& node : graph_.nodes) {
      Node copy = node;
      for (NodeId& input : copy.inputs)
        if (input != kNoNode) input = new_ids_[static_cast<size_t>(input)];
      for (NodeId& earlier : copy.after) earlier = new_ids_[static_cast<size_t>(earlier)];
      if (RepeatsSingleCell(node)) copy.inputs[1] = Convert("as.scalar", copy.inputs[1], node.position);
      if (HasText(node))
        for (size_t i = 0; i < node.inputs.size(); ++i)
          if (node.inputs[i] != kNoNode && IsText(InfoOf(node, i)))
            copy.inputs[i] = Convert("as.double", copy.inputs[i], node.position);
      if (IsOuter(node) && InfoOf(node, 0).shape.IsKnown() && InfoOf(node, 1).shape.IsKnown()) {
        std::erase_if(copy.attributes, [](const auto& attribute) { return attribute.first == ops::kOuter; });
        if (InfoOf(node, 0).shape != node.info.shape && InfoOf(node, 1).shape == node.info.shape)
          copy.inputs[0] = Repeat(copy.inputs[0], node.info.shape, node.position);
      }
      new_ids_.push_back(made_.Add(std::move(copy)));
    }
    return std::move(made_);
  }

 private:
  const ValueInfo& InfoOf(const Node& node, size_t input) const { return graph_[node.inputs[input]].info; }

  static bool IsOuter(const Node& node) { return node.FindAttribute(ops::kOuter) != nullptr; }

  // A op B where the only cell of B is repeated over rows and columns of A.
  bool RepeatsSingleCell(const Node& node) const {
    if (node.inputs.size() != 2 || node.inputs[1] == kNoNode || !IsCellWise(node)) return false;
    const ValueInfo &left = InfoOf(node, 0), &right = InfoOf(node, 1);
    return left.IsMatrix() && right.IsMatrix() && left.shape.rows > 1 && left.shape.columns > 1 &&
           right.shape == Shape{1, 1};
  }

  // A op "7", ifelse(A, "7", 0), A[i, j] = "7" and rand(min="7"): cells of frames of strings count as the
  // numbers that they name.
  bool HasText(const Node& node) const {
    if (!IsCellWise(node) && !node.Is("ifelse") && !node.Is("indexAssign") && !node.Is("rand")) return false;
    bool matrix = node.Is("rand"), text = false;
    for (const NodeId input : node.inputs) {
      if (input == kNoNode) continue;
      matrix |= graph_[input].info.IsMatrix();
      text |= IsText(graph_[input].info);
    }
    return matrix && text && node.info.IsMatrix();
  }

  NodeId Convert(std::string_view op, NodeId input, const SourcePosition& position) {
    Node node;
    node.op = std::string(op);
    node.inputs = {input};
    node.info = ValueInfo::OfScalar(ValueType::kDouble);
    node.position = position;
    return made_.Add(std::move(node));
  }

  NodeId Literal(Scalar value, const SourcePosition& position) {
    Node node;
    node.op = "literal";
    node.info = ValueInfo::OfScalar(value.type());
    node.SetAttribute("value", std::move(value));
    node.position = position;
    return made_.Add(std::move(node));
  }

  // A vector, repeated to that shape: -0.0 + x is x, whatever x is.
  NodeId Repeat(NodeId vector, const Shape& shape, const SourcePosition& position) {
    Node fill;
    fill.op = "matrix";
    fill.inputs = {Literal(Scalar(-0.0), position), Literal(Scalar(shape.rows), position),
                   Literal(Scalar(shape.columns), position)};
    fill.info = ValueInfo::OfMatrix(shape);
    fill.position = position;
    Node sum;
    sum.op = "+";
    sum.inputs = {made_.Add(std::move(fill)), vector};
    sum.info = ValueInfo::OfMatrix(shape);
    sum.position = position;
    return made_.Add(std::move(sum));
  }

  const Graph& graph_;
  Graph made_;
  std::vector<NodeId> new_ids_;
};

}  // namespace

Result<Graph> PrepareCellOperands(Graph graph, const PassOptions& options) {
  CellOperands operands(graph);
  if (!operands.ChangesAny()) return graph;
  if (options.sizes_matter != nullptr) *options.sizes_matter = true;
  return operands.Rewrite();
}

}  // namespace heddle::compiler
