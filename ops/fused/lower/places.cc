// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/lower/places.h"

#include <algorithm>
#include <utility>

namespace heddle::ops {

Places::Places(FusedOperator fused, const Processor& processor) : BodyView(program_) {
  program_.fused = std::move(fused);
  program_.processor = processor;
  places_.assign(body().nodes.size(), {});
  FindConsumers();
}

Status Places::Take(PhasedBody made) {
  program_.fused = std::move(made.fused);
  program_.saved_arrays = made.saved_arrays;
  program_.phases = 1 + *std::max_element(made.phases.begin(), made.phases.end());
  phases_ = std::move(made.phases);
  saved_ = std::move(made.saved);
  places_.assign(body().nodes.size(), {});
  FindConsumers();
  HEDDLE_ASSIGN_OR_RETURN(program_.roles, FindRoles(program_.fused, LongRowFolds::kInChunks));
  return OkStatus();
}

void Places::Take(BodyWithBackgrounds made) {
  program_.fused = std::move(made.fused);
  program_.roles = std::move(made.roles);
  for (TileRoot& root : program_.roots) root.node = made.copies[Index(root.node)];
  by_entry_ = std::move(made.by_entry);
  backgrounds_ = std::move(made.backgrounds);
  usually_zero_ = std::move(made.usually_zero);
  program_.by_pattern = program_.has_background = true;
  places_.assign(body().nodes.size(), {});
  FindConsumers();
}

void Places::HastenBackgrounds(std::vector<int>* stages) const {
  for (NodeId id = 0; id < body().size(); ++id) {
    if (!IsBackground(id)) continue;
    int& stage = (*stages)[Index(id)];
    stage = 0;
    for (const NodeId input : node(id).inputs)
      if (input != kNoNode && IsRows(input)) stage = std::max(stage, (*stages)[Index(input)]);
  }
}

void Places::PlaceInputs() {
  for (TileRoot& root : program_.roots)
    if (root.of_rows) places_[Index(root.node)] = root.value = {Kind::kBuffer, NewBuffer(1), 0};
  for (NodeId id = 0; id < body().size(); ++id)
    if (IsRows(id) && IsInput(id) && !IsCsrInput(id) && !IsSingle(id) && !IsPattern(id))
      places_[Index(id)] = {Kind::kInput, InputPosition(node(id)), 0};
  if (!program_.by_pattern) return;
  places_[Index(Driver())] = {Kind::kDriver, 0, 0};
  if (program_.has_background) return;
  const std::vector<NodeId> shared = SharedPatterns(*this);
  if (shared.empty()) return;
  Step step{.kind = Step::Kind::kIntersect};
  step.outputs.push_back(places_[Index(Driver())] = NewPattern());
  for (NodeId id : shared) {
    step.inputs.push_back(InputPosition(node(id)));
    step.outputs.push_back(places_[Index(id)] = NewPattern());
  }
  program_.steps.push_back(std::move(step));
}

TileRef Places::PatternPlace(NodeId input, Pattern pattern) {
  if (pattern == Pattern::kCells && IsPattern(input)) {
    TileRef& place = places_[Index(input)];
    if (place.kind == Kind::kNone) {
      place = NewPattern();
      program_.steps.push_back(
          {.kind = Step::Kind::kGatherCells, .index = InputPosition(node(input)), .to = place});
    }
    return place;
  }
  TileRef& place = gathered_[input];
  if (place.kind != Kind::kNone) return place;
  Step step;
  if (pattern == Pattern::kColumn) {
    step.kind = Step::Kind::kGatherColumn;
    step.from = ContiguousPlace(input);
  } else {
    step.kind = pattern == Pattern::kRow ? Step::Kind::kGatherRow : Step::Kind::kGatherCells;
    step.index = InputPosition(node(input));
  }
  place = step.to = NewPattern();
  program_.steps.push_back(std::move(step));
  return place;
}

TileRef Places::NewPlace(NodeId id, bool only_result) {
  if (const auto keep = saved_.find(id); keep != saved_.end())
    return keep->second.result >= 0 ? TileRef{Kind::kResult, keep->second.result, 0}
                                    : TileRef{Kind::kSaved, keep->second.array, 0};
  const int root = RowRoot(id);
  if (IsPattern(id)) {
    if (root < 0 || node(id).info.format == Format::kDense || !consumers(id).empty()) return NewPattern();
    return {Kind::kResult, root, 0};
  }
  // What steps read again is read as doubles.
  if (root >= 0 && (!program_.single || only_result)) return {Kind::kResult, root, 0};
  return {Kind::kBuffer, NewBuffer(Columns(id)), 0};
}

int64_t Places::StrideOf(const TileRef& ref) const {
  if (ref.kind == Kind::kInput) return Columns(program_.roles.variables[static_cast<size_t>(ref.index)]);
  if (ref.kind == Kind::kResult) return Columns(program_.fused.roots[static_cast<size_t>(ref.index)]);
  if (ref.kind == Kind::kSaved) return program_.cut_columns;
  HEDDLE_CHECK(ref.kind == Kind::kBuffer, "values at entries have no rows");
  return program_.buffers[static_cast<size_t>(ref.index)];
}

TileRef Places::DensePlace(NodeId id) {
  if (program_.has_background && IsPattern(id)) {
    TileRef& spread = spread_[id];
    if (spread.kind == Kind::kNone) {
      spread = {Kind::kBuffer, NewBuffer(Columns(id)), 0};
      program_.steps.push_back(SpreadTo(id, spread));
    }
    return spread;
  }
  TileRef& place = places_[Index(id)];
  if (place.kind == Kind::kNone) {
    HEDDLE_CHECK(IsInput(id), "every other value was placed by the step that makes it");
    place = {Kind::kBuffer, NewBuffer(Columns(id)), 0};
    program_.steps.push_back({.kind = IsCsrInput(id) ? Step::Kind::kDensify : Step::Kind::kWiden,
                              .index = InputPosition(node(id)),
                              .columns = Columns(id),
                              .to = place});
  }
  return place;
}

Step Places::SpreadTo(NodeId id, const TileRef& to) const {
  return {.kind = Step::Kind::kSpread,
          .columns = Columns(id),
          .from = places_[Index(id)],
          .to = to,
          .background = BackgroundPlace(id)};
}

void Places::FinishPatterned(NodeId root, const TileRef& result) {
  program_.patterned.resize(program_.fused.roots.size(), false);
  program_.patterned[static_cast<size_t>(result.index)] = true;
  if (PlaceOf(root) != result)
    program_.steps.push_back(
        {.kind = Step::Kind::kCopy, .columns = Columns(root), .from = PlaceOf(root), .to = result});
  if (HasBackground(root))
    program_.steps.push_back({.kind = Step::Kind::kCopy,
                              .columns = 1,
                              .from = BackgroundPlace(root),
                              .to = {Kind::kBackground, result.index, 0}});
}

TileRef Places::ContiguousPlace(NodeId id) {
  const TileRef place = DensePlace(id);
  if (StrideOf(place) == Columns(id)) return place;
  TileRef& copy = copies_[id];
  if (copy.kind == Kind::kNone) {
    copy = {Kind::kBuffer, NewBuffer(Columns(id)), 0};
    program_.steps.push_back({.kind = Step::Kind::kCopy, .columns = Columns(id), .from = place, .to = copy});
  }
  return copy;
}

Status Places::ReadForProduct(NodeId id, Step* step, int* csr_input) {
  *csr_input = -1;
  const bool sparse = node(id).info.format == Format::kSparse;
  const bool multiplies = step->kind == Step::Kind::kMultiply;
  if (IsPattern(id) && (sparse || !HasBackground(id) || (multiplies && usually_zero_[Index(id)]))) {
    step->from = PlaceOf(id);
    step->background = BackgroundPlace(id);
    step->multiplies_zeros = multiplies && !sparse;
    return OkStatus();
  }
  if (IsCsrInput(id)) {
    *csr_input = InputPosition(node(id));
    return OkStatus();
  }
  if (sparse) return Unimplemented("a product of a CSR intermediate");
  step->from = SinglesPlace(id);
  return OkStatus();
}

TileRef Places::SinglesPlace(NodeId id) {
  if (IsReadAsSingles(id)) return {Kind::kInput, InputPosition(node(id)), 0};
  return DensePlace(id);
}

}  // namespace heddle::ops
