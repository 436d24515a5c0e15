// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "compiler/fuse/cost.h"
#include "compiler/fuse/memo.h"
#include "compiler/fuse/partition.h"
#include "compiler/fuse/stitch.h"

namespace heddle::compiler::fusion {

/// One 0 or 1 for every point of a partition, in the order of Partition::points.
using Assignment = std::vector<uint8_t>;

/// How entries are chosen among those that an assignment leaves.
enum class EntryChoice : uint8_t {
  kBest,          ///< Outer before Row before Cell, then most references.
  kNoRedundancy,  ///< As kBest, but no entry that refers to a node with several consumers.
  kRandom,        ///< By a number drawn for each entry.
};

/// Chooses the entry of each node under an assignment, which makes a plan of it. Looks at entries that no
/// point blocks; among equally good ones takes the first.
class EntryPicker {
 public:
  EntryPicker(const Dag& dag, const Memo& memo, EntryChoice choice, uint64_t seed);

  /// Blocks the entries of `consumer` that refer to `target`.
  void Block(NodeId consumer, NodeId target);
  void UnblockAll();
  /// True if no unblocked entry of the node computes `input` inside.
  bool MustRead(NodeId id, NodeId input) const;
  /// For a node whose value is needed: an entry valid as root; nullptr when it runs as a plain operator.
  const Entry* PickRoot(NodeId id) const;
  /// For a node inside an operator of that template; nullptr: all its inputs are read.
  const Entry* PickInside(NodeId id, FusionTemplate kind) const;

 private:
  bool IsBlocked(NodeId id, size_t entry) const {
    return (blocked_[static_cast<size_t>(id)] >> entry & 1) != 0;
  }
  int RandomRank(NodeId id, size_t entry) const;

  const Memo& memo_;
  EntryChoice choice_;
  uint64_t seed_;
  std::vector<uint64_t> permanent_, blocked_;  // Bit i of a node: its entry i.
  std::vector<NodeId> changed_;                // Where they may differ.
};

/// One operator of a plan, for reports.
struct PlannedOperator {
  OperatorWork work;            ///< Without its inputs.
  std::vector<NodeId> covered;  ///< Ascending, roots included.
  std::vector<NodeId> inputs;
  OperatorTime time;
};

/// Costs assignments of one partition: the operators of each, stitched (stitch.h). Takes about a microsecond
/// for ten nodes, and a few for each operator that may be part of a stitch. Reuses its arrays; not
/// thread-safe.
class PlanCost {
 public:
  PlanCost(const Dag& dag, const Memo& memo, const Partition& partition, const CostModel& model,
           EntryChoice choice = EntryChoice::kBest);
  ~PlanCost();

  /// Modelled nanoseconds; +infinity as soon as they reach `stop_at`.
  double Cost(const Assignment& assignment, double stop_at = std::numeric_limits<double>::infinity());
  /// Whether costs and bounds are those with stitches. Initially so in partitions of at most
  /// kMostStitchedPoints points. Makes no difference where no stitch is possible.
  void CountStitches(bool wanted) { stitched_ = wanted && stitcher_ != nullptr; }
  bool counts_stitches() const { return stitched_; }
  bool can_stitch() const { return stitcher_ != nullptr; }
  /// A lower bound for all assignments that are 1 at least where this one is: every input is read once, every
  /// node computed once, and every root, stored target and externally read node written once. Adding ones
  /// never lowers it. With stitches, inputs are read by as many passes as no stitch can join (LeastPasses),
  /// and only values that cannot stay inside a pass count as written.
  double LowerBound(const Assignment& assignment);
  /// A lower bound for all assignments that agree with this one where `known` is 1. Takes as long as Cost and
  /// is much tighter than LowerBound: operators whose points are all known are costed exactly, so with all
  /// points known the bound is the cost.
  double PartialBound(const Assignment& assignment, const Assignment& known);
  /// The operators of the plan, in the order in which they end.
  std::vector<PlannedOperator> Operators(const Assignment& assignment);
  /// How many inputs of nodes all costs and bounds have looked at so far. Linear in the operators of a plan.
  int64_t steps() const { return steps_; }
  const Partition& partition() const { return partition_; }
  const Dag& dag() const { return dag_; }

 private:
  struct Open;  // An operator of the plan while its nodes are being added.
  void Apply(const Assignment& assignment);
  void Materialize(NodeId id);
  void AddNode(NodeId id, const Entry* entry, FusionTemplate kind, Open* open);
  void LeaveOutComputedInputs(Open* open);
  void Finish(Open* open);
  void FinishUndecided(const Open& open);
  bool CanRun(Open* open);
  bool IsDecided(NodeId id) const { return undecided_[Local(id)] == 0; }
  size_t Local(NodeId id) const { return static_cast<size_t>(local_[static_cast<size_t>(id)]); }
  bool Inside(NodeId id) const { return local_[static_cast<size_t>(id)] >= 0; }
  void PrepareBound();
  void PrepareStitches(const Memo& memo);
  template <typename TakesPart>
  int LeastPasses(TakesPart takes_part) const;
  double TimeOutsideStitches();
  double SavedByStitches();
  double StitchedBound(const Assignment& assignment);

  const Dag& dag_;
  const Partition& partition_;
  CostModel model_;
  EntryPicker picker_;
  std::vector<int> local_;              // By node: position in the partition, or -1.
  std::vector<NodeWork> work_;          // By position.
  std::vector<uint8_t> external_;       // By position.
  std::vector<uint32_t> materialized_;  // By position: epoch when it was last materialised.
  std::vector<uint64_t> inside_;        // By position: the last operator that computed it inside.
  std::vector<uint64_t> input_of_;      // By node: the last operator that listed it among its inputs.
  std::vector<size_t> input_at_;        // By node: where it stands among them.
  uint64_t operators_ = 0;              // Number of the last operator, counted through all plans.
  std::vector<std::unique_ptr<Open>>
      opens_;  // The first `depth_` are unfinished; each computes a value that the one before it reads.
  size_t depth_ = 0;
  int64_t steps_ = 0;
  std::vector<uint32_t> copied_;                 // By node: epoch when some operator paid for its copies.
  std::map<std::vector<NodeId>, bool> can_run_;  // By roots, -1, covered nodes.
  uint32_t epoch_ = 0;
  double total_ = 0, stop_at_ = 0;
  std::vector<PlannedOperator>* trace_ = nullptr;
  // Of stitches.
  std::unique_ptr<Stitcher> stitcher_;  // None: nothing can be stitched.
  bool stitched_ = false;
  std::vector<PlanUnit> units_;  // Operators of the current plan before they are stitched,
  std::vector<double> unit_ns_;
  std::map<std::vector<NodeId>, double> saved_;  // By the units of a plan: roots, -1, covered nodes, -1.
  // By position: some reader of the value cannot be in a stitch with it, so that the value is written.
  std::vector<uint8_t> leaves_;
  std::vector<uint8_t> opens_stitch_;  // By position.
  std::vector<int> points_of_;         // By position: how many points have it as target,
  std::vector<int> ones_;              // and how many of those are 1 in the current plan.
  std::vector<int> computing_;         // By position: how many units of the current plan compute it.
  double stitched_read_ = 0, stitched_fixed_ = 0;
  // Of the bounds.
  double bound_read_ = 0, bound_compute_ = 0, bound_fixed_ = 0, bound_factor_ = 1;
  std::vector<double> target_write_, target_read_, least_compute_;  // By position: nanoseconds.
  std::vector<double> input_read_;                                  // By Partition::inputs: nanoseconds.
  std::vector<uint8_t> counted_;  // By position: its write is in bound_fixed_.
  // Of PartialBound.
  std::vector<int> undecided_;      // By position: how many points of this consumer are not known.
  std::vector<uint32_t> computed_;  // By position: epoch when some operator computed it.
  std::vector<uint32_t> read_;      // By node: epoch when some operator read it.
  double open_fixed_ = 0, open_read_ = 0, open_compute_ = 0, open_largest_ = 0;
};

}  // namespace heddle::compiler::fusion
