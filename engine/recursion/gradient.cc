// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/gradient.h"

#include <algorithm>
#include <utility>

#include "compiler/gradient/adjoint_graph.h"
#include "compiler/gradient/gradient.h"
#include "compiler/optimize/pass.h"
#include "engine/recursion/graph_runner.h"
#include "engine/recursion/structure_inputs.h"
#include "ops/recursion/adjoint/adjoint_sums.h"
#include "ops/recursion/structure/root_groups.h"

namespace heddle::engine {

using Kind = DerivativeRole::Kind;

RecursionGradient::RecursionGradient(const Program& program, const SessionOptions& options,
                                     GraphRunner& runner)
    : program_(program),
      options_(options),
      runner_(runner),
      is_on_(std::find(options.disabled_passes.begin(), options.disabled_passes.end(),
                       compiler::kBatchedRecursion) == options.disabled_passes.end()),
      plans_(program, options, runner),
      forests_(options, runner, [this](const std::string& function) { return NodeOf(function); }) {}

RecursionGradient::~RecursionGradient() = default;

const RecursionGradient::Derived& RecursionGradient::DerivedOf(const Function& function) {
  const auto [found, is_new] = derived_.try_emplace(&function);
  Derived& derived = found->second;
  if (!is_new || function.derivative.kind == Kind::kNone) return derived;
  const auto partner = program_.functions.find(function.derivative.partner);
  if (partner == program_.functions.end()) return derived;
  derived.partner = &partner->second;
  switch (function.derivative.kind) {
    case Kind::kNone: break;
    case Kind::kForward: {
      const compiler::Recognition& recognition = runner_.recursions().bodies().RecognitionOf(function);
      derived.node_parameter = recognition.recursion.node_parameter;
      if (recognition.is_recognised) derived.kind = Kind::kForward;
      break;
    }
    case Kind::kBackward:
      if (DerivedOf(*derived.partner).kind == Kind::kForward) derived.kind = Kind::kBackward;
      break;
    case Kind::kRounds: derived.kind = Kind::kRounds; break;
  }
  return derived;
}

bool RecursionGradient::Knows(const Function& function) {
  return is_on_ && DerivedOf(function).kind != Kind::kNone;
}

Result<bool> RecursionGradient::Run(const Block& call, const Function& function, VariableTable* callee) {
  switch (DerivedOf(function).kind) {
    case Kind::kForward: return RunForward(call, function, callee);
    case Kind::kBackward: return RunBackward(call, function, callee);
    case Kind::kRounds: return RunRounds(call, function, callee);
    case Kind::kNone: break;
  }
  return false;
}

Result<bool> RecursionGradient::RunForward(const Block& call, const Function& function,
                                           VariableTable* callee) {
  const std::string& name = function.parameters[DerivedOf(function).node_parameter].name;
  const std::optional<int64_t> node = NodeIn(name, *callee);
  if (!node) return false;
  const auto evaluate_all = [&](const Block& loop, const std::vector<int64_t>& roots) {
    return plans_.Evaluate(loop, function, roots, /*may_fail=*/true, callee);
  };
  HEDDLE_ASSIGN_OR_RETURN(std::optional<RecursionForests::Root> root,
                          forests_.Find(call, *node, evaluate_all));
  std::optional<RecursionEvaluation> alone;
  if (!root) {
    HEDDLE_ASSIGN_OR_RETURN(alone, plans_.Evaluate(call, function, {*node}, /*may_fail=*/false, callee));
    if (!alone) return false;
    root = {&*alone, 0};
  }
  HEDDLE_RETURN_IF_ERROR(plans_.TakeResults(function, *root->evaluation, root->number, callee));
  HEDDLE_ASSIGN_OR_RETURN(Variable saved, SavedAt(*root->evaluation, root->number));
  callee->Set(compiler::kSaved, std::move(saved));
  return true;
}

Result<Variable> RecursionGradient::SavedAt(const RecursionEvaluation& evaluation, size_t root) const {
  const int64_t group =
      ops::GroupOf(static_cast<int64_t>(root), static_cast<int64_t>(evaluation.roots.size()));
  const SavedCall call = {.node = evaluation.roots[root],
                          .group = evaluation.groups.Rows(group, group + 1),
                          .roots_hash = evaluation.roots_hash,
                          .evaluation = evaluation.saved};
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<ListOf<Variable>> list, call.ToList(options_.ranks));
  return Variable::OfList(std::move(list));
}

// The parameters that take adjoints, in the order of the backward function's parameters.
std::vector<std::string> RecursionGradient::AdjointParameters(const Function& backward) {
  const std::vector<std::string>& adjoints = backward.derivative.adjoints;
  std::vector<std::string> names;
  for (const Parameter& parameter : backward.parameters)
    if (std::find(adjoints.begin(), adjoints.end(), parameter.name) != adjoints.end())
      names.push_back(parameter.name);
  return names;
}

// By result of the forward function; empty where a result has no adjoint. `given`: by AdjointParameters. With
// several ranks each gets the cells.
Result<std::vector<Value>> RecursionGradient::AdjointsIn(const Function& backward,
                                                         const std::vector<Variable>& given) {
  VariableTable frame;
  std::map<std::string, Distribution> wanted;
  const std::vector<std::string> names = AdjointParameters(backward);
  for (size_t i = 0; i < names.size(); ++i) {
    if (given[i].info.IsTabular() && options_.ranks > 1 && !given[i].distribution.IsEach())
      wanted[names[i]] = Distribution::Each();
    frame.Set(names[i], given[i]);
  }
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(runner_.Exchange(wanted, &frame));
  std::vector<Value> adjoints;
  for (const std::string& name : backward.derivative.adjoints)
    adjoints.push_back(name.empty() ? Value() : frame.Find(name)->value);
  return adjoints;
}

// Adds the adjoints of the results of one call, to those of its evaluation.
Status RecursionGradient::AddRound(const Function& backward, const SavedCall& saved,
                                   const std::vector<Variable>& adjoints, Given* given) {
  auto found = std::find_if(given->begin(), given->end(),
                            [&](const OfEvaluation& other) { return other.first.IsOfSameEvaluation(saved); });
  if (found == given->end()) found = given->insert(given->end(), {.first = saved, .adjoints = {}});
  GivenAdjoints& all = found->adjoints;
  if (all.saved == nullptr) all.saved = saved.evaluation;
  const std::vector<int64_t> roots = ops::RootsOf(saved.group, 0);
  GivenAdjoints::OfRoot root;
  root.group = static_cast<int64_t>(saved.group.At(0, 0));
  root.place = std::find(roots.begin(), roots.end(), saved.node) - roots.begin();
  if (root.place == static_cast<int64_t>(roots.size())) return Internal("a saved call has another node");
  HEDDLE_ASSIGN_OR_RETURN(root.of_results, AdjointsIn(backward, adjoints));
  all.groups.try_emplace(root.group, saved.group);
  all.roots.push_back(std::move(root));
  return OkStatus();
}

Result<bool> RecursionGradient::RunBackward(const Block& call, const Function& function,
                                            VariableTable* callee) {
  const Variable* const list = callee->Find(compiler::kSaved);
  const std::optional<SavedCall> saved = list == nullptr ? std::nullopt : SavedCall::In(*list);
  if (!saved) return false;
  std::vector<Variable> adjoints;
  for (const std::string& parameter : AdjointParameters(function)) {
    const Variable* const variable = callee->Find(parameter);
    if (variable == nullptr) return false;
    adjoints.push_back(*variable);
  }
  Given given;
  HEDDLE_RETURN_IF_ERROR(AddRound(function, *saved, adjoints, &given));
  HEDDLE_RETURN_IF_ERROR(Sum(call, function, given, callee));
  return true;
}

// Rounds whose roots were evaluated together are swept back together.
Result<bool> RecursionGradient::RunRounds(const Block& call, const Function& function,
                                          VariableTable* callee) {
  const Function& backward = *DerivedOf(function).partner;
  if (DerivedOf(backward).kind != Kind::kBackward) return false;
  const Variable* const rounds = callee->Find(compiler::kRounds);
  if (rounds == nullptr || rounds->list == nullptr || rounds->list->size() == 0) return false;
  const size_t adjoints = AdjointParameters(backward).size();
  Given given;
  for (const Variable& round : rounds->list->elements) {
    if (round.list == nullptr || round.list->size() < adjoints + 1) return false;
    const std::vector<Variable>& elements = round.list->elements;
    const std::optional<SavedCall> saved = SavedCall::In(elements[0]);
    if (!saved) return false;
    HEDDLE_RETURN_IF_ERROR(AddRound(
        backward, *saved, {elements.end() - static_cast<std::ptrdiff_t>(adjoints), elements.end()}, &given));
  }
  HEDDLE_RETURN_IF_ERROR(Sum(call, backward, given, callee));
  return true;
}

Status RecursionGradient::Sum(const Block& call, const Function& backward, const Given& given,
                              VariableTable* callee) {
  const Function& forward = *DerivedOf(backward).partner;
  std::vector<Matrix> sums;
  for (const OfEvaluation& evaluation : given) {
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Matrix> part,
                            plans_.SweepBack(call, forward, evaluation.adjoints, callee));
    if (sums.empty())
      sums = std::move(part);
    else
      for (size_t i = 0; i < sums.size(); ++i) ops::AddMatrix(part[i], &sums[i]);
  }
  const std::vector<std::string>& wanted = runner_.recursions().bodies().WantedOf(forward);
  for (size_t i = 0; i < wanted.size(); ++i) {
    Value value = std::move(sums[i]);
    if (callee->Find(wanted[i])->info.IsScalar()) value = Scalar(value.matrix().At(0, 0));
    callee->Set(compiler::AdjointName(wanted[i]),
                VariableOf(std::move(value), ValueType::kDouble, options_.ranks));
  }
  return OkStatus();
}

// Whether calls of the backward function in the rounds of a loop become one call. Where they do not, each
// round sweeps back alone, through all nodes.
bool RecursionGradient::HasRounds(const Function& backward) {
  return std::any_of(program_.functions.begin(), program_.functions.end(), [&](const auto& function) {
    const Derived& derived = DerivedOf(function.second);
    return derived.kind == Kind::kRounds && derived.partner == &backward;
  });
}

std::string RecursionGradient::NodeOf(const std::string& function) {
  const auto found = program_.functions.find(function);
  if (found == program_.functions.end()) return "";
  const Derived& derived = DerivedOf(found->second);
  return derived.kind == Kind::kForward && HasRounds(*derived.partner)
             ? found->second.parameters[derived.node_parameter].name
             : "";
}

Result<bool> RecursionGradient::EnterLoop(const Block& loop,
                                          const std::function<int64_t(uint64_t round)>& value_of,
                                          uint64_t rounds, VariableTable* frame) {
  if (!is_on_) return false;
  return forests_.EnterLoop(loop, value_of, rounds, frame);
}

void RecursionGradient::LeaveLoop(const Block& loop) { forests_.LeaveLoop(loop); }

}  // namespace heddle::engine
