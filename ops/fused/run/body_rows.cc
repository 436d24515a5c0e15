// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/body_rows.h"

#include <optional>
#include <utility>

#include "ops/base/graph_run.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/fused/program/body_view.h"

namespace heddle::ops {

bool MayNeedWideSums(const TileProgram& program, const TileRoot& root) {
  return !program.single && !root.of_rows &&
         !HasRole(program.fused.body[root.node], Role::kTransposedProduct) && AddsUp(root.aggregate);
}

// The nodes that are needed for this one, and no others: a body has other roots.
std::vector<bool> BodyRows::NeededFor(NodeId root) const {
  const Graph& body = program_.fused.body;
  std::vector<bool> needed(body.nodes.size(), false);
  needed[BodyView::Index(root)] = true;
  for (NodeId id = root; id >= 0; --id)
    if (needed[BodyView::Index(id)])
      for (const NodeId input : body[id].inputs)
        if (input != kNoNode) needed[BodyView::Index(input)] = true;
  return needed;
}

Result<Matrix> BodyRows::Get(NodeId root, int64_t begin, int64_t end) const {
  // A tile that asks is one task of many.
  const SerialLoops serial;
  const Graph& body = program_.fused.body;
  const std::vector<bool> needed = NeededFor(root);
  const GraphLayout layout(body);
  GraphValues values(body, layout);
  for (NodeId id = 0; id <= root; ++id) {
    if (!needed[BodyView::Index(id)]) continue;
    const Node& node = body[id];
    if (node.Is("literal")) {
      values.Own(id)[0] = Value(*node.FindAttribute("value"));
    } else if (node.Is("variable")) {
      const auto input = static_cast<size_t>(BodyView::InputPosition(node));
      if (program_.roles.inputs[input] == BodyRole::kRows)
        values.Own(id)[0] = Value(call_.inputs[input]->matrix().Rows(begin, end));
      else
        values.Refer(id, call_.inputs[input]);
    } else {
      OperatorStep step{.node = id, .op = FindOperator(node.op)};
      SetSizes(body, &step);
      step.row_begin = FirstRow() + begin;
      step.row_end = FirstRow() + end;
      step.total_rows = program_.roles.rows;
      HEDDLE_RETURN_IF_ERROR(values.Run(step, CatalogKernels(), call_.context));
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const Value rows, Decoded(*values.Of(root)));
  return rows.matrix();
}

Status BodyRows::Correct(NodeId fold, int64_t begin, int64_t end, double* out) const {
  const Node& node = program_.fused.body[fold];
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, Get(node.inputs[0], begin, end));
  CorrectRows(FindAggregate(node.op)->kind, cells, 0, end - begin, out);
  return OkStatus();
}

SumsOfMatrix SumsOf(const TileProgram& program, const TileRoot& root, int64_t offset) {
  return {.scope = SumsAllCells(root) ? AggregateScope::kFull : AggregateScope::kColumn,
          .kind = root.aggregate,
          .rows = program.roles.rows,
          .columns = root.n,
          .offset = offset};
}

Result<Matrix> AddWideNodes(const TileProgram& program, const TileRoot& root, int64_t offset,
                            const KernelCall& call, Matrix nodes) {
  if (!MayNeedWideSums(program, root)) return nodes;
  const BodyRows body(program, call);
  const NodeId operand = program.fused.body[root.node].inputs[0];
  const int64_t first = call.phase == Phase::kPartial ? call.row_begin : 0;
  return AddWideNodes(
      SumsOf(program, root, offset), std::move(nodes),
      [&](int64_t begin, int64_t end) { return body.Get(operand, begin - first, end - first); },
      call.context.cancelled);
}

Result<Matrix> AddWideNodes(const TileProgram& program, const KernelCall& call, Matrix nodes) {
  for (const TileRoot& root : program.roots) {
    HEDDLE_ASSIGN_OR_RETURN(nodes, AddWideNodes(program, root, root.offset, call, std::move(nodes)));
  }
  return nodes;
}

}  // namespace heddle::ops
