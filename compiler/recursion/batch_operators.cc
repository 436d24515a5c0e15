// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/recursion/assigned_ranges.h"
#include "compiler/recursion/class_body.h"
#include "compiler/recursion/fuse_values.h"
#include "compiler/recursion/join_columns.h"
#include "ops/base/operator.h"
#include "ops/product/matmul.h"

namespace heddle::compiler {
namespace {

using ops::BodyValue;
using ops::RecursiveBody;
using Layout = BodyValue::Layout;
using Source = BodyValue::Source;
using Stage = BodyValue::Stage;

class Batcher {
 public:
  Batcher(const ClassGraph& from, const ClassContext& context, std::string* why)
      : from_(from), graph_(from.graph), context_(context), why_(*why) {}

  std::optional<RecursiveBody> Run() {
    value_of_.assign(graph_.nodes.size(), BodyValue::kNone);
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!Batch(id)) return std::nullopt;
    for (const NodeId result : from_.results) body_.results.push_back(value_of_[static_cast<size_t>(result)]);
    DropUnread();
    SinkLookups();
    if (context_.fusion != "off") JoinColumns(&body_);
    OrderByDepth();
    if (context_.moves_products) MoveProductsToChildren(&body_);
    JoinProducts();
    if (const Status fused = FuseValues(context_.fusion, &body_); !fused.ok()) {
      why_ = fused.message();
      return std::nullopt;
    }
    return std::move(body_);
  }

 private:
  const BodyValue& Of(NodeId id) const {
    return body_.values[static_cast<size_t>(value_of_[static_cast<size_t>(id)])];
  }
  bool IsSame(NodeId id) const { return Of(id).layout == Layout::kShared; }
  bool IsRow(NodeId id) const {
    return Of(id).layout == Layout::kRows && graph_[id].info.IsMatrix() && graph_[id].info.shape.rows == 1;
  }
  bool IsSingle() const { return context_.element_type == ElementType::kFloat32; }

  bool Batch(NodeId id) {
    const Node& node = graph_[id];
    BodyValue value;
    value.node = node;
    if (node.Is("variable")) {
      BatchVariable(node.Text("name"), &value);
    } else if (node.Is("literal")) {
      value.source = Source::kLiteral;
    } else if (node.info.IsTuple() || node.Is("result")) {
      why_ = fmt::format("line {}: {}() has several results", node.position.line, node.op);
      return false;
    } else {
      BatchOperator(id, &value);
    }
    value_of_[static_cast<size_t>(id)] = static_cast<int32_t>(body_.values.size());
    body_.values.push_back(std::move(value));
    return true;
  }

  void BatchVariable(const std::string& name, BodyValue* value) const {
    const ClassInput* const input = from_.InputNamed(name);
    if (input == nullptr) {
      value->source = Source::kParameter;
      value->name = name;
      return;
    }
    value->index = input->index;
    value->result = input->result;
    switch (input->kind) {
      case ClassInput::Kind::kNumber:
        value->source = Source::kNumber;
        value->stage = Stage::kPerClass;
        value->layout = Layout::kColumn;
        break;
      case ClassInput::Kind::kChildResult:
        value->source = Source::kChild;
        value->stage = Stage::kPerBatch;
        value->layout = value->node.info.IsScalar() ? Layout::kColumn : Layout::kRows;
        break;
    }
  }

  void BatchOperator(NodeId id, BodyValue* value) {
    const Node& node = graph_[id];
    for (const NodeId input : node.inputs) {
      const int32_t of = input == kNoNode ? BodyValue::kNone : value_of_[static_cast<size_t>(input)];
      value->inputs.push_back({.id = of});
      if (input == kNoNode) continue;
      value->stage = std::max(value->stage, Of(input).stage);
      if (!IsSame(input)) value->layout = node.info.IsScalar() ? Layout::kColumn : Layout::kRows;
    }
    if (value->layout == Layout::kShared) return FoldNumber(node, value);
    if (IsLookup(node)) {
      value->source = Source::kLookup;
      value->index = Of(node.inputs[1]).index;
      value->inputs.resize(1);
      return;
    }
    if (IsConversion(node)) {
      value->source = Source::kConvert;
      return;
    }
    // Numbers of single-precision programs are doubles: no column of a matrix.
    const bool mixes = IsSingle() && node.info.IsMatrix() &&
                       std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
                         return input != kNoNode && Of(input).layout == Layout::kColumn;
                       });
    value->node_by_node = mixes || !BatchRows(node, value);
  }

  // An operator on literals becomes a literal: bounds of columns are often computed from sizes of parameters.
  void FoldNumber(const Node& node, BodyValue* value) const {
    const ops::Operator* const op = ops::FindOperator(node.op);
    if (!node.info.IsScalar() || op == nullptr || op->evaluate == nullptr || op->effect || op->may_fail)
      return;
    std::vector<const Scalar*> known;
    for (const NodeId input : node.inputs) {
      if (input == kNoNode || Of(input).source != Source::kLiteral) return;
      known.push_back(Of(input).node.FindAttribute("value"));
    }
    Result<Scalar> number = op->evaluate(*op, node, known);
    if (!number.ok() || number->IsString()) return;
    value->node = {.op = "literal", .info = node.info, .position = node.position};
    value->node.SetAttribute("value", *std::move(number));
    value->source = Source::kLiteral;
    value->inputs.clear();
  }

  // as.scalar of a matrix of one cell, or as.matrix of a number.
  bool IsConversion(const Node& node) const {
    const NodeId input = node.inputs.empty() ? kNoNode : node.inputs[0];
    if (ops::HasRole(node, ops::Role::kAsMatrix)) return Of(input).layout == Layout::kColumn;
    return ops::HasRole(node, ops::Role::kAsScalar) && graph_[input].info.IsMatrix() &&
           graph_[input].info.shape == Shape{1, 1};
  }

  // X[i, ], where X is shared and i is a number that the structure program gives.
  bool IsLookup(const Node& node) const {
    if (!ops::HasRole(node, ops::Role::kRange) || !IsSame(node.inputs[0]) ||
        !graph_[node.inputs[0]].info.IsMatrix())
      return false;
    const auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoNode; };
    return input(1) != kNoNode && input(1) == input(2) && Of(input(1)).source == Source::kNumber &&
           input(3) == kNoNode && input(4) == kNoNode;
  }

  // Whether the operator may run on all rows together, as it would on each. If so, `value` is changed to what
  // runs on rows.
  bool BatchRows(const Node& node, BodyValue* value) {
    if (!node.info.IsMatrix())
      return ops::KindOf(node) == ops::OperatorKind::kCells ? BatchNumbers(node, value)
                                                            : BatchFullAggregate(node, value);
    if (ops::KindOf(node) == ops::OperatorKind::kCells) return BatchCells(node, value);
    if (node.info.shape.rows != 1) return false;
    if (ops::HasRole(node, ops::Role::kProduct))
      return IsRow(node.inputs[0]) && IsSame(node.inputs[1]) &&
             graph_[node.inputs[0]].info.shape.columns < ops::kPanelTerms;
    switch (ops::RowUseOf(node)) {
      case ops::RowUse::kCbind: return BatchCbind(node, value);
      case ops::RowUse::kRowAggregate: return IsRow(node.inputs[0]);
      case ops::RowUse::kColumnRange: return BatchColumnRange(node, value);
      default: return false;
    }
  }

  // A cell-wise operator on numbers of the nodes: on columns of doubles it computes what it computes of
  // scalars. Operators that give integers follow other rules.
  bool BatchNumbers(const Node& node, BodyValue* value) const {
    const ops::Operator* const op = ops::FindOperator(node.op);
    if (op == nullptr || (op->binary == std::nullopt && op->unary == std::nullopt)) return false;
    const auto all_are = [&](auto&& of) {
      return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
        return input == kNoNode || (graph_[input].info.IsScalar() && of(graph_[input].info.value_type));
      });
    };
    if (node.info.value_type == ValueType::kBoolean) {
      if (!all_are([](ValueType type) { return type == ValueType::kBoolean; }) && !ops::IsComparison(*op))
        return false;
    } else if (node.info.value_type != ValueType::kDouble) {
      return false;
    }
    return all_are([](ValueType type) { return type != ValueType::kString; }) && BatchCells(node, value);
  }

  // sum(x) of a row is rowSums(x): both add in the same lanes. A sum of floats must not be rounded to a
  // float, as rowSums would round it, so floats are widened first.
  bool BatchFullAggregate(const Node& node, BodyValue* value) {
    const ops::Operator* const op = ops::FindOperator(node.op);
    if (op == nullptr || op->of_rows.empty() || node.inputs.size() != 1 || !IsRow(node.inputs[0]))
      return false;
    value->node.op = op->of_rows;
    if (!IsSingle()) return true;
    BodyValue widened = {.source = Source::kConvert,
                         .stage = Of(node.inputs[0]).stage,
                         .layout = Layout::kRows,
                         .node = {.op = "as.matrix", .info = graph_[node.inputs[0]].info},
                         .inputs = {value->inputs[0]}};
    widened.node.info.element_type = ElementType::kFloat64;
    value->inputs[0].id = static_cast<int32_t>(body_.values.size());
    body_.values.push_back(std::move(widened));
    return true;
  }

  // The cells of a node's value are its row, in order. A shared operand is repeated over the rows, as a
  // vector on the right; where the operator would not repeat an operand, it is written out (Operand::spread).
  bool BatchCells(const Node& node, BodyValue* value) const {
    const Shape shape = node.info.IsScalar() ? Shape{1, 1} : node.info.shape;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (input == kNoNode) continue;
      const ValueInfo& info = graph_[input].info;
      if (info.IsScalar() && IsSame(input)) continue;
      const bool is_cell = info.IsScalar() || info.shape == Shape{1, 1};
      const bool fits = is_cell || info.shape == shape;
      // A column is repeated along another axis than the row of cells; a shared matrix would be.
      if (!fits || (shape.rows != 1 && IsSame(input))) return false;
      const bool is_full = !IsSame(input) && info.IsMatrix() && info.shape == shape;
      const bool is_repeated = i == 1 && node.inputs.size() == 2;
      value->inputs[i].spread = !is_full && !is_repeated;
    }
    // + and * give the same bits with their operands exchanged: the repeated one goes to the right.
    const ops::Operator* const op = ops::FindOperator(node.op);
    const bool commutes = op->binary == ops::BinaryCode::kAdd || op->binary == ops::BinaryCode::kMultiply;
    if (commutes && value->inputs.size() == 2 && value->inputs[0].spread &&
        Of(node.inputs[1]).layout == Layout::kRows && graph_[node.inputs[1]].info.shape == shape) {
      std::swap(value->inputs[0], value->inputs[1]);
      value->inputs[1].spread = false;
    }
    return true;
  }

  bool BatchCbind(const Node& node, BodyValue* value) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (input == kNoNode || !graph_[input].info.IsMatrix() || graph_[input].info.shape.rows != 1)
        return false;
      value->inputs[i].spread = IsSame(input);
    }
    return true;
  }

  // x[, a:b] or x[1, a:b] of a row, where all nodes have the same bounds.
  bool BatchColumnRange(const Node& node, BodyValue* value) const {
    if (!IsRow(node.inputs[0])) return false;
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoNode && !IsSame(node.inputs[i])) return false;
    for (size_t i = 1; i <= 2 && i < node.inputs.size(); ++i) {
      const NodeId bound = node.inputs[i];
      if (bound == kNoNode) continue;
      const Scalar* const literal = graph_[bound].FindAttribute("value");
      if (literal == nullptr || literal->AsInteger() != 1) return false;
      value->inputs[i].id = BodyValue::kNone;
    }
    return true;
  }

  // Drops values that nothing reads: numbers that only say which row is looked up are no operands.
  void DropUnread() {
    std::vector<bool> is_read(body_.values.size(), false);
    for (const int32_t result : body_.results) is_read[static_cast<size_t>(result)] = true;
    for (size_t id = body_.values.size(); id-- > 0;)
      if (is_read[id])
        for (const BodyValue::Operand& input : body_.values[id].inputs)
          if (input.id != BodyValue::kNone) is_read[static_cast<size_t>(input.id)] = true;
    std::vector<int32_t> now(body_.values.size(), BodyValue::kNone);
    std::vector<BodyValue> read;
    for (size_t id = 0; id < body_.values.size(); ++id) {
      if (!is_read[id]) continue;
      for (BodyValue::Operand& input : body_.values[id].inputs)
        if (input.id != BodyValue::kNone) input.id = now[static_cast<size_t>(input.id)];
      now[id] = static_cast<int32_t>(read.size());
      BodyValue& value = read.emplace_back(std::move(body_.values[id]));
      // Kernels ask the node which inputs there are.
      value.node.inputs.clear();
      for (const BodyValue::Operand& input : value.inputs) value.node.inputs.push_back(input.id);
    }
    for (int32_t& result : body_.results) result = now[static_cast<size_t>(result)];
    body_.values = std::move(read);
  }

  // Rows that are looked up, and reshaped, are read in the batch that needs them. Where values of kPerClass
  // are computed of them, they are copied for the whole class instead.
  void SinkLookups() {
    const size_t count = body_.values.size();
    const auto is_reshaped = [&](const BodyValue& value) {
      return value.source == Source::kOperator && value.layout == Layout::kRows &&
             ops::HasRole(value.node, {ops::Role::kReshape, ops::Role::kTranspose, ops::Role::kRange});
    };
    std::vector<bool> waits(count, true);  // Whether no value of kPerClass needs it.
    for (size_t id = count; id-- > 0;) {
      const BodyValue& value = body_.values[id];
      if (value.stage != Stage::kPerClass) continue;
      if (value.source == Source::kLookup || (is_reshaped(value) && waits[id])) continue;
      for (const BodyValue::Operand& input : value.inputs)
        if (input.id != BodyValue::kNone) waits[static_cast<size_t>(input.id)] = false;
    }
    for (size_t id = 0; id < count; ++id) {
      BodyValue& value = body_.values[id];
      if (value.stage != Stage::kPerClass || !waits[id]) continue;
      const bool follows = is_reshaped(value) &&
                           body_.values[static_cast<size_t>(value.inputs[0].id)].stage == Stage::kPerBatch;
      if (value.source == Source::kLookup || follows) value.stage = Stage::kPerBatch;
    }
  }

  // By stage, and in a stage by depth, the number of operators before a value: values of one depth do not
  // depend on each other.
  void OrderByDepth() {
    const size_t count = body_.values.size();
    depths_.assign(count, 0);
    for (size_t id = 0; id < count; ++id) {
      const BodyValue& value = body_.values[id];
      for (const BodyValue::Operand& input : value.inputs)
        if (input.id != BodyValue::kNone && body_.values[static_cast<size_t>(input.id)].stage == value.stage)
          depths_[id] = std::max(depths_[id], depths_[static_cast<size_t>(input.id)] + 1);
    }
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(body_.values[a].stage, depths_[a]) < std::pair(body_.values[b].stage, depths_[b]);
    });
    std::vector<int32_t> now(count);
    std::vector<int> depths(count);
    for (size_t at = 0; at < count; ++at) {
      now[order[at]] = static_cast<int32_t>(at);
      depths[at] = depths_[order[at]];
    }
    std::vector<BodyValue> values;
    for (const size_t id : order) {
      BodyValue& value = values.emplace_back(std::move(body_.values[id]));
      for (size_t i = 0; i < value.inputs.size(); ++i) {
        int32_t& operand = value.inputs[i].id;
        if (operand != BodyValue::kNone) operand = now[static_cast<size_t>(operand)];
        value.node.inputs[i] = operand;
      }
    }
    for (int32_t& result : body_.results) result = now[static_cast<size_t>(result)];
    body_.values = std::move(values);
    depths_ = std::move(depths);
  }

  void JoinProducts() {
    const auto is_product = [&](size_t id) {
      const BodyValue& value = body_.values[id];
      return value.stage == Stage::kPerBatch && value.source == Source::kOperator &&
             ops::HasRole(value.node, ops::Role::kProduct) && !value.node_by_node && !value.with_child;
    };
    for (size_t id = 0; id < body_.values.size(); ++id) {
      if (!is_product(id)) continue;
      for (size_t first = 0; first < id && body_.values[id].stacked == BodyValue::kNone; ++first) {
        if (!is_product(first) || depths_[first] != depths_[id] ||
            body_.values[first].inputs[1].id != body_.values[id].inputs[1].id)
          continue;
        body_.values[first].stacked = body_.values[id].stacked = static_cast<int32_t>(first);
      }
    }
  }

  const ClassGraph& from_;
  const Graph& graph_;
  const ClassContext& context_;
  std::string& why_;
  std::vector<int32_t> value_of_;
  std::vector<int> depths_;
  RecursiveBody body_;
};

}  // namespace

std::optional<ops::RecursiveBody> BatchOperators(const ClassGraph& graph, const ClassContext& context,
                                                 std::string* why) {
  const ClassGraph stacked = JoinAssigned(graph);
  return Batcher(stacked, context, why).Run();
}

}  // namespace heddle::compiler
