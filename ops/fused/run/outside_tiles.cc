// SPDX-License-Identifier: Apache-2.0
// What a fused operator computes after its last tile.
#include <utility>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/fused/run/body_rows.h"
#include "ops/fused/run/run_tiles.h"
#include "ops/reduction/payload_parts.h"

namespace heddle::ops {

Status FinishRoot(const TileProgram& program, const TileRoot& root, const Matrix& nodes,
                  const KernelCall& call, Value* result) {
  const Graph& body = program.fused.body;
  const Node& node = body[root.node];
  std::vector<ValueInfo> infos;
  for (NodeId input : node.inputs) infos.push_back(body[input].info);
  const Value value(nodes);
  const Value* const inputs[] = {&value};
  KernelCall finish{.node = node,
                    .phase = Phase::kFinish,
                    .inputs = inputs,
                    .input_infos = infos,
                    .total_rows = program.roles.rows,
                    .context = call.context};
  return CatalogKernels().Run(finish, {result, 1});
}

Result<Matrix> ListOfRoot(const TileRoot& root, Matrix nodes) {
  if (!root.symmetric) return nodes;
  return PackTriangles(nodes, root.n);
}

Status CloseRoot(const TileProgram& program, const TileRoot& root, Matrix nodes, const KernelCall& call,
                 Value* result) {
  HEDDLE_ASSIGN_OR_RETURN(nodes, AddWideNodes(program, root, 0, call, std::move(nodes)));
  if (call.phase != Phase::kPartial) return FinishRoot(program, root, nodes, call, result);
  HEDDLE_ASSIGN_OR_RETURN(nodes, ListOfRoot(root, std::move(nodes)));
  *result = std::move(nodes);
  return OkStatus();
}

Status FinishRoots(const TileProgram& program, const Matrix& nodes, const KernelCall& call,
                   std::span<Value> results) {
  if (program.fused.roots.size() == 1) return FinishRoot(program, program.roots[0], nodes, call, &results[0]);
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(program.reduction, nodes));
  for (size_t r = 0; r < program.roots.size(); ++r) {
    const TileRoot& part = program.roots[r];
    double value = simd::FoldLanes(FoldOf(part.aggregate), root.data() + part.offset);
    if (part.aggregate == AggregateKind::kMean)
      value = value / (static_cast<double>(program.roles.rows) * static_cast<double>(part.n));
    if (AddsUp(part.aggregate)) CorrectResults(SumsOf(program, part, part.offset), nodes, &value);
    results[r] = Scalar(value);
  }
  return OkStatus();
}

}  // namespace heddle::ops
