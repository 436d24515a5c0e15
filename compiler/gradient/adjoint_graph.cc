// SPDX-License-Identifier: Apache-2.0
#include "compiler/gradient/adjoint_graph.h"

#include <utility>
#include <vector>

#include "compiler/blocks/block_builder.h"
#include "compiler/rules/rule_pattern.h"
#include "ops/base/adjoint.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

// How messages call an operator: order(), '%%'.
std::string NameOf(const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  const bool is_call = op != nullptr && op->form != ops::CallForm::kNone;
  return is_call ? node.op + "()" : fmt::format("'{}'", node.op);
}

class Writer : public ops::AdjointCall {
 public:
  Writer(Block* block, AdjointState* state) : block_(*block), forward_(block->graph), state_(*state) {}

  Result<Graph> Write() {
    const NodeId count = forward_.size();
    adjoints_.assign(static_cast<size_t>(count), kNoNode);
    values_.assign(static_cast<size_t>(count), kNoNode);
    for (NodeId id = 0; id < count; ++id) {
      const Node& node = forward_[id];
      if (!node.Is("assign")) continue;
      const std::string& name = node.Text("name");
      if (state_.present.erase(name) > 0 && IsActive(node.inputs[0]))
        Accumulate(node.inputs[0], ReadAdjoint(name, node.position));
    }
    for (NodeId id = count; id-- > 0;) {
      if (forward_[id].Is("assign")) continue;
      const bool is_tuple = forward_[id].info.IsTuple();
      if (is_tuple ? !of_results_.contains(id) : adjoints_[static_cast<size_t>(id)] == kNoNode) continue;
      HEDDLE_RETURN_IF_ERROR(Differentiate(id));
    }
    return backward_.Finish();
  }

  // --- ops::AdjointCall, about node current_
  const Node& node() const override { return node_; }
  const ValueInfo& InfoOf(size_t input) const override { return forward_[node_.inputs[input]].info; }
  bool IsWanted(size_t input) const override {
    return input < node_.inputs.size() && node_.inputs[input] != kNoNode && IsActive(node_.inputs[input]);
  }
  NodeId Input(size_t input) override { return Value(node_.inputs[input]); }
  const Scalar* Known(size_t input) const override {
    const Node& value = forward_[node_.inputs[input]];
    return value.Is("literal") ? value.FindAttribute("value") : nullptr;
  }
  NodeId Rows(size_t input) override { return SizeOf("nrow", node_.inputs[input]); }
  NodeId Columns(size_t input) override { return SizeOf("ncol", node_.inputs[input]); }
  NodeId Computed(size_t index) override {
    return node_.info.IsTuple() ? Value(ResultNode(index)) : Value(current_);
  }
  NodeId Adjoint(size_t index) override {
    if (!node_.info.IsTuple()) return adjoints_[static_cast<size_t>(current_)];
    const auto [found, is_new] = of_results_[current_].try_emplace(index, kNoNode);
    if (is_new) found->second = Zeros(ResultNode(index));
    return found->second;
  }
  bool HasAdjoint(size_t index) const override {
    if (!node_.info.IsTuple()) return true;
    const auto found = of_results_.find(current_);
    return found != of_results_.end() && found->second.contains(index);
  }
  NodeId Literal(Scalar value) override { return backward_.Literal(std::move(value), node_.position); }
  NodeId Add(std::string_view op, std::vector<NodeId> inputs,
             std::vector<std::pair<std::string, Scalar>> attributes) override {
    return backward_.Add(std::string(op), std::move(inputs), node_.position, std::move(attributes));
  }
  NodeId Formula(std::string_view dml,
                 std::initializer_list<std::pair<std::string_view, NodeId>> more) override {
    more_ = {more.begin(), more.end()};
    const Graph formula = CompilePattern(dml);
    return WriteFormula(formula, RootOf(formula));
  }
  void Give(size_t input, NodeId adjoint) override { Accumulate(node_.inputs[input], adjoint); }
  NodeId Given(size_t input) override {
    const NodeId id = node_.inputs[input];
    NodeId& adjoint = adjoints_[static_cast<size_t>(id)];
    if (adjoint == kNoNode) adjoint = Before(id);
    if (adjoint == kNoNode) adjoint = Zeros(id);
    return adjoint;
  }
  bool IsGiven(size_t input) const override {
    const NodeId id = node_.inputs[input];
    const Node& value = forward_[id];
    return adjoints_[static_cast<size_t>(id)] != kNoNode ||
           (value.Is("variable") && state_.present.contains(value.Text("name")));
  }
  void Replace(size_t input, NodeId given) override {
    adjoints_[static_cast<size_t>(node_.inputs[input])] = given;
  }
  void Refuse(std::string why) override {
    if (refused_.ok()) refused_ = InvalidArgument("gradient(): {}", why).At(node_.position);
  }

 private:
  bool IsActive(NodeId id) const { return state_.activity->IsActive(block_.id, id); }

  Status Differentiate(NodeId id) {
    node_ = forward_[id];
    current_ = id;
    if (node_.Is("variable")) {
      const std::string& name = node_.Text("name");
      backward_.Assign(AdjointName(name), adjoints_[static_cast<size_t>(id)], node_.position);
      state_.present.insert(name);
      return OkStatus();
    }
    if (node_.Is("result")) {
      of_results_[node_.inputs[0]][node_.ResultIndex()] = adjoints_[static_cast<size_t>(id)];
      return OkStatus();
    }
    const ops::Operator* const op = ops::FindOperator(node_.op);
    HEDDLE_CHECK(op != nullptr, "only operators have active inputs");
    HEDDLE_RETURN_IF_ERROR(CheckTypes());
    bool by_function = false;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (!IsWanted(i)) continue;
      const std::string_view formula = AdjointOf(node_, i);
      if (formula.empty())
        return InvalidArgument("gradient(): {} has no derivative", NameOf(node_))
            .WithNote(
                "docs/gradient.md lists what has; a value that the result does not depend on needs none")
            .At(node_.position);
      if (formula == "*")
        by_function = true;
      else if (!op->derivative.empty())
        Give(i, Formula(fmt::format("dy * ({})", op->derivative), {}));
      else if (formula != "0")
        Give(i, Formula(formula, {}));
    }
    if (by_function) op->differentiate(*this);
    return refused_;
  }

  // Which form an adjoint has follows from types, which straight-line code tells.
  Status CheckTypes() const {
    for (size_t i = 0; i < node_.inputs.size(); ++i)
      if (IsWanted(i) && InfoOf(i).data_type == DataType::kUnknown)
        return InvalidArgument("gradient(): it is not known whether an operand of {} is a matrix",
                               NameOf(node_))
            .WithNote("as.matrix(x) or as.scalar(x) says what it is")
            .At(node_.position);
    return OkStatus();
  }

  // The adjoint that later blocks have left for a variable that this one reads.
  NodeId Before(NodeId id) {
    const Node& node = forward_[id];
    if (!node.Is("variable") || !state_.present.contains(node.Text("name"))) return kNoNode;
    return ReadAdjoint(node.Text("name"), node.position);
  }

  void Accumulate(NodeId id, NodeId adjoint) {
    NodeId& sum = adjoints_[static_cast<size_t>(id)];
    if (sum == kNoNode) sum = Before(id);
    sum = sum == kNoNode ? adjoint : backward_.Add("+", {sum, adjoint}, forward_[id].position);
  }

  NodeId ReadAdjoint(const std::string& name, const SourcePosition& position) {
    return backward_.Read(AdjointName(name), {TypeOnly(state_.TypeOf(name)), std::nullopt, nullptr},
                          position);
  }

  NodeId Zeros(NodeId id) {
    const NodeId zero = Literal(Scalar(0.0));
    if (forward_[id].info.IsScalar()) return zero;
    return Add("matrix", {zero, SizeOf("nrow", id), SizeOf("ncol", id)}, {});
  }

  // The value of a forward node where its adjoint is computed. What costs nothing is made again.
  NodeId Value(NodeId id) {
    if (const NodeId known = values_[static_cast<size_t>(id)]; known != kNoNode) return known;
    const Node node = forward_[id];
    NodeId value = kNoNode;
    if (node.Is("literal"))
      value = backward_.Literal(*node.FindAttribute("value"), node.position);
    else if (ops::HasRole(node, ops::Role::kTranspose))
      value = backward_.Add("t", {Value(node.inputs[0])}, node.position);
    else
      value = backward_.Read(Kept(id), {TypeOnly(node.info), std::nullopt, nullptr}, node.position);
    return values_[static_cast<size_t>(id)] = value;
  }

  // The variable that holds a value of the block.
  std::string Kept(NodeId id) {
    if (forward_[id].Is("variable")) return forward_[id].Text("name");
    for (const Node& node : forward_.nodes)
      if (node.Is("assign") && node.inputs[0] == id) return node.Text("name");
    const SourcePosition position = forward_[id].position;
    const std::string name = state_.NewName(forward_[id].info);
    AddAssign(&forward_, name, id, position);
    return name;
  }

  // nrow or ncol of a forward node, computed where that is.
  NodeId SizeOf(const std::string& op, NodeId id) {
    const auto [found, is_new] = sizes_.try_emplace({op, id}, kNoNode);
    if (is_new) {
      Node size;
      size.op = op;
      size.inputs = {id};
      size.info = ValueInfo::OfScalar(ValueType::kInteger);
      size.position = forward_[id].position;
      const std::string name = state_.NewName(size.info);
      const SourcePosition position = size.position;
      AddAssign(&forward_, name, forward_.Add(std::move(size)), position);
      found->second =
          backward_.Read(name, {ValueInfo::OfScalar(ValueType::kInteger), std::nullopt, nullptr}, position);
    }
    return found->second;
  }

  // The node "result" of the current tuple.
  NodeId ResultNode(size_t index) {
    for (NodeId id = 0; id < forward_.size(); ++id)
      if (forward_[id].Is("result") && forward_[id].inputs[0] == current_ &&
          forward_[id].ResultIndex() == index)
        return id;
    const NodeId id = forward_.Add(ResultOf(forward_, current_, index));
    values_.resize(static_cast<size_t>(forward_.size()), kNoNode);
    return id;
  }

  // --- formulas
  NodeId WriteFormula(const Graph& formula, NodeId id) {
    const Node& part = formula[id];
    if (part.Is("variable")) return Letter(part.Text("name"));
    if (part.Is("literal")) return Literal(*part.FindAttribute("value"));
    if (ops::IsSize(part))
      if (const std::optional<NodeId> subject = Subject(formula[part.inputs[0]]))
        return SizeOf(part.op, *subject);
    if (ops::HasRole(part, ops::Role::kSumTo))
      return SumTo(WriteFormula(formula, part.inputs[0]), formula[part.inputs[1]]);
    if (ops::HasRole(part, ops::Role::kSpreadTo))
      return SpreadTo(WriteFormula(formula, part.inputs[0]), formula[part.inputs[1]]);
    std::vector<NodeId> inputs;
    for (const NodeId input : part.inputs)
      inputs.push_back(input == kNoNode ? kNoNode : WriteFormula(formula, input));
    return Add(part.op, std::move(inputs), part.attributes);
  }

  NodeId Letter(const std::string& name) {
    for (const auto& [other, node] : more_)
      if (other == name) return node;
    if (name == "dy") return Adjoint(0);
    const std::optional<NodeId> subject = SubjectNamed(name);
    HEDDLE_CHECK(subject.has_value(), "a formula names inputs of its operator, y and dy");
    return Value(*subject);
  }

  // The forward node that a letter stands for; nullopt for dy and for what a function has named.
  std::optional<NodeId> Subject(const Node& letter) {
    return letter.Is("variable") ? SubjectNamed(letter.Text("name")) : std::nullopt;
  }
  std::optional<NodeId> SubjectNamed(const std::string& name) {
    if (name == "dy") return std::nullopt;
    if (name == "y") return current_;
    const ops::Operator& op = *ops::FindOperator(node_.op);
    if (name == "x" && !op.derivative.empty()) return node_.inputs[0];
    size_t at = 0;
    for (const ops::OperatorParameter& parameter : ops::ParseParameters(op.parameters)) {
      if (parameter.name == name) return node_.inputs[at];
      at += static_cast<size_t>(parameter.inputs());
    }
    return std::nullopt;
  }

  // The sum of what broadcasting of an operand has repeated.
  NodeId SumTo(NodeId sum, const Node& letter) {
    const NodeId operand = *Subject(letter);
    if (backward_.InfoOf(sum).IsScalar()) return sum;
    if (forward_[operand].info.IsScalar()) return Add("sum", {sum}, {});
    int matrices = 0;
    for (const NodeId input : node_.inputs)
      if (input != kNoNode && !forward_[input].info.IsScalar()) ++matrices;
    if (matrices == 1 && ops::KindOf(node_) == ops::OperatorKind::kCells) return sum;  // of the result's size
    return Add("sumTo", {sum, SizeOf("nrow", operand), SizeOf("ncol", operand)}, {});
  }

  NodeId SpreadTo(NodeId value, const Node& letter) {
    const NodeId operand = *Subject(letter);
    return Add(backward_.InfoOf(value).IsScalar() ? "matrix" : "spreadTo",
               {value, SizeOf("nrow", operand), SizeOf("ncol", operand)}, {});
  }

  Block& block_;
  Graph& forward_;
  AdjointState& state_;
  BlockBuilder backward_;
  std::vector<NodeId> adjoints_;  // of forward nodes, so far
  std::vector<NodeId> values_;    // of forward nodes, in the backward graph
  std::map<std::pair<std::string, NodeId>, NodeId> sizes_;
  std::map<NodeId, std::map<size_t, NodeId>> of_results_;  // adjoints of the results of tuples
  Node node_;
  NodeId current_ = kNoNode;
  std::vector<std::pair<std::string_view, NodeId>> more_;
  Status refused_;
};

}  // namespace

std::string AdjointName(const std::string& variable) { return "%d." + variable; }

Result<Graph> AdjointGraph(Block* block, AdjointState* state) { return Writer(block, state).Write(); }

}  // namespace heddle::compiler
