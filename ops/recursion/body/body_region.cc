// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/body/body_region.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/values/panels.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/operator.h"
#include "ops/simd/cellwise/cell_operators.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::ops {
namespace {

using Layout = BodyValue::Layout;

// What interpreting a function at a cell takes, in additions.
constexpr double kWorkOfFunction = 8;
// Whole numbers up to here are part of the code.
constexpr double kMostLiteral = 1e6;

enum class Read : uint8_t { kImpossible, kNumber, kPerRow, kCells };

bool IsNumber(const ValueInfo& info) {
  return info.IsScalar() &&
         (info.value_type == ValueType::kDouble || info.value_type == ValueType::kInteger ||
          info.value_type == ValueType::kBoolean);
}
bool IsCell(const ValueInfo& info) { return info.IsMatrix() && info.shape == Shape{1, 1}; }

Read ReadOf(const RecursiveBody& body, const BodyValue& value, size_t i) {
  const int32_t id = value.inputs[i].id;
  if (id == BodyValue::kNone) return Read::kImpossible;
  const BodyValue& input = body.values[static_cast<size_t>(id)];
  const ValueInfo& info = input.node.info;
  if (input.layout == Layout::kShared && (IsNumber(info) || IsCell(info))) return Read::kNumber;
  if (info.IsScalar())
    return input.layout == Layout::kColumn && IsNumber(info) ? Read::kPerRow : Read::kImpossible;
  if (!info.IsMatrix() || value.node.info.IsScalar()) return Read::kImpossible;
  if (info.shape == value.node.info.shape) return Read::kCells;
  return IsCell(info) ? Read::kPerRow : Read::kImpossible;
}

struct Codes {
  std::optional<UnaryCode> unary;
  std::optional<BinaryCode> binary;
  bool selects = false;
  bool HasAny() const { return unary || binary || selects; }
};

Codes CodesOf(const BodyValue& value) {
  if (value.inputs.size() == 1) return {.unary = FindUnaryCode(value.node.op)};
  if (value.inputs.size() == 2) return {.binary = FindBinaryCode(value.node.op)};
  return {.selects = value.inputs.size() == 3 && HasRole(value.node, Role::kChoose)};
}

bool IsOfNodes(const BodyValue& value) {
  return value.source == BodyValue::Source::kOperator && value.layout != Layout::kShared;
}

// A loop reads floats as doubles, and rounds what it stores as floats.
bool IsConversion(const BodyValue& value) {
  return value.source == BodyValue::Source::kConvert && value.layout != Layout::kShared;
}

// rowSums for sum(x), and itself.
std::string_view RowAggregateOf(const BodyValue& value) {
  const Operator* const op = FindOperator(value.node.op);
  if (op == nullptr || value.inputs.size() != 1) return {};
  return op->of_rows.empty() ? std::string_view(op->name) : op->of_rows;
}

bool IsSingle(const BodyValue& value) {
  return value.node.info.IsMatrix() && value.node.info.element_type == ElementType::kFloat32;
}

class Lowering {
 public:
  Lowering(const RecursiveBody& body, int32_t fused_operator)
      : body_(body), fused_operator_(fused_operator) {}

  BodyRegion Run() {
    const auto count = static_cast<int32_t>(body_.values.size());
    for (int32_t id = 0; id < count; ++id)
      if (ValueAt(id).fused_operator == fused_operator_) Add(id);
    for (int32_t id = 0; id < count; ++id)
      if (ValueAt(id).fused_operator == fused_operator_ && !IsRowFold(body_, id) && IsReadOutside(id))
        Leave(id, {.node = nodes_[id], .sink = Sink::kStore, .single = IsSingle(ValueAt(id))});
    out_.region.inputs = static_cast<int>(out_.inputs.size());
    for (const RegionNode& node : out_.region.nodes) {
      const bool is_heavy = (node.op == RegionOp::kUnary && HEDDLE_SIMD_NAMESPACE::IsHeavy(node.unary)) ||
                            (node.op == RegionOp::kBinary && HEDDLE_SIMD_NAMESPACE::IsHeavy(node.binary));
      out_.work += is_heavy ? kWorkOfFunction : 1;
    }
    return std::move(out_);
  }

 private:
  const BodyValue& ValueAt(int32_t id) const { return body_.values[static_cast<size_t>(id)]; }

  int Push(const RegionNode& node) {
    out_.region.nodes.push_back(node);
    return static_cast<int>(out_.region.nodes.size()) - 1;
  }
  void Leave(int32_t id, const RegionOutput& output) {
    out_.region.outputs.push_back(output);
    out_.outputs.push_back(id);
  }

  bool IsReadOutside(int32_t id) const {
    if (std::find(body_.results.begin(), body_.results.end(), id) != body_.results.end()) return true;
    return std::any_of(body_.values.begin(), body_.values.end(), [&](const BodyValue& reader) {
      return reader.fused_operator != fused_operator_ &&
             std::any_of(reader.inputs.begin(), reader.inputs.end(),
                         [&](const BodyValue::Operand& input) { return input.id == id; });
    });
  }

  int ValueOf(int32_t id, Read read) {
    const auto [found, is_new] = nodes_.try_emplace(id, -1);
    if (!is_new) return found->second;
    const BodyValue& value = ValueAt(id);
    if (read == Read::kNumber && value.source == BodyValue::Source::kLiteral) {
      const double literal = value.node.FindAttribute("value")->AsDouble();
      if (std::floor(literal) == literal && std::abs(literal) < kMostLiteral)
        return found->second = Push({.op = RegionOp::kLiteral, .literal = literal});
    }
    const Access access = read == Read::kNumber   ? Access::kScalar
                          : read == Read::kPerRow ? Access::kPerRow
                                                  : Access::kCells;
    out_.inputs.push_back({id, read == Read::kNumber});
    return found->second = Push({.op = RegionOp::kInput,
                                 .access = access,
                                 .input = static_cast<int>(out_.inputs.size()) - 1,
                                 .single = read != Read::kNumber && IsSingle(value)});
  }

  void Add(int32_t id) {
    const BodyValue& value = ValueAt(id);
    if (IsRowFold(body_, id)) {
      const int32_t input = value.inputs[0].id;
      out_.columns = CellsOf(ValueAt(input));
      const AggregateKind kind = FindAggregate(RowAggregateOf(value))->kind;
      Leave(id, {.node = ValueOf(input, Read::kCells),
                 .sink = Sink::kFoldRows,
                 .fold = FoldOf(kind),
                 .is_mean = kind == AggregateKind::kMean});
      return;
    }
    out_.columns = CellsOf(value);
    if (IsConversion(value)) {
      const int node = ValueOf(value.inputs[0].id, Read::kCells);
      nodes_[id] = IsSingle(value)
                       ? Push({.op = RegionOp::kUnary, .unary = UnaryCode::kRoundToSingle, .a = node})
                       : node;
      return;
    }
    int operands[3] = {-1, -1, -1};
    for (size_t i = 0; i < value.inputs.size(); ++i)
      operands[i] = ValueOf(value.inputs[i].id, ReadOf(body_, value, i));
    RegionNode node{.a = operands[0], .b = operands[1], .c = operands[2]};
    const Codes codes = CodesOf(value);
    if (codes.selects) {
      node.op = RegionOp::kSelect;
    } else if (codes.binary) {
      node.op = RegionOp::kBinary;
      node.binary = *codes.binary;
      if (node.binary == BinaryCode::kPower) UnfoldPower(&node);
    } else {
      node.op = RegionOp::kUnary;
      node.unary = IsSingle(value) ? InSingles(*codes.unary) : *codes.unary;
    }
    if (IsSingle(value) && !KeepsSingles(node))
      node = {.op = RegionOp::kUnary, .unary = UnaryCode::kRoundToSingle, .a = Push(node)};
    nodes_[id] = Push(node);
  }

  // x ^ 2, x ^ 3 and x ^ -1 are products and a quotient by definition.
  void UnfoldPower(RegionNode* node) {
    const RegionNode exponent = out_.region.nodes[static_cast<size_t>(node->b)];
    if (exponent.op != RegionOp::kLiteral) return;
    switch (FormOfPower(exponent.literal)) {
      case PowerForm::kSquare:
        node->binary = BinaryCode::kMultiply;
        node->b = node->a;
        break;
      case PowerForm::kCube:
        node->binary = BinaryCode::kMultiply;
        node->b = node->a;
        node->a = Push(*node);
        break;
      case PowerForm::kReciprocal:
        node->binary = BinaryCode::kDivide;
        node->b = node->a;
        node->a = Push({.op = RegionOp::kLiteral, .literal = 1});
        break;
      case PowerForm::kFunction: break;
    }
  }

  const RecursiveBody& body_;
  const int32_t fused_operator_;
  std::map<int32_t, int> nodes_;  // Region nodes by value.
  BodyRegion out_;
};

}  // namespace

bool IsCellValue(const RecursiveBody& body, int32_t id) {
  const BodyValue& value = body.values[static_cast<size_t>(id)];
  if (IsConversion(value)) return true;
  if (!IsOfNodes(value) || !CodesOf(value).HasAny()) return false;
  // Integers have their own rules, and so have booleans but where they are compared.
  const ValueInfo& info = value.node.info;
  const bool is_double = info.value_type == ValueType::kDouble ||
                         (info.value_type == ValueType::kBoolean && !value.node_by_node);
  if (info.IsScalar() ? !is_double : !info.IsMatrix()) return false;
  for (size_t i = 0; i < value.inputs.size(); ++i)
    if (ReadOf(body, value, i) == Read::kImpossible) return false;
  return CellsOf(value) > 0;
}

bool IsRowFold(const RecursiveBody& body, int32_t id) {
  const BodyValue& value = body.values[static_cast<size_t>(id)];
  if (!IsOfNodes(value) || !value.node.info.IsScalar() || value.inputs.size() != 1) return false;
  const Aggregate* const aggregate = FindAggregate(RowAggregateOf(value));
  if (aggregate == nullptr || aggregate->scope != AggregateScope::kRow) return false;
  switch (aggregate->kind) {
    case AggregateKind::kSum:
    case AggregateKind::kMean:
    case AggregateKind::kMinimum:
    case AggregateKind::kMaximum: break;
    default: return false;
  }
  const BodyValue& input = body.values[static_cast<size_t>(value.inputs[0].id)];
  return input.layout == Layout::kRows && input.node.info.shape.rows == 1 && CellsOf(input) > 0 &&
         CellsOf(input) <= kColumnChunk;
}

BodyRegion LowerFusedOperator(const RecursiveBody& body, int32_t fused_operator) {
  return Lowering(body, fused_operator).Run();
}

}  // namespace heddle::ops
