// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/recursion_runner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "cluster/session/block_runner.h"
#include "cluster/session/direct_program.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "compiler/recursion/class_body.h"
#include "core/environment/log.h"
#include "core/memory/counted_heap.h"
#include "core/programs/text_format.h"

namespace heddle::cluster {
namespace {

// Structures kept as arrays: epochs over a few batches meet them again.
constexpr size_t kMostStructures = 64;
// Bodies of a function for one set of sizes; more ways through a function than that make no batches.
constexpr size_t kMostClasses = 4096;
// Decisions of one node: with more children than that a body would be a long list of operators.
constexpr int32_t kMostDecisions = 512;
// Rounds of a loop that are one forest.
constexpr uint64_t kMostRoots = 1 << 20;
// Doubles are the whole numbers up to here.
constexpr double kMostWhole = 9007199254740992.0;
// Roots a thread takes at least.
constexpr size_t kFewRoots = 2;

// Values that are kept take no other's place in memory.
bool IsSameValue(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.IsScalar()) return compiler::IsSameScalar(a.scalar(), b.scalar());
  if (!a.IsMatrix()) return false;
  const Matrix &x = a.matrix(), &y = b.matrix();
  return x.values<char>() == y.values<char>() && x.shape() == y.shape() && x.storage() == y.storage() &&
         x.element_type() == y.element_type();
}

// What a structure program reads.
struct Given {
  std::vector<Value> matrices;
  std::vector<double> uniforms;
};

// nullopt where a variable is not what the program takes it for.
std::optional<Given> GivenTo(const ops::StructureProgram& program, const Frame& frame) {
  Given given;
  for (const std::string& name : program.matrices) {
    const Variable* const matrix = frame.Find(name);
    if (matrix == nullptr || !matrix->info.IsMatrix() || matrix->is_growing || matrix->is_ahead)
      return std::nullopt;
    given.matrices.push_back(matrix->value);
  }
  for (const ops::StructureProgram::Uniform& uniform : program.uniforms) {
    const Variable* const variable = frame.Find(uniform.parameter);
    if (variable == nullptr) return std::nullopt;
    if (uniform.size.empty()) {
      if (!variable->info.IsScalar() || variable->value.scalar().IsString()) return std::nullopt;
      given.uniforms.push_back(variable->value.scalar().AsDouble());
      continue;
    }
    const std::optional<Scalar> size = compiler::SizeOf(uniform.size, variable->info.shape);
    if (!size) return std::nullopt;
    given.uniforms.push_back(size->AsDouble());
  }
  return given;
}

// A result as calls leave it: a number of another type than the declared one is cast by who reads it, but a
// caller may know that it has that type.
Scalar AsDeclared(double number, ValueType type) {
  if (type == ValueType::kBoolean) return number != 0;
  if (type == ValueType::kInteger && std::trunc(number) == number && std::fabs(number) < kMostWhole)
    return static_cast<int64_t>(number);
  return number;
}

const std::string& NameOfNode(const compiler::Recognition& found, const Function& function) {
  return function.parameters[found.recursion.node_parameter].name;
}

// nullopt for what is no node.
std::optional<int64_t> NodeIn(const std::string& name, const Frame& callee) {
  const Variable* const node = callee.Find(name);
  if (node == nullptr || !node->info.IsScalar() || node->value.scalar().IsString()) return std::nullopt;
  const double number = node->value.scalar().AsDouble();
  const auto whole = static_cast<int64_t>(std::clamp(number, -1.0, 1e15));
  return number >= 0 && static_cast<double>(whole) == number ? std::optional<int64_t>(whole) : std::nullopt;
}

}  // namespace

struct RecursionRunner::Known {
  compiler::Recognition found;
  bool was_told = false;
  std::string sizes;  // of the parameters that the bodies are for
  // By the way of the class and what the function's results are.
  std::map<std::pair<std::vector<bool>, std::string>, std::shared_ptr<const ops::RecursiveBody>> bodies;
};

struct RecursionRunner::Structure {
  const Function* function;
  Given given;
  std::vector<int64_t> roots;
  std::shared_ptr<const ops::Linearized> linearized;
};

// Roots in parts, one a thread: trees of one part share nothing with those of another but what both compute.
struct RecursionRunner::Evaluation {
  struct Part {
    std::shared_ptr<const ops::Linearized> structure;
    ops::NodeResults results;
  };
  struct Place {
    size_t part = 0;
    int32_t place = 0;
  };
  std::vector<Part> parts;
  std::vector<Place> roots;  // In the order in which they were given.
};

// What all parts of an evaluation need.
struct RecursionRunner::Work {
  const ops::FindBody& find_body;
  const std::map<std::string, Value>& parameters;
  const ops::KernelSource& kernels;
  ops::KernelContext& context;
};

struct RecursionRunner::Forest {
  const Block* loop = nullptr;
  const Function* function = nullptr;
  std::vector<int64_t> roots;  // of the rounds
  bool has_failed = false;
  std::vector<std::pair<std::string, Value>> arguments;  // of the evaluation, but for the node
  std::optional<Evaluation> evaluation;
  std::unordered_map<int64_t, size_t> number_of;  // of each root among the roots
};

RecursionRunner::RecursionRunner(const Program& program, const SessionOptions& options, BlockRunner& blocks)
    : program_(program),
      options_(options),
      blocks_(blocks),
      is_on_(std::find(options.disabled_passes.begin(), options.disabled_passes.end(),
                       compiler::kBatchedRecursion) == options.disabled_passes.end()) {}

RecursionRunner::~RecursionRunner() = default;

RecursionRunner::Known& RecursionRunner::KnownOf(const Function& function) {
  std::unique_ptr<Known>& known = known_[&function];
  if (known == nullptr) {
    known = std::make_unique<Known>();
    for (const auto& [key, candidate] : program_.functions)
      if (&candidate == &function) known->found = compiler::Recognise(key, function);
  }
  return *known;
}

bool RecursionRunner::Knows(const Function& function) {
  if (!is_on_) return false;
  const compiler::Recognition& found = KnownOf(function).found;
  return found.is_recognised && !found.recursion.keeps;
}

void RecursionRunner::SayWhy(Known* known, const Function& function, const std::string& why) {
  if (std::exchange(known->was_told, true) || options_.rank != 0) return;
  HEDDLE_LOG(kWarning, "a structural recursion is interpreted", {"function", function.name}, {"why", why});
}

Result<bool> RecursionRunner::Run(const Function& function, Frame* callee) {
  for (auto forest = forests_.rbegin(); forest != forests_.rend(); ++forest) {
    if ((*forest)->function != &function) continue;
    HEDDLE_ASSIGN_OR_RETURN(const bool has_run, RunInForest(forest->get(), function, callee));
    if (has_run) return true;
    break;
  }
  const std::optional<int64_t> root = NodeIn(NameOfNode(KnownOf(function).found, function), *callee);
  if (!root) return false;
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<Evaluation> evaluation, Evaluate(function, {*root}, callee));
  if (!evaluation) return false;
  HEDDLE_RETURN_IF_ERROR(TakeResults(function, *evaluation, 0, callee));
  return true;
}

// The first call computes the roots of all rounds. Where one of them fails, or needs the interpreter, each
// round comes to it by itself.
Result<bool> RecursionRunner::RunInForest(Forest* forest, const Function& function, Frame* callee) {
  if (forest->has_failed) return false;
  const std::string& node_name = NameOfNode(KnownOf(function).found, function);
  const std::optional<int64_t> node = NodeIn(node_name, *callee);
  if (!node) return false;
  if (!forest->evaluation) {
    for (const auto& [name, variable] : callee->variables())
      if (name != node_name) forest->arguments.emplace_back(name, variable.value);
    Result<std::optional<Evaluation>> evaluation = Evaluate(function, forest->roots, callee);
    if (!evaluation.ok() && evaluation.status().code() == StatusCode::kCancelled) return evaluation.status();
    forest->has_failed = !evaluation.ok() || !*evaluation;
    if (forest->has_failed) return false;
    forest->evaluation = **std::move(evaluation);
    for (size_t i = 0; i < forest->roots.size(); ++i) forest->number_of.emplace(forest->roots[i], i);
  }
  const auto number = forest->number_of.find(*node);
  const bool is_same =
      std::all_of(forest->arguments.begin(), forest->arguments.end(), [&](const auto& argument) {
        const Variable* const variable = callee->Find(argument.first);
        return variable != nullptr && IsSameValue(variable->value, argument.second);
      });
  if (number == forest->number_of.end() || !is_same) return false;
  HEDDLE_RETURN_IF_ERROR(TakeResults(function, *forest->evaluation, number->second, callee));
  return true;
}

bool RecursionRunner::EnterLoop(const Block& loop, const std::function<int64_t(uint64_t round)>& value_of,
                                uint64_t rounds, const Frame& frame) {
  // Other ranks may hold no cells to compare arguments by.
  if (!is_on_ || options_.ranks > 1 || rounds < 2 || rounds > kMostRoots) return false;
  const auto [found, is_new] = loops_.try_emplace(&loop);
  if (is_new)
    found->second = compiler::FindRoots(loop, [this](const std::string& name) -> std::string {
      const auto function = program_.functions.find(name);
      if (function == program_.functions.end() || !Knows(function->second)) return "";
      return NameOfNode(KnownOf(function->second).found, function->second);
    });
  if (!found->second) return false;
  const ops::StructureProgram& structure = found->second->structure;
  const std::optional<Given> given = GivenTo(structure, frame);
  if (!given) return false;
  std::vector<Matrix> dense;
  for (const Value& matrix : given->matrices) {
    Result<Matrix> cells = ToDense(matrix.matrix());
    if (!cells.ok()) return false;
    dense.push_back(*std::move(cells));
  }
  std::vector<int64_t> counters;
  for (uint64_t round = 0; round < rounds; ++round) counters.push_back(value_of(round));
  std::optional<std::vector<int64_t>> roots = ops::CallsOf(structure, dense, given->uniforms, counters);
  if (!roots) return false;
  forests_.push_back(
      std::make_unique<Forest>(Forest{.loop = &loop,
                                      .function = &program_.functions.at(found->second->function),
                                      .roots = *std::move(roots)}));
  return true;
}

void RecursionRunner::LeaveLoop(const Block& loop) {
  if (!forests_.empty() && forests_.back()->loop == &loop) forests_.pop_back();
}

Result<std::optional<RecursionRunner::Evaluation>> RecursionRunner::Evaluate(
    const Function& function, const std::vector<int64_t>& roots, Frame* callee) {
  Known& known = KnownOf(function);
  compiler::ClassContext context;
  context.element_type = options_.element_type;
  context.disabled.insert(options_.disabled_passes.begin(), options_.disabled_passes.end());
  std::map<std::string, Distribution> wanted;
  std::string sizes;
  for (const Parameter& parameter : function.parameters) {
    const Variable* const variable = callee->Find(parameter.name);
    if (variable == nullptr || variable->info.data_type == DataType::kList)
      return std::optional<Evaluation>();
    if (variable->info.IsTabular() && options_.ranks > 1 && !variable->distribution.IsEach())
      wanted[parameter.name] = Distribution::Each();
    if (parameter.name == NameOfNode(known.found, function)) continue;
    compiler::LiveIn of_parameter = LiveInOf(*variable);
    AppendType(of_parameter.info, &sizes);
    if (of_parameter.value) sizes += of_parameter.value->ToLiteral();
    context.parameters[parameter.name] = std::move(of_parameter);
  }
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, callee));
  if (known.sizes != sizes) {
    known.bodies.clear();
    known.sizes = std::move(sizes);
  }
  std::map<std::string, Value> parameters;
  for (const auto& [name, variable] : callee->variables()) parameters[name] = variable.value;
  std::optional<Evaluation> evaluation;
  HEDDLE_RETURN_IF_ERROR(
      blocks_.RunBeside([&](const ops::KernelSource& kernels, ops::KernelContext& kernel_context) -> Status {
        const ops::FindBody find_body = [&](const ops::Linearized::Class& node_class,
                                            const std::vector<ValueInfo>& children) {
          std::lock_guard lock(mutex_);
          return BodyOf(&known, function, node_class, children, context);
        };
        const Work work = {
            .find_body = find_body, .parameters = parameters, .kernels = kernels, .context = kernel_context};
        HEDDLE_ASSIGN_OR_RETURN(evaluation, EvaluateParts(&known, function, roots, *callee, work));
        return OkStatus();
      }));
  return evaluation;
}

// Several roots are shared out over the threads: each goes through the levels of its own trees and waits for
// nobody. A single root has the threads within its operators.
Result<std::optional<RecursionRunner::Evaluation>> RecursionRunner::EvaluateParts(
    Known* known, const Function& function, const std::vector<int64_t>& roots, const Frame& callee,
    const Work& work) {
  const size_t count = std::min<size_t>(static_cast<size_t>(work.context.threads), roots.size() / kFewRoots);
  Evaluation evaluation;
  for (size_t part = 0; part < std::max<size_t>(count, 1); ++part) {
    const size_t parts = std::max<size_t>(count, 1);
    const std::vector<int64_t> own(
        roots.begin() + static_cast<std::ptrdiff_t>(roots.size() * part / parts),
        roots.begin() + static_cast<std::ptrdiff_t>(roots.size() * (part + 1) / parts));
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const ops::Linearized> structure,
                            StructureOf(*known, function, own, callee));
    if (structure == nullptr) {
      SayWhy(known, function, "its structure holds what only calls can tell");
      return std::optional<Evaluation>();
    }
    for (const int32_t place : structure->roots) evaluation.roots.push_back({part, place});
    evaluation.parts.push_back({std::move(structure), {}});
  }
  while (alone_.size() < evaluation.parts.size()) alone_.push_back(std::make_unique<ops::Arena>(1));
  std::vector<Status> failed(evaluation.parts.size());
  std::atomic<bool> is_refused = false;
  const auto evaluate = [&](size_t part) {
    failed[part] = WithinMemory("variables", [&]() -> Status {
      HEDDLE_ASSIGN_OR_RETURN(std::optional<ops::NodeResults> results,
                              ops::EvaluateRecursion(*evaluation.parts[part].structure, work.find_body,
                                                     work.parameters, work.kernels, work.context, weights_));
      if (results)
        evaluation.parts[part].results = *std::move(results);
      else
        is_refused = true;
      return OkStatus();
    });
  };
  if (evaluation.parts.size() == 1) {
    evaluate(0);
  } else {
    ops::ParallelFor(static_cast<int64_t>(evaluation.parts.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto part = static_cast<size_t>(begin); part < static_cast<size_t>(end); ++part)
        alone_[part]->Execute([&] { evaluate(part); });
    });
  }
  for (const Status& status : failed) HEDDLE_RETURN_IF_ERROR(status);
  if (!is_refused) return std::optional<Evaluation>(std::move(evaluation));
  SayWhy(known, function, "results differ in size from node to node, or hold large integers (C7)");
  return std::optional<Evaluation>();
}

Status RecursionRunner::TakeResults(const Function& function, const Evaluation& evaluation, size_t root,
                                    Frame* callee) const {
  const auto& [part, place] = evaluation.roots[root];
  const ops::NodeResults& results = evaluation.parts[part].results;
  for (size_t i = 0; i < function.results.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(Value result,
                            WithinMemory("variables", [&, at = place] { return results.At(i, at); }));
    if (result.IsScalar()) {
      callee->SetScalar(function.results[i].name,
                        AsDeclared(result.scalar().AsDouble(), function.results[i].value_type));
      continue;
    }
    Variable variable;
    variable.info = results.infos[i];
    variable.distribution = options_.ranks > 1 ? Distribution::Each() : Distribution::One();
    variable.value = std::move(result);
    callee->Set(function.results[i].name, std::move(variable));
  }
  return OkStatus();
}

Result<std::shared_ptr<const ops::Linearized>> RecursionRunner::StructureOf(const Known& known,
                                                                            const Function& function,
                                                                            const std::vector<int64_t>& roots,
                                                                            const Frame& callee) {
  const std::shared_ptr<const ops::Linearized> none;
  const ops::StructureProgram& program = known.found.recursion.structure;
  std::optional<Given> given = GivenTo(program, callee);
  if (!given) return none;
  for (auto kept = structures_.begin(); kept != structures_.end(); ++kept) {
    if (kept->function != &function || kept->roots != roots || kept->given.uniforms != given->uniforms ||
        !std::equal(kept->given.matrices.begin(), kept->given.matrices.end(), given->matrices.begin(),
                    given->matrices.end(), IsSameValue))
      continue;
    structures_.splice(structures_.begin(), structures_, kept);
    return structures_.front().linearized;
  }
  std::vector<Matrix> dense;
  for (const Value& matrix : given->matrices) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells, ToDense(matrix.matrix()));
    dense.push_back(std::move(cells));
  }
  HEDDLE_ASSIGN_OR_RETURN(std::optional<ops::VisitedStructure> visited,
                          ops::VisitStructure(program, dense, given->uniforms, roots, kMostDecisions));
  if (!visited) return none;
  HEDDLE_ASSIGN_OR_RETURN(ops::Linearized linearized, ops::Linearize(*std::move(visited), function.name));
  structures_.push_front({.function = &function,
                          .given = *std::move(given),
                          .roots = roots,
                          .linearized = std::make_shared<const ops::Linearized>(std::move(linearized))});
  if (structures_.size() > kMostStructures) structures_.pop_back();
  return structures_.front().linearized;
}

Result<std::shared_ptr<const ops::RecursiveBody>> RecursionRunner::BodyOf(
    Known* known, const Function& function, const ops::Linearized::Class& node_class,
    const std::vector<ValueInfo>& children, const compiler::ClassContext& context) {
  std::string results;
  for (const ValueInfo& child : children) AppendType(child, &results);
  const auto [found, is_new] = known->bodies.try_emplace({node_class.path, results});
  if (!is_new) return found->second;
  if (known->bodies.size() > kMostClasses) {
    known->bodies.clear();
    return std::shared_ptr<const ops::RecursiveBody>();
  }
  compiler::ClassContext of_class = context;
  of_class.children = children;
  for (size_t i = 0; i < children.size(); ++i)
    if (children[i].IsScalar() && function.results[i].value_type == ValueType::kBoolean)
      of_class.children[i].value_type = ValueType::kBoolean;
  std::string why;
  const compiler::Recursion& recursion = known->found.recursion;
  const std::optional<compiler::ClassGraph> graph =
      compiler::JoinBlocks(recursion, function, node_class.path, of_class, &why);
  std::optional<ops::RecursiveBody> body;
  if (graph) body = compiler::BatchOperators(*graph, of_class, &why);
  if (!body) {
    SayWhy(known, function, why);
    return std::shared_ptr<const ops::RecursiveBody>();
  }
  found->second = std::make_shared<const ops::RecursiveBody>(*std::move(body));
  return found->second;
}

}  // namespace heddle::cluster
