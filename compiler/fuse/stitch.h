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

/// Units are merged only if that saves so many bytes of memory traffic: moving less takes no longer than
/// starting an operator.
constexpr double kLeastSavedBytes = 256 << 10;

/// One operator of a plan: a fused operator, or a node that runs by itself.
struct PlanUnit {
  std::vector<NodeId> roots;
  FusionTemplate kind = FusionTemplate::kCell;
  std::vector<NodeId> covered;  ///< Ascending, roots included.
};

/// Several units that become one operator: one pass over their rows.
struct Stitch {
  std::vector<size_t> units;    ///< Ascending positions among the units of the plan.
  std::vector<NodeId> roots;    ///< Nodes whose values something outside reads, ascending.
  std::vector<NodeId> covered;  ///< Ascending.
  std::vector<NodeId> inputs;   ///< Matrices that it reads, ascending.
  OperatorTime time;
  double separate_ns = 0;  ///< Of its units by themselves, counted as `time` is.
};

struct StitchedUnits {
  std::vector<Stitch> stitches;
  /// By unit: nothing reads its value, because every reader is in a stitch that computes the value inside.
  std::vector<bool> unread;
};

/// What an operator with these results is called: full aggregates of cells of one shape, at most
/// FusedOperator::kMostAggregates, are a multi-aggregate, which may go along the entries of a CSR matrix; any
/// other results are those of a pass over rows.
FusionTemplate StitchKind(const Dag& dag, const std::vector<NodeId>& roots);

struct StitchOptions {
  bool by_cost = true;          ///< False: units are merged wherever the executor can run the result.
  std::function<bool()> wants;  ///< Has the last word (random plans); empty: yes.
};

/// Puts units together whose operators walk the same number of rows and that share rows: both read them, or
/// one makes what the other reads ("dominant merging" and "remote stitching" of Zheng et al., AStitch, ASPLOS
/// 2022, section 4, over whole rows). A value that only members of a stitch read is not written at all. No
/// way leads from a stitch out and back in. Pairs are merged one by one, that of the largest saving first,
/// until none saves memory traffic worth a pass.
///
/// Full aggregates that read one input need no rows: those of cells of one shape are put together also where
/// the cells are entries of a CSR matrix or lie in one row, and however small the saving is, since they cost
/// nothing but what starting an operator takes.
///
/// The search (plan_cost.h) and the replacement (replace.h) both ask this class, so that a plan costs what it
/// is. Reused for many plans: it remembers what the executor can run. Not thread-safe.
class Stitcher {
 public:
  /// `scope`: the nodes (ascending) that the units of all plans compute, as those of one partition. Values
  /// that nodes outside the scope read stay results, and a way through such nodes makes a cycle. nullptr: the
  /// units are the whole block.
  Stitcher(const Dag& dag, const CostModel& model, StitchOptions options,
           const std::vector<NodeId>* scope = nullptr);

  StitchedUnits Join(const std::vector<PlanUnit>& units);

 private:
  // In a pass over rows each member walks the entries of CSR rows as it does by itself, so that times by rows
  // leave that out. What a merge saves is the difference of two times that are counted in one way.
  struct Times {
    OperatorTime by_rows;   // Of what goes by rows.
    OperatorTime by_cells;  // Of what goes by cells: as the search costs an operator.
  };
  using Counting = const OperatorTime Times::*;
  // Units that are merged so far, with what the model says of the operator that they make.
  struct Group {
    std::vector<size_t> units;
    std::vector<NodeId> roots, covered;
    std::vector<OperatorInput> inputs;
    bool goes_by_rows = false;                    // The template Stitch may hold all of it: rows of `height`.
    bool goes_by_cells = false;                   // All results are full aggregates that go together.
    FusionTemplate kind = FusionTemplate::kCell;  // For the time by cells: Row if that of a unit is Row.
    int64_t height = 0;
    NodeId first = 0, last = 0;  // Least and largest of the covered nodes.
    double bytes = 0;            // Read and written.
    Times times;

    Counting counting() const { return goes_by_cells ? &Times::by_cells : &Times::by_rows; }
  };
  struct Pair {
    size_t a, b;
    auto operator<=>(const Pair&) const = default;
  };
  struct Joined {
    Group group;
    double saving = 0;
    bool wanted = false;  // The model finds that it pays, and nothing has refused it.
  };

  const std::vector<NodeId>& NeedsOutside(NodeId id);
  void FindReaders();
  bool ReadsOwnReduction(const Group& group) const;
  bool OpensRows(const PlanUnit& unit) const;
  bool CanGoTogether(const Group& a, const Group& b) const;
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
  std::vector<NodeWork> work_;      // By node of the scope that has an operator,
  std::vector<NodeWork> row_work_;  // and in a pass over rows.
  std::vector<uint8_t> in_scope_;   // By node; empty: all.
  std::vector<uint8_t> is_needed_;  // By node: something outside of the scope reads it.
  std::map<NodeId, std::vector<NodeId>> needs_outside_;
  std::map<std::vector<NodeId>, bool> can_run_;  // By roots, -1, covered nodes.
  bool asks_always_ = false;  // The executor is asked about every merge, not the last ones.
  // Of the units at hand.
  const std::vector<PlanUnit>* units_ = nullptr;
  std::vector<int> unit_of_;                  // By node: the unit that makes it; -1: none.
  std::vector<std::vector<size_t>> readers_;  // By node: units.
  std::vector<NodeId> touched_;               // Nodes with readers.
  std::vector<std::vector<NodeId>> inputs_;   // By unit: whatever it reads.
  std::vector<Times> separate_;               // By unit: the times of a candidate by itself.
  std::vector<Group> groups_;                 // A group that was merged into another one has no units.
  std::vector<int> group_of_;                 // By unit; -1: no candidate.
  std::map<Pair, Joined> pairs_;
  std::vector<uint32_t> input_mark_;   // By node: the number of the last costed group that reads it,
  std::vector<size_t> input_at_;       // and its place among the inputs of that group.
  std::vector<uint32_t> inside_mark_;  // By node: the number of the last costed group that computes it.
  uint32_t mark_ = 0;
};

}  // namespace heddle::compiler::fusion
