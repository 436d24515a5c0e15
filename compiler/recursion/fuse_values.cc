// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/fuse_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/fuse/fuse.h"
#include "core/environment/random.h"
#include "ops/base/operator.h"
#include "ops/recursion/body/body_region.h"
#include "ops/recursion/body/packed_weights.h"

namespace heddle::compiler {
namespace {

using ops::BodyValue;
using ops::RecursiveBody;

// Values of one loop. More would not stay in registers, and take long to compile.
constexpr size_t kMostValues = 64;

class ValueFuser {
 public:
  ValueFuser(const FuseOptions& options, RecursiveBody* body)
      : random_(options.seed), is_random_(options.mode == FusionMode::kRandom), body_(*body) {}

  void Run() {
    const size_t count = body_.values.size();
    is_cell_.resize(count);
    for (size_t id = 0; id < count; ++id)
      is_cell_[id] = ops::IsCellValue(body_, static_cast<int32_t>(id)) && Wants();
    FindNumbers();
    PartProducts();
    Delay();
    // A loop for each stage, number and width. Long ones are cut: a part reads only earlier parts.
    std::map<std::tuple<BodyValue::Stage, int, int64_t>, std::vector<size_t>> loops;
    for (size_t id = 0; id < count; ++id)
      if (is_cell_[id])
        loops[{body_.values[id].stage, number_[id], ops::CellsOf(body_.values[id])}].push_back(id);
    for (const auto& [key, members] : loops)
      for (size_t first = 0; first < members.size(); first += kMostValues) {
        const int32_t fused_operator = body_.fused_operators++;
        for (size_t i = first; i < std::min(members.size(), first + kMostValues); ++i)
          body_.values[members[i]].fused_operator = fused_operator;
      }
    for (size_t id = 0; id < count; ++id) AddFold(id);
  }

 private:
  bool Wants() { return !is_random_ || random_.Below(2) == 0; }

  template <typename Visit>
  void EachInput(size_t id, const Visit& visit) const {
    for (const BodyValue::Operand& input : body_.values[id].inputs)
      if (input.id != BodyValue::kNone &&
          body_.values[static_cast<size_t>(input.id)].stage == body_.values[id].stage)
        visit(static_cast<size_t>(input.id));
  }

  // A cell-wise value gets the number of the loop that computes it. Any other value gets a number above those
  // of the loops that it reads, and is computed before the loops of its number. So no loop waits for itself.
  void FindNumbers() {
    number_.assign(body_.values.size(), 0);
    for (size_t id = 0; id < body_.values.size(); ++id)
      EachInput(id, [&](size_t input) {
        const int later = is_cell_[input] && !is_cell_[id] ? 1 : 0;
        number_[id] = std::max(number_[id], number_[input] + later);
      });
  }

  // Two products may be stacked only if the same loops come before both: a loop between them may read one and
  // be read by the other, even where no value of the loop does both.
  void PartProducts() {
    for (size_t id = 0; id < body_.values.size(); ++id) {
      int32_t& stacked = body_.values[id].stacked;
      if (stacked != BodyValue::kNone && number_[static_cast<size_t>(stacked)] != number_[id])
        stacked = BodyValue::kNone;
    }
  }

  // A value that only one later loop of its width reads is computed in that loop, and need not be stored.
  void Delay() {
    for (size_t id = body_.values.size(); id-- > 0;) {
      if (!is_cell_[id] || std::find(body_.results.begin(), body_.results.end(), static_cast<int32_t>(id)) !=
                               body_.results.end())
        continue;
      std::set<int> readers;
      bool are_same = true;
      for (size_t reader = id + 1; reader < body_.values.size(); ++reader)
        for (const BodyValue::Operand& input : body_.values[reader].inputs) {
          if (input.id != static_cast<int32_t>(id)) continue;
          are_same &= is_cell_[reader] && body_.values[reader].stage == body_.values[id].stage &&
                      ops::CellsOf(body_.values[reader]) == ops::CellsOf(body_.values[id]);
          readers.insert(number_[reader]);
        }
      if (are_same && readers.size() == 1) number_[id] = *readers.begin();
    }
  }

  // A row is folded in the loop that computes the row, or in a loop of its own where another step computes
  // it.
  void AddFold(size_t id) {
    if (!ops::IsRowFold(body_, static_cast<int32_t>(id)) || !Wants()) return;
    BodyValue& value = body_.values[id];
    const BodyValue& input = body_.values[static_cast<size_t>(value.inputs[0].id)];
    value.fused_operator = input.fused_operator != BodyValue::kNone && input.stage == value.stage
                               ? input.fused_operator
                               : body_.fused_operators++;
  }

  SeededRandom random_;
  const bool is_random_;
  RecursiveBody& body_;
  std::vector<bool> is_cell_;
  std::vector<int> number_;
};

}  // namespace

Status FuseValues(std::string_view fusion, ops::RecursiveBody* body) {
  FuseOptions options;
  HEDDLE_RETURN_IF_ERROR(SetMode(fusion, &options));
  if (options.mode != FusionMode::kOff) ValueFuser(options, body).Run();
  return OkStatus();
}

void MoveProductsToChildren(ops::RecursiveBody* body) {
  using Source = BodyValue::Source;
  // All calls whose results are read; by result and parameter, those whose result the parameter multiplies.
  std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> multiplied;
  std::set<int32_t> calls;
  const auto key_of = [&](const BodyValue& value) {
    const BodyValue& left = body->values[static_cast<size_t>(value.inputs[0].id)];
    return std::pair(left.result, value.inputs[1].id);
  };
  const auto can_move = [&](const BodyValue& value) {
    if (value.source != Source::kOperator || !ops::HasRole(value.node, ops::Role::kProduct) ||
        value.node_by_node)
      return false;
    const BodyValue& left = body->values[static_cast<size_t>(value.inputs[0].id)];
    const BodyValue& right = body->values[static_cast<size_t>(value.inputs[1].id)];
    return left.source == Source::kChild && left.node.info.shape.rows == 1 &&
           right.layout == BodyValue::Layout::kShared && !right.name.empty() &&
           ops::PackedWeights::Takes(right.node.info.shape);
  };
  for (const BodyValue& value : body->values) {
    if (value.source == Source::kChild) calls.insert(value.index);
    if (can_move(value))
      multiplied[key_of(value)].insert(body->values[static_cast<size_t>(value.inputs[0].id)].index);
  }
  for (BodyValue& value : body->values)
    if (can_move(value) && multiplied[key_of(value)].size() == calls.size())
      value.with_child = true, value.stacked = -1;
}

}  // namespace heddle::compiler
