// SPDX-License-Identifier: Apache-2.0
#include "compiler/rules/rule_match.h"

#include <cmath>

#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

// Chains longer than this are not followed: every step of a long chain would walk the rest of it again.
constexpr size_t kLongestChain = 32;

bool IsNumber(const ValueInfo& info) {
  return info.IsScalar() && (info.value_type == ValueType::kDouble || info.value_type == ValueType::kInteger);
}

bool IsSameNumber(const Scalar& a, const Scalar& b) {
  if (a.IsString() || a.IsBoolean()) return false;
  return a.AsDouble() == b.AsDouble() && std::signbit(a.AsDouble()) == std::signbit(b.AsDouble());
}

bool Commutes(const Node& node) { return node.op == "*" || node.op == "+"; }

// The result's cells come from the same cells of input i.
bool IsCellWise(const Graph& graph, const Node& node, size_t i) {
  if (ops::KindOf(node) != ops::OperatorKind::kCells) return false;
  const NodeId input = node.inputs[i];
  return input != kNoNode && graph[input].info.IsMatrix() && graph[input].info.shape.IsKnown() &&
         graph[input].info.shape == node.info.shape;
}

}  // namespace

bool Match::Fit(const Graph& pattern, NodeId root, bool shared) {
  letters_.clear();
  chains_.clear();
  root_ = root;
  shared_ = shared;
  return FitNode(pattern, RootOf(pattern), root);
}

bool Match::FitNode(const Graph& pattern, NodeId inner, NodeId node) {
  const Node& expected = pattern[inner];
  const Node& found = subject_->graph[node];
  if (expected.Is("variable")) {
    if (expected.info.IsMatrix() ? !found.info.IsMatrix() : !IsNumber(found.info)) return false;
    return letters_.emplace(expected.Text("name"), node).first->second == node;
  }
  if (expected.Is("literal"))
    return found.Is("literal") &&
           IsSameNumber(*found.FindAttribute("value"), *expected.FindAttribute("value"));
  if (!MayEnter(node)) return false;
  if (expected.op == kContext) {
    std::vector<Link> chain;
    if (!FitChain(pattern, expected, node, chain)) return false;
    chains_[expected.Text("name")] = std::move(chain);
    return true;
  }
  if (found.op != expected.op || found.inputs.size() < expected.inputs.size() || !found.attributes.empty())
    return false;
  for (size_t i = expected.inputs.size(); i < found.inputs.size(); ++i)
    if (found.inputs[i] != kNoNode) return false;
  if (FitInputs(pattern, expected, found, false)) return true;
  return Commutes(expected) && FitInputs(pattern, expected, found, true);
}

bool Match::FitInputs(const Graph& pattern, const Node& inner, const Node& node, bool swapped) {
  const auto letters = letters_;
  const auto chains = chains_;
  for (size_t i = 0; i < inner.inputs.size(); ++i) {
    const NodeId input = node.inputs[swapped ? inner.inputs.size() - 1 - i : i];
    const NodeId expected = inner.inputs[i];
    if (expected == kNoNode || input == kNoNode ? expected == input : FitNode(pattern, expected, input))
      continue;
    letters_ = letters;
    chains_ = chains;
    return false;
  }
  return true;
}

// Depth first, the first place that fits.
bool Match::FitChain(const Graph& pattern, const Node& context, NodeId node, std::vector<Link>& chain) {
  if (!MayEnter(node)) return false;
  if (FitNode(pattern, context.inputs[0], node)) return true;
  if (chain.size() >= kLongestChain) return false;
  const Node& found = subject_->graph[node];
  for (size_t i = 0; i < found.inputs.size(); ++i) {
    if (!IsCellWise(subject_->graph, found, i)) continue;
    chain.push_back({node, i});
    if (FitChain(pattern, context, found.inputs[i], chain)) return true;
    chain.pop_back();
  }
  return false;
}

bool Match::KnowsOperands() const {
  for (const NodeId input : subject_->graph[root_].inputs) {
    const ValueInfo& info = subject_->graph[input].info;
    if (!info.IsScalar() && !info.shape.IsKnown()) return false;
  }
  return true;
}

bool Match::IsSparse(std::string_view letter) const {
  return Info(letter).format == Format::kSparse &&
         subject_->format_is_known[static_cast<size_t>(NodeOf(letter))];
}

bool Match::IsDense(std::string_view letter) const {
  return Info(letter).format == Format::kDense &&
         subject_->format_is_known[static_cast<size_t>(NodeOf(letter))];
}

bool Match::TakesScalars(std::string_view name) const {
  for (const Link& link : Chain(name)) {
    const std::vector<NodeId>& inputs = subject_->graph[link.node].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i == link.input || inputs[i] == kNoNode) continue;
      if (!subject_->graph[inputs[i]].info.IsScalar()) return false;
    }
  }
  return true;
}

bool Match::KnowsFormats() const {
  const auto known = [&](NodeId id) {
    return id == kNoNode || subject_->format_is_known[static_cast<size_t>(id)];
  };
  for (const auto& [letter, node] : letters_)
    if (!known(node)) return false;
  for (const auto& [name, chain] : chains_)
    for (const Link& link : chain)
      for (const NodeId input : subject_->graph[link.node].inputs)
        if (!known(input)) return false;
  return true;
}

}  // namespace heddle::compiler
