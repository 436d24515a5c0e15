// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/number_facts.h"

#include <algorithm>
#include <utility>

#include "compiler/gradient/activity.h"
#include "compiler/optimize/rewrite.h"
#include "compiler/recursion/structure_operators.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

bool IsNumberType(ValueType type) {
  return type == ValueType::kDouble || type == ValueType::kInteger || type == ValueType::kBoolean;
}

}  // namespace

bool IsOnePosition(const Graph& graph, const Node& index, size_t first) {
  if (first + 1 >= index.inputs.size()) return false;
  const NodeId from = index.inputs[first], to = index.inputs[first + 1];
  if (from == kNoNode || to == kNoNode) return false;
  const Scalar *const lower = graph[from].FindAttribute("value"), *const upper =
                                                                      graph[to].FindAttribute("value");
  return from == to || (graph[from].Is("literal") && graph[to].Is("literal") && IsSameScalar(*lower, *upper));
}

NumberFacts::NumberFacts(const Function& function, size_t node_parameter, std::set<std::string> active)
    : function_(function), node_(function.parameters[node_parameter].name), active_(std::move(active)) {
  // All are structural until something is found that speaks against it.
  const auto count = [&](const auto& self, const std::vector<Block>& blocks) -> void {
    for (const Block& block : blocks) {
      if (block.kind == Block::Kind::kBasic)
        for (const Node& node : block.graph.nodes) {
          if (!node.Is("assign")) continue;
          ++assignments_[node.Text("name")];
          const Node& value = block.graph[node.inputs[0]];
          if (value.Is("variable")) copies_[node.Text("name")] = value.Text("name");
          if (value.Is("literal")) literals_[node.Text("name")] = *value.FindAttribute("value");
        }
      if (!block.variable.empty()) ++assignments_[block.variable];
      for (const std::string& result : block.results)
        if (!result.empty()) ++assignments_[result];
      self(self, block.body);
      self(self, block.otherwise);
    }
  };
  count(count, function.body);
  for (const auto& [name, times] : assignments_) variables_[name] = {.is_structural = true};
  while (Follow(function.body)) {
  }
}

const Scalar* NumberFacts::LiteralOf(const std::string& name) const {
  const auto times = assignments_.find(name);
  const auto literal = literals_.find(name);
  return times == assignments_.end() || times->second != 1 || literal == literals_.end() ? nullptr
                                                                                         : &literal->second;
}

NumberFact NumberFacts::OfVariable(const std::string& name) const {
  if (const auto found = variables_.find(name); found != variables_.end()) {
    NumberFact fact = found->second;
    // A parameter that is assigned as well.
    for (const Parameter& parameter : function_.parameters)
      if (parameter.name == name) {
        fact.is_structural &= parameter.data_type == DataType::kScalar && IsNumberType(parameter.value_type);
        fact.differs_by_node |= name == node_;
        fact.is_active |= active_.contains(name);
      }
    return fact;
  }
  for (const Parameter& parameter : function_.parameters)
    if (parameter.name == name)
      return {.is_structural = parameter.data_type == DataType::kScalar &&
                               (IsNumberType(parameter.value_type) || name == node_),
              .differs_by_node = name == node_,
              .is_active = active_.contains(name)};
  return {};
}

bool NumberFacts::IsParameter(const std::string& variable, const std::string& parameter) const {
  if (IsAssigned(parameter)) return false;
  if (variable == parameter) return true;
  const auto copy = copies_.find(variable);
  return copy != copies_.end() && copy->second == parameter && assignments_.at(variable) == 1;
}

bool NumberFacts::IsMatrixParameter(const Graph& graph, NodeId id) const {
  if (id == kNoNode || !graph[id].Is("variable")) return false;
  const std::string& name = graph[id].Text("name");
  return !IsAssigned(name) && std::any_of(function_.parameters.begin(), function_.parameters.end(),
                                          [&](const Parameter& parameter) {
                                            return parameter.name == name &&
                                                   parameter.data_type == DataType::kMatrix;
                                          });
}

std::vector<NumberFact> NumberFacts::Of(const Graph& graph) const {
  std::vector<NumberFact> facts;
  for (NodeId id = 0; id < graph.size(); ++id) facts.push_back(OfNode(graph, id, facts));
  return facts;
}

NumberFact NumberFacts::OfNode(const Graph& graph, NodeId id, const std::vector<NumberFact>& facts) const {
  const Node& node = graph[id];
  if (node.Is("literal")) return {.is_structural = IsNumberType(node.FindAttribute("value")->type())};
  if (node.Is("variable")) return OfVariable(node.Text("name"));
  NumberFact fact;
  bool all_structural = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoNode) continue;
    const NumberFact& of = facts[static_cast<size_t>(node.inputs[i])];
    fact.is_active |= of.is_active && CanVary(node.info) && AdjointOf(node, i) != "0";
    all_structural &= of.is_structural;
    fact.differs_by_node |= of.differs_by_node;
    fact.from_call |= of.from_call;
    fact.from_cell |= of.from_cell;
  }
  if (ops::HasRole(node, ops::Role::kAsScalar) && ops::HasRole(graph[node.inputs[0]], ops::Role::kRange)) {
    const Node& index = graph[node.inputs[0]];
    fact.is_structural = index.inputs.size() == 5 && IsMatrixParameter(graph, index.inputs[0]) &&
                         IsOnePosition(graph, index, 1) && IsOnePosition(graph, index, 3);
    const auto fact_of = [&](size_t i) {
      return index.inputs[i] == kNoNode ? NumberFact() : facts[static_cast<size_t>(index.inputs[i])];
    };
    // A cell of the node's row, also in a column that only results tell: such a function is meant to go over
    // a structure.
    fact.from_cell |= fact.is_structural && fact_of(1).is_structural && fact_of(1).differs_by_node;
    for (size_t i = 1; i < index.inputs.size(); ++i) fact.is_structural &= fact_of(i).is_structural;
    fact.from_cell |= fact.is_structural;
  } else if (ops::IsSize(node)) {
    fact.is_structural = IsMatrixParameter(graph, node.inputs[0]);
  } else if (node.Is("assign")) {
    fact.is_structural = all_structural;
  } else {
    fact.is_structural = all_structural && StructureOperatorOf(node);
  }
  return fact;
}

bool NumberFacts::Meet(const std::string& name, const NumberFact& fact) {
  NumberFact& known = variables_[name];
  const NumberFact before = known;
  known.is_structural &= fact.is_structural;
  known.differs_by_node |= fact.differs_by_node;
  known.from_call |= fact.from_call;
  known.from_cell |= fact.from_cell;
  known.is_active |= fact.is_active;
  return known.is_structural != before.is_structural || known.differs_by_node != before.differs_by_node ||
         known.from_call != before.from_call || known.from_cell != before.from_cell ||
         known.is_active != before.is_active;
}

// True if something changed.
bool NumberFacts::Follow(const std::vector<Block>& blocks) {
  bool changed = false;
  for (const Block& block : blocks) {
    const std::vector<NumberFact> facts = Of(block.graph);
    for (NodeId id = 0; id < block.graph.size(); ++id) {
      const Node& node = block.graph[id];
      if (!node.Is("assign")) continue;
      const NumberFact& fact = facts[static_cast<size_t>(id)];
      if (block.kind == Block::Kind::kBasic) {
        changed |= Meet(node.Text("name"), fact);
      } else if (!block.variable.empty()) {
        NumberFact counter = fact;
        counter.differs_by_node = true;  // From round to round.
        counter.is_active = false;
        changed |= Meet(block.variable, counter);
      }
    }
    for (const std::string& result : block.results)
      if (!result.empty())
        changed |= Meet(result, {.differs_by_node = true, .from_call = block.kind == Block::Kind::kCall});
    changed |= Follow(block.body);
    changed |= Follow(block.otherwise);
  }
  return changed;
}

}  // namespace heddle::compiler
