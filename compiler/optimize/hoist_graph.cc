// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/hoist_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "compiler/optimize/rewrite.h"
#include "ops/base/operator.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::compiler {
namespace {

bool IsEffect(const Node& node) {
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && op->effect;
}

bool IsProduct(const Node& node) { return ops::KindOf(node) == ops::OperatorKind::kProduct; }
bool IsAggregate(const Node& node) { return ops::KindOf(node) == ops::OperatorKind::kAggregate; }
bool IsOfCells(const Node& node) { return ops::KindOf(node) == ops::OperatorKind::kCells; }

// A cell of a function takes about 1 ns, where writing a cell and reading it again takes half of that.
bool IsFunction(const Node& node) {
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && op->function;
}

// x ^ 2 is a product.
bool IsSquare(const Graph& graph, const Node& node) {
  const bool is_power = ops::FindBinaryCode(node.op) == ops::BinaryCode::kPower;
  const Scalar* exponent = is_power ? graph[node.inputs[1]].FindAttribute("value") : nullptr;
  return exponent != nullptr && !exponent->IsString() && exponent->AsDouble() == 2;
}

// Moves what it can out of one graph of a loop into `hoisted`.
class GraphHoister {
 public:
  GraphHoister(Graph* graph, HoistContext* context, const std::string& prefix)
      : graph_(*graph), context_(*context), prefix_(prefix) {}

  void Run(Graph* hoisted) {
    FindInvariant();
    while (ChooseRoots()) {
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (is_root_[static_cast<size_t>(id)]) Move(id, hoisted);
  }

 private:
  void FindInvariant() {
    is_invariant_.assign(graph_.nodes.size(), false);
    refused_.assign(graph_.nodes.size(), false);
    is_heavy_.assign(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (IsEffect(node)) context_.certain = false;
      is_invariant_[static_cast<size_t>(id)] = IsInvariant(node) && (context_.certain || CannotFail(node));
      is_heavy_[static_cast<size_t>(id)] = IsHeavy(node);
    }
  }

  bool IsInvariant(const Node& node) const {
    if (node.Is("literal")) return true;
    if (node.Is("variable")) return !context_.changing.contains(node.Text("name"));
    const ops::Operator* op = ops::FindOperator(node.op);
    if (op == nullptr || !op->pure || op->may_fail || op->seed_input >= 0) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
      return input == kNoNode || is_invariant_[static_cast<size_t>(input)];
    });
  }

  // Of an invariant node. All sizes are known, so they fit; whole numbers may overflow, strings fail.
  bool CannotFail(const Node& node) const {
    if (node.Is("literal")) return true;
    if (node.Is("variable") && !context_.defined.contains(node.Text("name"))) return false;
    if (!node.Is("variable") && ops::KindOf(node) == ops::OperatorKind::kOther) return false;
    if (node.info.IsMatrix()) return node.info.shape.IsKnown();
    const ValueType type = node.info.value_type;
    if (!node.info.IsScalar() || type == ValueType::kUnknown || type == ValueType::kString) return false;
    return node.Is("variable") || type != ValueType::kInteger;
  }

  // A cell-wise matrix that takes a function for each of its cells.
  bool IsHeavy(const Node& node) const {
    if (!IsOfCells(node) || !node.info.IsMatrix()) return false;
    if (IsFunction(node) && !IsSquare(graph_, node)) return graph_[node.inputs[0]].info.IsMatrix();
    for (const NodeId input : node.inputs)
      if (input != kNoNode && is_heavy_[static_cast<size_t>(input)] && HasItsSize(node, input)) return true;
    return false;
  }

  bool HasItsSize(const Node& node, NodeId input) const {
    if (node.info.shape.IsKnown()) return graph_[input].info.shape == node.info.shape;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId other) {
      return other == kNoNode || other == input || graph_[other].info.IsScalar();
    });
  }

  // Cells of input i may be needed only where another operand is not zero.
  bool MayPick(const Node& node, size_t i) const {
    const std::optional<ops::BinaryCode> code = ops::FindBinaryCode(node.op);
    const bool picks = code && (ops::SkipsAbsentCells(*code) || (code == ops::BinaryCode::kDivide && i == 1));
    if (!picks) return false;
    const ValueInfo& other = graph_[node.inputs[1 - i]].info;
    if (other.IsScalar()) return false;
    return !other.shape.IsKnown() || !node.info.shape.IsKnown() || other.shape == node.info.shape;
  }

  // A root is worth moving and read in the loop. True if roots had to be given up: what they need stays in
  // the loop.
  bool ChooseRoots() {
    const size_t count = graph_.nodes.size();
    is_root_.assign(count, false);
    std::vector<bool> is_read(count, false), stays(count, false);
    std::vector<bool> by_cells(count, false), is_picked(count, false);
    for (size_t i = count; i-- > 0;) {
      const Node& node = graph_.nodes[i];
      is_root_[i] = is_invariant_[i] && is_read[i] && !refused_[i] &&
                    ((is_heavy_[i] && !is_picked[i]) || IsWorthMoving(node, by_cells[i]));
      stays[i] = !is_root_[i] && (!is_invariant_[i] || is_read[i]);
      if (!stays[i]) continue;
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.inputs[k] == kNoNode) continue;
        const auto input = static_cast<size_t>(node.inputs[k]);
        is_read[input] = true;
        if (!IsOfCells(node)) continue;
        by_cells[input] = true;
        if (is_picked[i] || MayPick(node, k)) is_picked[input] = true;
      }
    }
    return RefuseRoots(stays);
  }

  // Gives up the roots that need what stays. Their inputs stay then, too, so one round does not bring back
  // what another has given up.
  bool RefuseRoots(const std::vector<bool>& stays) {
    bool refuses = false;
    std::vector<bool> needs_it(stays.size(), false);
    for (size_t i = 0; i < stays.size(); ++i) {
      for (const NodeId input : graph_.nodes[i].inputs) {
        if (input == kNoNode || graph_[input].inputs.empty()) continue;
        if (stays[static_cast<size_t>(input)] || needs_it[static_cast<size_t>(input)]) needs_it[i] = true;
      }
      if (!is_root_[i] || !needs_it[i]) continue;
      refused_[i] = true;
      refuses = true;
    }
    return refuses;
  }

  bool IsWorthMoving(const Node& node, bool is_read_by_cells) const {
    if (IsAggregate(node)) return graph_[node.inputs[0]].info.IsMatrix();
    if (!IsProduct(node)) return false;
    if (!is_read_by_cells) return true;
    const Shape& result = node.info.shape;
    const Shape &a = graph_[node.inputs[0]].info.shape, &b = graph_[node.inputs[1]].info.shape;
    return result.IsKnown() && a.IsKnown() && b.IsKnown() && result.Cells() <= std::max(a.Cells(), b.Cells());
  }

  void Move(NodeId root, Graph* hoisted) {
    const std::string name = fmt::format("{}{}", prefix_, root);
    Node assign;
    assign.op = "assign";
    assign.inputs = {Copy(root, hoisted)};
    assign.position = graph_[root].position;
    assign.info = graph_[root].info;
    assign.SetAttribute("name", name);
    hoisted->Add(std::move(assign));
    Node& node = graph_[root];
    node.op = "variable";
    node.inputs.clear();
    node.attributes.clear();
    node.SetAttribute("name", name);
  }

  // Roots are moved in their order, so a root inside another is a variable by then, which `hoisted` has as a
  // node.
  NodeId Copy(NodeId id, Graph* hoisted) {
    if (const auto known = copies_.find(id); known != copies_.end()) return known->second;
    Node node = graph_[id];
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input = Copy(input, hoisted);
    return copies_[id] = hoisted->Add(std::move(node));
  }

  Graph& graph_;
  HoistContext& context_;
  const std::string& prefix_;
  std::map<NodeId, NodeId> copies_;
  std::vector<bool> is_invariant_, is_heavy_, is_root_, refused_;
};

}  // namespace

void HoistFromGraph(Graph* graph, HoistContext* context, const std::string& prefix, Graph* hoisted) {
  GraphHoister(graph, context, prefix).Run(hoisted);
}

bool CanRepeat(const Graph& predicate) {
  return std::all_of(predicate.nodes.begin(), predicate.nodes.end(), [](const Node& node) {
    if (node.Is("variable") || node.Is("literal") || node.Is("assign")) return true;
    const ops::Operator* op = ops::FindOperator(node.op);
    return op != nullptr && op->pure && !op->effect && node.info.IsScalar() && !IsAggregate(node);
  });
}

}  // namespace heddle::compiler
