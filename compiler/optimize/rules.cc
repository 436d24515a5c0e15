// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/rules.h"

#include <map>
#include <numeric>
#include <optional>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "compiler/parse/parser.h"

namespace heddle::compiler {
namespace {

// Exact ones only: both sides have the same bits for every matrix, NaN, infinities and signed zeros included.
constexpr Rule kRules[] = {
    {"double-transpose", "t(t(X))", "X"},
    {"double-reverse", "rev(rev(X))", "X"},
    {"rows-of-transpose", "nrow(t(X))", "ncol(X)"},
    {"columns-of-transpose", "ncol(t(X))", "nrow(X)"},
    {"cells-of-transpose", "length(t(X))", "length(X)"},
};

struct ParsedRule {
  std::string_view name;
  ExpressionPointer before;
  ExpressionPointer after;
};

// Rules use calls of operators whose node has the function's name and positional inputs.
ExpressionPointer ParseSide(std::string_view text) {
  Diagnostics diagnostics;
  ScriptFile file = Parse("rules.cc", fmt::format("r = {}", text), &diagnostics);
  HEDDLE_CHECK(!diagnostics.HasErrors() && file.statements.size() == 1, "rules are DML expressions");
  return std::move(file.statements[0].value);
}

const std::vector<ParsedRule>& ParsedRules() {
  static const std::vector<ParsedRule> rules = [] {
    std::vector<ParsedRule> parsed;
    for (const Rule& rule : kRules)
      parsed.push_back({rule.name, ParseSide(rule.before), ParseSide(rule.after)});
    return parsed;
  }();
  return rules;
}

using Bindings = std::map<std::string, NodeId>;

bool Matches(const Graph& graph, NodeId id, const Expression& pattern, Bindings& bindings) {
  const Node& node = graph[id];
  if (pattern.kind == Expression::Kind::kIdentifier) {
    if (!node.info.IsMatrix()) return false;
    return bindings.emplace(pattern.name, id).first->second == id;
  }
  if (pattern.kind != Expression::Kind::kCall || node.op != pattern.name) return false;
  if (node.inputs.size() != pattern.arguments.size() || !node.attributes.empty()) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] == kNoNode || !Matches(graph, node.inputs[i], *pattern.arguments[i].value, bindings))
      return false;
  return true;
}

// Node `id` becomes what the right side says: nullopt when it was rewritten in place, else the node that
// replaces it.
std::optional<NodeId> Replace(Graph& graph, NodeId id, const Expression& pattern, const Bindings& bindings) {
  if (pattern.kind == Expression::Kind::kIdentifier) return bindings.at(pattern.name);
  Node& node = graph[id];
  node.op = pattern.name;
  node.inputs.clear();
  for (const Argument& argument : pattern.arguments) {
    HEDDLE_CHECK(argument.value->kind == Expression::Kind::kIdentifier,
                 "the right side of a rule is one operator or a name");
    node.inputs.push_back(bindings.at(argument.value->name));
  }
  return std::nullopt;
}

}  // namespace

std::span<const Rule> Rules() { return kRules; }

Result<Graph> ApplyRules(Graph graph) {
  std::vector<NodeId> stands_for(graph.nodes.size());
  std::iota(stands_for.begin(), stands_for.end(), 0);
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (NodeId& input : graph[id].inputs)
      if (input != kNoNode) input = stands_for[static_cast<size_t>(input)];
    for (const ParsedRule& rule : ParsedRules()) {
      Bindings bindings;
      if (!Matches(graph, id, *rule.before, bindings)) continue;
      std::optional<NodeId> other = Replace(graph, id, *rule.after, bindings);
      if (!other) continue;
      stands_for[static_cast<size_t>(id)] = *other;
      break;
    }
  }
  return Compact(std::move(graph), stands_for, std::vector<bool>(stands_for.size(), true));
}

}  // namespace heddle::compiler
