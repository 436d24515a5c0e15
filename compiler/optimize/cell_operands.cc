// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "ops/base/broadcast.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

bool IsText(const ValueInfo& info) { return info.IsScalar() && info.value_type == ValueType::kString; }

// One graph, whose operands of cell-wise operators become what rules, fusion and kernels know.
class CellOperands {
 public:
  CellOperands(const Graph& graph, bool exact) : graph_(graph), exact_(exact) {}

  bool ChangesAny() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
      return RepeatsSingleCell(node) || HasText(node) || IsOuter(node) || IsBias(node) || IsBatchNorm(node);
    });
  }

  Graph Rewrite() {
    for (const Node& node : graph_.nodes) {
      Node copy = node;
      for (NodeId& input : copy.inputs)
        if (input != kNoNode) input = new_ids_[static_cast<size_t>(input)];
      copy.after = After(node);
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
      if (IsBias(node)) {
        new_ids_.push_back(Biased(ops::HasRole(node, ops::Role::kBiasAdd) ? "+" : "*", copy.inputs[0],
                                  copy.inputs[1], node.info.shape, node.position));
      } else if (IsBatchNorm(node)) {
        new_ids_.push_back(Moments(node, std::move(copy)));
      } else if (node.Is("result") && IsBatchNorm(graph_[node.inputs[0]])) {
        new_ids_.push_back(node.ResultIndex() == 0
                               ? Normalized(node, copy.inputs[0])
                               : Moment(copy.inputs[0], node.ResultIndex(), node.position));
      } else {
        new_ids_.push_back(made_.Add(std::move(copy)));
      }
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
    using enum ops::Role;
    if (!IsCellWise(node) && !ops::HasRole(node, {kChoose, kRangeAssign, kRandom})) return false;
    bool matrix = ops::RoleOf(node) == kRandom, text = false;
    for (const NodeId input : node.inputs) {
      if (input == kNoNode) continue;
      matrix |= graph_[input].info.IsMatrix();
      text |= IsText(graph_[input].info);
    }
    return matrix && text && node.info.IsMatrix();
  }

  // bias_add(X, b), and bias_multiply, which would skip the cells that a CSR X has not if it were "*".
  bool IsBias(const Node& node) const {
    if (!ops::HasRole(node, {ops::Role::kBiasAdd, ops::Role::kBiasMultiply})) return false;
    return node.info.IsMatrix() && HaveChannels(node, 1) &&
           (ops::HasRole(node, ops::Role::kBiasAdd) || (exact_ && InfoOf(node, 0).format == Format::kDense));
  }
  // In a mode that is known. Inference has found all results: nothing that it may fail for is left.
  bool IsBatchNorm(const Node& node) const {
    if (!ops::HasRole(node, ops::Role::kBatchNorm) || node.results.empty()) return false;
    return HaveChannels(node, kMode - 1) && graph_[node.inputs[kMode]].Is("literal");
  }
  // Whether the inputs 1 to `last` are known to have one number for each channel of the first.
  bool HaveChannels(const Node& node, size_t last) const {
    const Shape& x = InfoOf(node, 0).shape;
    const Shape channels = {InfoOf(node, 1).shape.rows, 1};
    for (size_t i = 1; i <= last; ++i)
      if (InfoOf(node, i).shape != channels) return false;
    return x.IsKnown() && x.Cells() > 0 && channels.rows > 0 && x.columns % channels.rows == 0;
  }

  // What came before a node that may fail, and has gone, comes before what followed it.
  std::vector<NodeId> After(const Node& node) const {
    std::vector<NodeId> after;
    for (const NodeId earlier : node.after) {
      if (!IsBatchNorm(graph_[earlier])) {
        after.push_back(new_ids_[static_cast<size_t>(earlier)]);
        continue;
      }
      for (const NodeId id : After(graph_[earlier]))
        if (std::find(after.begin(), after.end(), id) == after.end()) after.push_back(id);
    }
    return after;
  }

  NodeId Add(std::string_view op, std::vector<NodeId> inputs, ValueInfo info,
             const SourcePosition& position) {
    Node node;
    node.op = std::string(op);
    node.inputs = std::move(inputs);
    node.info = std::move(info);
    node.position = position;
    return made_.Add(std::move(node));
  }

  // X op the row that has the number of its channel in each column.
  NodeId Biased(std::string_view op, NodeId x, NodeId bias, const Shape& shape,
                const SourcePosition& position) {
    ValueInfo info = made_[bias].info;
    const int64_t channels = info.shape.rows;
    info.format = Format::kDense;
    info.shape = {channels, shape.columns / channels};
    const NodeId spread =
        Add("spreadTo",
            {bias, Literal(Scalar(channels), position), Literal(Scalar(info.shape.columns), position)}, info,
            position);
    info.shape = {1, shape.columns};
    const NodeId row = Add(
        "matrix", {spread, Literal(Scalar(int64_t{1}), position), Literal(Scalar(shape.columns), position)},
        info, position);
    info.shape = shape;
    return Add(op, {x, row}, info, position);
  }

  // The results of batch_norm2d but the first.
  NodeId Moments(const Node& node, Node copy) {
    copy.op = "batch_norm2d_moments";
    const Scalar& mode = *graph_[node.inputs[kMode]].FindAttribute("value");
    copy.inputs[kMode] = Literal(Scalar(mode.AsString() == "train"), node.position);
    copy.after.clear();
    copy.results.erase(copy.results.begin());
    return made_.Add(std::move(copy));
  }
  NodeId Moment(NodeId tuple, size_t index, const SourcePosition& position) {
    Node result = ResultOf(made_, tuple, index - 1);
    result.position = position;
    return made_.Add(std::move(result));
  }
  // (X - mean) * scale * gamma + beta: operators of cells, which are fused with what reads them.
  NodeId Normalized(const Node& result, NodeId tuple) {
    const std::vector<NodeId> inputs = made_[tuple].inputs;
    const Shape& shape = result.info.shape;
    NodeId y = inputs[0];
    y = Biased("-", y, Moment(tuple, 3, result.position), shape, result.position);
    y = Biased("*", y, Moment(tuple, 4, result.position), shape, result.position);
    y = Biased("*", y, inputs[1], shape, result.position);
    return Biased("+", y, inputs[2], shape, result.position);
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

  static constexpr size_t kMode = 5;  // Of the inputs of batch_norm2d.
  const Graph& graph_;
  const bool exact_;  // PassOptions::infos_are_exact
  Graph made_;
  std::vector<NodeId> new_ids_;
};

}  // namespace

Result<Graph> PrepareCellOperands(Graph graph, const PassOptions& options) {
  CellOperands operands(graph, options.infos_are_exact);
  if (!operands.ChangesAny()) return graph;
  if (options.sizes_matter != nullptr) *options.sizes_matter = true;
  return operands.Rewrite();
}

}  // namespace heddle::compiler
