// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/run_operators.h"

#include <algorithm>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/base/cpu.h"
#include "ops/base/graph_run.h"
#include "ops/base/operator.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/fused/program/body_view.h"
#include "ops/product/compressed_products.h"

namespace heddle::ops {
namespace {

bool IsCompressed(const TileProgram& program, const KernelCall& call, NodeId id) {
  const BodyView view(program);
  if (!view.IsInput(id) || !view.IsRows(id)) return false;
  const Value* const input = call.inputs[static_cast<size_t>(BodyView::InputPosition(view.node(id)))];
  return input->IsMatrix() && input->matrix().IsCompressed();
}

// Whether operand i of a node is read by its codes.
bool ReadsCodes(const BodyView& view, const Node& node, size_t i, const Matrix& x) {
  const Operator* const op = FindOperator(node.op);
  if (op == nullptr || op->run_compressed == nullptr) return false;
  if (op->aggregate != nullptr) return node.inputs.size() == 1;
  const bool is_transposed = op->role == Role::kTransposedProduct;
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return false;
  if (op->role == Role::kProduct)
    return i == 0 && !view.IsRows(node.inputs[1]) && MultipliesByColumns(x, view.Columns(node.inputs[1]));
  if (!is_transposed) return false;
  const int64_t k = view.Columns(node.inputs[1 - i]), n = view.Columns(node.inputs[i]);
  const int64_t rows = view.program().roles.rows;
  return n * k > kFewColumns && (i == 0 ? IsNarrow(k) : k <= kFewColumns && n > kFewColumns) &&
         AddsByPanels(x, k, 0, x.rows(), ColumnPanelHeight(rows, n));
}

}  // namespace

bool RunsByOperators(const TileProgram& program, const KernelCall& call) {
  const FusedOperator& fused = program.fused;
  if (program.single || program.by_pattern || program.cut_columns > 0 ||
      (call.phase != Phase::kWhole && call.phase != Phase::kPartial))
    return false;
  // Nodes of several reductions that are no stitch have all payloads in one row.
  if (fused.roots.size() > 1 && call.phase != Phase::kWhole && fused.kind != FusionTemplate::kStitch)
    return false;
  const BodyView view(program);
  bool has_compressed = false;
  for (NodeId id = 0; id < fused.body.size(); ++id) {
    const Node& node = view.node(id);
    const BodyRole role = program.roles.nodes[BodyView::Index(id)];
    if (role == BodyRole::kFold) return false;
    if (role == BodyRole::kRows && !IsCompressed(program, call, id) && view.Columns(id) > kFewColumns)
      return false;
    if (role == BodyRole::kUnused) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoNode || !IsCompressed(program, call, node.inputs[i])) continue;
      const Node& variable = view.node(node.inputs[i]);
      const Matrix& x = call.inputs[static_cast<size_t>(BodyView::InputPosition(variable))]->matrix();
      if (variable.info.format != Format::kDense || !ReadsCodes(view, node, i, x)) return false;
      has_compressed = true;
    }
  }
  return has_compressed && std::none_of(fused.roots.begin(), fused.roots.end(),
                                        [&](NodeId root) { return view.IsInput(root); });
}

Status RunByOperators(const TileProgram& program, const KernelCall& call, std::span<Value> results) {
  const Graph& body = program.fused.body;
  const std::vector<NodeId>& roots = program.fused.roots;
  const bool is_whole = call.phase == Phase::kWhole;
  const int64_t rows = program.roles.rows;
  std::vector<NodeId> last_reader(body.nodes.size(), kNoNode);
  for (NodeId id = 0; id < body.size(); ++id)
    for (const NodeId input : body[id].inputs)
      if (input != kNoNode) last_reader[BodyView::Index(input)] = id;
  for (const NodeId root : roots) last_reader[BodyView::Index(root)] = body.size();
  const GraphLayout layout(body);
  GraphValues values(body, layout);
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body[id];
    const BodyRole role = program.roles.nodes[BodyView::Index(id)];
    if (last_reader[BodyView::Index(id)] == kNoNode) continue;
    if (node.Is("literal")) {
      values.Own(id)[0] = Value(*node.FindAttribute("value"));
      continue;
    }
    if (node.Is("variable")) {
      values.Refer(id, call.inputs[static_cast<size_t>(BodyView::InputPosition(node))]);
      continue;
    }
    OperatorStep step{.node = id, .op = FindOperator(node.op)};
    SetSizes(body, &step);
    if (role == BodyRole::kRows || role == BodyRole::kRoot) {
      step.row_begin = is_whole ? 0 : call.row_begin;
      step.row_end = is_whole ? rows : call.row_end;
      step.total_rows = rows;
    }
    if (role == BodyRole::kRoot && !is_whole) {
      std::vector<const Value*> inputs;
      for (const NodeId input : node.inputs) inputs.push_back(values.Of(input));
      HEDDLE_RETURN_IF_ERROR(CatalogKernels().Run({.node = node,
                                                   .phase = call.phase,
                                                   .inputs = inputs,
                                                   .input_infos = step.input_infos,
                                                   .row_begin = step.row_begin,
                                                   .row_end = step.row_end,
                                                   .total_rows = step.total_rows,
                                                   .context = call.context,
                                                   .op = step.op},
                                                  values.Own(id)));
    } else {
      const NodeId first = node.inputs.empty() ? kNoNode : node.inputs[0];
      step.reads_last = first != kNoNode && !body[first].Is("variable") && !body[first].Is("literal") &&
                        last_reader[BodyView::Index(first)] == id &&
                        std::count(node.inputs.begin(), node.inputs.end(), first) == 1;
      HEDDLE_RETURN_IF_ERROR(values.Run(step, CatalogKernels(), call.context));
    }
    for (const NodeId input : node.inputs)
      if (input != kNoNode && last_reader[BodyView::Index(input)] == id && !body[input].Is("variable"))
        values.Reset(input);
  }
  for (size_t i = 0; i < roots.size(); ++i) results[i] = *values.Of(roots[i]);
  return OkStatus();
}

}  // namespace heddle::ops
