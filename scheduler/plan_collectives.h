// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "ops/base/stages.h"
#include "scheduler/plan_builder.h"

namespace heddle::scheduler {

/// The tasks behind the lists of tree nodes of a reduction that is finished in parts (ops/base/stages.h):
/// each rank joins some units of the lists of all, and what all have finished is the result. Up to
/// kMostExchanged ranks each sends every other its units at once. More ranks meet by halves: each half does
/// so on its own, then a rank has of its half's list some units, and exchanges about half of them with one
/// rank of the other. Neighbours come first, so that what is joined are leaves that follow each other and
/// lists stay short.
class ReductionParts {
 public:
  ReductionParts(PlanBuilder& builder, NodeId id, size_t result, const ops::PayloadUnits& units)
      : builder_(builder),
        id_(id),
        result_(result),
        home_(DistributionOf(builder.graph_[id], builder.placements_[static_cast<size_t>(id)], result)),
        ranks_(builder.ranks_),
        units_(units) {}

  /// `lists`: by rank, those that "partial" makes. Leaves the registers of the result with the builder's
  /// outputs.
  void Emit(const std::vector<RegisterId>& lists);

 private:
  /// Units [begin, end) on a rank: of a list of nodes, or finished.
  struct Part {
    int64_t begin = 0, end = 0;
    int32_t rank = 0;
    RegisterId value = kNoRegister;
  };
  /// Units [begin, end) of several lists, on one rank.
  struct Meeting {
    int64_t begin = 0, end = 0;
    int32_t rank = 0;
    std::vector<RegisterId> values;
  };

  /// What the ranks of [first, last) have when each has some units of the lists of all of them.
  std::vector<Meeting> Meet(int32_t first, int32_t last);
  /// The same, joined on each; a rank alone has its list.
  std::vector<Part> PartsOf(int32_t first, int32_t last);
  /// In the order of their units.
  std::vector<Part> Finish(const std::vector<Meeting>& meetings);
  /// Which units each of [first, last) gets.
  std::vector<std::pair<int64_t, int64_t>> TargetsOf(int32_t first, int32_t last,
                                                     const std::vector<std::vector<Part>>& children) const;
  /// First unit of the i-th of so many parts with about as many cells each.
  int64_t Bound(size_t i, size_t parts) const;
  /// At least units [begin, end) of a part, on `rank`; just these where they are sent.
  RegisterId UnitsOf(const Part& part, int64_t begin, int64_t end, int32_t rank);
  bool IsList(const Part& part) const { return part.value == lists_[static_cast<size_t>(part.rank)]; }
  /// Finished units [begin, end) on `rank`, from parts in the order of their units.
  RegisterId RowsOf(const std::vector<Part>& parts, int64_t begin, int64_t end, int32_t rank);
  /// All finished units on every rank of [first, last), which have them together: the way back of Meet.
  void Spread(int32_t first, int32_t last, const std::vector<Part>& parts, std::vector<RegisterId>* columns);
  const ValueInfo& ResultInfo() const { return ResultsOf(builder_.graph_[id_])[result_]; }
  ValueInfo FinishedInfo(int64_t begin, int64_t end) const;
  size_t AddStage(int32_t rank, ops::ReductionStage stage, int64_t begin, int64_t end,
                  std::vector<RegisterId> consumed);

  PlanBuilder& builder_;
  const NodeId id_;
  const size_t result_;      // Of the node.
  const Distribution home_;  // Where it is to be.
  const int32_t ranks_;
  const ops::PayloadUnits units_;
  std::vector<RegisterId> lists_;
  std::vector<Part> parts_;                                                                  // Finished.
  std::map<std::pair<int32_t, int32_t>, std::vector<std::pair<int64_t, int64_t>>> targets_;  // By block.
};

/// Of rank `number`, counted from the one that has a value: from which it gets the chunks that go along one
/// of two binary trees. A rank that hands on in one tree is a leaf of the other, so that each sends as much
/// as it gets.
int32_t ParentInTree(int32_t number, int tree, int32_t ranks);

}  // namespace heddle::scheduler
