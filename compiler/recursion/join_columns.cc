// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/join_columns.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/base/operator.h"
#include "ops/recursion/body/packed_weights.h"

namespace heddle::compiler {
namespace {

using ops::BodyValue;
using ops::RecursiveBody;
using Layout = BodyValue::Layout;
using Source = BodyValue::Source;
using Stage = BodyValue::Stage;

// Matrices that become one, side by side, in the order of the products that have them on the right.
struct SideBySide {
  std::vector<int32_t> products, rights;
  int32_t matrix = BodyValue::kNone, product = BodyValue::kNone;  // In the new body.
};

class ColumnJoiner {
 public:
  explicit ColumnJoiner(RecursiveBody* body) : body_(*body) {}

  void Run() {
    FindGroups();
    if (group_of_.empty()) return;
    new_id_.assign(body_.values.size(), BodyValue::kNone);
    // Shared values come first, so that matrices stand before all products with them.
    for (size_t id = 0; id < body_.values.size(); ++id)
      if (body_.values[id].layout == Layout::kShared) CopyValue(id);
    for (size_t id = 0; id < body_.values.size(); ++id) {
      if (body_.values[id].layout == Layout::kShared) continue;
      const auto found = group_of_.find(static_cast<int32_t>(id));
      if (found == group_of_.end())
        CopyValue(id);
      else
        ReadColumns(static_cast<int32_t>(id), &groups_[found->second]);
    }
    for (int32_t& result : body_.results) result = new_id_[static_cast<size_t>(result)];
    body_.values = std::move(new_values_);
  }

 private:
  const BodyValue& At(int32_t id) const { return body_.values[static_cast<size_t>(id)]; }

  bool IsProduct(const BodyValue& value) const {
    if (value.source != Source::kOperator || !ops::HasRole(value.node, ops::Role::kProduct) ||
        value.node_by_node)
      return false;
    const BodyValue &left = At(value.inputs[0].id), &right = At(value.inputs[1].id);
    return value.layout == Layout::kRows && value.node.info.shape.rows == 1 && left.layout == Layout::kRows &&
           right.layout == Layout::kShared && ops::PackedWeights::Takes(right.node.info.shape);
  }

  void FindGroups() {
    std::map<int32_t, std::set<int32_t>> lefts;  // By right operand.
    for (const BodyValue& value : body_.values)
      if (IsProduct(value)) lefts[value.inputs[1].id].insert(value.inputs[0].id);
    std::map<std::tuple<int32_t, Stage, std::set<int32_t>>, std::vector<int32_t>> of_left;
    for (size_t id = 0; id < body_.values.size(); ++id) {
      const BodyValue& value = body_.values[id];
      if (!IsProduct(value)) continue;
      const int32_t left = value.inputs[0].id;
      of_left[{left, value.stage, lefts[value.inputs[1].id]}].push_back(static_cast<int32_t>(id));
    }
    for (const auto& [key, products] : of_left) {
      SideBySide joined;
      std::map<int32_t, int32_t> by_right;  // Their order is the same for all left operands.
      for (const int32_t id : products) by_right.emplace(At(id).inputs[1].id, id);
      if (by_right.size() < 2) continue;
      for (const auto& [right, id] : by_right) joined.rights.push_back(right), joined.products.push_back(id);
      for (const int32_t id : joined.products) group_of_[id] = groups_.size();
      groups_.push_back(std::move(joined));
    }
  }

  int32_t Add(BodyValue value) {
    value.node.inputs.clear();
    for (const BodyValue::Operand& input : value.inputs) value.node.inputs.push_back(input.id);
    new_values_.push_back(std::move(value));
    return static_cast<int32_t>(new_values_.size()) - 1;
  }

  void CopyValue(size_t id) {
    BodyValue value = body_.values[id];
    for (BodyValue::Operand& input : value.inputs)
      if (input.id != BodyValue::kNone) input.id = new_id_[static_cast<size_t>(input.id)];
    new_id_[id] = Add(std::move(value));
  }

  int32_t Literal(int64_t number) {
    BodyValue value;
    value.source = Source::kLiteral;
    value.node = {.op = "literal", .info = ValueInfo::OfScalar(ValueType::kInteger)};
    value.node.SetAttribute("value", number);
    return Add(std::move(value));
  }

  // The matrices of a group side by side; groups with other left operands share it.
  int32_t MatrixOf(const SideBySide& group) {
    const auto [found, is_new] = matrices_.try_emplace(group.rights, BodyValue::kNone);
    if (!is_new) return found->second;
    BodyValue value;
    value.node = {.op = "cbind",
                  .info = At(group.rights[0]).node.info,
                  .position = At(group.products[0]).node.position};
    int64_t columns = 0;
    bool are_parameters = true;
    for (const int32_t right : group.rights) {
      value.inputs.push_back({.id = new_id_[static_cast<size_t>(right)]});
      columns += At(right).node.info.shape.columns;
      are_parameters &= At(right).source == Source::kParameter;
      value.name += (value.name.empty() ? "" : "|") + At(right).name;
    }
    value.node.info = ValueInfo::OfMatrix({value.node.info.shape.rows, columns});
    value.node.info.element_type = At(group.rights[0]).node.info.element_type;
    if (!are_parameters) value.name.clear();
    return found->second = Add(std::move(value));
  }

  void ReadColumns(int32_t id, SideBySide* group) {
    const BodyValue& member = At(id);
    if (group->product == BodyValue::kNone) {
      group->matrix = MatrixOf(*group);
      BodyValue product = At(group->products[0]);
      product.node.info.shape.columns =
          new_values_[static_cast<size_t>(group->matrix)].node.info.shape.columns;
      product.inputs = {{.id = new_id_[static_cast<size_t>(member.inputs[0].id)]}, {.id = group->matrix}};
      group->product = Add(std::move(product));
    }
    int64_t first = 1;
    for (size_t i = 0; group->products[i] != id; ++i) first += At(group->rights[i]).node.info.shape.columns;
    BodyValue range;
    range.stage = member.stage;
    range.layout = Layout::kRows;
    range.node = {.op = "index", .info = member.node.info, .position = member.node.position};
    const int32_t last = Literal(first + member.node.info.shape.columns - 1);
    range.inputs = {{.id = group->product}, {}, {}, {.id = Literal(first)}, {.id = last}};
    new_id_[static_cast<size_t>(id)] = Add(std::move(range));
  }

  RecursiveBody& body_;
  std::vector<SideBySide> groups_;
  std::map<int32_t, size_t> group_of_;                // By product.
  std::map<std::vector<int32_t>, int32_t> matrices_;  // In the new body.
  std::vector<BodyValue> new_values_;
  std::vector<int32_t> new_id_;
};

}  // namespace

void JoinColumns(RecursiveBody* body) { ColumnJoiner(body).Run(); }

}  // namespace heddle::compiler
