// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/compile_structure.h"

#include <algorithm>
#include <utility>

#include "compiler/optimize/names.h"
#include "compiler/recursion/structure_operators.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

using Code = ops::StructureProgram::Code;
using Step = ops::StructureProgram::Step;

class StructureCompiler {
 public:
  StructureCompiler(const Function& function, const NumberFacts& facts, Recursion* recursion)
      : function_(function), facts_(facts), out_(*recursion), program_(recursion->structure) {
    const std::string& node = function.parameters[recursion->node_parameter].name;
    registers_[node] = 0;
    has_value_.insert(node);
  }

  void Run() {
    // A parameter that is assigned begins as what was passed.
    for (const Parameter& parameter : function_.parameters)
      if (facts_.IsAssigned(parameter.name) && facts_.OfVariable(parameter.name).is_structural &&
          !registers_.contains(parameter.name)) {
        const int32_t given = EmitUniform({parameter.name, ""});
        Add({.code = Code::kCopy, .target = RegisterOf(parameter.name), .a = given});
        has_value_.insert(parameter.name);
      }
    Visit(function_.body);
    for (const Parameter& result : function_.results)
      if (out_.numbers.contains(result.name)) Add({.code = Code::kGive, .a = EmitVariable(result.name)});
    Add({.code = Code::kEnd});
  }

 private:
  int32_t NewRegister() { return program_.registers++; }
  size_t Add(const Step& step) {
    program_.steps.push_back(step);
    return program_.steps.size() - 1;
  }
  int32_t AddTo(Step step) {
    step.target = NewRegister();
    Add(step);
    return step.target;
  }
  void LandHere(size_t jump) { program_.steps[jump].index = static_cast<int32_t>(program_.steps.size()); }

  int32_t RegisterOf(const std::string& variable) {
    const auto [found, is_new] = registers_.try_emplace(variable, 0);
    if (is_new) found->second = NewRegister();
    return found->second;
  }

  void Visit(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      switch (block.kind) {
        case Block::Kind::kBasic: VisitBasic(block); break;
        case Block::Kind::kIf: {
          const size_t branch = Add({.code = Code::kBranch, .a = ValueOf(block.graph, Block::kPredicate)});
          const Names before = has_value_;
          Visit(block.body);
          const size_t jump = Add({.code = Code::kJump});
          LandHere(branch);
          Names behind_body = std::exchange(has_value_, before);
          Visit(block.otherwise);
          std::erase_if(behind_body, [&](const std::string& name) { return !has_value_.contains(name); });
          has_value_ = std::move(behind_body);
          LandHere(jump);
          break;
        }
        case Block::Kind::kWhile: {
          const auto top = static_cast<int32_t>(program_.steps.size());
          const size_t branch = Add({.code = Code::kBranch, .a = ValueOf(block.graph, Block::kPredicate)});
          const Names before = has_value_;
          Visit(block.body);
          has_value_ = before;
          Add({.code = Code::kJump, .index = top});
          LandHere(branch);
          break;
        }
        case Block::Kind::kFor: VisitFor(block); break;
        case Block::Kind::kCall:
          for (const auto& [parameter, variable] : block.arguments)
            if (parameter == function_.parameters[out_.node_parameter].name)
              Add({.code = Code::kCall, .a = EmitVariable(variable)});
          break;
        case Block::Kind::kList: {
          // The number of the element that is looked up.
          const std::string& index = ArgumentOf(block, "from");
          if (out_.numbers.contains(index)) Add({.code = Code::kGive, .a = EmitVariable(index)});
          break;
        }
        case Block::Kind::kParallelFor: break;  // Refused before.
      }
    }
  }

  void VisitFor(const Block& block) {
    const int32_t from = ValueOf(block.graph, Block::kFrom), to = ValueOf(block.graph, Block::kTo);
    const int32_t by = block.has_increment ? ValueOf(block.graph, Block::kIncrement)
                                           : AddTo({.code = Code::kStep, .a = from, .b = to});
    const int32_t rounds = AddTo({.code = Code::kRounds, .a = from, .b = to, .index = by});
    const int32_t counter = AddTo({.code = Code::kCopy, .a = from});
    const int32_t one = AddTo({.code = Code::kConstant, .constant = 1});
    const auto top = static_cast<int32_t>(program_.steps.size());
    const size_t branch = Add({.code = Code::kBranch, .a = rounds});
    Add({.code = Code::kCopy, .target = RegisterOf(block.variable), .a = counter});
    out_.numbers.insert(block.variable);
    const Names before = has_value_;
    has_value_.insert(block.variable);
    Visit(block.body);
    has_value_ = before;
    Add({.code = Code::kAdd, .target = counter, .a = counter, .b = by});
    Add({.code = Code::kSubtract, .target = rounds, .a = rounds, .b = one});
    Add({.code = Code::kJump, .index = top});
    LandHere(branch);
  }

  void VisitBasic(const Block& block) {
    const Graph& graph = block.graph;
    const std::vector<NumberFact> facts = facts_.Of(graph);
    of_node_.assign(graph.nodes.size(), -1);
    const auto is_number = [&](NodeId id) {
      const NumberFact& fact = facts[static_cast<size_t>(id)];
      return fact.is_structural && fact.differs_by_node && !fact.is_active;
    };
    const auto of_assigned = [&](const Node& assign) { return facts_.OfVariable(assign.Text("name")); };
    const auto is_left_out = [](const NumberFact& fact) { return fact.is_structural && !fact.is_active; };
    std::vector<bool> is_given(graph.nodes.size(), false);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph[id];
      if (is_left_out(node.Is("assign") ? of_assigned(node) : facts[static_cast<size_t>(id)])) continue;
      if (IsPartOfNumber(graph, id, facts)) continue;
      for (const NodeId input : node.inputs)
        if (input != kNoNode && is_number(input)) is_given[static_cast<size_t>(input)] = true;
    }
    std::vector<NodeId>& given = out_.given[block.id];
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (!is_given[static_cast<size_t>(id)]) continue;
      given.push_back(id);
      Add({.code = Code::kGive, .a = Emit(graph, id)});
    }
    // All values are found before any variable changes.
    std::vector<std::pair<int32_t, std::string>> assigned;
    for (const Node& node : graph.nodes) {
      if (!node.Is("assign") || !of_assigned(node).is_structural) continue;
      int32_t value = Emit(graph, node.inputs[0]);
      if (graph[node.inputs[0]].Is("variable")) value = AddTo({.code = Code::kCopy, .a = value});
      assigned.emplace_back(value, node.Text("name"));
    }
    for (const auto& [value, name] : assigned) {
      Add({.code = Code::kCopy, .target = RegisterOf(name), .a = value});
      has_value_.insert(name);
      const NumberFact fact = facts_.OfVariable(name);
      if (fact.differs_by_node && !fact.is_active) out_.numbers.insert(name);
    }
  }

  // An index that only makes a number of the structure: as.scalar(T[n, 1]).
  static bool IsPartOfNumber(const Graph& graph, NodeId id, const std::vector<NumberFact>& facts) {
    if (!ops::HasRole(graph[id], ops::Role::kRange)) return false;
    for (NodeId reader = id + 1; reader < graph.size(); ++reader)
      for (const NodeId input : graph[reader].inputs)
        if (input == id && !(facts[static_cast<size_t>(reader)].is_structural &&
                             !facts[static_cast<size_t>(reader)].is_active))
          return false;
    return true;
  }

  int32_t ValueOf(const Graph& graph, const char* name) {
    of_node_.assign(graph.nodes.size(), -1);
    for (const Node& node : graph.nodes)
      if (node.Is("assign") && node.Text("name") == name) return Emit(graph, node.inputs[0]);
    return 0;
  }

  // The register of a structural node.
  int32_t Emit(const Graph& graph, NodeId id) {
    int32_t& known = of_node_[static_cast<size_t>(id)];
    if (known < 0) known = EmitNew(graph, id);
    return of_node_[static_cast<size_t>(id)];
  }

  int32_t EmitNew(const Graph& graph, NodeId id) {
    const Node& node = graph[id];
    if (node.Is("literal"))
      return AddTo({.code = Code::kConstant, .constant = node.FindAttribute("value")->AsDouble()});
    if (node.Is("variable")) return EmitVariable(node.Text("name"));
    if (ops::HasRole(node, ops::Role::kAsScalar)) {
      const Node& index = graph[node.inputs[0]];
      const int32_t row = Emit(graph, index.inputs[1]), column = Emit(graph, index.inputs[3]);
      program_.positions[static_cast<int32_t>(program_.steps.size())] = node.position;
      return AddTo({.code = Code::kCell,
                    .a = row,
                    .b = column,
                    .index = PlaceOf(graph[index.inputs[0]].Text("name"), &program_.matrices)});
    }
    if (ops::IsSize(node)) return EmitUniform({graph[node.inputs[0]].Text("name"), node.op});
    return EmitOperator(graph, node);
  }

  int32_t EmitVariable(const std::string& name) {
    const bool is_parameter = std::any_of(function_.parameters.begin(), function_.parameters.end(),
                                          [&](const Parameter& parameter) { return parameter.name == name; });
    if (is_parameter && !facts_.IsAssigned(name) && !registers_.contains(name))
      return EmitUniform({name, ""});
    const int32_t place = RegisterOf(name);
    if (!has_value_.contains(name)) {
      if (std::find(program_.unset.begin(), program_.unset.end(), place) == program_.unset.end())
        program_.unset.push_back(place);
      Add({.code = Code::kNeed, .a = place});
    }
    return place;
  }

  int32_t EmitUniform(const ops::StructureProgram::Uniform& uniform) {
    size_t i = 0;
    while (i < program_.uniforms.size() && !(program_.uniforms[i].parameter == uniform.parameter &&
                                             program_.uniforms[i].size == uniform.size))
      ++i;
    if (i == program_.uniforms.size()) program_.uniforms.push_back(uniform);
    return AddTo({.code = Code::kUniform, .index = static_cast<int32_t>(i)});
  }

  int32_t EmitOperator(const Graph& graph, const Node& node) {
    const int32_t a = Emit(graph, node.inputs[0]);
    const int32_t b = node.inputs.size() > 1 && node.inputs[1] != kNoNode ? Emit(graph, node.inputs[1]) : 0;
    const StructureOperator op = *StructureOperatorOf(node);
    const bool is_whole = node.info.value_type == ValueType::kInteger;
    if (op.swaps) return AddTo({.code = op.code, .a = b, .b = a});
    return AddTo({.code = op.code, .is_whole = is_whole, .a = a, .b = b, .index = op.index});
  }

  static int32_t PlaceOf(const std::string& name, std::vector<std::string>* names) {
    const auto found = std::find(names->begin(), names->end(), name);
    if (found != names->end()) return static_cast<int32_t>(found - names->begin());
    names->push_back(name);
    return static_cast<int32_t>(names->size()) - 1;
  }

  const Function& function_;
  const NumberFacts& facts_;
  Recursion& out_;
  ops::StructureProgram& program_;
  std::map<std::string, int32_t> registers_;
  Names has_value_;  // Variables that have one on all ways to the place.
  std::vector<int32_t> of_node_;
};

}  // namespace

void CompileStructure(const Function& function, const NumberFacts& facts, Recursion* recursion) {
  StructureCompiler(function, facts, recursion).Run();
}

}  // namespace heddle::compiler
