// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/recursion_kernels.h"

#include <optional>
#include <utility>

#include "cluster/session/recursion_texts.h"
#include "core/memory/counted_heap.h"
#include "ops/recursion/recursive_operator.h"

namespace heddle::cluster {

using Attributes = ops::RecursiveAttributes;

RecursionKernels::RecursionKernels(const Program& program, const SessionOptions& options,
                                   const ops::KernelSource& kernels)
    : program_(program), kernels_(kernels), bodies_(program, options), adjoints_(options, bodies_, kernels) {}

RecursionKernels::~RecursionKernels() = default;

Status RecursionKernels::Run(const ops::KernelCall& call, std::span<Value> results) const {
  const bool is_call = call.node.Is(ops::kRecursive) && call.phase != Phase::kFinish;
  const bool is_forward = call.node.Is(ops::kRecursiveForward) && call.phase != Phase::kFinish;
  if (!is_call && !is_forward && !call.node.Is(ops::kRecursiveBackward)) return kernels_.Run(call, results);
  const std::string& key = call.node.Text(Attributes::kFunction);
  const auto function = program_.functions.find(key);
  if (function == program_.functions.end())
    return Internal("a plan calls the function '{}', which is missing", key);
  if (!is_call && !is_forward) return adjoints_.RunBackward(call, function->second, results);
  HEDDLE_ASSIGN_OR_RETURN(
      results[0], is_call ? RowsOf(call, function->second) : adjoints_.RunForward(call, function->second));
  return OkStatus();
}

Result<Matrix> RecursionKernels::RowsOf(const ops::KernelCall& call, const Function& function) const {
  const Matrix& column = call.inputs[0]->matrix();
  std::vector<int64_t> roots;
  for (int64_t i = 0; i < column.rows(); ++i) roots.push_back(static_cast<int64_t>(column.At(i, 0)));
  const Result<RecursionParts> parts =
      roots.empty() ? RecursionParts(std::vector<RecursionPart>())
                    : Evaluate(function, roots, bodies_.InputsOf(function, call, /*first=*/1), call.context);
  return RowsOfRoots(call, call.row_begin, column.rows(), parts);
}

Result<RecursionParts> RecursionKernels::Evaluate(const Function& function, const std::vector<int64_t>& roots,
                                                  const Frame& inputs, ops::KernelContext& context) const {
  std::string sizes;
  const compiler::ClassContext of_classes = bodies_.ContextOf(function, inputs, &sizes);
  const ops::FindBody find_body = [&](const ops::Linearized::Class& node_class,
                                      const std::vector<ValueInfo>& children) {
    return bodies_.BodyOf(function, sizes, node_class, children, of_classes);
  };
  std::map<std::string, Value> parameters;
  for (const auto& [name, input] : inputs.variables()) parameters[name] = input.value;
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ops::Linearized> structure,
                          bodies_.StructureOf(function, roots, inputs));
  if (structure == nullptr) return RecursionParts();
  std::optional<ops::NodeResults> results;
  HEDDLE_RETURN_IF_ERROR(WithinMemory("variables", [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(results, ops::EvaluateRecursion(*structure, find_body, parameters, kernels_,
                                                            context, bodies_.weights()));
    return OkStatus();
  }));
  if (!results) {
    bodies_.SayWhy(function, "results differ in size from node to node, or hold large integers (C7)");
    return RecursionParts();
  }
  bodies_.CountForm(TextOfForm(function.name, results->parts));
  std::vector<RecursionPart> parts;
  parts.push_back({structure, *std::move(results)});
  return RecursionParts(std::move(parts));
}

}  // namespace heddle::cluster
