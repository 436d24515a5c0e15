// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/adjoint_terms.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "compiler/gradient/adjoint_graph.h"
#include "compiler/recursion/assigned_ranges.h"
#include "ops/base/operator.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::compiler {
namespace {

std::optional<int64_t> Position(const Graph& graph, NodeId id) {
  if (id == kNoNode || !graph[id].Is("literal")) return std::nullopt;
  return graph[id].FindAttribute("value")->AsInteger();
}

}  // namespace

AdjointTerms::AdjointTerms(Graph graph, const ClassGraph& node, const std::set<std::string>& parameters)
    : graph_(std::move(graph)), class_node_(node), parameters_(parameters) {}

AdjointTerms::Outputs AdjointTerms::Take(ops::RecursiveAdjoint* made) {
  made_ = made;
  std::map<std::string, ClassInput> children;  // By the names of their adjoints.
  for (const auto& [name, input] : class_node_.inputs)
    if (input.kind == ClassInput::Kind::kChildResult) children.emplace(AdjointName(name), input);
  std::vector<Node> assigned;
  for (const Node& node : graph_.nodes)
    if (node.Is("assign")) assigned.push_back(node);
  for (const Node& node : assigned) {
    const std::string& name = node.Text("name");
    if (const auto child = children.find(name); child != children.end())
      made->children.push_back(
          {.call = child->second.index, .result = child->second.result, .output = Output(node.inputs[0])});
    for (const std::string& parameter : parameters_) {
      if (name != AdjointName(parameter)) continue;
      const ValueInfo& info = graph_[node.inputs[0]].info;
      Term whole;
      whole.parameter = parameter;
      whole.shape = info.IsScalar() ? Shape{1, 1} : info.shape;
      Split(node.inputs[0], whole);
    }
  }
  Outputs out;
  std::vector<NodeId> now(static_cast<size_t>(graph_.size()), kNoNode);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    Node node = graph_[id];
    if (node.Is("assign")) continue;
    node.after.clear();
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input = now[static_cast<size_t>(input)];
    now[static_cast<size_t>(id)] = out.graph.Add(std::move(node));
  }
  out.variables.resize(outputs_.size());
  for (const auto& [id, output] : outputs_) {
    const std::string variable = fmt::format("%output{}", output);
    Node node;
    node.op = "assign";
    node.inputs = {now[static_cast<size_t>(id)]};
    node.info = graph_[id].info;
    node.SetAttribute("name", variable);
    out.graph.Add(std::move(node));
    out.variables[static_cast<size_t>(output)] = variable;
  }
  made->outputs.resize(outputs_.size());
  return out;
}

int32_t AdjointTerms::Output(NodeId id) {
  return outputs_.try_emplace(id, static_cast<int32_t>(outputs_.size())).first->second;
}

bool AdjointTerms::IsZeros(NodeId id) const {
  const Node& node = graph_[id];
  const NodeId value = ops::HasRole(node, ops::Role::kReshape) ? node.inputs[0] : id;
  const Scalar* const cell = graph_[value].Is("literal") ? graph_[value].FindAttribute("value") : nullptr;
  return cell != nullptr && !cell->IsString() && cell->AsDouble() == 0;
}

void AdjointTerms::Split(NodeId id, const Term& rectangle) {
  const Node& node = graph_[id];
  if (IsZeros(id)) return;
  const auto is_whole = [&](NodeId input) {
    const ValueInfo& info = graph_[input].info;
    return info.data_type == node.info.data_type && info.shape == node.info.shape;
  };
  if (ops::FindBinaryCode(node.op) == ops::BinaryCode::kAdd && is_whole(node.inputs[0]) &&
      is_whole(node.inputs[1])) {
    Split(node.inputs[0], rectangle);
    Split(node.inputs[1], rectangle);
    return;
  }
  if (ops::HasRole(node, ops::Role::kSumTo) && is_whole(node.inputs[0]))
    return Split(node.inputs[0], rectangle);
  // A row all of whose columns are assigned to is one value in any case: products read it.
  const bool is_whole_row = rectangle.shape.rows == 1 && AssignedParts(graph_, id);
  if (ops::HasRole(node, ops::Role::kRangeAssign) && !is_whole_row && SplitAssigned(id, rectangle)) return;
  Term term = rectangle;
  const bool is_turned =
      ops::HasRole(node, ops::Role::kProduct) && ops::HasRole(graph_[node.inputs[0]], ops::Role::kTranspose);
  if ((is_turned || ops::HasRole(node, ops::Role::kTransposedProduct)) && node.info.shape.rows > 1) {
    const NodeId left = is_turned ? graph_[node.inputs[0]].inputs[0] : node.inputs[0], right = node.inputs[1];
    if (graph_[left].info.shape.rows == 1 && graph_[right].info.shape.rows == 1) {
      term.kind = Term::Kind::kProduct;
      term.left = Output(left);
      term.right = Output(right);
      made_->terms.push_back(std::move(term));
      return;
    }
  }
  term.kind = rectangle.shape.rows == 1 ? Term::Kind::kRow : Term::Kind::kCells;
  term.right = Output(id);
  made_->terms.push_back(std::move(term));
}

// Zeros, or another sum, with something added to cells within bounds (the derivative of an index).
bool AdjointTerms::SplitAssigned(NodeId id, const Term& rectangle) {
  const Node& node = graph_[id];
  const NodeId base = node.inputs[0];
  const auto bound = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoNode; };
  NodeId added = node.inputs[1];
  const bool is_new = IsZeros(base);
  if (!is_new) {
    // index(base, the same cells) + added
    const Node& sum = graph_[added];
    if (ops::FindBinaryCode(sum.op) != ops::BinaryCode::kAdd ||
        !ops::HasRole(graph_[sum.inputs[0]], ops::Role::kRange) || graph_[sum.inputs[0]].inputs[0] != base)
      return false;
    const Node& index = graph_[sum.inputs[0]];
    for (size_t i = 2; i < 6; ++i)
      if ((i - 1 < index.inputs.size() ? index.inputs[i - 1] : kNoNode) != bound(i)) return false;
    added = sum.inputs[1];
  }
  if (!graph_[added].info.IsMatrix()) return false;
  Term part = rectangle;
  part.shape = graph_[added].info.shape;
  const ClassInput* number = nullptr;  // That says the row.
  if (bound(2) != kNoNode && bound(2) == bound(3) && graph_[bound(2)].Is("variable"))
    number = class_node_.InputNamed(graph_[bound(2)].Text("name"));
  bool is_lookup = false;
  if (bound(2) != kNoNode || bound(3) != kNoNode) {
    is_lookup = number != nullptr && number->kind == ClassInput::Kind::kNumber && rectangle.row == 0 &&
                part.shape.rows == 1;
    const std::optional<int64_t> first = Position(graph_, bound(2));
    if (!is_lookup && !first) return false;
    if (first) part.row += *first - 1;
  }
  if (bound(4) != kNoNode || bound(5) != kNoNode) {
    const std::optional<int64_t> first = Position(graph_, bound(4));
    if (!first) return false;
    part.column += *first - 1;
  }
  if (!is_new) Split(base, rectangle);
  if (!is_lookup) {
    Split(added, part);
    return true;
  }
  part.kind = Term::Kind::kLookup;
  part.number = number->index;
  part.right = Output(added);
  made_->terms.push_back(std::move(part));
  return true;
}

}  // namespace heddle::compiler
