// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/recursion_kernels.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cluster/session/direct_program.h"
#include "cluster/session/recursion_texts.h"
#include "compiler/recursion/class_body.h"
#include "core/environment/log.h"
#include "core/memory/counted_heap.h"
#include "core/programs/text_format.h"
#include "ops/recursion/recursive_operator.h"

namespace heddle::cluster {
namespace {

using Attributes = ops::RecursiveAttributes;

// Bodies of a function; more ways through a function, or sizes, than that and all are made again.
constexpr size_t kMostBodies = 4096;

}  // namespace

struct RecursionKernels::Known {
  compiler::Recognition found;
  std::atomic<bool> was_told = false;
  // By the sizes of the parameters, the way of the class and what the function's results are.
  std::map<std::tuple<std::string, std::vector<bool>, std::string>, std::shared_ptr<const ops::RecursiveBody>>
      bodies;
};

struct RecursionKernels::Evaluation {
  std::shared_ptr<const ops::Linearized> structure;
  ops::NodeResults results;
};

RecursionKernels::RecursionKernels(const Program& program, const SessionOptions& options,
                                   const ops::KernelSource& kernels)
    : program_(program), options_(options), kernels_(kernels) {}

RecursionKernels::~RecursionKernels() = default;

RecursionKernels::Known& RecursionKernels::KnownOf(const Function& function) const {
  std::lock_guard lock(known_mutex_);
  std::unique_ptr<Known>& known = known_[&function];
  if (known == nullptr) {
    known = std::make_unique<Known>();
    for (const auto& [key, candidate] : program_.functions)
      if (&candidate == &function) known->found = compiler::Recognise(key, function);
  }
  return *known;
}

std::vector<std::string> RecursionKernels::Texts() const {
  std::lock_guard lock(bodies_mutex_);
  return texts_;
}

std::map<std::string, int64_t> RecursionKernels::Forms() const {
  std::lock_guard lock(bodies_mutex_);
  return forms_;
}

const compiler::Recognition& RecursionKernels::FoundAt(const Function& function) const {
  return KnownOf(function).found;
}

void RecursionKernels::SayWhy(const Function& function, const std::string& why) const {
  if (KnownOf(function).was_told.exchange(true) || options_.rank != 0) return;
  HEDDLE_LOG(kWarning, "a structural recursion is interpreted", {"function", function.name}, {"why", why});
}

Status RecursionKernels::Run(const ops::KernelCall& call, std::span<Value> results) const {
  if (call.phase == Phase::kFinish || !call.node.Is(ops::kRecursive)) return kernels_.Run(call, results);
  const auto function = program_.functions.find(call.node.Text(Attributes::kFunction));
  if (function == program_.functions.end())
    return Internal("a plan calls the function '{}', which is missing",
                    call.node.Text(Attributes::kFunction));
  HEDDLE_ASSIGN_OR_RETURN(results[0], RowsOf(call, function->second, call.phase == Phase::kPartial));
  return OkStatus();
}

// numbered: rows begin with the numbers of their roots among all.
Result<Matrix> RecursionKernels::RowsOf(const ops::KernelCall& call, const Function& function,
                                        bool numbered) const {
  const Matrix& column = call.inputs[0]->matrix();
  std::vector<int64_t> roots;
  for (int64_t i = 0; i < column.rows(); ++i) roots.push_back(static_cast<int64_t>(column.At(i, 0)));
  Frame inputs;
  size_t next = 1;
  for (const std::string& name : FoundAt(function).recursion.Inputs(function)) {
    Variable parameter;
    parameter.value = *call.inputs[next];
    parameter.info = call.input_infos[next++];
    inputs.Set(name, std::move(parameter));
  }
  const int64_t width = call.node.FindAttribute(Attributes::kWidth)->AsInteger();
  const int64_t first = numbered ? 1 : 0;
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(column.rows(), first + width));
  std::fill(rows.mutable_data(), rows.mutable_data() + rows.cells(), 0.0);
  Result<std::optional<Evaluation>> evaluation = roots.empty()
                                                     ? std::optional<Evaluation>(Evaluation())
                                                     : Evaluate(function, roots, inputs, call.context);
  if (!evaluation.ok() && (!call.node.FindAttribute(Attributes::kMayFail)->AsBoolean() ||
                           evaluation.status().code() == StatusCode::kCancelled))
    return evaluation.status();
  double* row = rows.mutable_data();
  const auto begin_row = [&] {
    if (numbered)
      row[0] = static_cast<double>(call.row_begin) +
               static_cast<double>((row - rows.data<double>()) / rows.columns());
  };
  if (!evaluation.ok() || !*evaluation) {
    for (int64_t i = 0; i < rows.rows(); ++i, row += rows.columns()) {
      begin_row();
      row[first] = ops::kLeft;
    }
    return rows;
  }
  for (const int32_t place : (*evaluation)->structure->roots) {
    begin_row();
    int64_t at = first + 1;
    for (const Matrix& cells : (*evaluation)->results.rows) {
      if (at + cells.columns() > rows.columns())
        return Internal("a recursion has more cells than its plan says");
      for (int64_t j = 0; j < cells.columns(); ++j) row[at++] = cells.At(place, j);
    }
    row += rows.columns();
  }
  return rows;
}

compiler::ClassContext RecursionKernels::ContextOf(const Function& function, const Frame& inputs,
                                                   std::string* sizes) const {
  compiler::ClassContext context;
  context.element_type = options_.element_type;
  context.disabled.insert(options_.disabled_passes.begin(), options_.disabled_passes.end());
  context.fusion = options_.fusion;
  context.pushes_down = true;
  for (const std::string& name : FoundAt(function).recursion.Inputs(function)) {
    const Variable* const variable = inputs.Find(name);
    if (variable == nullptr) continue;
    compiler::LiveIn known = LiveInOf(*variable);
    AppendType(known.info, sizes);
    if (known.value) *sizes += known.value->ToLiteral();
    context.parameters[name] = std::move(known);
  }
  return context;
}

Result<std::optional<std::vector<ValueInfo>>> RecursionKernels::ResultsAt(const Function& function,
                                                                          int64_t root,
                                                                          const Frame& inputs) const {
  const std::optional<std::vector<ValueInfo>> none;
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ops::Linearized> structure,
                          StructureOf(function, {root}, inputs));
  if (structure == nullptr || structure->batches.empty()) return none;
  std::string sizes;
  const compiler::ClassContext context = ContextOf(function, inputs, &sizes);
  const auto first = static_cast<size_t>(structure->batches.front().node_class);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ops::RecursiveBody> body,
                          BodyOf(function, sizes, structure->classes[first], {}, context));
  if (body == nullptr) return none;
  std::optional<std::vector<ValueInfo>> results = ops::ResultsOf(*body);
  if (!results) SayWhy(function, "results differ in size from node to node (C7)");
  return results;
}

Result<std::optional<RecursionKernels::Evaluation>> RecursionKernels::Evaluate(
    const Function& function, const std::vector<int64_t>& roots, const Frame& inputs,
    ops::KernelContext& context) const {
  std::string sizes;
  const compiler::ClassContext of_classes = ContextOf(function, inputs, &sizes);
  const ops::FindBody find_body = [&](const ops::Linearized::Class& node_class,
                                      const std::vector<ValueInfo>& children) {
    return BodyOf(function, sizes, node_class, children, of_classes);
  };
  std::map<std::string, Value> parameters;
  for (const auto& [name, input] : inputs.variables()) parameters[name] = input.value;
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ops::Linearized> structure,
                          StructureOf(function, roots, inputs));
  if (structure == nullptr) return std::optional<Evaluation>();
  std::optional<ops::NodeResults> results;
  HEDDLE_RETURN_IF_ERROR(WithinMemory("variables", [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(
        results, ops::EvaluateRecursion(*structure, find_body, parameters, kernels_, context, weights_));
    return OkStatus();
  }));
  if (!results) {
    SayWhy(function, "results differ in size from node to node, or hold large integers (C7)");
    return std::optional<Evaluation>();
  }
  {
    std::lock_guard lock(bodies_mutex_);
    ++forms_[TextOfForm(function.name, results->parts)];
  }
  return std::optional(Evaluation{structure, *std::move(results)});
}

Result<std::shared_ptr<const ops::Linearized>> RecursionKernels::StructureOf(
    const Function& function, const std::vector<int64_t>& roots, const Frame& inputs) const {
  std::string why;
  HEDDLE_ASSIGN_OR_RETURN(
      std::shared_ptr<const ops::Linearized> structure,
      structures_.Of(function, FoundAt(function).recursion.structure, roots, inputs, &why));
  if (structure == nullptr) SayWhy(function, why);
  return structure;
}

Result<std::shared_ptr<const ops::RecursiveBody>> RecursionKernels::BodyOf(
    const Function& function, const std::string& sizes, const ops::Linearized::Class& node_class,
    const std::vector<ValueInfo>& children, const compiler::ClassContext& context) const {
  Known& known = KnownOf(function);
  std::string results;
  for (const ValueInfo& child : children) AppendType(child, &results);
  std::lock_guard lock(bodies_mutex_);
  if (known.bodies.size() >= kMostBodies) known.bodies.clear();
  std::shared_ptr<const ops::RecursiveBody>& kept = known.bodies[{sizes, node_class.path, results}];
  if (kept != nullptr) return kept;
  compiler::ClassContext of_class = context;
  of_class.children = children;
  for (size_t i = 0; i < children.size(); ++i)
    if (children[i].IsScalar() && function.results[i].value_type == ValueType::kBoolean)
      of_class.children[i].value_type = ValueType::kBoolean;
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
  texts_.push_back(TextOfBody(function.name, node_class.calls, kept, weights_));
  return kept;
}

}  // namespace heddle::cluster
