// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/bodies.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "compiler/gradient/adjoint_graph.h"
#include "compiler/recursion/adjoint_class.h"
#include "core/environment/log.h"
#include "core/programs/text_format.h"
#include "core/recently_used.h"
#include "engine/recursion/texts.h"
#include "engine/variables/live_in.h"

namespace heddle::engine {
namespace {

// Bodies of a function that are there at once.
constexpr size_t kMostBodies = 4096;
// Bodies of derivatives take dense matrices: labels in rows of few cells are made dense.
constexpr int64_t kMostColumns = 64;

// What tells the body of a class from the others of its function.
struct BodyKey {
  std::string sizes;            // BodySetting
  std::vector<bool> decisions;  // Of the nodes of the class.
  std::string children;         // Types of the results of one node.
  bool saves = false;           // Of a forward body of a derivative: whether it saves values.
  auto operator<=>(const BodyKey&) const = default;
};

// The backward function of a forward one; nullptr of other functions.
const Function* BackwardOf(const Program& program, const Function& function) {
  if (function.derivative.kind != DerivativeRole::Kind::kForward) return nullptr;
  const auto backward = program.functions.find(function.derivative.partner);
  return backward == program.functions.end() ? nullptr : &backward->second;
}

compiler::ClassContext WithChildren(const compiler::ClassContext& context, const Function& function,
                                    const std::vector<ValueInfo>& children) {
  compiler::ClassContext of_class = context;
  of_class.children = children;
  for (size_t i = 0; i < children.size(); ++i)
    if (children[i].IsScalar() && function.results[i].value_type == ValueType::kBoolean)
      of_class.children[i].value_type = ValueType::kBoolean;
  return of_class;
}

std::string TextOf(const std::vector<ValueInfo>& infos) {
  std::string text;
  for (const ValueInfo& info : infos) AppendType(info, &text);
  return text;
}

}  // namespace

struct RecursionBodies::FunctionBodies {
  compiler::Recognition found;
  std::vector<std::string> wanted;
  std::vector<size_t> results_with_adjoints;
  std::atomic<bool> is_reported = false;
  RecentlyUsedMap<BodyKey, std::shared_ptr<const ops::RecursiveBody>> bodies{kMostBodies};
  RecentlyUsedMap<BodyKey, std::shared_ptr<const ops::RecursiveAdjoint>> adjoints{kMostBodies};
};

RecursionBodies::RecursionBodies(const Program& program, const SessionOptions& options)
    : program_(program), options_(options) {}

RecursionBodies::~RecursionBodies() = default;

RecursionBodies::FunctionBodies& RecursionBodies::BodiesOfFunction(const Function& function) const {
  std::lock_guard lock(functions_mutex_);
  std::unique_ptr<FunctionBodies>& of_function = functions_[&function];
  if (of_function == nullptr) {
    of_function = std::make_unique<FunctionBodies>();
    if (const Function* const backward = BackwardOf(program_, function)) {
      for (const Parameter& parameter : function.parameters)
        for (const Parameter& result : backward->results)
          if (result.name == compiler::AdjointName(parameter.name))
            of_function->wanted.push_back(parameter.name);
      for (size_t i = 0; i < backward->derivative.adjoints.size(); ++i)
        if (!backward->derivative.adjoints[i].empty()) of_function->results_with_adjoints.push_back(i);
    }
    for (const auto& [key, candidate] : program_.functions)
      if (&candidate == &function)
        of_function->found =
            compiler::Recognise(key, function, {of_function->wanted.begin(), of_function->wanted.end()});
  }
  return *of_function;
}

std::vector<std::string> RecursionBodies::Texts() const {
  std::lock_guard lock(bodies_mutex_);
  return texts_;
}

void RecursionBodies::CountEvaluation(const std::string& form) const {
  std::lock_guard lock(bodies_mutex_);
  ++evaluation_counts_[form];
}

std::map<std::string, int64_t> RecursionBodies::EvaluationCounts() const {
  std::lock_guard lock(bodies_mutex_);
  return evaluation_counts_;
}

const compiler::Recognition& RecursionBodies::RecognitionOf(const Function& function) const {
  return BodiesOfFunction(function).found;
}

const std::vector<std::string>& RecursionBodies::WantedOf(const Function& function) const {
  return BodiesOfFunction(function).wanted;
}

const std::vector<size_t>& RecursionBodies::ResultsWithAdjoints(const Function& function) const {
  return BodiesOfFunction(function).results_with_adjoints;
}

std::vector<std::string> RecursionBodies::BackwardInputs(const Function& function) const {
  std::vector<std::string> names = WantedOf(function);
  for (const std::string& name : RecognitionOf(function).recursion.Inputs(function))
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

void RecursionBodies::ReportInterpreted(const Function& function, const std::string& why) const {
  FunctionBodies& of_function = BodiesOfFunction(function);
  if (of_function.is_reported.exchange(true) || options_.rank != 0) return;
  const char* const what = of_function.found.recursion.is_forward
                               ? "the derivative of a structural recursion is interpreted"
                               : "a structural recursion is interpreted";
  HEDDLE_LOG(kWarning, what, {"function", function.name}, {"why", why});
}

VariableTable RecursionBodies::InputsOf(const std::vector<std::string>& names, const ops::KernelCall& call,
                                        size_t first) {
  VariableTable inputs;
  for (const std::string& name : names) {
    Variable parameter;
    parameter.value = *call.inputs[first];
    parameter.info = call.input_infos[first++];
    inputs.Set(name, std::move(parameter));
  }
  return inputs;
}

BodySetting RecursionBodies::SettingOf(const Function& function, const VariableTable& inputs) const {
  const compiler::Recursion& recursion = RecognitionOf(function).recursion;
  BodySetting setting;
  compiler::ClassContext& context = setting.context;
  context.element_type = options_.element_type;
  context.disabled.insert(options_.disabled_passes.begin(), options_.disabled_passes.end());
  context.fusion = options_.fusion;
  context.moves_products = !recursion.is_forward;
  for (const std::string& name : recursion.Inputs(function)) {
    const Variable* const variable = inputs.Find(name);
    if (variable == nullptr) continue;
    compiler::LiveIn known = LiveInOf(*variable);
    if (recursion.is_forward && known.info.IsMatrix() && known.info.shape.columns <= kMostColumns)
      known.info.format = Format::kDense;
    if (recursion.free.contains(name)) known.value.reset();
    AppendType(known.info, &setting.sizes);
    if (known.value) setting.sizes += known.value->ToLiteral();
    context.parameters[name] = std::move(known);
  }
  return setting;
}

Result<std::optional<std::vector<ValueInfo>>> RecursionBodies::ResultsAt(const Function& function,
                                                                         int64_t root,
                                                                         const VariableTable& inputs) const {
  const std::optional<std::vector<ValueInfo>> none;
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ops::Linearized> structure,
                          StructureOf(function, {root}, inputs));
  if (structure == nullptr || structure->batches.empty()) return none;
  const BodySetting setting = SettingOf(function, inputs);
  const ops::Linearized::Class& first =
      structure->classes[static_cast<size_t>(structure->batches.front().node_class)];
  std::shared_ptr<const ops::RecursiveBody> body;
  size_t saved_values = 0;
  if (RecognitionOf(function).recursion.is_forward) {
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ops::RecursiveAdjoint> adjoint,
                            AdjointOf(function, setting, first, {}, /*saves=*/true));
    if (adjoint == nullptr) return none;
    saved_values = adjoint->saved.size();
    body = std::shared_ptr<const ops::RecursiveBody>(adjoint, &adjoint->forward);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(body, BodyOf(function, setting, first, {}));
    if (body == nullptr) return none;
  }
  std::optional<std::vector<ValueInfo>> results = ops::ResultsOf(*body);
  if (results)
    results->resize(results->size() - saved_values);
  else
    ReportInterpreted(function, "results differ in size from node to node (C7)");
  return results;
}

Result<std::shared_ptr<const ops::Linearized>> RecursionBodies::StructureOf(
    const Function& function, const std::vector<int64_t>& roots, const VariableTable& inputs) const {
  std::string why;
  HEDDLE_ASSIGN_OR_RETURN(
      std::shared_ptr<const ops::Linearized> structure,
      structures_.Of(function, RecognitionOf(function).recursion.structure, roots, inputs, &why));
  if (structure == nullptr) ReportInterpreted(function, why);
  return structure;
}

Result<std::shared_ptr<const ops::RecursiveBody>> RecursionBodies::BodyOf(
    const Function& function, const BodySetting& setting, const ops::Linearized::Class& node_class,
    const std::vector<ValueInfo>& children) const {
  FunctionBodies& of_function = BodiesOfFunction(function);
  std::lock_guard lock(bodies_mutex_);
  const BodyKey key{setting.sizes, node_class.decisions, TextOf(children)};
  if (const auto* const found = of_function.bodies.Find(key)) return *found;
  const compiler::ClassContext of_class = WithChildren(setting.context, function, children);
  std::string why;
  const std::optional<compiler::ClassGraph> graph =
      compiler::JoinBlocks(of_function.found.recursion, function, node_class.decisions, of_class, &why);
  std::optional<ops::RecursiveBody> body;
  if (graph) body = compiler::BatchOperators(*graph, of_class, &why);
  if (!body) {
    ReportInterpreted(function, why);
    return std::shared_ptr<const ops::RecursiveBody>();
  }
  const auto& made =
      of_function.bodies.Add(key, std::make_shared<const ops::RecursiveBody>(*std::move(body)));
  texts_.push_back(TextOfBody(function.name, node_class.calls, made, cache_));
  return made;
}

Result<std::shared_ptr<const ops::RecursiveAdjoint>> RecursionBodies::AdjointOf(
    const Function& function, const BodySetting& setting, const ops::Linearized::Class& node_class,
    const std::vector<ValueInfo>& children, bool saves) const {
  FunctionBodies& of_function = BodiesOfFunction(function);
  std::lock_guard lock(bodies_mutex_);
  const BodyKey key{setting.sizes, node_class.decisions, TextOf(children), saves};
  if (const auto* const found = of_function.adjoints.Find(key)) return *found;
  const compiler::ClassContext of_class = WithChildren(setting.context, function, children);
  const std::set<std::string> wanted(of_function.wanted.begin(), of_function.wanted.end());
  std::string why;
  const std::optional<compiler::ClassGraph> graph =
      compiler::JoinBlocks(of_function.found.recursion, function, node_class.decisions, of_class, &why);
  std::optional<ops::RecursiveAdjoint> adjoint;
  if (graph)
    adjoint = compiler::DifferentiateClass(
        *graph, of_class, {.parameters = wanted, .calls = node_class.calls, .saves = saves}, &why);
  if (!adjoint) {
    ReportInterpreted(function, why);
    return std::shared_ptr<const ops::RecursiveAdjoint>();
  }
  const auto& made =
      of_function.adjoints.Add(key, std::make_shared<const ops::RecursiveAdjoint>(*std::move(adjoint)));
  for (std::string& text : TextsOfAdjoint(function.name, node_class.calls, saves, made, cache_))
    texts_.push_back(std::move(text));
  return made;
}

}  // namespace heddle::engine
