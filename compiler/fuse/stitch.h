// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/fuse/cost.h"
#include "compiler/fuse/dag.h"

namespace heddle::compiler::fusion {

/// A merge saves so much traffic, or it is not made: a pass over less costs no more than what every operator
/// costs anyway.
constexpr double kLeastSavedBytes = 256 << 10;

/// What stands in a plan for one node or several: a fused operator, or the node itself.
struct PlanUnit {
  std::vector<NodeId> roots;
  FusionTemplate kind = FusionTemplate::kCell;
  std::vector<NodeId> covered;  ///< Ascending, roots included.
};

/// Several units that one pass over their rows computes.
struct Stitch {
  std::vector<size_t> units;    ///< Ascending positions among those given.
  std::vector<NodeId> roots;    ///< What is read outside, ascending.
  std::vector<NodeId> covered;  ///< Ascending.
  std::vector<NodeId> inputs;   ///< Matrices that it reads, ascending.
  OperatorTime time;
  double saved = 0;  ///< Seconds less than its units by themselves.
};

struct StitchedUnits {
  std::vector<Stitch> stitches;
  /// By unit: nothing reads it any more, because stitches compute its value themselves.
  std::vector<bool> unread;
};

/// What several units become: with one result it is what Row calls an operator.
inline FusionTemplate StitchKind(const std::vector<NodeId>& roots) {
  return roots.size() > 1 ? FusionTemplate::kStitch : FusionTemplate::kRow;
}

struct StitchOptions {
  /// Merges whatever the model says; what the executor refuses is not formed.
  bool by_cost = true;
  std::function<bool()> wants;  ///< Has the last word (random plans); empty: yes.
};

/// Puts units together whose operators walk the same number of rows and that share rows: both read them, or
/// one makes what the other reads ("dominant merging" and "remote stitching" of Zheng et al., AStitch, ASPLOS
/// 2022, section 4, over whole rows). A value that only members of a stitch read is not written at all. No
/// way leads from a stitch out and back in. Pairs are merged one by one, that of the largest saving first,
/// until none saves memory traffic worth a pass.
///
/// The search (plan_cost.h) and the replacement (replace.h) both ask this class, so that a plan costs what it
/// is. Reused for many plans: it remembers what the executor can run. Not thread-safe.
class Stitcher {
 public:
  /// `scope`: the units to come make only these nodes (ascending), what other nodes read of them is needed,
  /// and ways through other nodes count. Without it units are all there is.
  Stitcher(const Dag& dag, const CostModel& model, StitchOptions options,
           const std::vector<NodeId>* scope = nullptr);

  StitchedUnits Join(const std::vector<PlanUnit>& units);

 private:
  // Some units that are one already, with what the model says of them.
  struct Group {
    std::vector<size_t> units;
    std::vector<NodeId> roots, covered;
    std::vector<OperatorInput> inputs;
    int64_t height = 0;
    NodeId first = 0, last = 0;  // Least and largest of the covered nodes.
    double bytes = 0;            // Read and written.
    OperatorTime time;
  };
  struct Pair {
    size_t a, b;
    auto operator<=>(const Pair&) const = default;
  };
  struct Joined {
    Group group;
    double saving = 0;
    bool wanted = false;  // Not refused, and by the model it pays.
  };

  const std::vector<NodeId>& NeedsOutside(NodeId id);
  void FindReaders();
  bool ReadsOwnReduction(const Group& group) const;
  int64_t HeightOfRows(const PlanUnit& unit) const;
  void Merge();
  void AddGroups();
  void AddPairs();
  void AddPair(size_t a, size_t b);
  double MostSavedBytes(const Group& a, const Group& b) const;
  void Cost(Group* group);
  Group Join(const Group& a, const Group& b) const;
  bool IsReadOutside(NodeId root, const std::vector<size_t>& members) const;
  bool HasCycle(const Group& group);
  bool CanRun(const Group& group);
  bool MergeBest();
  std::optional<StitchedUnits> Result();
  void KeepWhatIsRead(std::vector<bool>* read_units);

  const Dag& dag_;
  const CostModel& model_;
  StitchOptions options_;
  std::vector<uint8_t> opens_;      // By node: the template Stitch may hold it.
  std::vector<NodeWork> work_;      // By node that it may hold.
  std::vector<uint8_t> in_scope_;   // By node; empty: all.
  std::vector<uint8_t> is_needed_;  // By node: something outside of the scope reads it.
  std::map<NodeId, std::vector<NodeId>> needs_outside_;
  std::map<std::vector<NodeId>, bool> can_run_;  // By roots, -1, covered nodes.
  bool asks_always_ = false;                     // Whether the executor can run what a merge makes.
  // Of the units at hand.
  const std::vector<PlanUnit>* units_ = nullptr;
  std::vector<int> unit_of_;                  // By node: the unit that makes it; -1: none.
  std::vector<std::vector<size_t>> readers_;  // By node: units.
  std::vector<NodeId> touched_;               // Nodes with readers.
  std::vector<std::vector<NodeId>> inputs_;   // By unit: whatever it reads.
  std::vector<double> alone_;                 // By unit: seconds of a candidate by itself.
  std::vector<Group> groups_;                 // Of one that another took in, no units are left.
  std::vector<int> group_of_;                 // By unit; -1: no candidate.
  std::map<Pair, Joined> pairs_;
  std::vector<uint32_t> input_mark_;   // By node: the last group that was costed and reads it,
  std::vector<size_t> input_at_;       // and where it stands among its inputs;
  std::vector<uint32_t> inside_mark_;  // or that computes it.
  uint32_t mark_ = 0;
};

}  // namespace heddle::compiler::fusion
