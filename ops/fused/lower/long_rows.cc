// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/lower/long_rows.h"

#include <algorithm>
#include <set>

#include "ops/fused/program/region_walk.h"

namespace heddle::ops {
namespace {

// A value that takes more operators on full rows is saved and not computed again.
constexpr int kMostRepeated = 4;

class PhaseDivider {
 public:
  explicit PhaseDivider(const BodyView& view) : view_(view) {}

  PhasedBody Run() {
    const auto count = static_cast<size_t>(view_.body().size());
    earliest_.assign(count, 0);
    operators_.assign(count, 0);
    needs_.assign(count, {});
    for (NodeId id = 0; id < view_.body().size(); ++id) FindEarliest(id);
    for (NodeId id = view_.body().size() - 1; id >= 0; --id) FindNeeds(id);
    CopyNodes();
    ChooseSaved();
    return std::move(phased_);
  }

 private:
  static size_t Index(NodeId id) { return BodyView::Index(id); }
  BodyRole Role(NodeId id) const { return view_.program().roles.nodes[Index(id)]; }
  bool IsFold(NodeId id) const { return Role(id) == BodyRole::kFold; }
  // A computed value of full rows. Vectors cost little: each phase that reads one computes it.
  bool IsFull(NodeId id) const { return view_.IsCellwise(id) && view_.Columns(id) > 1; }

  void FindEarliest(NodeId id) {
    if (!view_.IsRows(id) && !IsFold(id) && Role(id) != BodyRole::kRoot) return;
    int phase = 0, operators = IsFull(id) ? 1 : 0;
    for (const NodeId input : view_.node(id).inputs) {
      if (input == kNoNode) continue;
      if (view_.IsRows(input) || IsFold(input)) phase = std::max(phase, earliest_[Index(input)]);
      operators += operators_[Index(input)];
    }
    earliest_[Index(id)] = phase + (IsFold(id) ? 1 : 0);
    operators_[Index(id)] = IsFull(id) && IsHeavyNode(view_, id) ? kMostRepeated + 1 : operators;
  }

  bool IsCheap(NodeId id) const { return operators_[Index(id)] <= kMostRepeated; }

  // The phases that compute a value: the first that needs it, and if it is cheap the others.
  std::vector<int> PhasesOf(NodeId id) const {
    const std::set<int>& needs = needs_[Index(id)];
    return IsCheap(id) ? std::vector<int>(needs.begin(), needs.end()) : std::vector<int>{*needs.begin()};
  }

  // Consumers come first.
  void FindNeeds(NodeId id) {
    const auto need = [&](NodeId operand, int phase) {
      if (operand != kNoNode && IsFull(operand)) needs_[Index(operand)].insert(phase);
    };
    if (IsFold(id)) return need(view_.node(id).inputs[0], earliest_[Index(id)] - 1);
    if (Role(id) == BodyRole::kRoot) return need(view_.node(id).inputs[0], earliest_[Index(id)]);
    if (!IsFull(id)) return;
    if (needs_[Index(id)].empty()) needs_[Index(id)].insert(earliest_[Index(id)]);
    for (const int phase : PhasesOf(id))
      for (const NodeId input : view_.node(id).inputs) need(input, phase);
  }

  // The copy of an operand that phase `phase` reads.
  NodeId CopyFor(NodeId id, int phase) const {
    const std::map<int, NodeId>& copies = copies_[Index(id)];
    const auto own = copies.find(phase);
    return own != copies.end() ? own->second : copies.begin()->second;
  }

  void CopyNodes() {
    const FusedOperator& fused = view_.program().fused;
    phased_.fused = fused;
    phased_.fused.body = Graph();
    copies_.resize(fused.body.nodes.size());
    for (NodeId id = 0; id < fused.body.size(); ++id) {
      const bool fold = IsFold(id);
      const std::vector<int> phases = IsFull(id) ? PhasesOf(id) : std::vector<int>{earliest_[Index(id)]};
      for (const int phase : phases) {
        Node copy = fused.body[id];
        for (NodeId& input : copy.inputs)
          if (input != kNoNode) input = CopyFor(input, fold ? phase - 1 : phase);
        copies_[Index(id)][phase] = phased_.fused.body.Add(std::move(copy));
        phased_.phases.push_back(phase);
      }
    }
    for (NodeId& root : phased_.fused.roots) root = copies_[Index(root)].begin()->second;
  }

  void ChooseSaved() {
    const std::vector<NodeId>& roots = view_.program().fused.roots;
    std::set<int> taken;
    for (NodeId id = 0; id < view_.body().size(); ++id) {
      if (!IsFull(id) || IsCheap(id) || needs_[Index(id)].size() < 2) continue;
      const NodeId copy = copies_[Index(id)].begin()->second;
      SavedValue& saved = phased_.saved[copy];
      if (const int own = view_.RowRoot(id); own >= 0) {
        saved.result = own;
        continue;
      }
      // The rows of a result can hold the value until the phase that writes the result: that phase reads
      // each cell of the value before it writes the same cell of the result.
      for (size_t r = 0; r < roots.size() && saved.result < 0; ++r)
        if (IsFull(roots[r]) && *needs_[Index(roots[r])].begin() >= *needs_[Index(id)].rbegin() &&
            !taken.contains(static_cast<int>(r)))
          saved.result = static_cast<int>(r);
      if (saved.result >= 0)
        taken.insert(saved.result);
      else
        saved.array = phased_.saved_arrays++;
    }
  }

  const BodyView& view_;
  // By node: the first phase that can compute it; of an aggregate, the first that can read it.
  std::vector<int> earliest_;
  // By node: operators on full rows that computing it takes; one that is heavy counts as too many.
  std::vector<int> operators_;
  std::vector<std::set<int>> needs_;           // Phases that read a value of full rows.
  std::vector<std::map<int, NodeId>> copies_;  // By node and phase: the node of the new body.
  PhasedBody phased_;
};

}  // namespace

bool FoldsLongRows(const BodyView& view) {
  const std::vector<BodyRole>& roles = view.program().roles.nodes;
  return std::find(roles.begin(), roles.end(), BodyRole::kFold) != roles.end();
}

PhasedBody DivideIntoPhases(const BodyView& view) { return PhaseDivider(view).Run(); }

void FinishPhases(TileProgram* program) {
  if (program->phases == 1) return;
  std::vector<Step>& steps = program->steps;
  program->phases = 1;
  for (Step& step : steps) {
    program->phases = std::max(program->phases, step.phase + 1);
    // A result that another step reads should stay in the caches.
    step.stream =
        step.stream && std::none_of(step.outputs.begin(), step.outputs.end(), [&](const TileRef& tile) {
          return tile.kind != TileRef::Kind::kNone &&
                 std::any_of(steps.begin(), steps.end(),
                             [&](const Step& reader) { return Reads(reader, tile); });
        });
  }
  const auto writes = [](const Step& step, const TileRef& tile) {
    return step.to == tile || std::find(step.outputs.begin(), step.outputs.end(), tile) != step.outputs.end();
  };
  const auto fills_buffer_of = [&](const Step& earlier, const Step& reader) {
    std::vector<TileRef> made = earlier.outputs;
    made.push_back(earlier.to);
    return std::any_of(made.begin(), made.end(), [&](const TileRef& tile) {
      // Full rows of results, and saved values, are still there in later phases; buffers are not.
      const bool in_tile = tile.kind == TileRef::Kind::kBuffer ||
                           (tile.kind == TileRef::Kind::kResult && earlier.columns == 1);
      // A step that changes a buffer in place runs whenever the step that fills it does.
      return in_tile && (Reads(reader, tile) || writes(reader, tile));
    });
  };
  for (int phase = 0; phase < program->phases; ++phase) {
    std::vector<bool> run(steps.size(), false);
    for (size_t s = steps.size(); s-- > 0;) {
      run[s] = steps[s].phase == phase;
      for (size_t later = s + 1; later < steps.size() && steps[s].phase < phase && !run[s]; ++later)
        run[s] = run[later] && fills_buffer_of(steps[s], steps[later]);
    }
    program->runs.push_back(std::move(run));
  }
}

}  // namespace heddle::ops
