// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/fuse_items.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/fuse/fuse.h"
#include "core/environment/random.h"
#include "ops/base/operator.h"
#include "ops/recursion/body/item_region.h"
#include "ops/recursion/body/packed_weights.h"

namespace heddle::compiler {
namespace {

using ops::RecursiveBody;
using Item = RecursiveBody::Item;

// Items of one loop: more of them would not stay in registers, and take long to compile.
constexpr size_t kMostItems = 64;

class ItemFuser {
 public:
  ItemFuser(const FuseOptions& options, RecursiveBody* body)
      : random_(options.seed), is_random_(options.mode == FusionMode::kRandom), body_(*body) {}

  void Run() {
    const size_t count = body_.items.size();
    is_cell_.resize(count);
    for (size_t id = 0; id < count; ++id)
      is_cell_[id] = ops::IsCellItem(body_, static_cast<int32_t>(id)) && Wants();
    FindNumbers();
    PartProducts();
    Delay();
    // Loops by stage, number and width, in parts of which each reads only earlier ones.
    std::map<std::tuple<RecursiveBody::Stage, int, int64_t>, std::vector<size_t>> loops;
    for (size_t id = 0; id < count; ++id)
      if (is_cell_[id])
        loops[{body_.items[id].stage, number_[id], ops::CellsOf(body_.items[id])}].push_back(id);
    for (const auto& [key, members] : loops)
      for (size_t first = 0; first < members.size(); first += kMostItems) {
        const int32_t group = body_.groups++;
        for (size_t i = first; i < std::min(members.size(), first + kMostItems); ++i)
          body_.items[members[i]].group = group;
      }
    for (size_t id = 0; id < count; ++id) AddFold(id);
  }

 private:
  bool Wants() { return !is_random_ || random_.Below(2) == 0; }

  template <typename Visit>
  void EachInput(size_t id, const Visit& visit) const {
    for (const RecursiveBody::Operand& input : body_.items[id].inputs)
      if (input.value != RecursiveBody::kNone &&
          body_.items[static_cast<size_t>(input.value)].stage == body_.items[id].stage)
        visit(static_cast<size_t>(input.value));
  }

  // Of a cell-wise item the number of the loop that computes it; of any other the one before whose loops it
  // is computed. No way from a loop comes back to it: what is no cell-wise item has a higher number than the
  // loops that it reads.
  void FindNumbers() {
    number_.assign(body_.items.size(), 0);
    for (size_t id = 0; id < body_.items.size(); ++id)
      EachInput(id, [&](size_t input) {
        const int later = is_cell_[input] && !is_cell_[id] ? 1 : 0;
        number_[id] = std::max(number_[id], number_[input] + later);
      });
  }

  // A loop between two products may read one and be read by the other, also where no item of it does both:
  // they are one product only behind the same loops.
  void PartProducts() {
    for (size_t id = 0; id < body_.items.size(); ++id) {
      int32_t& joined = body_.items[id].joined;
      if (joined != RecursiveBody::kNone && number_[static_cast<size_t>(joined)] != number_[id])
        joined = RecursiveBody::kNone;
    }
  }

  // What only one later loop of its width reads is computed there, and need not be stored.
  void Delay() {
    for (size_t id = body_.items.size(); id-- > 0;) {
      if (!is_cell_[id] || std::find(body_.results.begin(), body_.results.end(), static_cast<int32_t>(id)) !=
                               body_.results.end())
        continue;
      std::set<int> readers;
      bool are_same = true;
      for (size_t reader = id + 1; reader < body_.items.size(); ++reader)
        for (const RecursiveBody::Operand& input : body_.items[reader].inputs) {
          if (input.value != static_cast<int32_t>(id)) continue;
          are_same &= is_cell_[reader] && body_.items[reader].stage == body_.items[id].stage &&
                      ops::CellsOf(body_.items[reader]) == ops::CellsOf(body_.items[id]);
          readers.insert(number_[reader]);
        }
      if (are_same && readers.size() == 1) number_[id] = *readers.begin();
    }
  }

  // A sum is made by the loop of what it sums up; a loop of its own reads what other steps make.
  void AddFold(size_t id) {
    if (!ops::IsFoldItem(body_, static_cast<int32_t>(id)) || !Wants()) return;
    Item& item = body_.items[id];
    const Item& input = body_.items[static_cast<size_t>(item.inputs[0].value)];
    item.group =
        input.group != RecursiveBody::kNone && input.stage == item.stage ? input.group : body_.groups++;
  }

  SeededRandom random_;
  const bool is_random_;
  RecursiveBody& body_;
  std::vector<bool> is_cell_;
  std::vector<int> number_;
};

}  // namespace

Status FuseItems(std::string_view fusion, ops::RecursiveBody* body) {
  FuseOptions options;
  HEDDLE_RETURN_IF_ERROR(SetMode(fusion, &options));
  if (options.mode != FusionMode::kOff) ItemFuser(options, body).Run();
  return OkStatus();
}

void PushProductsDown(ops::RecursiveBody* body) {
  using Source = RecursiveBody::Source;
  // Calls whose results are read at all, and those whose result is multiplied with the parameter.
  std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> multiplied;
  std::set<int32_t> calls;
  const auto key_of = [&](const Item& item) {
    const Item& left = body->items[static_cast<size_t>(item.inputs[0].value)];
    return std::pair(left.result, item.inputs[1].value);
  };
  const auto can_move = [&](const Item& item) {
    if (item.source != Source::kOperator || ops::RoleOf(item.node) != ops::Role::kProduct ||
        item.node_by_node)
      return false;
    const Item& left = body->items[static_cast<size_t>(item.inputs[0].value)];
    const Item& right = body->items[static_cast<size_t>(item.inputs[1].value)];
    return left.source == Source::kChild && left.node.info.shape.rows == 1 &&
           right.form == RecursiveBody::Form::kSame && !right.name.empty() &&
           ops::PackedWeights::Takes(right.node.info.shape);
  };
  for (const Item& item : body->items) {
    if (item.source == Source::kChild) calls.insert(item.index);
    if (can_move(item))
      multiplied[key_of(item)].insert(body->items[static_cast<size_t>(item.inputs[0].value)].index);
  }
  for (Item& item : body->items)
    if (can_move(item) && multiplied[key_of(item)].size() == calls.size())
      item.pushed = true, item.joined = -1;
}

}  // namespace heddle::compiler
