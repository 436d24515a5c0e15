// SPDX-License-Identifier: Apache-2.0
// What a fused operator computes before its first tile and after its last one.
#include "core/values/panels.h"
#include "ops/fused/run_tiles.h"
#include "ops/operator.h"

namespace heddle::ops {

Result<std::vector<double>> BodyScalars(const TileProgram& program, const KernelCall& call) {
  const Graph& body = program.fused.body;
  std::vector<Scalar> scalars(body.nodes.size());
  std::vector<double> numbers(body.nodes.size(), 0.0);
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body[id];
    const auto i = static_cast<size_t>(id);
    if (!node.info.IsScalar() || program.roles.nodes[i] != BodyRole::kScalar) continue;
    if (node.Is("literal")) {
      scalars[i] = *node.FindAttribute("value");
    } else if (node.Is("variable")) {
      scalars[i] = call.inputs[static_cast<size_t>(std::stoi(node.Text("name")))]->scalar();
    } else {
      std::vector<const Scalar*> operands;
      for (NodeId input : node.inputs)
        operands.push_back(input == kNoNode ? nullptr : &scalars[static_cast<size_t>(input)]);
      HEDDLE_ASSIGN_OR_RETURN(scalars[i], EvaluateScalar(node, operands));
    }
    if (!scalars[i].IsString()) numbers[i] = scalars[i].AsDouble();
  }
  return numbers;
}

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

Status FinishRoots(const TileProgram& program, const Matrix& nodes, const KernelCall& call,
                   std::span<Value> results) {
  if (program.fused.roots.size() == 1) return FinishRoot(program, program.roots[0], nodes, call, &results[0]);
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(program.reduction, nodes));
  for (size_t r = 0; r < program.roots.size(); ++r) {
    const TileRoot& part = program.roots[r];
    double value = simd::FoldLanes(FoldOf(part.aggregate), root.data() + part.offset);
    if (part.aggregate == AggregateKind::kMean)
      value = value / (static_cast<double>(program.roles.rows) * static_cast<double>(part.n));
    results[r] = Scalar(value);
  }
  return OkStatus();
}

}  // namespace heddle::ops
