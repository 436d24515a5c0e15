// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/gradient.h"

#include <algorithm>
#include <utility>

#include "compiler/gradient/adjoint_graph.h"
#include "compiler/gradient/gradient.h"
#include "compiler/optimize/pass.h"
#include "core/hash.h"
#include "engine/recursion/graph_runner.h"
#include "engine/recursion/structure_inputs.h"
#include "ops/recursion/adjoint/adjoint_sums.h"
#include "ops/recursion/structure/root_groups.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kForward = "forward", kBackward = "backward";
// What a kept list has where batches have kept the rest: the node, the evaluation, and the row of the node's
// group of roots (ops::RowsOfGroups), from which all of it can be made again.
constexpr const char* kBatched = "%batched";
constexpr const char* kEvaluation = "%evaluation";
constexpr const char* kGroup = "%group";
enum KeptElement : size_t { kNodeElement, kEvaluationElement, kGroupElement, kKeptElements };

bool IsBatched(const Variable* kept) {
  return kept != nullptr && kept->list != nullptr && kept->list->names.size() == kKeptElements &&
         kept->list->names[0] == kBatched;
}

// "backward ..." of "forward ...", or the other way round.
const Function* Partner(const Program& program, const std::string& key, std::string_view from,
                        std::string_view to) {
  if (!key.starts_with(from)) return nullptr;
  const auto found = program.functions.find(std::string(to) + key.substr(from.size()));
  return found == program.functions.end() ? nullptr : &found->second;
}

// The same on all ranks, and where a program goes on from a state of another.
int64_t NumberOf(const RecursionEvaluation& evaluation) {
  uint64_t hash = evaluation.roots.size();
  for (const int64_t root : evaluation.roots) hash = FoldHash(hash, static_cast<uint64_t>(root));
  return static_cast<int64_t>(hash >> 1);
}

}  // namespace

struct RecursionGradient::Known {
  enum class Kind : uint8_t { kOther, kForward, kBackward, kRounds } kind = Kind::kOther;
  size_t node_parameter = 0;          // kForward
  const Function* partner = nullptr;  // kForward: backward; kBackward: forward; kRounds: backward
};

// Hangs on the list that a call keeps.
struct RecursionGradient::Kept {
  std::shared_ptr<const RecursionAdjoints::Place> place;
  std::shared_ptr<const SharedParameters> parameters;
  void operator()(ListOf<Variable>* list) const { delete list; }
};

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

RecursionGradient::Known& RecursionGradient::KnownOf(const Function& function) {
  std::unique_ptr<Known>& known = known_[&function];
  if (known != nullptr) return *known;
  known = std::make_unique<Known>();
  std::string key;
  for (const auto& [name, candidate] : program_.functions)
    if (&candidate == &function) key = name;
  using Kind = Known::Kind;
  const std::string first = function.parameters.empty() ? "" : function.parameters[0].name;
  if (first == compiler::kRounds) {
    for (const Block& block : function.body)
      for (const Block& inner : block.body)
        if (inner.kind == Block::Kind::kCall && inner.function.starts_with(kBackward)) {
          known->partner = &program_.functions.at(inner.function);
          known->kind = Kind::kRounds;
        }
  } else if (first == compiler::kKept) {
    known->partner = Partner(program_, key, kBackward, kForward);
    if (known->partner != nullptr && KnownOf(*known->partner).kind == Kind::kForward)
      known->kind = Kind::kBackward;
  } else if (!function.results.empty() && function.results.back().name == compiler::kKept) {
    known->partner = Partner(program_, key, kForward, kBackward);
    const compiler::Recognition& found = runner_.recursions().bodies().FoundAt(function);
    known->node_parameter = found.recursion.node_parameter;
    if (known->partner != nullptr && found.is_recognised) known->kind = Kind::kForward;
  }
  return *known;
}

bool RecursionGradient::Knows(const Function& function) {
  return is_on_ && KnownOf(function).kind != Known::Kind::kOther;
}

Result<bool> RecursionGradient::Run(const Block& call, const Function& function, VariableTable* callee) {
  switch (KnownOf(function).kind) {
    case Known::Kind::kForward: return RunForward(call, function, callee);
    case Known::Kind::kBackward: return RunBackward(call, function, callee);
    case Known::Kind::kRounds: return RunRounds(call, function, callee);
    case Known::Kind::kOther: break;
  }
  return false;
}

Result<bool> RecursionGradient::RunForward(const Block& call, const Function& function,
                                           VariableTable* callee) {
  const std::string& name = function.parameters[KnownOf(function).node_parameter].name;
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
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<ListOf<Variable>> kept, KeptAt(*root->evaluation, root->number));
  callee->Set(compiler::kKept, Variable::OfList(std::move(kept)));
  return true;
}

Result<std::shared_ptr<ListOf<Variable>>> RecursionGradient::KeptAt(const RecursionEvaluation& evaluation,
                                                                    size_t root) const {
  std::shared_ptr<ListOf<Variable>> kept(new ListOf<Variable>, Kept{evaluation.place, evaluation.parameters});
  const int64_t group =
      ops::GroupOf(static_cast<int64_t>(root), static_cast<int64_t>(evaluation.roots.size()));
  HEDDLE_RETURN_IF_ERROR(kept->Add(kBatched, Variable::OfScalar(Scalar(evaluation.roots[root]))));
  HEDDLE_RETURN_IF_ERROR(kept->Add(kEvaluation, Variable::OfScalar(Scalar(NumberOf(evaluation)))));
  HEDDLE_RETURN_IF_ERROR(kept->Add(
      kGroup, VariableOf(evaluation.groups.Rows(group, group + 1), ValueType::kDouble, options_.ranks)));
  return kept;
}

std::vector<const Parameter*> RecursionGradient::AdjointParameters(const Function& backward) const {
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : backward.parameters)
    if (parameter.name.starts_with(compiler::AdjointName(""))) parameters.push_back(&parameter);
  return parameters;
}

// By the results of the forward function; Value() where one has none. With several ranks each gets the cells.
Result<std::vector<Value>> RecursionGradient::AdjointsIn(const Function& backward,
                                                         const std::vector<Variable>& given) {
  VariableTable frame;
  std::map<std::string, Distribution> wanted;
  const Function& forward = *KnownOf(backward).partner;
  const std::vector<const Parameter*> parameters = AdjointParameters(backward);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i].info.IsTabular() && options_.ranks > 1 && !given[i].distribution.IsEach())
      wanted[parameters[i]->name] = Distribution::Each();
    frame.Set(parameters[i]->name, given[i]);
  }
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(runner_.Exchange(wanted, &frame));
  std::vector<Value> adjoints;
  for (const Parameter& result : forward.results) {
    const Variable* const adjoint =
        frame.Find(compiler::AdjointName(std::string(compiler::NameInFunction(result.name))));
    adjoints.push_back(adjoint == nullptr ? Value() : adjoint->value);
  }
  adjoints.pop_back();  // Of what is kept.
  return adjoints;
}

// False where no batches have kept what a round gives adjoints for.
Result<bool> RecursionGradient::AddRound(const Function& backward, const Variable& kept,
                                         const std::vector<Variable>& adjoints, Given* given) {
  if (!IsBatched(&kept)) return false;
  const std::vector<Variable>& elements = kept.list->elements;
  const int64_t number = elements[kEvaluationElement].value.scalar().AsInteger();
  auto of_evaluation =
      std::find_if(given->begin(), given->end(), [&](const auto& one) { return one.first == number; });
  if (of_evaluation == given->end()) of_evaluation = given->insert(given->end(), {number, {}});
  GivenAdjoints& all = of_evaluation->second;
  if (const Kept* const here = std::get_deleter<Kept>(kept.list); here != nullptr && all.place == nullptr) {
    all.place = here->place;
    all.parameters = here->parameters;
  }
  const Matrix& row = elements[kGroupElement].value.matrix();
  const std::vector<int64_t> roots = ops::RootsOf(row, 0);
  GivenAdjoints::OfRoot root;
  root.group = static_cast<int64_t>(row.At(0, 0));
  root.place = std::find(roots.begin(), roots.end(), elements[kNodeElement].value.scalar().AsInteger()) -
               roots.begin();
  if (root.place == static_cast<int64_t>(roots.size())) return Internal("a kept list has another node");
  HEDDLE_ASSIGN_OR_RETURN(root.of_results, AdjointsIn(backward, adjoints));
  all.results.clear();
  for (size_t i = 0; i < root.of_results.size(); ++i)
    if (root.of_results[i].IsScalar() || root.of_results[i].IsMatrix()) all.results.push_back(i);
  all.groups.try_emplace(root.group, row);
  all.roots.push_back(std::move(root));
  return true;
}

Result<bool> RecursionGradient::RunBackward(const Block& call, const Function& function,
                                            VariableTable* callee) {
  const Variable* const kept = callee->Find(compiler::kKept);
  if (!IsBatched(kept)) return false;
  std::vector<Variable> adjoints;
  for (const Parameter* parameter : AdjointParameters(function)) {
    const Variable* const variable = callee->Find(parameter->name);
    if (variable == nullptr) return false;
    adjoints.push_back(*variable);
  }
  Given given;
  HEDDLE_ASSIGN_OR_RETURN(const bool is_batched, AddRound(function, *kept, adjoints, &given));
  return is_batched ? Sum(call, function, given, callee) : Result<bool>(false);
}

// Rounds whose roots were computed together go back together.
Result<bool> RecursionGradient::RunRounds(const Block& call, const Function& function,
                                          VariableTable* callee) {
  const Function& backward = *KnownOf(function).partner;
  if (KnownOf(backward).kind != Known::Kind::kBackward) return false;
  const Variable* const rounds = callee->Find(compiler::kRounds);
  if (rounds == nullptr || rounds->list == nullptr || rounds->list->size() == 0) return false;
  const size_t adjoints = AdjointParameters(backward).size();
  Given given;
  for (const Variable& round : rounds->list->elements) {
    if (round.list == nullptr || round.list->size() < adjoints + 1) return false;
    const std::vector<Variable>& elements = round.list->elements;
    HEDDLE_ASSIGN_OR_RETURN(
        const bool is_batched,
        AddRound(backward, elements[0],
                 {elements.end() - static_cast<std::ptrdiff_t>(adjoints), elements.end()}, &given));
    if (!is_batched) return false;
  }
  return Sum(call, backward, given, callee);
}

Result<bool> RecursionGradient::Sum(const Block& call, const Function& backward, const Given& given,
                                    VariableTable* callee) {
  const Function& forward = *KnownOf(backward).partner;
  std::vector<Matrix> sums;
  for (const auto& [number, of_evaluation] : given) {
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Matrix> part, plans_.SweepBack(call, forward, of_evaluation, callee));
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
  return true;
}

// Else each round goes back alone, through all nodes.
bool RecursionGradient::HasRounds(const Function& backward) {
  return std::any_of(program_.functions.begin(), program_.functions.end(), [&](const auto& function) {
    const Known& known = KnownOf(function.second);
    return known.kind == Known::Kind::kRounds && known.partner == &backward;
  });
}

std::string RecursionGradient::NodeOf(const std::string& function) {
  const auto found = program_.functions.find(function);
  if (found == program_.functions.end()) return "";
  const Known& known = KnownOf(found->second);
  return known.kind == Known::Kind::kForward && HasRounds(*known.partner)
             ? found->second.parameters[known.node_parameter].name
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
