// SPDX-License-Identifier: Apache-2.0
#include "ops/base/stages.h"

namespace heddle::ops {

RankGrid GridOf(const Node& node, int32_t ranks) {
  const Scalar* const columns = node.FindAttribute(kGridColumns);
  return {.ranks = ranks, .columns = columns == nullptr ? 1 : static_cast<int32_t>(columns->AsInteger())};
}

size_t ValuesMade(Reach reach, const RankGrid& grid, int32_t rank) {
  switch (reach) {
    case Reach::kParts: return static_cast<size_t>(grid.ranks);
    case Reach::kFromLast: return rank + 1 == grid.ranks ? static_cast<size_t>(grid.ranks) : 0;
    case Reach::kRowParts: return static_cast<size_t>(grid.columns);
    case Reach::kHere:
    case Reach::kAll:
    case Reach::kNext:
    case Reach::kRowCopies:
    case Reach::kColumnCopies: break;
  }
  return 1;
}

size_t ValuesReceived(Reach reach, const RankGrid& grid) {
  switch (reach) {
    case Reach::kParts: return static_cast<size_t>(grid.ranks);
    case Reach::kRowParts:
    case Reach::kRowCopies: return static_cast<size_t>(grid.columns);
    case Reach::kColumnCopies: return static_cast<size_t>(grid.rows());
    case Reach::kNext: return 0;
    case Reach::kHere:
    case Reach::kAll:
    case Reach::kFromLast: break;
  }
  return 1;
}

size_t ValuesMade(const Stage& stage, const RankGrid& grid, int32_t rank) {
  size_t values = 0;
  for (const Reach reach : stage.outputs) values += ValuesMade(reach, grid, rank);
  return values;
}

Split StageCall::RowsOf(size_t i) const {
  const int64_t length = input_infos[i].shape.rows;
  return length == rows.Length() ? rows : Distribution::SplitRows(length, ranks()).split;
}

std::span<const Value* const> StageCall::Parts(size_t i) const {
  const RankGrid all = grid();
  const std::span<const Reach> made = form.stages[static_cast<size_t>(stage) - 1].outputs;
  size_t place = 0;
  for (size_t o = 0; o < i; ++o) place += ValuesReceived(made[o], all);
  return received.subspan(place, ValuesReceived(made[i], all));
}

size_t StageCall::PlaceOf(size_t i) const {
  size_t place = 0;
  for (const Reach reach : form.stages[static_cast<size_t>(stage)].outputs.first(i))
    place += ValuesMade(reach, grid(), rank);
  return place;
}

InputUse InputUseOf(const StagedForm& form, const Node& node, std::span<const ValueInfo> inputs, int i) {
  return form.input_use == nullptr ? InputUseOf(node, inputs, i) : form.input_use(node, inputs, i);
}

std::vector<std::pair<int32_t, const StagedForm*>> StagedFormsOf(const Operator& op, const Node& node,
                                                                 std::span<const ValueInfo> inputs,
                                                                 Axis axis) {
  std::vector<std::pair<int32_t, const StagedForm*>> forms;
  int32_t place = 0;
  for (const StagedForm* form = op.staged; form != nullptr; form = form->other, ++place)
    if (form->units == nullptr && form->axis == axis &&
        (form->applies == nullptr || form->applies(node, inputs)))
      forms.emplace_back(place, form);
  return forms;
}

std::pair<int32_t, const StagedForm*> PartsFormOf(const Operator& op) {
  const auto forms = PartsFormsOf(op);
  return forms.empty() ? std::pair<int32_t, const StagedForm*>(0, nullptr) : forms[0];
}

std::vector<std::pair<int32_t, const StagedForm*>> PartsFormsOf(const Operator& op) {
  std::vector<std::pair<int32_t, const StagedForm*>> forms;
  int32_t place = 0;
  for (const StagedForm* form = op.staged; form != nullptr; form = form->other, ++place)
    if (form->units != nullptr) forms.emplace_back(place, form);
  return forms;
}

const StagedForm* StagedFormAt(const Operator& op, int32_t place) {
  const StagedForm* form = op.staged;
  for (; form != nullptr && place > 0; --place) form = form->other;
  return form;
}

}  // namespace heddle::ops
