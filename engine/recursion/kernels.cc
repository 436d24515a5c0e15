// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/kernels.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"
#include "engine/recursion/texts.h"
#include "ops/recursion/recursive_operator.h"

namespace heddle::engine {

using Attributes = ops::RecursiveAttributes;

namespace {

// The nodes of one evaluation may take this part of the memory that is left. The rest is for the workspaces,
// and for what else runs.
constexpr int64_t kPartOfMemory = 2;

// Cuts the roots, whose nodes take `bytes` together, into groups of roots that follow each other. Roots do
// not see each other: the results have the same bits however they are cut.
std::vector<std::vector<int64_t>> GroupsThatFit(const std::vector<int64_t>& roots,
                                                const ops::Linearized& structure, int64_t bytes) {
  const MemoryBudget& budget = MemoryBudget::Process();
  const int64_t most = std::max<int64_t>((budget.limit() - budget.used()) / kPartOfMemory, 1);
  if (bytes <= most) return {roots};
  const auto nodes = static_cast<double>(structure.nodes.size());
  const double most_nodes = nodes * static_cast<double>(most) / static_cast<double>(bytes);
  std::vector<std::vector<int64_t>> groups(1);
  double in_group = 0;
  for (size_t i = 0; i < roots.size(); ++i) {
    // A shared node belongs to no single root, so every root counts as the same share.
    const auto place = static_cast<size_t>(structure.roots[i]);
    const double of_root =
        structure.is_tree ? structure.subtrees[place] : nodes / static_cast<double>(roots.size());
    if (!groups.back().empty() && in_group + of_root > most_nodes) {
      groups.emplace_back();
      in_group = 0;
    }
    groups.back().push_back(roots[i]);
    in_group += of_root;
  }
  return groups;
}

// Replaces the rows of all nodes by those of the roots.
Status StoreRootsOnly(std::shared_ptr<const ops::Linearized>* structure, ops::NodeResults* results) {
  auto kept = std::make_shared<ops::Linearized>();
  for (Matrix& rows : results->rows) {
    const auto row_bytes = static_cast<size_t>(rows.columns() * BytesOf(rows.element_type()));
    HEDDLE_ASSIGN_OR_RETURN(Matrix of_roots, Matrix::Dense(static_cast<int64_t>((*structure)->roots.size()),
                                                           rows.columns(), rows.element_type()));
    char* to = of_roots.mutable_data<char>();
    for (const int32_t place : (*structure)->roots) {
      std::memcpy(to, rows.data<char>() + static_cast<size_t>(place) * row_bytes, row_bytes);
      to += row_bytes;
    }
    rows = std::move(of_roots);
  }
  results->products.clear();
  kept->roots.resize((*structure)->roots.size());
  std::iota(kept->roots.begin(), kept->roots.end(), 0);
  *structure = std::move(kept);
  return OkStatus();
}

}  // namespace

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
  const std::vector<std::string> names = bodies_.RecognitionOf(function).recursion.Inputs(function);
  const Result<RecursionParts> parts =
      roots.empty() ? RecursionParts(std::vector<RecursionPart>())
                    : Evaluate(function, roots, bodies_.InputsOf(names, call, /*first=*/1), call.context);
  return RowsOfRoots(call, call.row_begin, column.rows(), parts);
}

Result<RecursionParts> RecursionKernels::Evaluate(const Function& function, const std::vector<int64_t>& roots,
                                                  const VariableTable& inputs,
                                                  ops::KernelContext& context) const {
  const BodySetting setting = bodies_.SettingOf(function, inputs);
  const ops::FindBody find_body = [&](const ops::Linearized::Class& node_class,
                                      const std::vector<ValueInfo>& children) {
    return bodies_.BodyOf(function, setting, node_class, children);
  };
  std::map<std::string, Value> parameters;
  for (const auto& [name, input] : inputs.variables()) parameters[name] = input.value;
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const ops::Linearized> structure,
                          bodies_.StructureOf(function, roots, inputs));
  if (structure == nullptr) return RecursionParts();
  std::vector<std::vector<int64_t>> groups = {roots};
  if (roots.size() > 1) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t bytes, ops::BytesOfNodes(*structure, find_body));
    groups = GroupsThatFit(roots, *structure, bytes);
  }
  if (groups.size() > 1) bodies_.CountEvaluation(TextOfGroups(function.name, groups.size()));
  std::vector<RecursionPart> parts;
  for (const std::vector<int64_t>& group : groups) {
    if (groups.size() > 1) {
      HEDDLE_ASSIGN_OR_RETURN(structure, bodies_.StructureOf(function, group, inputs));
      if (structure == nullptr) return RecursionParts();
    }
    std::optional<ops::NodeResults> results;
    HEDDLE_RETURN_IF_ERROR(WithinMemory("variables", [&]() -> Status {
      HEDDLE_ASSIGN_OR_RETURN(results, ops::EvaluateRecursion(*structure, find_body, parameters, kernels_,
                                                              context, bodies_.cache()));
      if (results && groups.size() > 1) return StoreRootsOnly(&structure, &*results);
      return OkStatus();
    }));
    if (!results) {
      bodies_.ReportInterpreted(function,
                                "results differ in size from node to node, or hold large integers (C7)");
      return RecursionParts();
    }
    bodies_.CountEvaluation(TextOfEvaluation(function.name, results->parts));
    parts.push_back({std::move(structure), *std::move(results)});
  }
  return RecursionParts(std::move(parts));
}

}  // namespace heddle::engine
