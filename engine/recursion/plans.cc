// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/plans.h"

#include <algorithm>
#include <utility>

#include "core/hash.h"
#include "core/memory/counted_heap.h"
#include "core/programs/text_format.h"
#include "engine/recursion/graph_runner.h"
#include "engine/recursion/structure_inputs.h"
#include "ops/elementwise/single_precision.h"
#include "ops/recursion/recursive_operator.h"
#include "ops/recursion/structure/root_groups.h"

namespace heddle::engine {
namespace {

using Attributes = ops::RecursiveAttributes;

// Graphs that are there at once. Numbers of roots that change from call to call give new ones.
constexpr size_t kMostGraphs = 1024;
// Variables of a plan that no script has.
constexpr const char* kRoots = "%recursion.roots";
constexpr const char* kSlot = "%recursion.place";
constexpr const char* kGiven = "%recursion.given";
constexpr const char* kRows = "%recursion.rows";

Result<Matrix> ColumnOf(const std::vector<int64_t>& numbers) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix column, Matrix::Dense(static_cast<int64_t>(numbers.size()), 1));
  std::transform(numbers.begin(), numbers.end(), column.mutable_data(),
                 [](int64_t number) { return static_cast<double>(number); });
  return column;
}

Result<Matrix> NumberOf(const std::shared_ptr<const RecursionAdjoints::Slot>& slot) {
  return ColumnOf({slot == nullptr ? 0 : slot->number()});
}

Result<Matrix> RowsOf(const std::map<int64_t, Matrix>& groups) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows,
                          Matrix::Dense(static_cast<int64_t>(groups.size()), 1 + ops::kMostRootsOfGroup));
  double* to = rows.mutable_data();
  for (const auto& [number, row] : groups) to = std::copy_n(row.data(), rows.columns(), to);
  return rows;
}

// A row for each root: its group and place, the cells of its adjoints, which are those of these results.
Result<Matrix> RowsOf(const GivenAdjoints& given, const std::vector<size_t>& results) {
  const auto cells_of = [](const Value& value) { return value.IsScalar() ? 1 : value.matrix().cells(); };
  int64_t width = 2;
  for (const size_t result : results) width += cells_of(given.roots[0].of_results[result]);
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(static_cast<int64_t>(given.roots.size()), width));
  double* to = rows.mutable_data();
  for (const GivenAdjoints::OfRoot& root : given.roots) {
    const double* const end = to + width;
    *to++ = static_cast<double>(root.group);
    *to++ = static_cast<double>(root.place);
    for (const size_t result : results) {
      const Value& value = root.of_results[result];
      if (end - to < cells_of(value)) return Internal("adjoints differ in size");
      if (value.IsScalar()) {
        *to++ = value.scalar().AsDouble();
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, ToDense(value.matrix()));
      if (dense.element_type() == ElementType::kFloat64)
        to = std::copy_n(dense.data<double>(), dense.cells(), to);
      else
        to = std::copy_n(dense.data<float>(), dense.cells(), to);
    }
    if (to != end) return Internal("adjoints differ in size");
  }
  return rows;
}

int64_t WidthOf(const RecursionEvaluation& evaluation) {
  int64_t width = 1;
  for (const ValueInfo& info : evaluation.infos) width += ops::CellsOf(info);
  return width;
}

std::string NameOfAdjoint(size_t i) { return fmt::format("%recursion.adjoint{}", i); }

}  // namespace

RecursionPlans::RecursionPlans(const Program& program, const SessionOptions& options, GraphRunner& runner)
    : program_(program),
      options_(options),
      runner_(runner),
      lists_(options),
      results_(kMostGraphs),
      graphs_(kMostGraphs) {}

const RecursionBodies& RecursionPlans::bodies() const { return runner_.recursions().bodies(); }

// nullopt where a parameter is none of a plan.
std::optional<std::string> RecursionPlans::SizesOf(const Function& function,
                                                   const VariableTable& callee) const {
  std::string sizes;
  const compiler::Recursion& recursion = bodies().RecognitionOf(function).recursion;
  for (const std::string& name : recursion.Inputs(function)) {
    const Variable* const variable = callee.Find(name);
    if (variable == nullptr || variable->info.data_type == DataType::kList) return std::nullopt;
    AppendType(variable->info, &sizes);
    if (variable->info.IsScalar() && !recursion.free.contains(name) &&
        !compiler::IsLongText(variable->value.scalar()))
      sizes += variable->value.scalar().ToLiteral();
  }
  return sizes;
}

// Rank 0 finds what the results are, where nobody knows it yet: it has the structure.
Result<std::optional<std::vector<ValueInfo>>> RecursionPlans::ResultsOf(const Function& function,
                                                                        int64_t root,
                                                                        const std::string& sizes,
                                                                        VariableTable* callee) {
  const std::pair<const Function*, std::string> key(&function, sizes);
  if (const auto* const found = results_.Find(key)) return *found;
  const compiler::Recursion& recursion = bodies().RecognitionOf(function).recursion;
  std::map<std::string, Distribution> wanted;
  for (const std::string& name : recursion.structure.matrices)
    if (const Variable* const matrix = callee->Find(name);
        matrix != nullptr && matrix->distribution.IsSplit())
      wanted[name] = Distribution::Each();
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(runner_.Exchange(wanted, callee));
  const Result<std::string> shared = runner_.Share(FoldHash(FoldHash(1, function.name), sizes), [&] {
    std::string found;
    const Status status = WithinMemory("variables", [&]() -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const std::optional<std::vector<ValueInfo>> infos,
                              bodies().ResultsAt(function, root, *callee));
      if (infos)
        for (const ValueInfo& info : *infos) AppendType(info, &(found += " "));
      return OkStatus();
    });
    return status.ok() ? found : std::string("error");
  });
  HEDDLE_RETURN_IF_ERROR(shared.status());
  if (*shared == "error") {
    // The plan meets the error, too, and reports it at its place. Sizes of results do not matter then.
    const size_t count = function.results.size() - (recursion.is_forward ? 1 : 0);
    return std::optional<std::vector<ValueInfo>>(std::vector<ValueInfo>(count, ValueInfo::OfMatrix({1, 1})));
  }
  std::optional<std::vector<ValueInfo>> results;
  if (!shared->empty()) {
    TextReader reader(*shared, "results");
    results.emplace();
    while (!reader.AtEnd()) results->push_back(reader.Type());
    HEDDLE_RETURN_IF_ERROR(reader.status());
  }
  return results_.Add(key, std::move(results));
}

const std::string& RecursionPlans::KeyOf(const Function& function) const {
  return std::find_if(program_.functions.begin(), program_.functions.end(),
                      [&](const auto& entry) { return &entry.second == &function; })
      ->first;
}

uint64_t RecursionPlans::GraphKey::Hash() const {
  uint64_t hash = FoldHash(FoldHash(is_backward ? 2 : 1, function), sizes);
  for (const uint64_t number :
       {uint64_t{may_fail}, uint64_t{roots}, uint64_t{groups}, static_cast<uint64_t>(columns)})
    hash = FoldHash(hash, number);
  return hash;
}

// A node whose inputs are variables of the frame.
Node RecursionPlans::OperatorOf(const Block& call, const Function& function, std::string_view op,
                                const std::vector<std::string>& variables, const VariableTable& callee,
                                Graph* graph) const {
  Node recursive = {.op = std::string(op), .position = call.position};
  for (const std::string& name : variables) {
    Node variable = {.op = "variable", .info = callee.Find(name)->info, .position = call.position};
    variable.SetAttribute("name", name);
    recursive.inputs.push_back(graph->Add(std::move(variable)));
  }
  recursive.SetAttribute(Attributes::kFunction, KeyOf(function));
  recursive.SetAttribute(Attributes::kEvenRows, true);
  return recursive;
}

Graph RecursionPlans::ForwardGraph(const Block& call, const Function& function,
                                   const RecursionEvaluation& evaluation, bool may_fail,
                                   const VariableTable& callee) const {
  Graph graph;
  const compiler::Recursion& recursion = bodies().RecognitionOf(function).recursion;
  const bool saves = recursion.is_forward;
  std::vector<std::string> variables = {kRoots};
  if (saves) variables.emplace_back(kSlot);
  for (std::string& name : recursion.Inputs(function)) variables.push_back(std::move(name));
  Node recursive =
      OperatorOf(call, function, saves ? ops::kRecursiveForward : ops::kRecursive, variables, callee, &graph);
  const int64_t width = WidthOf(evaluation);
  const auto roots = static_cast<int64_t>(evaluation.roots.size());
  recursive.SetAttribute(Attributes::kWidth, width);
  recursive.SetAttribute(Attributes::kMayFail, may_fail);
  if (saves) recursive.SetAttribute(Attributes::kRoots, roots);
  recursive.info = ValueInfo::OfMatrix({roots, width});
  Node rows = {.op = "assign", .info = recursive.info, .position = call.position};
  rows.inputs = {graph.Add(std::move(recursive))};
  rows.SetAttribute("name", std::string(kRows));
  graph.Add(std::move(rows));
  return graph;
}

Graph RecursionPlans::BackwardGraph(const Block& call, const Function& function,
                                    const VariableTable& callee) const {
  Graph graph;
  std::vector<std::string> variables = bodies().BackwardInputs(function);
  for (const char* name : {kRoots, kSlot, kGiven}) variables.emplace_back(name);
  Node recursive = OperatorOf(call, function, ops::kRecursiveBackward, variables, callee, &graph);
  const std::vector<std::string>& wanted = bodies().WantedOf(function);
  for (const std::string& name : wanted) {
    const ValueInfo& info = callee.Find(name)->info;
    recursive.results.push_back(ValueInfo::OfMatrix(info.IsScalar() ? Shape{1, 1} : info.shape));
    if (info.IsMatrix()) recursive.results.back().element_type = info.element_type;
  }
  recursive.SetAttribute(Attributes::kWanted, static_cast<int64_t>(wanted.size()));
  recursive.info = ValueInfo::OfTuple();
  const size_t results = recursive.results.size();
  const NodeId tuple = graph.Add(std::move(recursive));
  for (size_t i = 0; i < results; ++i) {
    Node result = ResultOf(graph, tuple, i);
    Node adjoint = {.op = "assign", .info = result.info, .position = call.position};
    adjoint.inputs = {graph.Add(std::move(result))};
    adjoint.SetAttribute("name", NameOfAdjoint(i));
    graph.Add(std::move(adjoint));
  }
  return graph;
}

// The backward sweep reads the parameters again: they are brought to all ranks for both.
Result<std::shared_ptr<const SharedParameters>> RecursionPlans::ShareParameters(const Function& function,
                                                                                VariableTable* callee) {
  std::map<std::string, Distribution> wanted;
  const std::vector<std::string> names = bodies().RecognitionOf(function).recursion.Inputs(function);
  for (const std::string& name : names)
    if (const Variable& parameter = *callee->Find(name);
        parameter.info.IsTabular() && !parameter.distribution.IsEach())
      wanted[name] = Distribution::Each();
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(runner_.Exchange(wanted, callee));
  auto shared = std::make_shared<SharedParameters>();
  shared->ranks = options_.ranks;
  for (const std::string& name : names) shared->variables.Set(name, *callee->Find(name));
  return std::shared_ptr<const SharedParameters>(std::move(shared));
}

// Every rank has it.
void RecursionPlans::SetMatrix(const char* name, Matrix matrix, VariableTable* callee) const {
  callee->Set(name, VariableOf(std::move(matrix), ValueType::kDouble, options_.ranks));
}

const Graph& RecursionPlans::GraphOf(const GraphKey& key, const std::function<Graph()>& make) {
  if (const Graph* const found = graphs_.Find(key)) return *found;
  return graphs_.Add(key, make());
}

Result<std::optional<RecursionEvaluation>> RecursionPlans::Evaluate(const Block& call,
                                                                    const Function& function,
                                                                    const std::vector<int64_t>& roots,
                                                                    bool may_fail, VariableTable* callee) {
  const std::optional<RecursionEvaluation> none;
  const compiler::Recursion& recursion = bodies().RecognitionOf(function).recursion;
  // Derivatives by lists, and by their elements, are those of their calls.
  const std::vector<std::string>& wanted = bodies().WantedOf(function);
  const bool has_list =
      !recursion.elements.empty() ||
      std::any_of(function.parameters.begin(), function.parameters.end(), [&](const Parameter& parameter) {
        return parameter.data_type == DataType::kList &&
               std::find(wanted.begin(), wanted.end(), parameter.name) != wanted.end();
      });
  if (recursion.is_forward && has_list) return none;
  HEDDLE_ASSIGN_OR_RETURN(const bool has_elements, lists_.TakeElements(recursion, callee));
  if (!has_elements) {
    bodies().ReportInterpreted(function,
                               "a list has not the elements that nodes read, or they differ in size");
    return none;
  }
  const std::optional<std::string> sizes = SizesOf(function, *callee);
  if (!sizes) return none;
  HEDDLE_ASSIGN_OR_RETURN(std::optional<std::vector<ValueInfo>> infos,
                          ResultsOf(function, roots[0], *sizes, callee));
  if (!infos) return none;

  RecursionEvaluation evaluation;
  evaluation.roots = roots;
  evaluation.infos = *std::move(infos);
  SavedEvaluation saved;
  if (recursion.is_forward && options_.ranks > 1) {
    HEDDLE_ASSIGN_OR_RETURN(saved.parameters, ShareParameters(function, callee));
  }
  HEDDLE_RETURN_IF_ERROR(WithinMemory("variables", [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, recursion.is_forward ? ops::RowsOfGroups(roots) : ColumnOf(roots));
    SetMatrix(kRoots, rows, callee);
    if (!recursion.is_forward) return OkStatus();
    evaluation.groups = std::move(rows);
    saved.roots = roots;
    evaluation.roots_hash = HashOfRoots(roots);
    saved.slot = runner_.recursions().adjoints().NewSlot();
    HEDDLE_ASSIGN_OR_RETURN(Matrix number, NumberOf(saved.slot));
    SetMatrix(kSlot, std::move(number), callee);
    evaluation.saved = std::make_shared<const SavedEvaluation>(std::move(saved));
    return OkStatus();
  }));
  const GraphKey key = {.call = &call,
                        .function = KeyOf(function),
                        .may_fail = may_fail,
                        .roots = roots.size(),
                        .columns = WidthOf(evaluation),
                        .sizes = *sizes};
  const Graph& graph =
      GraphOf(key, [&] { return ForwardGraph(call, function, evaluation, may_fail, *callee); });
  const Status status = runner_.RunForAll(call.id, graph, key.Hash(), {kRows}, callee);
  callee->Erase(kRoots);
  callee->Erase(kSlot);
  HEDDLE_RETURN_IF_ERROR(status);
  HEDDLE_ASSIGN_OR_RETURN(Variable made, callee->Take(kRows));
  evaluation.rows = made.value.matrix();
  for (int64_t i = 0; i < evaluation.rows.rows(); ++i)
    if (evaluation.rows.At(i, 0) == ops::kInterpreted) {
      if (!may_fail) bodies().ReportInterpreted(function, "another worker found what only calls can tell");
      return none;
    }
  return std::optional<RecursionEvaluation>(std::move(evaluation));
}

Status RecursionPlans::TakeResults(const Function& function, const RecursionEvaluation& evaluation,
                                   size_t root, VariableTable* callee) const {
  const double* cells =
      evaluation.rows.data<double>() + static_cast<int64_t>(root) * evaluation.rows.columns() + 1;
  for (size_t i = 0; i < evaluation.infos.size(); ++i) {
    const ValueInfo& info = evaluation.infos[i];
    const std::string& name = function.results[i].name;
    if (info.IsScalar()) {
      callee->Set(name, VariableOf(Scalar(*cells++), function.results[i].value_type, options_.ranks));
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, WithinMemory("variables", [&]() -> Result<Matrix> {
                              HEDDLE_ASSIGN_OR_RETURN(Matrix doubles,
                                                      Matrix::Dense(info.shape.rows, info.shape.columns));
                              std::copy(cells, cells + ops::CellsOf(info), doubles.mutable_data());
                              if (info.element_type == ElementType::kFloat64) return doubles;
                              return ops::Narrow(doubles);
                            }));
    cells += ops::CellsOf(info);
    callee->Set(name, VariableOf(std::move(result), function.results[i].value_type, options_.ranks));
  }
  return OkStatus();
}

Result<std::vector<Matrix>> RecursionPlans::SweepBack(const Block& call, const Function& forward,
                                                      const GivenAdjoints& given, VariableTable* callee) {
  // Values are those of the way forth. A list of a session of other ranks has not what all of these have.
  const SharedParameters* const shared = given.saved == nullptr ? nullptr : given.saved->parameters.get();
  if (shared != nullptr && shared->ranks == options_.ranks)
    for (const auto& [name, parameter] : shared->variables.variables()) callee->Set(name, parameter);
  const std::optional<std::string> sizes = SizesOf(forward, *callee);
  if (!sizes) return Internal("the derivative of a recursion misses its parameters");
  HEDDLE_RETURN_IF_ERROR(WithinMemory("variables", [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(Matrix groups, RowsOf(given.groups));
    SetMatrix(kRoots, std::move(groups), callee);
    HEDDLE_ASSIGN_OR_RETURN(Matrix number, NumberOf(given.saved == nullptr ? nullptr : given.saved->slot));
    SetMatrix(kSlot, std::move(number), callee);
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, RowsOf(given, bodies().ResultsWithAdjoints(forward)));
    SetMatrix(kGiven, std::move(rows), callee);
    return OkStatus();
  }));
  std::vector<std::string> names;
  for (size_t i = 0; i < bodies().WantedOf(forward).size(); ++i) names.push_back(NameOfAdjoint(i));
  const GraphKey key = {.call = &call,
                        .function = KeyOf(forward),
                        .is_backward = true,
                        .roots = given.roots.size(),
                        .groups = given.groups.size(),
                        .columns = callee->Find(kGiven)->info.shape.columns,
                        .sizes = *sizes};
  const Graph& graph = GraphOf(key, [&] { return BackwardGraph(call, forward, *callee); });
  const Status status = runner_.RunForAll(call.id, graph, key.Hash(), names, callee);
  for (const char* name : {kRoots, kSlot, kGiven}) callee->Erase(name);
  HEDDLE_RETURN_IF_ERROR(status);
  std::vector<Matrix> adjoints;
  for (const std::string& name : names) {
    HEDDLE_ASSIGN_OR_RETURN(Variable made, callee->Take(name));
    adjoints.push_back(made.value.matrix());
  }
  return adjoints;
}

}  // namespace heddle::engine
