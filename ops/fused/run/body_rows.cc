// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/body_rows.h"

#include <optional>
#include <utility>

#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/fused/program/body_view.h"

namespace heddle::ops {
namespace {

// Floats are far from the ends of doubles, in which they are added up.
bool MayNeedWideSums(const TileProgram& program, const TileRoot& root) {
  return !program.single && !root.of_rows && !program.fused.body[root.node].Is("t%*%") &&
         AddsUp(root.aggregate);
}

}  // namespace

// By node of the body; of a variable that is no rows the input itself.
struct BodyRows::Values {
  explicit Values(size_t nodes) : own(nodes), pointers(nodes, nullptr) {}
  std::vector<Value> own;
  std::vector<const Value*> pointers;
};

Status BodyRows::Make(NodeId id, int64_t begin, int64_t end, Values* values) const {
  const size_t index = BodyView::Index(id);
  if (values->pointers[index] != nullptr) return OkStatus();
  const Node& node = program_.fused.body[id];
  Value& own = values->own[index];
  values->pointers[index] = &own;
  if (node.Is("literal")) {
    own = Value(*node.FindAttribute("value"));
    return OkStatus();
  }
  if (node.Is("variable")) {
    const auto input = static_cast<size_t>(BodyView::InputPosition(node));
    if (program_.roles.inputs[input] == BodyRole::kRows)
      own = Value(call_.inputs[input]->matrix().Rows(begin, end));
    else
      values->pointers[index] = call_.inputs[input];
    return OkStatus();
  }
  std::vector<const Value*> inputs;
  std::vector<ValueInfo> infos;
  for (const NodeId input : node.inputs) {
    if (input == kNoNode) {
      inputs.push_back(nullptr);
      infos.emplace_back();
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(Make(input, begin, end, values));
    inputs.push_back(values->pointers[BodyView::Index(input)]);
    infos.push_back(program_.fused.body[input].info);
  }
  return CatalogKernels().Run({.node = node,
                               .phase = Phase::kWhole,
                               .inputs = inputs,
                               .input_infos = infos,
                               .row_begin = FirstRow() + begin,
                               .row_end = FirstRow() + end,
                               .total_rows = program_.roles.rows,
                               .context = call_.context},
                              {&own, 1});
}

Result<Matrix> BodyRows::Get(NodeId id, int64_t begin, int64_t end) const {
  // A tile that asks is one task of many.
  const SerialLoops serial;
  Values values(program_.fused.body.nodes.size());
  HEDDLE_RETURN_IF_ERROR(Make(id, begin, end, &values));
  return values.pointers[BodyView::Index(id)]->matrix();
}

Status BodyRows::Correct(NodeId fold, int64_t begin, int64_t end, double* out) const {
  const Node& node = program_.fused.body[fold];
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, Get(node.inputs[0], begin, end));
  CorrectRows(FindAggregate(node.op)->kind, cells, 0, end - begin, out);
  return OkStatus();
}

SumsOfMatrix SumsOf(const TileProgram& program, const TileRoot& root, int64_t offset) {
  return {.scope = root.kind == TileRoot::Kind::kFull ? AggregateScope::kFull : AggregateScope::kColumn,
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
