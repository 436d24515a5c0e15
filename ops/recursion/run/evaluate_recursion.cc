// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/evaluate_recursion.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/recursion/run/run_classes.h"

namespace heddle::ops {
namespace {

// Rows of all nodes' results.
Result<NodeResults> RoomFor(std::vector<ValueInfo> infos, int64_t nodes) {
  NodeResults results;
  for (const ValueInfo& info : infos) {
    const int64_t cells = info.IsScalar() ? 1 : info.shape.rows * info.shape.columns;
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(nodes, cells, info.element_type));
    results.rows.push_back(std::move(rows));
  }
  results.infos = std::move(infos);
  return results;
}

bool IsAlike(const ValueInfo& a, const ValueInfo& b) {
  return a.data_type == b.data_type && a.shape == b.shape && a.element_type == b.element_type;
}

}  // namespace

Result<int64_t> BytesOfNodes(const Linearized& structure, const FindBody& find_body) {
  const auto all = static_cast<int64_t>(structure.nodes.size());
  std::vector<ValueInfo> children;
  std::vector<bool> is_counted(structure.classes.size(), false);
  int64_t bytes = 0;
  for (const Linearized::Batch& batch : structure.batches) {
    if (is_counted[static_cast<size_t>(batch.node_class)]) continue;
    is_counted[static_cast<size_t>(batch.node_class)] = true;
    const Linearized::Class& node_class = structure.classes[static_cast<size_t>(batch.node_class)];
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const RecursiveBody> body, find_body(node_class, children));
    if (body == nullptr) return 0;
    const std::optional<std::vector<ValueInfo>> infos = ResultsOf(*body);
    if (!infos) return 0;
    if (children.empty())
      for (const int32_t result : body->results) {
        const BodyValue& value = body->values[static_cast<size_t>(result)];
        bytes += all * CellsOf(value) * BytesOf(value.node.info.element_type);
      }
    children = *infos;
    for (const BodyValue& value : body->values) {
      const int64_t of_node = CellsOf(value) * BytesOf(value.node.info.element_type);
      const bool is_of_class = value.stage == BodyValue::Stage::kPerClass &&
                               value.layout != BodyValue::Layout::kShared &&
                               value.source == BodyValue::Source::kOperator;
      if (value.with_child) bytes += all * of_node;
      if (is_of_class && !value.with_child) bytes += (node_class.end - node_class.begin) * of_node;
    }
  }
  return bytes;
}

Result<std::optional<NodeResults>> EvaluateRecursion(const Linearized& structure, const FindBody& find_body,
                                                     const std::map<std::string, Value>& parameters,
                                                     const KernelSource& kernels, KernelContext& context,
                                                     RecursionCache& cache) {
  std::vector<ClassRun> classes(structure.classes.size());
  std::optional<NodeResults> results;
  for (const Linearized::Batch& batch : structure.batches) {
    ClassRun& one = classes[static_cast<size_t>(batch.node_class)];
    if (one.run != nullptr) continue;
    const Linearized::Class& node_class = structure.classes[static_cast<size_t>(batch.node_class)];
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RecursiveBody> body,
                            find_body(node_class, results ? results->infos : std::vector<ValueInfo>()));
    if (body == nullptr) return std::optional<NodeResults>();
    std::optional<std::vector<ValueInfo>> infos = ResultsOf(*body);
    if (!infos || (results && !std::equal(infos->begin(), infos->end(), results->infos.begin(), IsAlike)))
      return std::optional<NodeResults>();
    if (!results) {
      HEDDLE_ASSIGN_OR_RETURN(results,
                              RoomFor(*std::move(infos), static_cast<int64_t>(structure.nodes.size())));
    }
    one.results = &*results;
    one.run =
        std::make_unique<BodyRun>(std::move(body), node_class, structure.nodes, kernels, context, cache);
    HEDDLE_RETURN_IF_ERROR(one.run->Begin(parameters, one.results));
  }
  if (!results) return results;
  results->parts = ChooseParts(structure, classes);
  HEDDLE_ASSIGN_OR_RETURN(const bool is_there, RunClasses(structure, classes, results->parts));
  if (!is_there) results.reset();
  return results;
}

}  // namespace heddle::ops
