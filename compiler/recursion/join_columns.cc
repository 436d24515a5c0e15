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

using ops::RecursiveBody;
using Item = RecursiveBody::Item;
using Form = RecursiveBody::Form;
using Source = RecursiveBody::Source;
using Stage = RecursiveBody::Stage;

// Matrices that stand side by side, in the order of their products.
struct Joined {
  std::vector<int32_t> products, rights;
  int32_t matrix = RecursiveBody::kNone, product = RecursiveBody::kNone;  // In the new body.
};

class ColumnJoiner {
 public:
  explicit ColumnJoiner(RecursiveBody* body) : body_(*body) {}

  void Run() {
    FindGroups();
    if (group_of_.empty()) return;
    now_.assign(body_.items.size(), RecursiveBody::kNone);
    // What is the same for all nodes first: matrices come before the first product with one of them.
    for (size_t id = 0; id < body_.items.size(); ++id)
      if (body_.items[id].form == Form::kSame) Keep(id);
    for (size_t id = 0; id < body_.items.size(); ++id) {
      if (body_.items[id].form == Form::kSame) continue;
      const auto found = group_of_.find(static_cast<int32_t>(id));
      if (found == group_of_.end())
        Keep(id);
      else
        ReadColumns(static_cast<int32_t>(id), &groups_[found->second]);
    }
    for (int32_t& result : body_.results) result = now_[static_cast<size_t>(result)];
    body_.items = std::move(made_);
  }

 private:
  const Item& At(int32_t id) const { return body_.items[static_cast<size_t>(id)]; }

  bool IsProduct(const Item& item) const {
    if (item.source != Source::kOperator || ops::RoleOf(item.node) != ops::Role::kProduct ||
        item.node_by_node)
      return false;
    const Item &left = At(item.inputs[0].value), &right = At(item.inputs[1].value);
    return item.form == Form::kRows && item.node.info.shape.rows == 1 && left.form == Form::kRows &&
           right.form == Form::kSame && ops::PackedWeights::Takes(right.node.info.shape);
  }

  void FindGroups() {
    std::map<int32_t, std::set<int32_t>> lefts;  // By right operand.
    for (const Item& item : body_.items)
      if (IsProduct(item)) lefts[item.inputs[1].value].insert(item.inputs[0].value);
    std::map<std::tuple<int32_t, Stage, std::set<int32_t>>, std::vector<int32_t>> of_left;
    for (size_t id = 0; id < body_.items.size(); ++id) {
      const Item& item = body_.items[id];
      if (!IsProduct(item)) continue;
      const int32_t left = item.inputs[0].value;
      of_left[{left, item.stage, lefts[item.inputs[1].value]}].push_back(static_cast<int32_t>(id));
    }
    for (const auto& [key, products] : of_left) {
      Joined joined;
      std::map<int32_t, int32_t> by_right;  // Their order is the same for all left operands.
      for (const int32_t id : products) by_right.emplace(At(id).inputs[1].value, id);
      if (by_right.size() < 2) continue;
      for (const auto& [right, id] : by_right) joined.rights.push_back(right), joined.products.push_back(id);
      for (const int32_t id : joined.products) group_of_[id] = groups_.size();
      groups_.push_back(std::move(joined));
    }
  }

  int32_t Add(Item item) {
    item.node.inputs.clear();
    for (const RecursiveBody::Operand& input : item.inputs) item.node.inputs.push_back(input.value);
    made_.push_back(std::move(item));
    return static_cast<int32_t>(made_.size()) - 1;
  }

  void Keep(size_t id) {
    Item item = body_.items[id];
    for (RecursiveBody::Operand& input : item.inputs)
      if (input.value != RecursiveBody::kNone) input.value = now_[static_cast<size_t>(input.value)];
    now_[id] = Add(std::move(item));
  }

  int32_t Literal(int64_t value) {
    Item item;
    item.source = Source::kLiteral;
    item.node = {.op = "literal", .info = ValueInfo::OfScalar(ValueType::kInteger)};
    item.node.SetAttribute("value", value);
    return Add(std::move(item));
  }

  // The matrices of a group side by side: once, whichever left operands they have.
  int32_t MatrixOf(const Joined& group) {
    const auto [found, is_new] = matrices_.try_emplace(group.rights, RecursiveBody::kNone);
    if (!is_new) return found->second;
    Item item;
    item.node = {.op = "cbind",
                 .info = At(group.rights[0]).node.info,
                 .position = At(group.products[0]).node.position};
    int64_t columns = 0;
    bool are_parameters = true;
    for (const int32_t right : group.rights) {
      item.inputs.push_back({.value = now_[static_cast<size_t>(right)]});
      columns += At(right).node.info.shape.columns;
      are_parameters &= At(right).source == Source::kParameter;
      item.name += (item.name.empty() ? "" : "|") + At(right).name;
    }
    item.node.info = ValueInfo::OfMatrix({item.node.info.shape.rows, columns});
    item.node.info.element_type = At(group.rights[0]).node.info.element_type;
    if (!are_parameters) item.name.clear();
    return found->second = Add(std::move(item));
  }

  void ReadColumns(int32_t id, Joined* group) {
    const Item& member = At(id);
    if (group->product == RecursiveBody::kNone) {
      group->matrix = MatrixOf(*group);
      Item product = At(group->products[0]);
      product.node.info.shape.columns = made_[static_cast<size_t>(group->matrix)].node.info.shape.columns;
      product.inputs = {{.value = now_[static_cast<size_t>(member.inputs[0].value)]},
                        {.value = group->matrix}};
      group->product = Add(std::move(product));
    }
    int64_t first = 1;
    for (size_t i = 0; group->products[i] != id; ++i) first += At(group->rights[i]).node.info.shape.columns;
    Item range;
    range.stage = member.stage;
    range.form = Form::kRows;
    range.node = {.op = "index", .info = member.node.info, .position = member.node.position};
    const int32_t last = Literal(first + member.node.info.shape.columns - 1);
    range.inputs = {{.value = group->product}, {}, {}, {.value = Literal(first)}, {.value = last}};
    now_[static_cast<size_t>(id)] = Add(std::move(range));
  }

  RecursiveBody& body_;
  std::vector<Joined> groups_;
  std::map<int32_t, size_t> group_of_;                // By product.
  std::map<std::vector<int32_t>, int32_t> matrices_;  // In the new body.
  std::vector<Item> made_;
  std::vector<int32_t> now_;
};

}  // namespace

void JoinColumns(RecursiveBody* body) { ColumnJoiner(body).Run(); }

}  // namespace heddle::compiler
