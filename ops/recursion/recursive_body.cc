// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/recursive_body.h"

#include <cstring>
#include <optional>
#include <utility>

#include "ops/recursion/run_body.h"

namespace heddle::ops {
namespace {

// What a reader of a result at a node takes it for.
ValueInfo InfoOf(const RecursiveBody& body, int32_t id) {
  const ValueInfo& info = body.items[static_cast<size_t>(id)].node.info;
  return info.IsScalar() ? ValueInfo::OfScalar(ValueType::kDouble) : info;
}

// Rows of all nodes' results; nullopt where a result has a size that nobody knows before.
Result<std::optional<NodeResults>> RoomFor(const RecursiveBody& body, int64_t nodes) {
  NodeResults results;
  for (const int32_t id : body.results) {
    const ValueInfo info = InfoOf(body, id);
    if (!info.IsScalar() && !(info.IsMatrix() && info.shape.IsKnown())) return std::optional<NodeResults>();
    const int64_t cells = info.IsScalar() ? 1 : info.shape.rows * info.shape.columns;
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(nodes, cells, info.element_type));
    results.infos.push_back(info);
    results.rows.push_back(std::move(rows));
  }
  return std::optional<NodeResults>(std::move(results));
}

bool Agree(const RecursiveBody& body, const NodeResults& results) {
  for (size_t i = 0; i < body.results.size(); ++i) {
    const ValueInfo info = InfoOf(body, body.results[i]);
    if (!(info.data_type == results.infos[i].data_type && info.shape == results.infos[i].shape &&
          info.element_type == results.infos[i].element_type))
      return false;
  }
  return true;
}

}  // namespace

Result<Value> NodeResults::At(size_t i, int32_t place) const {
  const Matrix& all = rows[i];
  if (infos[i].IsScalar()) return Value(Scalar(all.At(place, 0)));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          Matrix::Dense(infos[i].shape.rows, infos[i].shape.columns, all.element_type()));
  const size_t bytes = static_cast<size_t>(all.columns()) * static_cast<size_t>(BytesOf(all.element_type()));
  std::memcpy(result.mutable_data<char>(), all.data<char>() + static_cast<size_t>(place) * bytes, bytes);
  return Value(std::move(result));
}

Result<std::optional<NodeResults>> EvaluateRecursion(const Linearized& structure, const FindBody& find_body,
                                                     const std::map<std::string, Value>& parameters,
                                                     const KernelSource& kernels, KernelContext& context,
                                                     WeightCache& weights) {
  std::vector<std::unique_ptr<BodyRun>> runs(structure.classes.size());
  std::optional<NodeResults> results;
  for (const Linearized::Batch& batch : structure.batches) {
    const Linearized::Class& node_class = structure.classes[static_cast<size_t>(batch.node_class)];
    std::unique_ptr<BodyRun>& run = runs[static_cast<size_t>(batch.node_class)];
    if (run == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RecursiveBody> body,
                              find_body(node_class, results ? results->infos : std::vector<ValueInfo>()));
      if (body == nullptr) return std::optional<NodeResults>();
      if (!results) {
        HEDDLE_ASSIGN_OR_RETURN(results, RoomFor(*body, static_cast<int64_t>(structure.nodes.size())));
      }
      if (!results || !Agree(*body, *results)) return std::optional<NodeResults>();
      run =
          std::make_unique<BodyRun>(std::move(body), node_class, structure.nodes, kernels, context, weights);
      HEDDLE_RETURN_IF_ERROR(run->Begin(parameters));
    }
    HEDDLE_RETURN_IF_ERROR(run->RunBatch(batch.begin, batch.end, &*results));
    if (run->met_large_integer()) return std::optional<NodeResults>();
  }
  return results;
}

}  // namespace heddle::ops
