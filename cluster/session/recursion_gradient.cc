// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/recursion_gradient.h"

#include <algorithm>
#include <utility>

#include "cluster/session/block_runner.h"
#include "cluster/session/direct_program.h"
#include "cluster/session/recursion_texts.h"
#include "cluster/session/structure_inputs.h"
#include "compiler/gradient/adjoint_graph.h"
#include "compiler/gradient/gradient.h"
#include "compiler/optimize/pass.h"
#include "compiler/recursion/adjoint_class.h"
#include "core/environment/log.h"
#include "core/memory/counted_heap.h"
#include "core/programs/text_format.h"
#include "ops/recursion/adjoint_total.h"
#include "ops/recursion/linearize.h"

namespace heddle::cluster {
namespace {

constexpr size_t kMostClasses = 4096;
constexpr uint64_t kMostRoots = 1 << 20;
// Kept values take at most this part of the memory budget: results, adjoints and what bodies give take
// several times as much (docs/gradient.md).
constexpr int64_t kPartOfMemory = 8;
// Bodies take dense matrices: labels in rows of few cells are made dense.
constexpr int64_t kMostColumns = 64;
// The name of what a kept list has where batches have kept the rest.
constexpr const char* kBatched = "%batched";
constexpr std::string_view kForward = "forward", kBackward = "backward";

// "backward ..." of "forward ...", or the other way round.
const Function* Partner(const Program& program, const std::string& key, std::string_view from,
                        std::string_view to) {
  if (!key.starts_with(from)) return nullptr;
  const auto found = program.functions.find(std::string(to) + key.substr(from.size()));
  return found == program.functions.end() ? nullptr : &found->second;
}

}  // namespace

struct RecursionGradient::Known {
  enum class Kind : uint8_t { kOther, kForward, kBackward, kRounds } kind = Kind::kOther;
  compiler::Recognition found;          // kForward
  const Function* partner = nullptr;    // kForward: backward; kBackward: forward; kRounds: backward
  std::vector<std::string> parameters;  // kForward: whose adjoints are wanted
  bool was_told = false;
  std::string sizes;  // of the parameters that the adjoints are for
  std::map<std::pair<std::vector<bool>, std::string>, std::shared_ptr<const ops::RecursiveAdjoint>> adjoints;
};

struct RecursionGradient::Forest {
  const Block* loop = nullptr;
  const Block* call = nullptr;
  std::vector<int64_t> roots;  // of the rounds
  bool has_failed = false;
  std::shared_ptr<const Evaluation> evaluation;
  std::map<int64_t, size_t> number_of;  // of each root among the roots
};

struct RecursionGradient::Evaluation {
  const Function* function = nullptr;
  std::shared_ptr<const ops::Linearized> structure;
  ops::KeptNodes nodes;
};

// Hangs on the list that a call keeps.
struct RecursionGradient::Kept {
  std::shared_ptr<const Evaluation> evaluation;
  int32_t place = 0;
  void operator()(ListOf<Variable>* list) const { delete list; }
};

// What all classes of an evaluation need.
struct RecursionGradient::Setting {
  compiler::ClassContext context;
  std::map<std::string, Value> parameters;
};

RecursionGradient::RecursionGradient(const Program& program, const SessionOptions& options,
                                     BlockRunner& blocks)
    : program_(program),
      options_(options),
      blocks_(blocks),
      is_on_(std::find(options.disabled_passes.begin(), options.disabled_passes.end(),
                       compiler::kBatchedRecursion) == options.disabled_passes.end()) {}

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
    known->found = compiler::Recognise(key, function);
    if (known->partner != nullptr && known->found.is_recognised) known->kind = Kind::kForward;
    if (known->partner != nullptr)
      for (const Parameter& parameter : function.parameters)
        for (const Parameter& result : known->partner->results)
          if (result.name == compiler::AdjointName(parameter.name))
            known->parameters.push_back(parameter.name);
  }
  return *known;
}

bool RecursionGradient::Knows(const Function& function) {
  return is_on_ && KnownOf(function).kind != Known::Kind::kOther;
}

void RecursionGradient::SayWhy(Known* known, const Function& function, const std::string& why) {
  if (std::exchange(known->was_told, true) || options_.rank != 0) return;
  HEDDLE_LOG(kWarning, "the derivative of a structural recursion is interpreted", {"function", function.name},
             {"why", why});
}

Result<bool> RecursionGradient::Run(const Block& call, const Function& function, Frame* callee) {
  switch (KnownOf(function).kind) {
    case Known::Kind::kForward: return RunForward(call, function, callee);
    case Known::Kind::kBackward: return RunBackward(function, callee);
    case Known::Kind::kRounds: return RunRounds(function, callee);
    case Known::Kind::kOther: break;
  }
  return false;
}

// In a loop, the first call computes the roots of all rounds. Where one of them fails, or needs the
// interpreter, each round comes to it by itself.
Result<bool> RecursionGradient::RunForward(const Block& call, const Function& function, Frame* callee) {
  const Known& known = KnownOf(function);
  const std::string& node_name = function.parameters[known.found.recursion.node_parameter].name;
  const std::optional<int64_t> node = NodeIn(node_name, *callee);
  if (!node) return false;
  std::shared_ptr<const Evaluation> evaluation;
  size_t root = 0;
  for (const std::unique_ptr<Forest>& forest : forests_) {
    if (forest->call != &call || forest->has_failed) continue;
    if (forest->evaluation == nullptr) {
      Result<std::shared_ptr<const Evaluation>> all = Evaluate(function, forest->roots, callee);
      if (!all.ok() && all.status().code() == StatusCode::kCancelled) return all.status();
      forest->has_failed = !all.ok() || *all == nullptr;
      if (forest->has_failed) continue;
      forest->evaluation = *std::move(all);
      for (size_t i = 0; i < forest->roots.size(); ++i) forest->number_of.emplace(forest->roots[i], i);
    }
    const auto number = forest->number_of.find(*node);
    if (number == forest->number_of.end()) continue;
    evaluation = forest->evaluation;
    root = number->second;
  }
  if (evaluation == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(evaluation, Evaluate(function, {*node}, callee));
    if (evaluation == nullptr) return false;
  }
  const int32_t place = evaluation->structure->roots[root];
  const ops::NodeResults& results = evaluation->nodes.results;
  for (size_t i = 0; i < results.rows.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(Value result,
                            WithinMemory("variables", [&] { return ValueAt(results, i, place); }));
    callee->Set(function.results[i].name,
                VariableOf(std::move(result), function.results[i].value_type, options_.ranks));
  }
  std::shared_ptr<ListOf<Variable>> kept(new ListOf<Variable>, Kept{std::move(evaluation), place});
  HEDDLE_RETURN_IF_ERROR(kept->Add(kBatched, Variable::OfScalar(Scalar(*node))));
  callee->Set(compiler::kKept, Variable::OfList(std::move(kept)));
  return true;
}

std::vector<const Parameter*> RecursionGradient::AdjointParameters(const Function& backward) const {
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : backward.parameters)
    if (parameter.name.starts_with(compiler::AdjointName(""))) parameters.push_back(&parameter);
  return parameters;
}

// By the results of the forward function. With several ranks each gets the cells.
Result<std::vector<Value>> RecursionGradient::AdjointsIn(const Function& backward,
                                                         const std::vector<Variable>& given) {
  Frame frame;
  std::map<std::string, Distribution> wanted;
  const Function& forward = *KnownOf(backward).partner;
  const std::vector<const Parameter*> parameters = AdjointParameters(backward);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i].info.IsTabular() && options_.ranks > 1 && !given[i].distribution.IsEach())
      wanted[parameters[i]->name] = Distribution::Each();
    frame.Set(parameters[i]->name, given[i]);
  }
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, &frame));
  std::vector<Value> adjoints;
  for (const Parameter& result : forward.results) {
    const Variable* const adjoint =
        frame.Find(compiler::AdjointName(std::string(compiler::NameInFunction(result.name))));
    adjoints.push_back(adjoint == nullptr ? Value() : adjoint->value);
  }
  adjoints.pop_back();  // Of what is kept.
  return adjoints;
}

Result<bool> RecursionGradient::RunBackward(const Function& function, Frame* callee) {
  const Variable* const list = callee->Find(compiler::kKept);
  if (list == nullptr || list->list == nullptr || list->list->names.size() != 1 ||
      list->list->names[0] != kBatched)
    return false;
  std::vector<Variable> given;
  for (const Parameter* parameter : AdjointParameters(function)) {
    const Variable* const variable = callee->Find(parameter->name);
    if (variable == nullptr) return false;
    given.push_back(*variable);
  }
  ops::AdjointAt at;
  HEDDLE_ASSIGN_OR_RETURN(at.of_results, AdjointsIn(function, given));
  std::shared_ptr<const Evaluation> evaluation;
  if (const Kept* const kept = std::get_deleter<Kept>(list->list)) {
    evaluation = kept->evaluation;
    at.place = kept->place;
  } else {
    // The list was sent here: what hangs on it is made again.
    const int64_t root = list->list->elements[0].value.scalar().AsInteger();
    HEDDLE_ASSIGN_OR_RETURN(evaluation, Evaluate(*KnownOf(function).partner, {root}, callee));
    if (evaluation == nullptr) return Internal("a recursion has no batches when its derivative is computed");
    at.place = evaluation->structure->roots[0];
  }
  return Sum(function, {evaluation}, {{evaluation, {std::move(at)}}}, callee);
}

// Rounds whose roots were computed together go back together.
Result<bool> RecursionGradient::RunRounds(const Function& function, Frame* callee) {
  const Function& backward = *KnownOf(function).partner;
  if (KnownOf(backward).kind != Known::Kind::kBackward) return false;
  const Variable* const rounds = callee->Find(compiler::kRounds);
  if (rounds == nullptr || rounds->list == nullptr || rounds->list->size() == 0) return false;
  const size_t adjoints = AdjointParameters(backward).size();
  std::vector<std::shared_ptr<const Evaluation>> evaluations;
  Given given;
  for (const Variable& round : rounds->list->elements) {
    if (round.list == nullptr || round.list->size() < adjoints + 1) return false;
    const std::vector<Variable>& elements = round.list->elements;
    const Kept* const kept = elements[0].list == nullptr ? nullptr : std::get_deleter<Kept>(elements[0].list);
    if (kept == nullptr) return false;
    ops::AdjointAt at = {.place = kept->place};
    HEDDLE_ASSIGN_OR_RETURN(
        at.of_results,
        AdjointsIn(backward, {elements.end() - static_cast<std::ptrdiff_t>(adjoints), elements.end()}));
    const auto [found, is_new] = given.try_emplace(kept->evaluation);
    if (is_new) evaluations.push_back(kept->evaluation);
    found->second.push_back(std::move(at));
  }
  return Sum(backward, evaluations, given, callee);
}

Result<bool> RecursionGradient::Sum(const Function& backward,
                                    const std::vector<std::shared_ptr<const Evaluation>>& evaluations,
                                    const Given& given, Frame* callee) {
  const Function& forward = *KnownOf(backward).partner;
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<Setting> setting, SettingFor(forward, callee));
  if (!setting) return Internal("the derivative of a recursion misses its parameters");
  std::map<std::string, ValueInfo> wanted;
  for (const std::string& parameter : KnownOf(forward).parameters)
    wanted[parameter] = setting->context.parameters.find(parameter)->second.info;
  std::map<std::string, Matrix> sums;
  HEDDLE_RETURN_IF_ERROR(
      blocks_.RunBeside([&](const ops::KernelSource& kernels, ops::KernelContext& context) -> Status {
        for (const std::shared_ptr<const Evaluation>& evaluation : evaluations) {
          HEDDLE_ASSIGN_OR_RETURN(
              ops::AdjointSums part,
              ops::EvaluateAdjoint(*evaluation->structure, evaluation->nodes, given.at(evaluation), wanted,
                                   setting->parameters, kernels, context, weights_));
          ops::AdjointTotal total(wanted);
          total.BeginAll(1);
          total.Add(0, std::move(part));
          for (const auto& [name, info] : wanted) {
            HEDDLE_ASSIGN_OR_RETURN(Matrix adjoint, total.Take(name));
            const auto [sum, is_first] = sums.try_emplace(name, adjoint);
            if (!is_first) ops::AddMatrix(adjoint, &sum->second);
          }
        }
        return OkStatus();
      }));
  for (auto& [parameter, sum] : sums) {
    Value value = std::move(sum);
    if (wanted.at(parameter).IsScalar()) value = Scalar(value.matrix().At(0, 0));
    callee->Set(compiler::AdjointName(parameter),
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

Result<bool> RecursionGradient::EnterLoop(const Block& loop,
                                          const std::function<int64_t(uint64_t round)>& value_of,
                                          uint64_t rounds, Frame* frame) {
  if (!is_on_ || rounds < 2 || rounds > kMostRoots) return false;
  const auto [found, is_new] = loops_.try_emplace(&loop);
  if (is_new)
    found->second = compiler::FindRoots(loop, [this](const std::string& name) -> std::string {
      const auto function = program_.functions.find(name);
      if (function == program_.functions.end()) return "";
      const Known& known = KnownOf(function->second);
      return known.kind == Known::Kind::kForward && HasRounds(*known.partner)
                 ? function->second.parameters[known.found.recursion.node_parameter].name
                 : "";
    });
  if (!found->second) return false;
  // Each rank finds the roots by itself.
  std::map<std::string, Distribution> wanted;
  for (const std::string& name : found->second->structure.matrices) {
    const Variable* const matrix = frame->Find(name);
    if (matrix == nullptr || !matrix->info.IsMatrix()) return false;
    if (options_.ranks > 1 && !matrix->distribution.IsEach()) wanted[name] = Distribution::Each();
  }
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, frame));
  std::optional<std::vector<int64_t>> roots = RootsOf(found->second->structure, value_of, rounds, *frame);
  if (!roots) return false;
  forests_.push_back(std::make_unique<Forest>(
      Forest{.loop = &loop, .call = found->second->call, .roots = *std::move(roots)}));
  return true;
}

void RecursionGradient::LeaveLoop(const Block& loop) {
  if (!forests_.empty() && forests_.back()->loop == &loop) forests_.pop_back();
}

// nullopt where arguments are not what batches take.
Result<std::optional<RecursionGradient::Setting>> RecursionGradient::SettingFor(const Function& function,
                                                                                Frame* callee) {
  Setting setting;
  setting.context.element_type = options_.element_type;
  setting.context.disabled.insert(options_.disabled_passes.begin(), options_.disabled_passes.end());
  setting.context.fusion = options_.fusion;
  const size_t node = KnownOf(function).found.recursion.node_parameter;
  std::map<std::string, Distribution> wanted;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    if (i == node) continue;
    const std::string& name = function.parameters[i].name;
    const Variable* const variable = callee->Find(name);
    if (variable == nullptr || variable->info.data_type == DataType::kList) return std::optional<Setting>();
    if (variable->info.IsTabular() && options_.ranks > 1 && !variable->distribution.IsEach())
      wanted[name] = Distribution::Each();
    setting.context.parameters[name] = LiveInOf(*variable);
    if (variable->info.IsMatrix() && variable->info.shape.columns <= kMostColumns)
      setting.context.parameters[name].info.format = Format::kDense;
  }
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, callee));
  for (const auto& [name, known] : setting.context.parameters) {
    Value& value = setting.parameters[name] = callee->Find(name)->value;
    if (!known.info.IsMatrix() || known.info.format != Format::kDense || !value.matrix().IsSparse()) continue;
    HEDDLE_ASSIGN_OR_RETURN(value, WithinMemory("variables", [&]() -> Result<Value> {
                              HEDDLE_ASSIGN_OR_RETURN(Matrix dense, ToDense(value.matrix()));
                              return Value(std::move(dense));
                            }));
  }
  return std::optional<Setting>(std::move(setting));
}

// nullptr where the interpreter is to run.
Result<std::shared_ptr<const RecursionGradient::Evaluation>> RecursionGradient::Evaluate(
    const Function& function, const std::vector<int64_t>& roots, Frame* callee) {
  const std::shared_ptr<const Evaluation> none;
  Known& known = KnownOf(function);
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<Setting> setting, SettingFor(function, callee));
  if (!setting) return none;
  std::string sizes;
  for (const auto& [name, parameter] : setting->context.parameters) {
    AppendType(parameter.info, &sizes);
    if (parameter.value) sizes += parameter.value->ToLiteral();
  }
  if (known.sizes != sizes) {
    known.adjoints.clear();
    known.sizes = std::move(sizes);
  }
  auto evaluation = std::make_shared<Evaluation>();
  evaluation->function = &function;
  std::string why;
  HEDDLE_ASSIGN_OR_RETURN(evaluation->structure,
                          structures_.Of(function, known.found.recursion.structure, roots, *callee, &why));
  if (evaluation->structure == nullptr) {
    SayWhy(&known, function, why);
    return none;
  }
  int64_t room = options_.memory_bytes == 0 ? -1 : options_.memory_bytes / kPartOfMemory;
  std::optional<ops::KeptNodes> nodes;
  HEDDLE_RETURN_IF_ERROR(
      blocks_.RunBeside([&](const ops::KernelSource& kernels, ops::KernelContext& context) -> Status {
        const ops::FindAdjoint find = [&](const ops::Linearized::Class& node_class,
                                          const std::vector<ValueInfo>& children) {
          return AdjointOf(function, node_class, children, *setting, &room);
        };
        HEDDLE_ASSIGN_OR_RETURN(nodes, ops::EvaluateKeeping(*evaluation->structure, find, setting->parameters,
                                                            kernels, context, weights_));
        return OkStatus();
      }));
  if (!nodes) {
    SayWhy(&known, function, "results differ in size from node to node (C7)");
    return none;
  }
  evaluation->nodes = *std::move(nodes);
  ++blocks_.statistics()
        .recursion_forms[TextOfForm("gradient of " + function.name, evaluation->nodes.results.parts)];
  return std::shared_ptr<const Evaluation>(std::move(evaluation));
}

// `room`: bytes that may still be kept; negative: any.
Result<std::shared_ptr<const ops::RecursiveAdjoint>> RecursionGradient::AdjointOf(
    const Function& function, const ops::Linearized::Class& node_class,
    const std::vector<ValueInfo>& children, const Setting& setting, int64_t* room) {
  Known& known = KnownOf(function);
  const auto find = [&](bool keeps) -> std::shared_ptr<const ops::RecursiveAdjoint> {
    std::string key = keeps ? "kept " : "again ";
    for (const ValueInfo& child : children) AppendType(child, &key);
    const auto [found, is_new] = known.adjoints.try_emplace({node_class.path, key});
    if (!is_new) return found->second;
    if (known.adjoints.size() > kMostClasses) {
      known.adjoints.clear();
      return nullptr;
    }
    compiler::ClassContext context = setting.context;
    context.children = children;
    for (size_t i = 0; i < children.size(); ++i)
      if (children[i].IsScalar() && function.results[i].value_type == ValueType::kBoolean)
        context.children[i].value_type = ValueType::kBoolean;
    std::string why;
    std::optional<ops::RecursiveAdjoint> adjoint;
    const std::optional<compiler::ClassGraph> graph =
        compiler::JoinBlocks(known.found.recursion, function, node_class.path, context, &why);
    if (graph)
      adjoint =
          compiler::DifferentiateClass(*graph, context,
                                       {.parameters = {known.parameters.begin(), known.parameters.end()},
                                        .calls = node_class.calls,
                                        .keeps = keeps},
                                       &why);
    if (!adjoint) {
      SayWhy(&known, function, why);
      return nullptr;
    }
    found->second = std::make_shared<const ops::RecursiveAdjoint>(*std::move(adjoint));
    for (std::string& text : TextsOfAdjoint(function.name, node_class.calls, keeps, found->second, weights_))
      blocks_.statistics().recursions.push_back(std::move(text));
    return found->second;
  };
  std::shared_ptr<const ops::RecursiveAdjoint> adjoint = find(true);
  if (adjoint == nullptr || *room < 0) return adjoint;
  const int64_t bytes = BytesOfRows(adjoint->kept) * (node_class.end - node_class.begin);
  if (bytes > *room) return find(false);
  *room -= bytes;
  return adjoint;
}

}  // namespace heddle::cluster
