// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/lower/stages.h"

#include <algorithm>

namespace heddle::ops {
namespace {

// The stage of the only region that reads the node, cell by cell, or -1.
int StageOfReaders(const BodyView& view, const std::vector<int>& stages, NodeId id) {
  int stage = -1;
  for (const NodeId consumer : view.consumers(id)) {
    if (!view.IsCellwise(consumer) || view.Columns(consumer) != view.Columns(id)) return -1;
    const Node& reader = view.node(consumer);
    for (size_t i = 0; i < reader.inputs.size(); ++i)
      if (reader.inputs[i] == id && view.PatternOf(consumer, i) != Pattern::kCells) return -1;
    const int of_reader = stages[BodyView::Index(consumer)];
    if (stage >= 0 && stage != of_reader) return -1;
    stage = of_reader;
  }
  return stage;
}

// True if no operand would have to be kept for the later region only.
bool ReadsWhatIsThere(const BodyView& view, const std::vector<int>& stages, NodeId id) {
  const std::vector<NodeId>& inputs = view.node(id).inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](NodeId input) {
    return input == kNoNode || !view.IsRows(input) || view.IsInput(input) || !view.IsCellwise(input) ||
           stages[BodyView::Index(input)] == stages[BodyView::Index(id)];
  });
}

}  // namespace

std::vector<int> FindStages(const BodyView& view) {
  const NodeId count = view.body().size();
  std::vector<int> earliest(static_cast<size_t>(count), 0);
  for (NodeId id = 0; id < count; ++id) {
    if (!view.IsRows(id) || view.IsInput(id)) continue;
    int stage = 0;
    for (const NodeId input : view.node(id).inputs)
      if (input != kNoNode && view.IsRows(input)) stage = std::max(stage, earliest[BodyView::Index(input)]);
    earliest[BodyView::Index(id)] = stage + (view.IsCellwise(id) ? 0 : 1);
  }
  // Readers first; then back to where they were those that may not stay, until the others may.
  std::vector<int> stages = earliest;
  for (NodeId id = count - 1; id >= 0; --id)
    if (view.IsCellwise(id))
      stages[BodyView::Index(id)] = std::max(stages[BodyView::Index(id)], StageOfReaders(view, stages, id));
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId id = 0; id < count; ++id) {
      int& stage = stages[BodyView::Index(id)];
      if (stage == earliest[BodyView::Index(id)] ||
          (StageOfReaders(view, stages, id) == stage && ReadsWhatIsThere(view, stages, id)))
        continue;
      stage = earliest[BodyView::Index(id)];
      changed = true;
    }
  }
  return stages;
}

}  // namespace heddle::ops
