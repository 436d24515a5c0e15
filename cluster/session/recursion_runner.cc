// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/recursion_runner.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cluster/session/block_runner.h"
#include "cluster/session/structure_inputs.h"
#include "compiler/optimize/pass.h"
#include "core/hash.h"
#include "core/memory/counted_heap.h"
#include "core/programs/text_format.h"
#include "ops/elementwise/single_precision.h"
#include "ops/recursion/recursive_operator.h"

namespace heddle::cluster {
namespace {

using Attributes = ops::RecursiveAttributes;

// Graphs kept; one more forgets them all. Numbers of roots that change from call to call give new ones.
constexpr size_t kMostGraphs = 1024;
// Rounds of a loop that are one forest.
constexpr uint64_t kMostRoots = 1 << 20;
// Variables of a plan that no script has.
constexpr const char* kRoots = "%recursion.roots";
constexpr const char* kRows = "%recursion.rows";

const std::string& NameOfNode(const compiler::Recognition& found, const Function& function) {
  return function.parameters[found.recursion.node_parameter].name;
}

// What has to be exchanged for every rank to read the matrices.
std::map<std::string, Distribution> Scattered(const std::vector<std::string>& matrices, const Frame& frame) {
  std::map<std::string, Distribution> wanted;
  for (const std::string& name : matrices) {
    const Variable* const variable = frame.Find(name);
    if (variable != nullptr && variable->info.IsTabular() && !variable->distribution.IsEach())
      wanted[name] = Distribution::Each();
  }
  return wanted;
}

Variable ColumnOf(const std::vector<int64_t>& numbers, Matrix column) {
  std::transform(numbers.begin(), numbers.end(), column.mutable_data(),
                 [](int64_t number) { return static_cast<double>(number); });
  Variable variable;
  variable.info = ValueInfo::OfMatrix(column.shape());
  variable.value = std::move(column);
  return variable;
}

int64_t CellsOf(const ValueInfo& info) { return info.IsScalar() ? 1 : info.shape.rows * info.shape.columns; }

}  // namespace

struct RecursionRunner::Evaluation {
  std::vector<ValueInfo> infos;  // Of the results at one root.
  Matrix rows;                   // As the operator "recursive" makes them.
};

struct RecursionRunner::Forest {
  const Block* loop = nullptr;
  const Block* call = nullptr;  // The block that makes the calls.
  const Function* function = nullptr;
  std::vector<int64_t> roots;  // of the rounds
  bool has_failed = false;
  std::optional<Evaluation> evaluation;
  std::unordered_map<int64_t, int64_t> number_of;  // of each root among the roots
};

RecursionRunner::RecursionRunner(const Program& program, const SessionOptions& options, BlockRunner& blocks)
    : program_(program),
      options_(options),
      blocks_(blocks),
      lists_(options),
      is_on_(std::find(options.disabled_passes.begin(), options.disabled_passes.end(),
                       compiler::kBatchedRecursion) == options.disabled_passes.end()) {}

RecursionRunner::~RecursionRunner() = default;

RecursionKernels& RecursionRunner::kernels() const { return blocks_.recursions(); }

bool RecursionRunner::Knows(const Function& function) {
  if (!is_on_) return false;
  const compiler::Recognition& found = kernels().FoundAt(function);
  return found.is_recognised && !found.recursion.keeps;
}

Result<bool> RecursionRunner::Run(const Block& call, const Function& function, Frame* callee) {
  for (auto forest = forests_.rbegin(); forest != forests_.rend(); ++forest) {
    if ((*forest)->call != &call) continue;
    HEDDLE_ASSIGN_OR_RETURN(const bool has_run, RunInForest(forest->get(), function, callee));
    if (has_run) return true;
    break;
  }
  const std::optional<int64_t> root = NodeIn(NameOfNode(kernels().FoundAt(function), function), *callee);
  if (!root) return false;
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<Evaluation> evaluation,
                          Evaluate(call, function, {*root}, /*may_fail=*/false, callee));
  if (!evaluation) return false;
  HEDDLE_RETURN_IF_ERROR(TakeResults(function, *evaluation, 0, callee));
  return true;
}

// The first call computes the roots of all rounds; what else it passes is the same in all of them
// (compiler::FindRoots). Where one of them fails, or needs the interpreter, each round comes to it by itself.
Result<bool> RecursionRunner::RunInForest(Forest* forest, const Function& function, Frame* callee) {
  if (forest->has_failed) return false;
  const std::optional<int64_t> node = NodeIn(NameOfNode(kernels().FoundAt(function), function), *callee);
  if (!node) return false;
  if (!forest->evaluation) {
    HEDDLE_ASSIGN_OR_RETURN(forest->evaluation, Evaluate(*forest->loop, function, forest->roots,
                                                         /*may_fail=*/true, callee));
    forest->has_failed = !forest->evaluation;
    if (forest->has_failed) return false;
    for (size_t i = 0; i < forest->roots.size(); ++i)
      forest->number_of.emplace(forest->roots[i], static_cast<int64_t>(i));
  }
  const auto number = forest->number_of.find(*node);
  if (number == forest->number_of.end()) return false;
  HEDDLE_RETURN_IF_ERROR(TakeResults(function, *forest->evaluation, number->second, callee));
  return true;
}

Result<bool> RecursionRunner::EnterLoop(const Block& loop,
                                        const std::function<int64_t(uint64_t round)>& value_of,
                                        uint64_t rounds, Frame* frame) {
  if (!is_on_) return false;
  const auto [found, is_new] = loops_.try_emplace(&loop);
  if (is_new)
    found->second = compiler::FindRoots(loop, [this](const std::string& name) -> std::string {
      const auto function = program_.functions.find(name);
      if (function == program_.functions.end() || !Knows(function->second)) return "";
      return NameOfNode(kernels().FoundAt(function->second), function->second);
    });
  if (!found->second) return false;
  // A loop that is no forest hides the one around it that is the same text.
  auto forest = std::make_unique<Forest>(Forest{.loop = &loop,
                                                .call = found->second->call,
                                                .function = &program_.functions.at(found->second->function),
                                                .has_failed = true});
  const bool is_sized = rounds >= 2 && rounds <= kMostRoots;
  std::optional<std::vector<int64_t>> roots;
  if (is_sized) {
    const ops::StructureProgram& structure = found->second->structure;
    const std::map<std::string, Distribution> wanted = Scattered(structure.matrices, *frame);
    if (options_.ranks > 1 && !wanted.empty()) HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, frame));
    roots = RootsOf(structure, value_of, rounds, *frame);
  }
  forest->has_failed = !roots;
  if (roots) forest->roots = *std::move(roots);
  forests_.push_back(std::move(forest));
  return !forests_.back()->has_failed;
}

void RecursionRunner::LeaveLoop(const Block& loop) {
  if (!forests_.empty() && forests_.back()->loop == &loop) forests_.pop_back();
}

// Rank 0 finds what the results are, where nobody knows it yet: it has the structure.
Result<std::optional<std::vector<ValueInfo>>> RecursionRunner::ResultsOf(const Function& function,
                                                                         int64_t root,
                                                                         const std::string& sizes,
                                                                         Frame* callee) {
  if (results_.size() >= kMostGraphs) results_.clear();
  const auto [kept, is_new] = results_.try_emplace({&function, sizes});
  if (!is_new) return kept->second;
  const auto forget = [&, at = kept] { results_.erase(at); };
  std::map<std::string, Distribution> wanted;
  for (const std::string& name : kernels().FoundAt(function).recursion.structure.matrices)
    if (const Variable* const matrix = callee->Find(name);
        matrix != nullptr && matrix->distribution.IsSplit())
      wanted[name] = Distribution::Each();
  if (!wanted.empty())
    if (Status status = blocks_.Exchange(wanted, callee); !status.ok()) {
      forget();
      return status;
    }
  Status failed;
  const uint64_t key = FoldHash(FoldHash(1, function.name), sizes);
  const Result<std::string> text = blocks_.plans().Share(key, blocks_.guard(), [&] {
    std::string found;
    failed = WithinMemory("variables", [&]() -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const std::optional<std::vector<ValueInfo>> infos,
                              kernels().ResultsAt(function, root, *callee));
      if (infos)
        for (const ValueInfo& info : *infos) AppendType(info, &(found += " "));
      return OkStatus();
    });
    return failed.ok() ? found : std::string("error");
  });
  if (!text.ok() || *text == "error") {
    // The plan meets it, too, and says where: of whatever size its results are.
    forget();
    if (!text.ok()) return text.status();
    return std::optional<std::vector<ValueInfo>>(
        std::vector<ValueInfo>(function.results.size(), ValueInfo::OfMatrix({1, 1})));
  }
  if (text->empty()) return kept->second;
  TextReader reader(*text, "results");
  kept->second.emplace();
  while (!reader.AtEnd()) kept->second->push_back(reader.Type());
  HEDDLE_RETURN_IF_ERROR(reader.status());
  return kept->second;
}

// Rows of the roots that the frame has, of the parameters that it has.
Graph RecursionRunner::GraphOf(const Block& call, const Function& function,
                               const std::vector<ValueInfo>& infos, bool may_fail,
                               const Frame& callee) const {
  Graph graph;
  const auto add_variable = [&](const std::string& name) {
    Node variable = {.op = "variable", .info = callee.Find(name)->info, .position = call.position};
    variable.SetAttribute("name", name);
    return graph.Add(std::move(variable));
  };
  Node recursive = {.op = std::string(ops::kRecursive), .position = call.position};
  recursive.inputs.push_back(add_variable(kRoots));
  for (const std::string& name : kernels().FoundAt(function).recursion.Inputs(function))
    recursive.inputs.push_back(add_variable(name));
  const auto key = std::find_if(program_.functions.begin(), program_.functions.end(),
                                [&](const auto& entry) { return &entry.second == &function; });
  int64_t width = 1;
  for (const ValueInfo& info : infos) width += CellsOf(info);
  recursive.SetAttribute(Attributes::kFunction, key->first);
  recursive.SetAttribute(Attributes::kWidth, width);
  recursive.SetAttribute(Attributes::kMayFail, may_fail);
  recursive.SetAttribute(Attributes::kEvenRows, true);
  recursive.info = ValueInfo::OfMatrix({callee.Find(kRoots)->info.shape.rows, width});
  Node rows = {.op = "assign", .info = recursive.info, .position = call.position};
  rows.inputs = {graph.Add(std::move(recursive))};
  rows.SetAttribute("name", std::string(kRows));
  graph.Add(std::move(rows));
  return graph;
}

Result<std::optional<RecursionRunner::Evaluation>> RecursionRunner::Evaluate(
    const Block& call, const Function& function, const std::vector<int64_t>& roots, bool may_fail,
    Frame* callee) {
  const std::optional<Evaluation> none;
  const compiler::Recursion& recursion = kernels().FoundAt(function).recursion;
  HEDDLE_ASSIGN_OR_RETURN(const bool has_elements, lists_.TakeElements(recursion, callee));
  if (!has_elements) {
    kernels().SayWhy(function, "a list has not the elements that nodes read, or they differ in size");
    return none;
  }
  std::string sizes;
  for (const std::string& name : recursion.Inputs(function)) {
    const Variable* const variable = callee->Find(name);
    if (variable == nullptr || variable->info.data_type == DataType::kList) return none;
    AppendType(variable->info, &sizes);
    if (variable->info.IsScalar() && !compiler::IsLongText(variable->value.scalar()))
      sizes += variable->value.scalar().ToLiteral();
  }
  HEDDLE_ASSIGN_OR_RETURN(std::optional<std::vector<ValueInfo>> infos,
                          ResultsOf(function, roots[0], sizes, callee));
  if (!infos) return none;

  HEDDLE_ASSIGN_OR_RETURN(Matrix column, WithinMemory("variables", [&] {
                            return Matrix::Dense(static_cast<int64_t>(roots.size()), 1);
                          }));
  callee->Set(kRoots, ColumnOf(roots, std::move(column)));
  std::string of_plan = fmt::format("{} {} {}", roots.size(), may_fail, sizes);
  for (const ValueInfo& info : *infos) AppendType(info, &of_plan);
  if (graphs_.size() >= kMostGraphs) graphs_.clear();
  std::optional<Graph>& graph = graphs_[{&call, of_plan}];
  if (!graph) graph = GraphOf(call, function, *infos, may_fail, *callee);
  const uint64_t history = FoldHash(1, of_plan);
  const Status status = blocks_.RunForAll(call.id, *graph, history, {kRows}, callee);
  callee->Erase(kRoots);
  HEDDLE_RETURN_IF_ERROR(status);
  HEDDLE_ASSIGN_OR_RETURN(Variable made, callee->Take(kRows));
  Evaluation evaluation = {.infos = *std::move(infos), .rows = made.value.matrix()};
  for (int64_t i = 0; i < evaluation.rows.rows(); ++i)
    if (evaluation.rows.At(i, 0) == ops::kLeft) {
      if (!may_fail) kernels().SayWhy(function, "another worker found what only calls can tell");
      return none;
    }
  return std::optional<Evaluation>(std::move(evaluation));
}

Status RecursionRunner::TakeResults(const Function& function, const Evaluation& evaluation, int64_t row,
                                    Frame* callee) const {
  const double* cells = evaluation.rows.data<double>() + row * evaluation.rows.columns() + 1;
  for (size_t i = 0; i < function.results.size(); ++i) {
    const ValueInfo& info = evaluation.infos[i];
    const std::string& name = function.results[i].name;
    if (info.IsScalar()) {
      callee->Set(name, VariableOf(Scalar(*cells++), function.results[i].value_type, options_.ranks));
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, WithinMemory("variables", [&]() -> Result<Matrix> {
                              HEDDLE_ASSIGN_OR_RETURN(Matrix doubles,
                                                      Matrix::Dense(info.shape.rows, info.shape.columns));
                              std::copy(cells, cells + CellsOf(info), doubles.mutable_data());
                              if (info.element_type == ElementType::kFloat64) return doubles;
                              return ops::Narrow(doubles);
                            }));
    cells += CellsOf(info);
    callee->Set(name, VariableOf(std::move(result), function.results[i].value_type, options_.ranks));
  }
  return OkStatus();
}

}  // namespace heddle::cluster
