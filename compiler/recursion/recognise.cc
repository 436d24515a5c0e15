// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "compiler/gradient/gradient.h"
#include "compiler/gradient/single_assignment.h"
#include "compiler/recursion/compile_structure.h"
#include "compiler/recursion/free_parameters.h"
#include "compiler/recursion/number_facts.h"
#include "ops/base/operator.h"
#include "ops/recursion/structure/structure_text.h"

namespace heddle::compiler {
namespace {

struct Failure {
  std::string condition, reason;
};

// 'name', what. Names of temporaries mean nothing to the user and are left out.
std::string Named(const std::string& variable, std::string_view what) {
  return variable.empty() || variable[0] == '%' ? std::string(what) : fmt::format("'{}', {}", variable, what);
}

// The variable (or operator) that makes a value no number of the structure, from the last one backwards.
std::string Culprit(const Graph& graph, NodeId id, const std::vector<NumberFact>& facts,
                    std::string_view what) {
  const Node& node = graph[id];
  if (node.Is("variable")) return Named(node.Text("name"), what);
  for (const NodeId input : node.inputs)
    if (input != kNoNode && !facts[static_cast<size_t>(input)].is_structural &&
        !ops::HasRole(graph[input], ops::Role::kRange))
      if (!(graph[input].Is("variable") && graph[input].info.IsMatrix() &&
            !facts[static_cast<size_t>(input)].from_call))
        return Culprit(graph, input, facts, what);
  return fmt::format("{}(), {}", node.op, what);
}

bool IsForward(const Function& function) {
  return function.derivative.kind == DerivativeRole::Kind::kForward;
}
bool IsBackward(const Function& function) {
  return function.derivative.kind == DerivativeRole::Kind::kBackward;
}

// Whether the step only saves values for a derivative: batches save theirs in another way.
bool IsSaving(const Block& step) {
  const bool adds = step.operation == ListOperation::kMake || step.operation == ListOperation::kAppend;
  return adds && (step.results[0] == kSaved || step.results[0].starts_with(kMadeName));
}

class Recogniser {
 public:
  Recogniser(const std::string& key, const Function& function, const std::set<std::string>& active)
      : key_(key), function_(function), active_(active) {}

  Recognition Run() {
    Recognition out;
    CollectCalls(function_.body);
    out.calls_itself = !calls_.empty();
    if (!out.calls_itself) return out;
    std::vector<size_t> changed = ChangedScalars();
    if (changed.empty()) {
      Fail(&out, {"C2", fmt::format("the call at line {} passes no other node", calls_[0]->position.line)});
      return out;
    }
    // The first that is a number of the structure in all calls is the node, else the first.
    size_t node = changed[0];
    for (const size_t parameter : changed) {
      const NumberFacts facts(function_, parameter);
      if (std::all_of(calls_.begin(), calls_.end(), [&](const Block* call) {
            return facts.OfVariable(ArgumentOf(*call, parameter)).is_structural;
          })) {
        node = parameter;
        break;
      }
    }
    const NumberFacts facts(function_, node, active_);
    out.is_candidate = IsCandidate(facts, changed);
    std::optional<Failure> failure = FindFailure(facts, node, changed);
    if (failure) {
      Fail(&out, *failure);
      return out;
    }
    out.is_recognised = true;
    out.recursion.is_forward = IsForward(function_);
    out.recursion.elements = std::move(elements_);
    out.recursion.function = function_.name;
    out.recursion.node_parameter = node;
    out.recursion.free = FreeParameters(function_);
    CompileStructure(function_, facts, &out.recursion);
    return out;
  }

 private:
  static void Fail(Recognition* out, const Failure& failure) {
    out->condition = failure.condition;
    out->reason = failure.reason;
  }

  void CollectCalls(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      if (block.kind == Block::Kind::kCall && block.candidates.empty() && block.function == key_)
        calls_.push_back(&block);
      CollectCalls(block.body);
      CollectCalls(block.otherwise);
    }
  }

  std::string ArgumentOf(const Block& call, size_t parameter) const {
    for (const auto& [name, variable] : call.arguments)
      if (name == function_.parameters[parameter].name) return variable;
    return "";
  }

  // Scalar parameters for which some call passes something else.
  std::vector<size_t> ChangedScalars() const {
    std::vector<size_t> changed;
    for (size_t i = 0; i < function_.parameters.size(); ++i) {
      const Parameter& parameter = function_.parameters[i];
      if (parameter.data_type != DataType::kScalar) continue;
      const NumberFacts facts(function_, i);
      if (std::any_of(calls_.begin(), calls_.end(), [&](const Block* call) {
            return !facts.IsParameter(ArgumentOf(*call, i), parameter.name);
          }))
        changed.push_back(i);
    }
    return changed;
  }

  bool IsCandidate(const NumberFacts& facts, const std::vector<size_t>& changed) const {
    if (!HasMatrix(function_.parameters)) return false;
    // A search goes over numbers, too: of functions of numbers alone only those that read their way are
    // meant.
    const bool gives_matrix = HasMatrix(function_.results);
    return std::any_of(calls_.begin(), calls_.end(), [&](const Block* call) {
      return std::any_of(changed.begin(), changed.end(), [&](size_t parameter) {
        const NumberFact fact = facts.OfVariable(ArgumentOf(*call, parameter));
        return fact.from_cell || (gives_matrix && fact.is_structural && fact.differs_by_node);
      });
    });
  }

  static bool HasMatrix(const std::vector<Parameter>& parameters) {
    return std::any_of(parameters.begin(), parameters.end(),
                       [](const Parameter& parameter) { return parameter.data_type == DataType::kMatrix; });
  }

  std::optional<Failure> FindFailure(const NumberFacts& facts, size_t node,
                                     const std::vector<size_t>& changed) const {
    for (const Block* call : calls_)
      if (std::optional<Failure> failure = CheckCall(*call, facts, node)) return failure;
    for (const size_t parameter : changed)
      if (parameter != node)
        return Failure{
            "C1", fmt::format("'{}' and '{}' both differ from call to call", function_.parameters[node].name,
                              function_.parameters[parameter].name)};
    if (std::optional<Failure> failure = CheckBlocks(function_.body, facts)) return failure;
    if (!HasMatrix(function_.parameters)) return Failure{"C7", "it has no matrix to go over"};
    for (const Parameter& result : function_.results)
      if (result.data_type != DataType::kMatrix && !IsNumber(result) && result.name != kSaved)
        return Failure{"C7", fmt::format("its result '{}' is neither a matrix nor a number", result.name)};
    if (!MayEnd(function_.body)) return Failure{"C9", "every way through it calls it again"};
    return std::nullopt;
  }

  std::optional<Failure> CheckCall(const Block& call, const NumberFacts& facts, size_t node) const {
    const int32_t line = call.position.line;
    for (size_t i = 0; i < function_.parameters.size(); ++i) {
      const Parameter& parameter = function_.parameters[i];
      const std::string argument = ArgumentOf(call, i);
      const NumberFact fact = facts.OfVariable(argument);
      const bool is_passed_on = i != node && facts.IsParameter(argument, parameter.name);
      if (is_passed_on || (i == node && fact.is_structural)) continue;
      if (fact.from_call)
        return Failure{"C4", fmt::format("what the call at line {} passes for '{}' depends on {}", line,
                                         parameter.name, Named(argument, "the result of another call"))};
      if (i == node)
        return Failure{"C2", fmt::format("the node that the call at line {} passes depends on {}", line,
                                         Named(argument, "a tensor result"))};
      if (parameter.data_type != DataType::kScalar)
        return Failure{"C1", fmt::format("the call at line {} passes another '{}'", line, parameter.name)};
    }
    if (call.gives_list) return Failure{"C7", fmt::format("the call at line {} gives a list", line)};
    return std::nullopt;
  }

  std::optional<Failure> CheckBlocks(const std::vector<Block>& blocks, const NumberFacts& facts) const {
    for (const Block& block : blocks) {
      const int32_t line = block.position.line;
      switch (block.kind) {
        case Block::Kind::kParallelFor:
          return Failure{"C8", fmt::format("the parfor at line {} is no loop over children", line)};
        case Block::Kind::kList:
          if (IsForward(function_) && IsSaving(block)) break;
          if (std::optional<Recursion::Element> element = ElementReadBy(block, facts)) {
            if (std::find(elements_.begin(), elements_.end(), *element) == elements_.end())
              elements_.push_back(*std::move(element));
            break;
          }
          return Failure{"C6", fmt::format("line {} works on a list", line)};
        case Block::Kind::kCall:
          if (!block.candidates.empty() || block.function != key_)
            return Failure{
                "C6", fmt::format("line {} calls {}", line,
                                  block.candidates.empty()
                                      ? fmt::format("'{}', which does not become part of it", block.function)
                                      : "a function that only the run tells")};
          break;
        case Block::Kind::kBasic:
          if (std::optional<Failure> failure = CheckPure(block.graph)) return failure;
          break;
        case Block::Kind::kIf:
        case Block::Kind::kWhile:
        case Block::Kind::kFor:
          if (std::optional<Failure> failure = CheckDecision(block, facts)) return failure;
          break;
      }
      for (const std::vector<Block>* inside : {&block.body, &block.otherwise})
        if (std::optional<Failure> failure = CheckBlocks(*inside, facts)) return failure;
    }
    return std::nullopt;
  }

  static bool IsNumber(const Parameter& result) {
    return result.data_type == DataType::kScalar &&
           (result.value_type == ValueType::kDouble || result.value_type == ValueType::kInteger ||
            result.value_type == ValueType::kBoolean);
  }

  // as.matrix(L[k]) or as.scalar(L[k]) of a parameter L that is not assigned, k a literal or a number of the
  // node.
  std::optional<Recursion::Element> ElementReadBy(const Block& step, const NumberFacts& facts) const {
    if (step.operation != ListOperation::kAsMatrix && step.operation != ListOperation::kAsScalar)
      return std::nullopt;
    const std::string &list = compiler::ArgumentOf(step, "list"), &from = compiler::ArgumentOf(step, "from");
    const bool is_parameter = std::any_of(
        function_.parameters.begin(), function_.parameters.end(), [&](const Parameter& parameter) {
          return parameter.name == list && parameter.data_type == DataType::kList;
        });
    if (!is_parameter || facts.IsAssigned(list) || from.empty() || from != compiler::ArgumentOf(step, "to"))
      return std::nullopt;
    if (const Scalar* const literal = facts.LiteralOf(from)) return Recursion::Element{list, *literal};
    const NumberFact fact = facts.OfVariable(from);
    if (!fact.is_structural || !fact.differs_by_node) return std::nullopt;
    return Recursion::Element{list, std::nullopt};
  }

  static std::optional<Failure> CheckPure(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      const ops::Operator* const op = ops::FindOperator(node.op);
      if (op == nullptr) continue;
      if (op->effect || op->files)
        return Failure{"C6", fmt::format("line {} acts: {}()", node.position.line, node.op)};
      if (!op->pure || op->seed_input >= 0)
        return Failure{"C6",
                       fmt::format("line {} draws or tells the time: {}()", node.position.line, node.op)};
    }
    return std::nullopt;
  }

  std::optional<Failure> CheckDecision(const Block& block, const NumberFacts& facts) const {
    if (std::optional<Failure> failure = CheckPure(block.graph)) return failure;
    const std::vector<NumberFact> of_nodes = facts.Of(block.graph);
    for (const Node& node : block.graph.nodes) {
      if (!node.Is("assign") || of_nodes[static_cast<size_t>(node.inputs[0])].is_structural) continue;
      const std::string_view what = block.kind == Block::Kind::kFor ? "bound of the loop" : "condition";
      return Failure{"C3", fmt::format("the {} at line {} uses {}", what, block.position.line,
                                       Culprit(block.graph, node.inputs[0], of_nodes, "a tensor result"))};
    }
    return std::nullopt;
  }

  // Whether some way through the blocks makes no call.
  bool MayEnd(const std::vector<Block>& blocks) const {
    return std::all_of(blocks.begin(), blocks.end(), [&](const Block& block) {
      if (block.kind == Block::Kind::kCall) return false;
      return block.kind != Block::Kind::kIf || MayEnd(block.body) || MayEnd(block.otherwise);
    });
  }

  const std::string& key_;  // In Program::functions: copies of a function share its name.
  const Function& function_;
  const std::set<std::string>& active_;
  std::vector<const Block*> calls_;  // of itself
  mutable std::vector<Recursion::Element> elements_;
};

void AppendSteps(const Recursion& recursion, const Function& function, std::string* text) {
  *text += fmt::format("  structure program, run once a node; r0 is {}\n",
                       function.parameters[recursion.node_parameter].name);
  std::istringstream steps(ops::ToText(recursion.structure));
  for (std::string line; std::getline(steps, line);) *text += "  " + line + "\n";
}

void AppendFound(const Recursion& recursion, const Function& function, std::string* text) {
  std::vector<std::string> invariant;
  for (size_t i = 0; i < function.parameters.size(); ++i)
    if (i != recursion.node_parameter) invariant.push_back(function.parameters[i].name);
  size_t calls = 0, numbers = 0, decisions = 0;
  for (const ops::StructureProgram::Step& step : recursion.structure.steps) {
    calls += step.code == ops::StructureProgram::Code::kCall ? 1 : 0;
    numbers += step.code == ops::StructureProgram::Code::kGive ? 1 : 0;
    decisions += step.code == ops::StructureProgram::Code::kBranch ? 1 : 0;
  }
  std::vector<std::string> results;
  for (const Parameter& result : function.results)
    if (result.name != kSaved) results.emplace_back(NameInFunction(result.name));
  *text += fmt::format("  node: {}; the same in all calls: {}\n",
                       function.parameters[recursion.node_parameter].name, fmt::join(invariant, ", "));
  *text += fmt::format("  structure: cells of {}\n",
                       recursion.structure.matrices.empty()
                           ? std::string("no matrix")
                           : fmt::format("{}", fmt::join(recursion.structure.matrices, ", ")));
  if (!recursion.elements.empty()) {
    std::vector<std::string> elements;
    for (const Recursion::Element& element : recursion.elements) elements.push_back(element.name());
    *text += fmt::format("  elements of lists: {}\n", fmt::join(elements, ", "));
  }
  *text += fmt::format("  decisions: {}; calls of itself: {}; numbers that operators read: {}\n", decisions,
                       calls, numbers);
  *text += fmt::format("  results at each node: {}\n", fmt::join(results, ", "));
}

}  // namespace

std::string Recursion::Element::name() const {
  return fmt::format("{}[{}]", list, key ? key->ToLiteral() : "");
}

std::vector<std::string> Recursion::Inputs(const Function& of) const {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < of.parameters.size(); ++i) {
    const Parameter& parameter = of.parameters[i];
    if (i == node_parameter) continue;
    if (parameter.data_type != DataType::kList) inputs.push_back(parameter.name);
    for (const Element& element : elements) {
      if (element.list != parameter.name) continue;
      inputs.push_back(element.name());
      if (!element.key) inputs.push_back(element.rows());
    }
  }
  return inputs;
}

const std::string& ArgumentOf(const Block& step, std::string_view argument) {
  static const std::string* const kNone = new std::string;
  for (const auto& [name, variable] : step.arguments)
    if (name == argument) return variable;
  return *kNone;
}

Recognition Recognise(const std::string& key, const Function& function, const std::set<std::string>& active) {
  return Recogniser(key, function, active).Run();
}

std::string NotRecognisedText(const Function& function, const Recognition& recognition) {
  return fmt::format("{}'{}' is not compiled as structural recursion: {} ({}); interpreted",
                     IsForward(function) ? "the derivative of " : "", function.name, recognition.reason,
                     recognition.condition);
}

namespace {

void CollectCallees(const std::vector<Block>& blocks, std::vector<const Block*>* calls) {
  for (const Block& block : blocks) {
    if (block.kind == Block::Kind::kCall && block.candidates.empty()) calls->push_back(&block);
    CollectCallees(block.body, calls);
    CollectCallees(block.otherwise, calls);
  }
}

// Whether calls of `from` come to a call of `to`, within a few functions.
bool Reaches(const Program& program, const std::string& from, const std::string& to) {
  constexpr size_t kMostSeen = 64;
  Names seen = {from};
  std::vector<std::string> open = {from};
  while (!open.empty() && seen.size() <= kMostSeen) {
    const auto function = program.functions.find(open.back());
    open.pop_back();
    if (function == program.functions.end()) continue;
    std::vector<const Block*> calls;
    CollectCallees(function->second.body, &calls);
    for (const Block* call : calls) {
      if (call->function == to) return true;
      if (seen.insert(call->function).second) open.push_back(call->function);
    }
  }
  return false;
}

// The same of a function of the program: one that calls itself through another, for a node that is a cell of
// a matrix, is none.
Recognition RecogniseIn(const Program& program, const std::string& key, const Function& function) {
  Recognition found = Recognise(key, function);
  if (found.calls_itself) return found;
  std::vector<const Block*> calls;
  CollectCallees(function.body, &calls);
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    if (calls.empty() || function.parameters[i].data_type != DataType::kScalar) continue;
    const NumberFacts facts(function, i);
    for (const Block* call : calls) {
      const bool goes_on =
          std::any_of(call->arguments.begin(), call->arguments.end(), [&](const auto& argument) {
            const NumberFact fact = facts.OfVariable(argument.second);
            return fact.from_cell && fact.is_structural;
          });
      if (!goes_on || !Reaches(program, call->function, key)) continue;
      found.calls_itself = found.is_candidate = true;
      found.condition = "C6";
      found.reason =
          fmt::format("line {} calls '{}', which calls it again", call->position.line, call->function);
      return found;
    }
  }
  return found;
}

}  // namespace

void WarnOfInterpreted(const Program& program, Diagnostics* diagnostics) {
  for (const auto& [name, function] : program.functions) {
    const Recognition recognition = RecogniseIn(program, name, function);
    if (!recognition.is_candidate || recognition.is_recognised || IsBackward(function)) continue;
    const Place place = {function.position.line, function.position.column};
    diagnostics->Warning(function.position.file, {place, place}, NotRecognisedText(function, recognition));
  }
}

std::string ExplainRecursion(const Program& program, bool with_steps) {
  std::string text;
  for (const auto& [name, function] : program.functions) {
    const Recognition recognition = RecogniseIn(program, name, function);
    if (!recognition.calls_itself || IsBackward(function)) continue;
    if (!recognition.is_recognised) {
      text += fmt::format("{}:{}: {}\n", function.position.file, function.position.line,
                          NotRecognisedText(function, recognition));
      continue;
    }
    text += fmt::format("{}:{}: '{}' is a structural recursion{}\n", function.position.file,
                        function.position.line, function.name,
                        recognition.recursion.is_forward ? "; its derivative runs in batches as well" : "");
    AppendFound(recognition.recursion, function, &text);
    if (with_steps) AppendSteps(recognition.recursion, function, &text);
  }
  return text.empty() ? "no function calls itself\n" : text;
}

}  // namespace heddle::compiler
