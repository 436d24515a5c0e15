// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/bodies.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/gradient/adjoint_graph.h"
#include "compiler/recursion/adjoint_class.h"
#include "core/environment/log.h"
#include "core/programs/text_format.h"
#include "engine/recursion/texts.h"
#include "engine/variables/live_in.h"

namespace heddle::engine {
namespace {

// Bodies of a function; more ways through a function, or sizes, than that and all are made again.
constexpr size_t kMostBodies = 4096;
// Bodies of derivatives take dense matrices: labels in rows of few cells are made dense.
constexpr int64_t kMostColumns = 64;

// Sizes of the parameters, way of the class, what the function's results are.
using BodyKey = std::tuple<std::string, std::vector<bool>, std::string>;

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

struct RecursionBodies::Known {
  compiler::Recognition found;
  std::vector<std::string> wanted;
  std::vector<size_t> results_with_adjoints;
  std::atomic<bool> was_told = false;
  std::map<BodyKey, std::shared_ptr<const ops::RecursiveBody>> bodies;
  std::map<std::pair<bool, BodyKey>, std::shared_ptr<const ops::RecursiveAdjoint>> adjoints;
};

RecursionBodies::RecursionBodies(const Program& program, const SessionOptions& options)
    : program_(program), options_(options) {}

RecursionBodies::~RecursionBodies() = default;

RecursionBodies::Known& RecursionBodies::KnownOf(const Function& function) const {
  std::lock_guard lock(known_mutex_);
  std::unique_ptr<Known>& known = known_[&function];
  if (known == nullptr) {
    known = std::make_unique<Known>();
    if (const Function* const backward = BackwardOf(program_, function)) {
      for (const Parameter& parameter : function.parameters)
        for (const Parameter& result : backward->results)
          if (result.name == compiler::AdjointName(parameter.name)) known->wanted.push_back(parameter.name);
      for (size_t i = 0; i < backward->derivative.adjoints.size(); ++i)
        if (!backward->derivative.adjoints[i].empty()) known->results_with_adjoints.push_back(i);
    }
    for (const auto& [key, candidate] : program_.functions)
      if (&candidate == &function)
        known->found = compiler::Recognise(key, function, {known->wanted.begin(), known->wanted.end()});
  }
  return *known;
}

std::vector<std::string> RecursionBodies::Texts() const {
  std::lock_guard lock(bodies_mutex_);
  return texts_;
}

void RecursionBodies::CountForm(const std::string& form) const {
  std::lock_guard lock(bodies_mutex_);
  ++forms_[form];
}

std::map<std::string, int64_t> RecursionBodies::Forms() const {
  std::lock_guard lock(bodies_mutex_);
  return forms_;
}

const compiler::Recognition& RecursionBodies::FoundAt(const Function& function) const {
  return KnownOf(function).found;
}

const std::vector<std::string>& RecursionBodies::WantedOf(const Function& function) const {
  return KnownOf(function).wanted;
}

const std::vector<size_t>& RecursionBodies::ResultsWithAdjoints(const Function& function) const {
  return KnownOf(function).results_with_adjoints;
}

std::vector<std::string> RecursionBodies::BackwardInputs(const Function& function) const {
  std::vector<std::string> names = WantedOf(function);
  for (const std::string& name : FoundAt(function).recursion.Inputs(function))
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

void RecursionBodies::SayWhy(const Function& function, const std::string& why) const {
  Known& known = KnownOf(function);
  if (known.was_told.exchange(true) || options_.rank != 0) return;
  const char* const what = known.found.recursion.keeps
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

compiler::ClassContext RecursionBodies::ContextOf(const Function& function, const VariableTable& inputs,
                                                  std::string* sizes) const {
  const compiler::Recursion& recursion = FoundAt(function).recursion;
  compiler::ClassContext context;
  context.element_type = options_.element_type;
  context.disabled.insert(options_.disabled_passes.begin(), options_.disabled_passes.end());
  context.fusion = options_.fusion;
  context.pushes_down = !recursion.keeps;
  for (const std::string& name : recursion.Inputs(function)) {
    const Variable* const variable = inputs.Find(name);
    if (variable == nullptr) continue;
    compiler::LiveIn known = LiveInOf(*variable);
    if (recursion.keeps && known.info.IsMatrix() && known.info.shape.columns <= kMostColumns)
      known.info.format = Format::kDense;
    if (recursion.free.contains(name)) known.value.reset();
    AppendType(known.info, sizes);
    if (known.value) *sizes += known.value->ToLiteral();
    context.parameters[name] = std::move(known);
  }
  return context;
}

Result<std::optional<std::vector<ValueInfo>>> RecursionBodies::ResultsAt(const Function& function,
                                                                         int64_t root,
                                                                         const VariableTable& inputs) const {
  const std::optional<std::vector<ValueInfo>> none;
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ops::Linearized> structure,
                          StructureOf(function, {root}, inputs));
  if (structure == nullptr || structure->batches.empty()) return none;
  std::string sizes;
  const compiler::ClassContext context = ContextOf(function, inputs, &sizes);
  const ops::Linearized::Class& first =
      structure->classes[static_cast<size_t>(structure->batches.front().node_class)];
  std::shared_ptr<const ops::RecursiveBody> body;
  size_t kept = 0;
  if (FoundAt(function).recursion.keeps) {
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ops::RecursiveAdjoint> adjoint,
                            AdjointOf(function, sizes, first, {}, context, /*keeps=*/true));
    if (adjoint == nullptr) return none;
    kept = adjoint->kept.size();
    body = std::shared_ptr<const ops::RecursiveBody>(adjoint, &adjoint->forward);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(body, BodyOf(function, sizes, first, {}, context));
    if (body == nullptr) return none;
  }
  std::optional<std::vector<ValueInfo>> results = ops::ResultsOf(*body);
  if (results)
    results->resize(results->size() - kept);
  else
    SayWhy(function, "results differ in size from node to node (C7)");
  return results;
}

Result<std::shared_ptr<const ops::Linearized>> RecursionBodies::StructureOf(
    const Function& function, const std::vector<int64_t>& roots, const VariableTable& inputs) const {
  std::string why;
  HEDDLE_ASSIGN_OR_RETURN(
      std::shared_ptr<const ops::Linearized> structure,
      structures_.Of(function, FoundAt(function).recursion.structure, roots, inputs, &why));
  if (structure == nullptr) SayWhy(function, why);
  return structure;
}

Result<std::shared_ptr<const ops::RecursiveBody>> RecursionBodies::BodyOf(
    const Function& function, const std::string& sizes, const ops::Linearized::Class& node_class,
    const std::vector<ValueInfo>& children, const compiler::ClassContext& context) const {
  Known& known = KnownOf(function);
  std::lock_guard lock(bodies_mutex_);
  if (known.bodies.size() >= kMostBodies) known.bodies.clear();
  std::shared_ptr<const ops::RecursiveBody>& kept = known.bodies[{sizes, node_class.path, TextOf(children)}];
  if (kept != nullptr) return kept;
  const compiler::ClassContext of_class = WithChildren(context, function, children);
  std::string why;
  const std::optional<compiler::ClassGraph> graph =
      compiler::JoinBlocks(known.found.recursion, function, node_class.path, of_class, &why);
  std::optional<ops::RecursiveBody> body;
  if (graph) body = compiler::BatchOperators(*graph, of_class, &why);
  if (!body) {
    SayWhy(function, why);
    return kept;
  }
  kept = std::make_shared<const ops::RecursiveBody>(*std::move(body));
  texts_.push_back(TextOfBody(function.name, node_class.calls, kept, cache_));
  return kept;
}

Result<std::shared_ptr<const ops::RecursiveAdjoint>> RecursionBodies::AdjointOf(
    const Function& function, const std::string& sizes, const ops::Linearized::Class& node_class,
    const std::vector<ValueInfo>& children, const compiler::ClassContext& context, bool keeps) const {
  Known& known = KnownOf(function);
  std::lock_guard lock(bodies_mutex_);
  if (known.adjoints.size() >= kMostBodies) known.adjoints.clear();
  std::shared_ptr<const ops::RecursiveAdjoint>& kept =
      known.adjoints[{keeps, {sizes, node_class.path, TextOf(children)}}];
  if (kept != nullptr) return kept;
  const compiler::ClassContext of_class = WithChildren(context, function, children);
  std::string why;
  const std::optional<compiler::ClassGraph> graph =
      compiler::JoinBlocks(known.found.recursion, function, node_class.path, of_class, &why);
  std::optional<ops::RecursiveAdjoint> adjoint;
  if (graph)
    adjoint = compiler::DifferentiateClass(
        *graph, of_class,
        {.parameters = {known.wanted.begin(), known.wanted.end()}, .calls = node_class.calls, .keeps = keeps},
        &why);
  if (!adjoint) {
    SayWhy(function, why);
    return kept;
  }
  kept = std::make_shared<const ops::RecursiveAdjoint>(*std::move(adjoint));
  for (std::string& text : TextsOfAdjoint(function.name, node_class.calls, keeps, kept, cache_))
    texts_.push_back(std::move(text));
  return kept;
}

}  // namespace heddle::engine
