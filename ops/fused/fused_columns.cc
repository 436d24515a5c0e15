// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/fused_columns.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/aggregate/nodes_of_columns.h"
#include "ops/base/columns.h"
#include "ops/cells/column_pieces.h"
#include "ops/cells/join_columns.h"
#include "ops/fused/fused.h"
#include "ops/fused/fused_turned.h"
#include "ops/fused/parts_of_fused.h"

namespace heddle::ops {
namespace {

// A matrix of one column would be taken for a vector that is repeated; one of at most 8 has another order of
// sums (docs/numerics.md, section 3). Zeros stand beside fewer columns.
constexpr int64_t kLeastColumns = 2, kLeastOfSums = 9;

// With so many rows panels of columns have one height, however many columns there are.
bool HasOneHeight(int64_t rows) { return Granule(rows) == Granule(1); }

bool Aggregates(const Node& node, AggregateScope scope) {
  const Operator* const op = FindOperator(node.op);
  return op != nullptr && op->aggregate != nullptr && op->aggregate->scope == scope;
}

// What a rank makes of its columns: the root, or what the full aggregate at the root reads.
NodeId EndOfColumns(const FusedOperator& fused) {
  const NodeId root = fused.roots[0];
  return Aggregates(fused.body[root], AggregateScope::kFull) ? fused.body[root].inputs[0] : root;
}

// Cells, vectors that are repeated, and in the end an aggregate: every other value has the columns of the
// cells or one, and as many rows as the others or one.
bool IsByColumns(const FusedOperator& fused) {
  const Graph& body = fused.body;
  const NodeId root = fused.roots[0], last = EndOfColumns(fused);
  const int64_t columns = body[last].info.shape.columns;
  int64_t rows = 1;
  for (const Node& inner : body.nodes) rows = std::max(rows, inner.info.shape.rows);
  const bool sums_columns = Aggregates(body[last], AggregateScope::kColumn);
  if (columns < kLeastColumns || (sums_columns && !HasOneHeight(rows))) return false;
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& inner = body[id];
    if (inner.info.IsScalar()) {
      if (id != root && Aggregates(inner, AggregateScope::kFull)) return false;
      continue;
    }
    const bool fits = inner.info.IsMatrix() &&
                      (inner.info.shape.rows == rows || inner.info.shape.rows == 1) &&
                      (inner.info.shape.columns == columns || inner.info.shape.columns == 1);
    const bool is_known =
        inner.Is("variable") || KindOf(inner) == OperatorKind::kCells || (id == root && sums_columns);
    if (!fits || !is_known) return false;
  }
  return true;
}

bool HasColumns(const Node& node, std::span<const ValueInfo>) {
  return node.fused != nullptr && node.fused->roots.size() == 1 && node.info.IsMatrix() &&
         IsByColumns(*node.fused);
}

// Of rows that are longer than a chunk, whose leaves are chunks of columns.
bool HasFullAggregate(const Node& node, std::span<const ValueInfo>) {
  if (node.fused == nullptr || node.fused->roots.size() != 1 || !node.info.IsScalar()) return false;
  const Graph& body = node.fused->body;
  const NodeId root = node.fused->roots[0];
  if (root + 1 != body.size() || !Aggregates(body[root], AggregateScope::kFull)) return false;
  const Node& cells = body[body[root].inputs[0]];
  return FindAggregate(body[root].op)->kind != AggregateKind::kTrace && !cells.Is("variable") &&
         cells.info.shape.columns > kColumnChunk && IsByColumns(*node.fused);
}

InputUse ColumnsOfCells(const Node& node, std::span<const ValueInfo> inputs, int i) {
  const ValueInfo& input = inputs[static_cast<size_t>(i)];
  const int64_t columns = node.fused->body[EndOfColumns(*node.fused)].info.shape.columns;
  return input.IsMatrix() && input.shape.columns == columns ? InputUse::kRows : InputUse::kWhole;
}

ValueInfo PartOf(ValueInfo info, int64_t whole_columns, int64_t columns) {
  if (info.IsMatrix() && info.shape.columns == whole_columns) info.shape.columns = columns;
  return info;
}

// What the columns of a rank become, but for a full aggregate at the end.
Result<Value> RunPart(const StageCall& call) {
  static PartsOfFused parts;
  const FusedOperator& fused = *call.node.fused;
  const Node& last = fused.body[EndOfColumns(fused)];
  const int64_t whole_columns = call.rows.Length();
  const int64_t own = call.rows.End(call.rank) - call.rows.Begin(call.rank);
  if (own == 0) {
    const Shape shape{last.info.shape.rows, 0};
    HEDDLE_ASSIGN_OR_RETURN(Matrix none, last.info.format == Format::kSparse
                                             ? Matrix::Sparse(shape.rows, 0, 0, last.info.element_type)
                                             : Matrix::Dense(shape.rows, 0, last.info.element_type));
    return Value(std::move(none));
  }
  const bool sums_many = Aggregates(last, AggregateScope::kColumn) && whole_columns >= kLeastOfSums;
  const int64_t columns = std::max(own, sums_many ? kLeastOfSums : kLeastColumns);
  Node node = call.node;
  node.fused = parts.Of(call.node.fused, columns, [&](FusedOperator& part) {
    part.roots = {EndOfColumns(fused)};
    // The full aggregate is the last of all.
    part.body.nodes.resize(
        static_cast<size_t>(part.roots[0] == fused.roots[0] ? part.body.size() : fused.roots[0]));
    for (Node& inner : part.body.nodes) inner.info = PartOf(inner.info, whole_columns, columns);
  });
  node.info = PartOf(last.info, whole_columns, columns);
  std::vector<ValueInfo> infos;
  std::vector<Value> widened(call.inputs.size());
  std::vector<const Value*> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    infos.push_back(PartOf(call.input_infos[i], whole_columns, columns));
    inputs.push_back(call.inputs[i]);
    const bool is_part = ColumnsOfCells(call.node, call.input_infos, static_cast<int>(i)) == InputUse::kRows;
    if (own == columns || !is_part) continue;
    const Matrix& x = call.inputs[i]->matrix();
    HEDDLE_ASSIGN_OR_RETURN(Matrix zeros, Matrix::Dense(x.rows(), columns - own, x.element_type()));
    HEDDLE_ASSIGN_OR_RETURN(Matrix wide, JoinColumns({x, std::move(zeros)}, FormatOf(x.storage())));
    widened[i] = Value(std::move(wide));
    inputs.back() = &widened[i];
  }
  HEDDLE_ASSIGN_OR_RETURN(const Value result, FindOperator(node.op)->run({.node = node,
                                                                          .phase = Phase::kWhole,
                                                                          .inputs = inputs,
                                                                          .input_infos = infos,
                                                                          .context = call.context}));
  return own == columns ? Result<Value>(result) : ColumnsOfValue(result, 0, own);
}

Status RunFusedColumns(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunPart(call));
  return OkStatus();
}

Status RunFusedFull(const StageCall& call, std::span<Value> outputs) {
  const Graph& body = call.node.fused->body;
  const Node& aggregate = body[call.node.fused->roots[0]];
  const ValueInfo& cells = body[aggregate.inputs[0]].info;
  if (call.stage == 0) {
    HEDDLE_ASSIGN_OR_RETURN(const Value part, RunPart(call));
    HEDDLE_ASSIGN_OR_RETURN(Matrix nodes,
                            NodesOfColumns(part.matrix(), FindAggregate(aggregate.op)->kind, cells.shape,
                                           call.rows.Begin(call.rank), call.context));
    outputs[0] = Value(std::move(nodes));
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], FindOperator(aggregate.op)
                                          ->run({.node = aggregate,
                                                 .phase = Phase::kFinish,
                                                 .inputs = call.Parts(0),
                                                 .input_infos = std::span(&cells, 1),
                                                 .context = call.context}));
  return OkStatus();
}

constexpr Reach kNodesToAll[] = {Reach::kAll};
constexpr Stage kFullStages[] = {{.outputs = kNodesToAll, .reads_inputs = true}, {}};
constexpr StagedForm kFusedFull = {.stages = kFullStages,
                                   .result = StagedResult::kEach,
                                   .axis = Axis::kColumns,
                                   .needs_granules = true,
                                   .other = &kFusedTurned,
                                   .applies = HasFullAggregate,
                                   .input_use = ColumnsOfCells,
                                   .run = RunFusedFull};

}  // namespace

constexpr StagedForm kFusedColumns = {.stages = kOneStage,
                                      .result = StagedResult::kSameColumns,
                                      .axis = Axis::kColumns,
                                      .other = &kFusedFull,
                                      .applies = HasColumns,
                                      .input_use = ColumnsOfCells,
                                      .run = RunFusedColumns};

}  // namespace heddle::ops
