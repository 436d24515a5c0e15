// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "compiler/fuse/memo.h"
#include "compiler/fuse/template.h"

namespace heddle::compiler::fusion {
namespace {

// In the order of exploration.
constexpr const Template* kTemplates[] = {&kRowTemplate, &kCellTemplate, &kOuterTemplate};

bool HasOpen(const std::vector<Entry>& group, FusionTemplate kind) {
  return std::any_of(group.begin(), group.end(),
                     [kind](const Entry& entry) { return entry.open && entry.kind == kind; });
}

class Explorer {
 public:
  explicit Explorer(const Dag& dag) : dag_(dag) { memo_.groups.resize(dag.nodes.size()); }

  Memo Run() {
    for (NodeId id = 0; id < dag_.size(); ++id)
      if (dag_[id].op != nullptr) ExploreNode(id);
    return std::move(memo_);
  }

 private:
  void ExploreNode(NodeId id) {
    entries_.clear();
    for (const Template* kind : kTemplates) {
      if (kind->open(dag_, id)) Expand(id, kNoNode, *kind);
      for (int i = 0; i < dag_[id].arity; ++i) {
        const NodeId input = dag_[id].inputs[static_cast<size_t>(i)];
        if (input != kNoNode && HasOpen(memo_[input], kind->kind) && kind->fuse(dag_, id, input))
          Expand(id, input, *kind);
      }
    }
    AddStitch(id);
    const auto rank = [](const Entry& entry) {
      return std::pair(entry.kind == FusionTemplate::kRow     ? 0
                       : entry.kind == FusionTemplate::kCell  ? 1
                       : entry.kind == FusionTemplate::kOuter ? 2
                                                              : 3,
                       entry.refs);
    };
    std::sort(entries_.begin(), entries_.end(),
              [&](const Entry& a, const Entry& b) { return rank(a) < rank(b); });
    entries_.erase(std::unique(entries_.begin(), entries_.end()), entries_.end());
    memo_[id] = entries_;
  }

  // One entry for all choices: which inputs are made in the same pass, cost decides pair by pair (stitch.h).
  void AddStitch(NodeId id) {
    const DagNode& node = dag_[id];
    if (!kStitchTemplate.open(dag_, id)) return;
    Entry entry{.kind = FusionTemplate::kStitch, .arity = node.arity};
    for (int i = 0; i < node.arity; ++i) {
      const NodeId input = node.inputs[static_cast<size_t>(i)];
      if (input != kNoNode && HasOpen(memo_[input], FusionTemplate::kStitch) &&
          kStitchTemplate.fuse(dag_, id, input))
        entry.refs[static_cast<size_t>(i)] = input;
    }
    Add(id, entry, kStitchTemplate);
  }

  // One entry for every choice at the remaining inputs. The same node at two positions is one decision.
  void Expand(NodeId id, NodeId fused, const Template& kind) {
    const DagNode& node = dag_[id];
    Entry entry;
    entry.kind = kind.kind;
    entry.arity = node.arity;
    NodeId choices[kMaxArity];
    int count = 0;
    for (int i = 0; i < node.arity; ++i) {
      const NodeId input = node.inputs[static_cast<size_t>(i)];
      if (input == kNoNode || input == fused) continue;
      if (std::find(choices, choices + count, input) == choices + count && CanMerge(id, input, kind))
        choices[count++] = input;
    }
    for (int mask = 0; mask < 1 << count; ++mask) {
      for (int i = 0; i < node.arity; ++i) {
        const NodeId input = node.inputs[static_cast<size_t>(i)];
        const auto at = std::find(choices, choices + count, input) - choices;
        const bool taken = input != kNoNode && (input == fused || (at < count && (mask >> at & 1) != 0));
        entry.refs[static_cast<size_t>(i)] = taken ? input : kNoNode;
      }
      Add(id, entry, kind);
    }
  }

  bool CanMerge(NodeId id, NodeId input, const Template& kind) const {
    const std::vector<Entry>& group = memo_[input];
    if (group.empty()) return false;
    const bool open = HasOpen(group, kind.kind) || HasOpen(group, FusionTemplate::kCell);
    return open && kind.merge(dag_, id, input);
  }

  void Add(NodeId id, Entry entry, const Template& kind) {
    const Close close = kind.close(dag_, id, entry);
    entry.open = close == Close::kOpenValid || close == Close::kOpenInvalid;
    entry.valid = close == Close::kOpenValid || close == Close::kClosedValid;
    // A single operator that nothing can be added to is no candidate.
    if (close != Close::kClosedInvalid && (entry.open || entry.References() > 0)) entries_.push_back(entry);
  }

  const Dag& dag_;
  Memo memo_;
  std::vector<Entry> entries_;  // Of the node at hand.
};

}  // namespace

Memo Explore(const Dag& dag) { return Explorer(dag).Run(); }

}  // namespace heddle::compiler::fusion
