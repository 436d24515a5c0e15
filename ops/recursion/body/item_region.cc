// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/body/item_region.h"

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

using Item = RecursiveBody::Item;
using Form = RecursiveBody::Form;

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

Read ReadOf(const RecursiveBody& body, const Item& item, size_t i) {
  const int32_t id = item.inputs[i].value;
  if (id == RecursiveBody::kNone) return Read::kImpossible;
  const Item& input = body.items[static_cast<size_t>(id)];
  const ValueInfo& info = input.node.info;
  if (input.form == Form::kSame && (IsNumber(info) || IsCell(info))) return Read::kNumber;
  if (info.IsScalar())
    return input.form == Form::kColumn && IsNumber(info) ? Read::kPerRow : Read::kImpossible;
  if (!info.IsMatrix() || item.node.info.IsScalar()) return Read::kImpossible;
  if (info.shape == item.node.info.shape) return Read::kCells;
  return IsCell(info) ? Read::kPerRow : Read::kImpossible;
}

struct Codes {
  std::optional<UnaryCode> unary;
  std::optional<BinaryCode> binary;
  bool selects = false;
  bool HasAny() const { return unary || binary || selects; }
};

Codes CodesOf(const Item& item) {
  if (item.inputs.size() == 1) return {.unary = FindUnaryCode(item.node.op)};
  if (item.inputs.size() == 2) return {.binary = FindBinaryCode(item.node.op)};
  return {.selects = item.inputs.size() == 3 && RoleOf(item.node) == Role::kChoose};
}

bool IsOfNodes(const Item& item) {
  return item.source == RecursiveBody::Source::kOperator && item.form != Form::kSame;
}

// A loop reads floats as doubles, and rounds what it stores as floats.
bool IsConversion(const Item& item) {
  return item.source == RecursiveBody::Source::kConvert && item.form != Form::kSame;
}

// rowSums for sum(x), and itself.
std::string_view RowAggregateOf(const Item& item) {
  const Operator* const op = FindOperator(item.node.op);
  if (op == nullptr || item.inputs.size() != 1) return {};
  return op->of_rows.empty() ? std::string_view(op->name) : op->of_rows;
}

bool IsSingle(const Item& item) {
  return item.node.info.IsMatrix() && item.node.info.element_type == ElementType::kFloat32;
}

class Lowering {
 public:
  Lowering(const RecursiveBody& body, int32_t group) : body_(body), group_(group) {}

  ItemRegion Run() {
    const auto count = static_cast<int32_t>(body_.items.size());
    for (int32_t id = 0; id < count; ++id)
      if (ItemAt(id).group == group_) Add(id);
    for (int32_t id = 0; id < count; ++id)
      if (ItemAt(id).group == group_ && !IsFoldItem(body_, id) && IsReadOutside(id))
        Leave(id, {.node = values_[id], .sink = Sink::kStore, .single = IsSingle(ItemAt(id))});
    out_.region.inputs = static_cast<int>(out_.inputs.size());
    for (const RegionNode& node : out_.region.nodes) {
      const bool is_heavy = (node.op == RegionOp::kUnary && HEDDLE_SIMD_NAMESPACE::IsHeavy(node.unary)) ||
                            (node.op == RegionOp::kBinary && HEDDLE_SIMD_NAMESPACE::IsHeavy(node.binary));
      out_.work += is_heavy ? kWorkOfFunction : 1;
    }
    return std::move(out_);
  }

 private:
  const Item& ItemAt(int32_t id) const { return body_.items[static_cast<size_t>(id)]; }

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
    return std::any_of(body_.items.begin(), body_.items.end(), [&](const Item& reader) {
      return reader.group != group_ &&
             std::any_of(reader.inputs.begin(), reader.inputs.end(),
                         [&](const RecursiveBody::Operand& input) { return input.value == id; });
    });
  }

  int ValueOf(int32_t id, Read read) {
    const auto [found, is_new] = values_.try_emplace(id, -1);
    if (!is_new) return found->second;
    const Item& item = ItemAt(id);
    if (read == Read::kNumber && item.source == RecursiveBody::Source::kLiteral) {
      const double literal = item.node.FindAttribute("value")->AsDouble();
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
                                 .single = read != Read::kNumber && IsSingle(item)});
  }

  void Add(int32_t id) {
    const Item& item = ItemAt(id);
    if (IsFoldItem(body_, id)) {
      const int32_t input = item.inputs[0].value;
      out_.columns = CellsOf(ItemAt(input));
      const AggregateKind kind = FindAggregate(RowAggregateOf(item))->kind;
      Leave(id, {.node = ValueOf(input, Read::kCells),
                 .sink = Sink::kFoldRows,
                 .fold = FoldOf(kind),
                 .is_mean = kind == AggregateKind::kMean});
      return;
    }
    out_.columns = CellsOf(item);
    if (IsConversion(item)) {
      const int value = ValueOf(item.inputs[0].value, Read::kCells);
      values_[id] = IsSingle(item)
                        ? Push({.op = RegionOp::kUnary, .unary = UnaryCode::kRoundToSingle, .a = value})
                        : value;
      return;
    }
    int operands[3] = {-1, -1, -1};
    for (size_t i = 0; i < item.inputs.size(); ++i)
      operands[i] = ValueOf(item.inputs[i].value, ReadOf(body_, item, i));
    RegionNode value{.a = operands[0], .b = operands[1], .c = operands[2]};
    const Codes codes = CodesOf(item);
    if (codes.selects) {
      value.op = RegionOp::kSelect;
    } else if (codes.binary) {
      value.op = RegionOp::kBinary;
      value.binary = *codes.binary;
      if (value.binary == BinaryCode::kPower) UnfoldPower(&value);
    } else {
      value.op = RegionOp::kUnary;
      value.unary = IsSingle(item) ? InSingles(*codes.unary) : *codes.unary;
    }
    if (IsSingle(item) && !KeepsSingles(value))
      value = {.op = RegionOp::kUnary, .unary = UnaryCode::kRoundToSingle, .a = Push(value)};
    values_[id] = Push(value);
  }

  // x ^ 2, x ^ 3 and x ^ -1 are products and a quotient by definition.
  void UnfoldPower(RegionNode* value) {
    const RegionNode exponent = out_.region.nodes[static_cast<size_t>(value->b)];
    if (exponent.op != RegionOp::kLiteral) return;
    switch (FormOfPower(exponent.literal)) {
      case PowerForm::kSquare:
        value->binary = BinaryCode::kMultiply;
        value->b = value->a;
        break;
      case PowerForm::kCube:
        value->binary = BinaryCode::kMultiply;
        value->b = value->a;
        value->a = Push(*value);
        break;
      case PowerForm::kReciprocal:
        value->binary = BinaryCode::kDivide;
        value->b = value->a;
        value->a = Push({.op = RegionOp::kLiteral, .literal = 1});
        break;
      case PowerForm::kFunction: break;
    }
  }

  const RecursiveBody& body_;
  const int32_t group_;
  std::map<int32_t, int> values_;  // Region nodes by item.
  ItemRegion out_;
};

}  // namespace

bool IsCellItem(const RecursiveBody& body, int32_t id) {
  const Item& item = body.items[static_cast<size_t>(id)];
  if (IsConversion(item)) return true;
  if (!IsOfNodes(item) || !CodesOf(item).HasAny()) return false;
  // Integers have their own rules, and so have booleans but where they are compared.
  const ValueInfo& info = item.node.info;
  const bool is_double =
      info.value_type == ValueType::kDouble || (info.value_type == ValueType::kBoolean && !item.node_by_node);
  if (info.IsScalar() ? !is_double : !info.IsMatrix()) return false;
  for (size_t i = 0; i < item.inputs.size(); ++i)
    if (ReadOf(body, item, i) == Read::kImpossible) return false;
  return CellsOf(item) > 0;
}

bool IsFoldItem(const RecursiveBody& body, int32_t id) {
  const Item& item = body.items[static_cast<size_t>(id)];
  if (!IsOfNodes(item) || !item.node.info.IsScalar() || item.inputs.size() != 1) return false;
  const Aggregate* const aggregate = FindAggregate(RowAggregateOf(item));
  if (aggregate == nullptr || aggregate->scope != AggregateScope::kRow) return false;
  switch (aggregate->kind) {
    case AggregateKind::kSum:
    case AggregateKind::kMean:
    case AggregateKind::kMinimum:
    case AggregateKind::kMaximum: break;
    default: return false;
  }
  const Item& input = body.items[static_cast<size_t>(item.inputs[0].value)];
  return input.form == Form::kRows && input.node.info.shape.rows == 1 && CellsOf(input) > 0 &&
         CellsOf(input) <= kColumnChunk;
}

ItemRegion LowerGroup(const RecursiveBody& body, int32_t group) { return Lowering(body, group).Run(); }

}  // namespace heddle::ops
