// SPDX-License-Identifier: Apache-2.0
#include "compiler/rules/rule_pattern.h"

#include <map>

#include "compiler/parse/parser.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

bool IsCapital(std::string_view name) { return name[0] >= 'A' && name[0] <= 'Z'; }

class PatternCompiler {
 public:
  Graph Compile(std::string_view text) {
    Diagnostics diagnostics;
    const ScriptFile file = Parse("rule", fmt::format("r = {}", text), &diagnostics);
    HEDDLE_CHECK(!diagnostics.HasErrors() && file.statements.size() == 1,
                 "a side of a rule is a DML expression");
    const NodeId root = Add(*file.statements[0].value);
    Node assign = Make("assign", {root});
    assign.SetAttribute("name", "r");
    graph_.Add(std::move(assign));
    return std::move(graph_);
  }

 private:
  static Node Make(std::string_view op, std::vector<NodeId> inputs) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    return node;
  }

  NodeId Literal(Scalar value) {
    Node node = Make("literal", {});
    node.info = ValueInfo::OfScalar(value.type());
    node.SetAttribute("value", std::move(value));
    return graph_.Add(std::move(node));
  }

  NodeId Letter(const std::string& name) {
    if (const auto known = letters_.find(name); known != letters_.end()) return known->second;
    Node node = Make("variable", {});
    node.info = IsCapital(name) ? ValueInfo::OfMatrix(Shape()) : ValueInfo::OfScalar(ValueType::kDouble);
    node.SetAttribute("name", name);
    return letters_[name] = graph_.Add(std::move(node));
  }

  static bool IsTranspose(const Expression& expression) {
    return expression.kind == Expression::Kind::kCall && expression.name == "t";
  }

  NodeId Add(const Expression& expression) {
    switch (expression.kind) {
      case Expression::Kind::kLiteral: return Literal(expression.literal);
      case Expression::Kind::kIdentifier: return Letter(expression.name);
      case Expression::Kind::kUnary: {
        const NodeId operand = Add(*expression.operands[0]);
        if (expression.name == "!") return graph_.Add(Make("!", {operand}));
        return graph_.Add(Make("*", {operand, Literal(Scalar(-1))}));
      }
      case Expression::Kind::kBinary: {
        const Expression& left = *expression.operands[0];
        const bool transposed = expression.name == "%*%" && IsTranspose(left);
        const NodeId a = Add(transposed ? *left.arguments[0].value : left);
        return graph_.Add(Make(transposed ? "t%*%" : expression.name, {a, Add(*expression.operands[1])}));
      }
      case Expression::Kind::kCall: return AddCall(expression);
      default: HEDDLE_CHECK(false, "rules have no indexes, lists or arguments of the script");
    }
    return kNoNode;
  }

  NodeId AddCall(const Expression& call) {
    std::vector<NodeId> inputs;
    for (const Argument& argument : call.arguments) {
      const Expression& value = *argument.value;
      const bool left_out = value.kind == Expression::Kind::kIdentifier && value.name == "none";
      inputs.push_back(left_out ? kNoNode : Add(value));
    }
    if (call.name == "f") {
      Node node = Make(kContext, std::move(inputs));
      node.SetAttribute("name", call.name);
      return graph_.Add(std::move(node));
    }
    const ops::Operator* builtin = ops::FindBuiltin(call.name);
    const bool between = builtin != nullptr && builtin->form == ops::CallForm::kMinMax && inputs.size() == 2;
    const std::string op(between ? builtin->overload : builtin != nullptr ? builtin->name : call.name);
    HEDDLE_CHECK(ops::FindOperator(op) != nullptr, "a rule names operators");
    return graph_.Add(Make(op, std::move(inputs)));
  }

  Graph graph_;
  std::map<std::string, NodeId> letters_;
};

}  // namespace

Graph CompilePattern(std::string_view text) { return PatternCompiler().Compile(text); }

NodeId RootOf(const Graph& pattern) { return pattern.nodes.back().inputs[0]; }

}  // namespace heddle::compiler
