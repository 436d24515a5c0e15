// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/program/body.h"

#include <charconv>

#include "core/values/panels.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/broadcast.h"
#include "ops/base/operator.h"
#include "ops/fused/program/region_walk.h"
#include "ops/product/matmul.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::ops {
namespace {

// A payload of more doubles than this would not stay in the caches of a tile.
constexpr int64_t kMostPayload = 1 << 18;

class RoleFinder {
 public:
  RoleFinder(const FusedOperator& fused, LongRowFolds long_rows, bool has_long_products)
      : fused_(fused), body_(fused.body), long_rows_(long_rows), has_long_products_(has_long_products) {
    roles_.nodes.assign(body_.nodes.size(), BodyRole::kUnused);
  }

  Result<BodyRoles> Find() {
    HEDDLE_RETURN_IF_ERROR(FindInputs());
    for (NodeId root : fused_.roots) HEDDLE_RETURN_IF_ERROR(VisitRoot(root));
    for (size_t i = 0; i < roles_.inputs.size(); ++i)
      if (roles_.variables[i] != kNoNode)
        roles_.inputs[i] = roles_.nodes[static_cast<size_t>(roles_.variables[i])];
    if (roles_.inputs[static_cast<size_t>(fused_.driver)] != BodyRole::kRows)
      return Unimplemented("the driver is not walked row by row");
    return std::move(roles_);
  }

 private:
  Status FindInputs() {
    for (NodeId id = 0; id < body_.size(); ++id) {
      if (!body_[id].Is("variable")) continue;
      const std::string& name = body_[id].Text("name");
      size_t position = 0;
      std::from_chars(name.data(), name.data() + name.size(), position);
      if (position >= roles_.variables.size()) roles_.variables.resize(position + 1, kNoNode);
      roles_.variables[position] = id;
    }
    roles_.inputs.assign(roles_.variables.size(), BodyRole::kUnused);
    const auto driver = static_cast<size_t>(fused_.driver);
    if (driver >= roles_.variables.size() || roles_.variables[driver] == kNoNode)
      return Unimplemented("the driver is not used");
    roles_.rows = body_[roles_.variables[driver]].info.shape.rows;
    if (roles_.rows < 1) return Unimplemented("a driver without rows");
    return OkStatus();
  }

  Status VisitRoot(NodeId id) {
    const Node& node = body_[id];
    const bool stitch = fused_.kind == FusionTemplate::kStitch;
    const auto reduce = [&](std::initializer_list<NodeId> operands) {
      if (roles_.nodes[static_cast<size_t>(id)] != BodyRole::kUnused)
        return Unimplemented("{} is a result and needed inside", node.op);
      roles_.nodes[static_cast<size_t>(id)] = BodyRole::kRoot;
      roles_.reduces = true;
      for (NodeId operand : operands) HEDDLE_RETURN_IF_ERROR(Demand(operand, BodyRole::kRows));
      return OkStatus();
    };
    if (const Aggregate* aggregate = FindAggregate(node.op);
        aggregate != nullptr && aggregate->scope != AggregateScope::kRow) {
      // Variances are made of whole leaves, as stitches have them.
      if ((IsSpread(aggregate->kind) && !stitch) || aggregate->kind == AggregateKind::kTrace)
        return Unimplemented("{} inside a fused operator", node.op);
      return reduce({node.inputs[0]});
    }
    if (HasRole(node, Role::kTransposedProduct)) {
      const int64_t n = body_[node.inputs[0]].info.shape.columns,
                    k = body_[node.inputs[1]].info.shape.columns;
      if (n * k > kMostPayload) return Unimplemented("a product of {} cells", n * k);
      return reduce({node.inputs[0], node.inputs[1]});
    }
    if (fused_.roots.size() > 1 && !stitch) return Unimplemented("several roots that are not aggregates");
    return Demand(id, BodyRole::kRows);
  }

  // Marks a value as needed in that role, and what it is made of.
  Status Demand(NodeId id, BodyRole role) {
    const Node& node = body_[id];
    BodyRole& known = roles_.nodes[static_cast<size_t>(id)];
    if (node.info.IsScalar()) role = BodyRole::kScalar;
    if (role == BodyRole::kRows && IsFoldOfLongRows(node)) role = BodyRole::kFold;
    if (known == role) return OkStatus();
    if (known != BodyRole::kUnused) return Unimplemented("{} is needed by rows and whole", node.op);
    known = role;
    if (role == BodyRole::kScalar) {
      for (NodeId input : node.inputs)
        if (input != kNoNode) HEDDLE_RETURN_IF_ERROR(DemandScalar(input));
      return OkStatus();
    }
    if (node.Is("variable")) {
      if (role == BodyRole::kRows && node.info.shape.rows != roles_.rows)
        return Unimplemented("an input of {} rows beside {}", node.info.shape.rows, roles_.rows);
      return OkStatus();
    }
    if (role == BodyRole::kWhole) return Unimplemented("{} is needed whole", node.op);
    return DemandInputsOfRows(node);
  }

  // Each row is a tree over its chunks. Variances read those of an input twice.
  bool IsFoldOfLongRows(const Node& node) const {
    const Aggregate* const aggregate = FindAggregate(node.op);
    if (long_rows_ != LongRowFolds::kInChunks || aggregate == nullptr ||
        aggregate->scope != AggregateScope::kRow ||
        body_[node.inputs[0]].info.shape.columns <= kColumnChunk)
      return false;
    const Node& operand = body_[node.inputs[0]];
    return FoldsRows(node) || (IsSpread(aggregate->kind) && operand.Is("variable") &&
                               operand.info.format == Format::kDense);
  }

  Status DemandScalar(NodeId id) {
    if (!body_[id].info.IsScalar()) return Unimplemented("a scalar computed from a matrix");
    if (body_[id].info.value_type == ValueType::kString) return Unimplemented("text");
    return Demand(id, BodyRole::kScalar);
  }

  Status DemandInputsOfRows(const Node& node) {
    const auto input = [&](size_t i) { return node.inputs[i]; };
    if (HasRole(node, Role::kProduct)) {
      const ValueInfo& left = body_[input(0)].info;
      const bool is_taken = has_long_products_ && left.format == Format::kSparse;
      if (left.shape.columns > kColumnChunk && IsNarrow(node.info.shape.columns) && !is_taken)
        return Unimplemented("a narrow product of rows longer than a column chunk");
      if (SplitsInner(roles_.rows, left.shape.columns, node.info.shape.columns))
        return Unimplemented("a product with a split inner dimension");
      if (node.info.format == Format::kSparse) return Unimplemented("a product with a CSR result");
      HEDDLE_RETURN_IF_ERROR(Demand(input(0), BodyRole::kRows));
      return Demand(input(1), BodyRole::kWhole);
    }
    if (const Aggregate* aggregate = FindAggregate(node.op); aggregate != nullptr) {
      if (aggregate->scope != AggregateScope::kRow)
        return Unimplemented("{} inside a fused operator", node.op);
      if (body_[input(0)].info.shape.columns > kColumnChunk && !FoldsRows(node) && !IsFoldOfLongRows(node))
        return Unimplemented("{} of rows longer than a column chunk", node.op);
      return Demand(input(0), BodyRole::kRows);
    }
    if (HasRole(node, Role::kSampledProduct)) {
      if (input(0) != roles_.variables[static_cast<size_t>(fused_.driver)])
        return Unimplemented("a product sampled background than at the driver");
      if (!body_[input(1)].Is("variable") || body_[input(1)].info.format != Format::kDense)
        return Unimplemented("a sampled product of a computed factor");
      HEDDLE_RETURN_IF_ERROR(Demand(input(0), BodyRole::kRows));
      HEDDLE_RETURN_IF_ERROR(Demand(input(1), BodyRole::kRows));
      return Demand(input(2), BodyRole::kWhole);
    }
    if (HasRole(node, Role::kCbind)) {
      for (NodeId part : node.inputs) HEDDLE_RETURN_IF_ERROR(Demand(part, BodyRole::kRows));
      return OkStatus();
    }
    if (HasRole(node, Role::kRange)) {
      const bool all_rows = input(1) == kNoNode && input(2) == kNoNode;
      for (size_t i = 3; i < node.inputs.size(); ++i)
        if (input(i) != kNoNode && !body_[input(i)].Is("literal"))
          return Unimplemented("index with computed bounds");
      if (!all_rows) return Unimplemented("index of rows");
      return Demand(input(0), BodyRole::kRows);
    }
    return DemandCellwise(node);
  }

  Status DemandCellwise(const Node& node) {
    const bool binary = node.inputs.size() == 2 && node.inputs[1] != kNoNode;
    const Operator* op = FindOperator(node.op);
    if (op == nullptr || op->fusion.use != RowUse::kCells)
      return Unimplemented("{} inside a fused operator", node.op);
    if (const int i = op->fusion.literal_input;
        i >= 0 && !body_[node.inputs[static_cast<size_t>(i)]].Is("literal"))
      return Unimplemented("{} with a computed {}", node.op,
                           ParseParameters(op->parameters)[static_cast<size_t>(i)].name);
    if (!op->unary && !op->binary) {
      for (NodeId operand : node.inputs) HEDDLE_RETURN_IF_ERROR(Demand(operand, BodyRole::kRows));
      return OkStatus();
    }
    if (!binary && op->unary) return Demand(node.inputs[0], BodyRole::kRows);
    if (!binary || !op->binary) return Unimplemented("{} inside a fused operator", node.op);
    const ValueInfo &left = body_[node.inputs[0]].info, &right = body_[node.inputs[1]].info;
    const Patterns patterns = PatternsOf(left, right);
    for (const auto& [operand, pattern] :
         {std::pair(node.inputs[0], patterns.left), std::pair(node.inputs[1], patterns.right)})
      HEDDLE_RETURN_IF_ERROR(Demand(operand, pattern == Pattern::kRow ? BodyRole::kWhole : BodyRole::kRows));
    return OkStatus();
  }

  const FusedOperator& fused_;
  const Graph& body_;
  const LongRowFolds long_rows_;
  const bool has_long_products_;
  BodyRoles roles_;
};

}  // namespace

NodeId DriverOf(const FusedOperator& fused) {
  const std::string driver = std::to_string(fused.driver);
  for (NodeId id = 0; id < fused.body.size(); ++id)
    if (fused.body[id].Is("variable") && fused.body[id].Text("name") == driver) return id;
  return kNoNode;
}

Result<BodyRoles> FindRoles(const FusedOperator& fused, LongRowFolds long_rows, bool has_long_products) {
  return RoleFinder(fused, long_rows, has_long_products).Find();
}

}  // namespace heddle::ops
