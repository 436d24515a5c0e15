// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/recursion/assigned_ranges.h"
#include "compiler/recursion/class_body.h"
#include "compiler/recursion/fuse_items.h"
#include "compiler/recursion/join_columns.h"
#include "ops/base/operator.h"
#include "ops/product/matmul.h"

namespace heddle::compiler {
namespace {

using ops::RecursiveBody;
using Form = RecursiveBody::Form;
using Source = RecursiveBody::Source;
using Stage = RecursiveBody::Stage;

class Batcher {
 public:
  Batcher(const ClassGraph& from, const ClassContext& context, std::string* why)
      : from_(from), graph_(from.graph), context_(context), why_(*why) {}

  std::optional<RecursiveBody> Run() {
    item_of_.assign(graph_.nodes.size(), RecursiveBody::kNone);
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!Batch(id)) return std::nullopt;
    for (const NodeId result : from_.results) body_.results.push_back(item_of_[static_cast<size_t>(result)]);
    DropUnread();
    SinkLookups();
    if (context_.fusion != "off") JoinColumns(&body_);
    OrderByDepth();
    if (context_.pushes_down) PushProductsDown(&body_);
    JoinProducts();
    if (const Status fused = FuseItems(context_.fusion, &body_); !fused.ok()) {
      why_ = fused.message();
      return std::nullopt;
    }
    return std::move(body_);
  }

 private:
  using Item = RecursiveBody::Item;

  const Item& Of(NodeId id) const {
    return body_.items[static_cast<size_t>(item_of_[static_cast<size_t>(id)])];
  }
  bool IsSame(NodeId id) const { return Of(id).form == Form::kSame; }
  bool IsRow(NodeId id) const {
    return Of(id).form == Form::kRows && graph_[id].info.IsMatrix() && graph_[id].info.shape.rows == 1;
  }
  bool IsSingle() const { return context_.element_type == ElementType::kFloat32; }

  bool Batch(NodeId id) {
    const Node& node = graph_[id];
    Item item;
    item.node = node;
    if (node.Is("variable")) {
      BatchVariable(node.Text("name"), &item);
    } else if (node.Is("literal")) {
      item.source = Source::kLiteral;
    } else if (node.info.IsTuple() || node.Is("result")) {
      why_ = fmt::format("line {}: {}() has several results", node.position.line, node.op);
      return false;
    } else {
      BatchOperator(id, &item);
    }
    item_of_[static_cast<size_t>(id)] = static_cast<int32_t>(body_.items.size());
    body_.items.push_back(std::move(item));
    return true;
  }

  void BatchVariable(const std::string& name, Item* item) const {
    const ClassInput* const input = from_.InputNamed(name);
    if (input == nullptr) {
      item->source = Source::kParameter;
      item->name = name;
      return;
    }
    item->index = input->index;
    item->result = input->result;
    switch (input->kind) {
      case ClassInput::Kind::kNumber:
        item->source = Source::kNumber;
        item->stage = Stage::kAhead;
        item->form = Form::kColumn;
        break;
      case ClassInput::Kind::kChildResult:
        item->source = Source::kChild;
        item->stage = Stage::kLevel;
        item->form = item->node.info.IsScalar() ? Form::kColumn : Form::kRows;
        break;
    }
  }

  void BatchOperator(NodeId id, Item* item) {
    const Node& node = graph_[id];
    for (const NodeId input : node.inputs) {
      const int32_t value = input == kNoNode ? RecursiveBody::kNone : item_of_[static_cast<size_t>(input)];
      item->inputs.push_back({.value = value});
      if (input == kNoNode) continue;
      item->stage = std::max(item->stage, Of(input).stage);
      if (!IsSame(input)) item->form = node.info.IsScalar() ? Form::kColumn : Form::kRows;
    }
    if (item->form == Form::kSame) return FoldNumber(node, item);
    if (IsLookup(node)) {
      item->source = Source::kLookup;
      item->index = Of(node.inputs[1]).index;
      item->inputs.resize(1);
      return;
    }
    if (IsConversion(node)) {
      item->source = Source::kConvert;
      return;
    }
    // Numbers of single-precision programs are doubles: no column of a matrix.
    const bool mixes = IsSingle() && node.info.IsMatrix() &&
                       std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
                         return input != kNoNode && Of(input).form == Form::kColumn;
                       });
    item->node_by_node = mixes || !BatchRows(node, item);
  }

  // Numbers of known ones: bounds of columns, which blocks have as sizes of parameters.
  void FoldNumber(const Node& node, Item* item) const {
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
    item->node = {.op = "literal", .info = node.info, .position = node.position};
    item->node.SetAttribute("value", *std::move(number));
    item->source = Source::kLiteral;
    item->inputs.clear();
  }

  // The number in a matrix of one cell, or such a matrix of a number.
  bool IsConversion(const Node& node) const {
    const NodeId input = node.inputs.empty() ? kNoNode : node.inputs[0];
    if (ops::RoleOf(node) == ops::Role::kAsMatrix) return Of(input).form == Form::kColumn;
    return ops::RoleOf(node) == ops::Role::kAsScalar && graph_[input].info.IsMatrix() &&
           graph_[input].info.shape == Shape{1, 1};
  }

  // X[i, ] with a number of the node.
  bool IsLookup(const Node& node) const {
    if (ops::RoleOf(node) != ops::Role::kRange || !IsSame(node.inputs[0]) ||
        !graph_[node.inputs[0]].info.IsMatrix())
      return false;
    const auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoNode; };
    return input(1) != kNoNode && input(1) == input(2) && Of(input(1)).source == Source::kNumber &&
           input(3) == kNoNode && input(4) == kNoNode;
  }

  // Whether the operator on all rows is the operator on each; it is prepared for them, then.
  bool BatchRows(const Node& node, Item* item) {
    if (!node.info.IsMatrix())
      return ops::KindOf(node) == ops::OperatorKind::kCells ? BatchNumbers(node, item)
                                                            : BatchFullAggregate(node, item);
    if (ops::KindOf(node) == ops::OperatorKind::kCells) return BatchCells(node, item);
    if (node.info.shape.rows != 1) return false;
    if (ops::RoleOf(node) == ops::Role::kProduct)
      return IsRow(node.inputs[0]) && IsSame(node.inputs[1]) &&
             graph_[node.inputs[0]].info.shape.columns < ops::kPanelTerms;
    switch (ops::RowUseOf(node)) {
      case ops::RowUse::kCbind: return BatchCbind(node, item);
      case ops::RowUse::kRowAggregate: return IsRow(node.inputs[0]);
      case ops::RowUse::kColumnRange: return BatchColumnRange(node, item);
      default: return false;
    }
  }

  // Numbers of the nodes are a column of doubles, whose cells are computed as scalars are. What computes
  // integers has its own rules.
  bool BatchNumbers(const Node& node, Item* item) const {
    const ops::Operator* const op = ops::FindOperator(node.op);
    if (op == nullptr || (op->binary == std::nullopt && op->unary == std::nullopt)) return false;
    const auto all_are = [&](auto&& of) {
      return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
        return input == kNoNode || (graph_[input].info.IsScalar() && of(graph_[input].info.value_type));
      });
    };
    if (node.info.value_type == ValueType::kBoolean) {
      if (!all_are([](ValueType type) { return type == ValueType::kBoolean; }) &&
          !ops::IsComparison(*op))
        return false;
    } else if (node.info.value_type != ValueType::kDouble) {
      return false;
    }
    return all_are([](ValueType type) { return type != ValueType::kString; }) && BatchCells(node, item);
  }

  // sum(x) of a row is rowSums: the same lanes. Rounded to floats it would not be, so that floats are
  // widened.
  bool BatchFullAggregate(const Node& node, Item* item) {
    const ops::Operator* const op = ops::FindOperator(node.op);
    if (op == nullptr || op->of_rows.empty() || node.inputs.size() != 1 || !IsRow(node.inputs[0]))
      return false;
    item->node.op = op->of_rows;
    if (!IsSingle()) return true;
    Item widened = {.source = Source::kConvert,
                    .stage = Of(node.inputs[0]).stage,
                    .form = Form::kRows,
                    .node = {.op = "as.matrix", .info = graph_[node.inputs[0]].info},
                    .inputs = {item->inputs[0]}};
    widened.node.info.element_type = ElementType::kFloat64;
    item->inputs[0].value = static_cast<int32_t>(body_.items.size());
    body_.items.push_back(std::move(widened));
    return true;
  }

  // Cells of a node's value lie in its row, in order. Rows of the nodes that share an operand take it as a
  // vector on the right; what the operator would not repeat is written out.
  bool BatchCells(const Node& node, Item* item) const {
    const Shape shape = node.info.IsScalar() ? Shape{1, 1} : node.info.shape;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (input == kNoNode) continue;
      const ValueInfo& info = graph_[input].info;
      if (info.IsScalar() && IsSame(input)) continue;
      const bool is_cell = info.IsScalar() || info.shape == Shape{1, 1};
      const bool fits = is_cell || info.shape == shape;
      // Vectors along other axes than the row of cells, and matrices beside those of the nodes.
      if (!fits || (shape.rows != 1 && IsSame(input))) return false;
      const bool is_full = !IsSame(input) && info.IsMatrix() && info.shape == shape;
      const bool is_repeated = i == 1 && node.inputs.size() == 2;
      item->inputs[i].spread = !is_full && !is_repeated;
    }
    // What both operands may change places in takes the repeated one on the right.
    const ops::Operator* const op = ops::FindOperator(node.op);
    const bool commutes = op->binary == ops::BinaryCode::kAdd || op->binary == ops::BinaryCode::kMultiply;
    if (commutes && item->inputs.size() == 2 && item->inputs[0].spread &&
        Of(node.inputs[1]).form == Form::kRows && graph_[node.inputs[1]].info.shape == shape) {
      std::swap(item->inputs[0], item->inputs[1]);
      item->inputs[1].spread = false;
    }
    return true;
  }

  bool BatchCbind(const Node& node, Item* item) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (input == kNoNode || !graph_[input].info.IsMatrix() || graph_[input].info.shape.rows != 1)
        return false;
      item->inputs[i].spread = IsSame(input);
    }
    return true;
  }

  // x[, a:b] of a row, where all nodes have the same bounds; x[1, a:b] is the same.
  bool BatchColumnRange(const Node& node, Item* item) const {
    if (!IsRow(node.inputs[0])) return false;
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoNode && !IsSame(node.inputs[i])) return false;
    for (size_t i = 1; i <= 2 && i < node.inputs.size(); ++i) {
      const NodeId bound = node.inputs[i];
      if (bound == kNoNode) continue;
      const Scalar* const value = graph_[bound].FindAttribute("value");
      if (value == nullptr || value->AsInteger() != 1) return false;
      item->inputs[i].value = RecursiveBody::kNone;
    }
    return true;
  }

  // Numbers that only say which row is looked up are not needed as columns.
  void DropUnread() {
    std::vector<bool> is_read(body_.items.size(), false);
    for (const int32_t result : body_.results) is_read[static_cast<size_t>(result)] = true;
    for (size_t id = body_.items.size(); id-- > 0;)
      if (is_read[id])
        for (const RecursiveBody::Operand& input : body_.items[id].inputs)
          if (input.value != RecursiveBody::kNone) is_read[static_cast<size_t>(input.value)] = true;
    std::vector<int32_t> now(body_.items.size(), RecursiveBody::kNone);
    std::vector<Item> kept;
    for (size_t id = 0; id < body_.items.size(); ++id) {
      if (!is_read[id]) continue;
      for (RecursiveBody::Operand& input : body_.items[id].inputs)
        if (input.value != RecursiveBody::kNone) input.value = now[static_cast<size_t>(input.value)];
      now[id] = static_cast<int32_t>(kept.size());
      Item& item = kept.emplace_back(std::move(body_.items[id]));
      // Kernels ask the node which inputs there are.
      item.node.inputs.clear();
      for (const RecursiveBody::Operand& input : item.inputs) item.node.inputs.push_back(input.value);
    }
    for (int32_t& result : body_.results) result = now[static_cast<size_t>(result)];
    body_.items = std::move(kept);
  }

  // Rows that are looked up, and may be reshaped, are read where they are needed, unless something is
  // computed of them ahead: then they are copied once.
  void SinkLookups() {
    const size_t count = body_.items.size();
    const auto is_reshaped = [&](const Item& item) {
      return item.source == Source::kOperator && item.form == Form::kRows &&
             ops::HasRole(item.node, {ops::Role::kReshape, ops::Role::kTranspose, ops::Role::kRange});
    };
    std::vector<bool> waits(count, true);  // Whether nothing ahead needs it.
    for (size_t id = count; id-- > 0;) {
      const Item& item = body_.items[id];
      if (item.stage != Stage::kAhead) continue;
      if (item.source == Source::kLookup || (is_reshaped(item) && waits[id])) continue;
      for (const RecursiveBody::Operand& input : item.inputs)
        if (input.value != RecursiveBody::kNone) waits[static_cast<size_t>(input.value)] = false;
    }
    for (size_t id = 0; id < count; ++id) {
      Item& item = body_.items[id];
      if (item.stage != Stage::kAhead || !waits[id]) continue;
      const bool follows =
          is_reshaped(item) && body_.items[static_cast<size_t>(item.inputs[0].value)].stage == Stage::kLevel;
      if (item.source == Source::kLookup || follows) item.stage = Stage::kLevel;
    }
  }

  // What is the same for all first, then what is ahead, then the levels, each item as early as it can be:
  // equal depths are independent of each other.
  void OrderByDepth() {
    const size_t count = body_.items.size();
    depths_.assign(count, 0);
    for (size_t id = 0; id < count; ++id) {
      const Item& item = body_.items[id];
      for (const RecursiveBody::Operand& input : item.inputs)
        if (input.value != RecursiveBody::kNone &&
            body_.items[static_cast<size_t>(input.value)].stage == item.stage)
          depths_[id] = std::max(depths_[id], depths_[static_cast<size_t>(input.value)] + 1);
    }
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(body_.items[a].stage, depths_[a]) < std::pair(body_.items[b].stage, depths_[b]);
    });
    std::vector<int32_t> now(count);
    std::vector<int> depths(count);
    for (size_t at = 0; at < count; ++at) {
      now[order[at]] = static_cast<int32_t>(at);
      depths[at] = depths_[order[at]];
    }
    std::vector<Item> items;
    for (const size_t id : order) {
      Item& item = items.emplace_back(std::move(body_.items[id]));
      for (size_t i = 0; i < item.inputs.size(); ++i) {
        int32_t& value = item.inputs[i].value;
        if (value != RecursiveBody::kNone) value = now[static_cast<size_t>(value)];
        item.node.inputs[i] = value;
      }
    }
    for (int32_t& result : body_.results) result = now[static_cast<size_t>(result)];
    body_.items = std::move(items);
    depths_ = std::move(depths);
  }

  void JoinProducts() {
    const auto is_product = [&](size_t id) {
      const Item& item = body_.items[id];
      return item.stage == Stage::kLevel && item.source == Source::kOperator &&
             ops::RoleOf(item.node) == ops::Role::kProduct && !item.node_by_node && !item.pushed;
    };
    for (size_t id = 0; id < body_.items.size(); ++id) {
      if (!is_product(id)) continue;
      for (size_t first = 0; first < id && body_.items[id].joined == RecursiveBody::kNone; ++first) {
        if (!is_product(first) || depths_[first] != depths_[id] ||
            body_.items[first].inputs[1].value != body_.items[id].inputs[1].value)
          continue;
        body_.items[first].joined = body_.items[id].joined = static_cast<int32_t>(first);
      }
    }
  }

  const ClassGraph& from_;
  const Graph& graph_;
  const ClassContext& context_;
  std::string& why_;
  std::vector<int32_t> item_of_;
  std::vector<int> depths_;
  RecursiveBody body_;
};

}  // namespace

std::optional<ops::RecursiveBody> BatchOperators(const ClassGraph& graph, const ClassContext& context,
                                                 std::string* why) {
  const ClassGraph joined = JoinAssigned(graph);
  return Batcher(joined, context, why).Run();
}

}  // namespace heddle::compiler
