// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/fused_columns.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/recently_used.h"
#include "core/values/panels.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/columns.h"
#include "ops/cells/column_pieces.h"
#include "ops/cells/join_columns.h"
#include "ops/fused/fused.h"

namespace heddle::ops {
namespace {

// A matrix of one column would be taken for a vector that is repeated; one of at most 8 has another order of
// sums (docs/numerics.md, section 3). Zeros stand beside fewer columns.
constexpr int64_t kLeastColumns = 2, kLeastOfSums = 9;

// With so many rows panels of columns have one height, however many columns there are.
bool HasOneHeight(int64_t rows) { return Granule(rows) == Granule(1); }

bool SumsColumns(const Node& node) {
  const Operator* const op = FindOperator(node.op);
  return op != nullptr && op->aggregate != nullptr && op->aggregate->scope == AggregateScope::kColumn;
}

// Cells, vectors that are repeated, and in the end the aggregate of each column: every value has the columns
// of the result or one, and as many rows as the others or one.
bool IsOfColumns(const Node& node, std::span<const ValueInfo>) {
  if (node.fused == nullptr || node.fused->roots.size() != 1 || !node.info.IsMatrix()) return false;
  const Graph& body = node.fused->body;
  const NodeId root = node.fused->roots[0];
  int64_t rows = 1;
  for (const Node& inner : body.nodes) rows = std::max(rows, inner.info.shape.rows);
  const int64_t columns = node.info.shape.columns;
  if (columns < kLeastColumns || (SumsColumns(body[root]) && !HasOneHeight(rows))) return false;
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& inner = body[id];
    if (inner.info.IsScalar()) continue;
    const bool fits = inner.info.IsMatrix() &&
                      (inner.info.shape.rows == rows || inner.info.shape.rows == 1) &&
                      (inner.info.shape.columns == columns || inner.info.shape.columns == 1);
    const bool is_known =
        inner.Is("variable") || KindOf(inner) == OperatorKind::kCells || (id == root && SumsColumns(inner));
    if (!fits || !is_known) return false;
  }
  return true;
}

ValueInfo PartOf(ValueInfo info, int64_t whole_columns, int64_t columns) {
  if (info.IsMatrix() && info.shape.columns == whole_columns) info.shape.columns = columns;
  return info;
}

// The operators of parts of whole ones, by these and the number of columns: a plan asks for the same again.
class Parts {
 public:
  std::shared_ptr<const FusedOperator> Of(const std::shared_ptr<const FusedOperator>& whole,
                                          int64_t whole_columns, int64_t columns) {
    const std::lock_guard lock(mutex_);
    const Key key = {whole.get(), columns};
    // Another object may have come to the address of one that is gone.
    if (Part* const found = parts_.Find(key); found != nullptr && found->whole.lock() == whole)
      return found->part;
    auto part = std::make_shared<FusedOperator>(*whole);
    for (Node& node : part->body.nodes) node.info = PartOf(node.info, whole_columns, columns);
    if (parts_.Find(key) == nullptr)
      parts_.Add(key, {whole, part});
    else
      *parts_.Find(key) = {whole, part};
    return part;
  }

 private:
  using Key = std::pair<const FusedOperator*, int64_t>;
  struct Part {
    std::weak_ptr<const FusedOperator> whole;
    std::shared_ptr<const FusedOperator> part;
  };
  std::mutex mutex_;
  RecentlyUsedMap<Key, Part> parts_{FusedRuntime::kMostPrograms};
};

Status RunFusedColumns(const StageCall& call, std::span<Value> outputs) {
  static Parts parts;
  const int64_t whole_columns = call.rows.Length();
  const int64_t own = call.rows.End(call.rank) - call.rows.Begin(call.rank);
  Node node = call.node;
  if (own == 0) {
    const int64_t rows = node.info.shape.rows;
    HEDDLE_ASSIGN_OR_RETURN(Matrix none, node.info.format == Format::kSparse
                                             ? Matrix::Sparse(rows, 0, 0, node.info.element_type)
                                             : Matrix::Dense(rows, 0, node.info.element_type));
    outputs[0] = Value(std::move(none));
    return OkStatus();
  }
  const FusedOperator& fused = *call.node.fused;
  const bool sums_many = SumsColumns(fused.body[fused.roots[0]]) && whole_columns >= kLeastOfSums;
  const int64_t columns = std::max(own, sums_many ? kLeastOfSums : kLeastColumns);
  node.fused = parts.Of(call.node.fused, whole_columns, columns);
  node.info = PartOf(node.info, whole_columns, columns);
  std::vector<ValueInfo> infos;
  std::vector<Value> widened(call.inputs.size());
  std::vector<const Value*> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    infos.push_back(PartOf(call.input_infos[i], whole_columns, columns));
    inputs.push_back(call.inputs[i]);
    if (own == columns || ResultColumns(call.node, call.input_infos, static_cast<int>(i)) != InputUse::kRows)
      continue;
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
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], own == columns ? result : ColumnsOfValue(result, 0, own));
  return OkStatus();
}

}  // namespace

constexpr StagedForm kFusedColumns = ByColumns(ResultColumns, IsOfColumns, RunFusedColumns);

}  // namespace heddle::ops
