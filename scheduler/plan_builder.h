// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/plan.h"
#include "core/programs/residence.h"
#include "scheduler/place.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {

/// In the place of an input that is left out.
constexpr RegisterId kNoRegister = -1;

/// What of a plan is on the device that every rank has.
struct OnDevice {
  Device device;
  std::vector<bool> nodes;                      ///< Whether tasks of the node run there.
  std::map<std::string, Residence> residences;  ///< Of live-ins that are not on the host alone.
  /// Values stay there from one operator to the next. Else each operator copies what it reads and makes,
  /// within its act, and all registers are in the memory of the host: of plans that come to be in panels,
  /// before their copies come to be tasks (scheduler/passes/panel_copies.h).
  bool keeps_values = true;
};

/// Writes the tasks and registers of a plan from placements, with the boxing between them. A task is appended
/// after the tasks it consumes from, so creation order is an execution order on every rank.
///
/// Boxing (n ranks): kOne -> kEach n-1 copies; kOne -> kSplit slices on its rank, one copy each;
/// kSplit -> kOne copies to that rank and one gather; kSplit -> kEach the same on every rank (large
/// values of many ranks by doubling); large values kOne -> kEach in chunks along two trees; kEach -> kSplit
/// local slices; kEach -> kOne nothing; kSplit -> kSplit with other cuts: of each rank the slices that others
/// have of its rows (or columns), copied and joined; by rows -> by columns and back: a slice of each rank's
/// part for each other one. A value is boxed once per target, whoever asks.
class PlanBuilder {
  friend class ReductionParts;  // plan_collectives.h

 public:
  PlanBuilder(const Graph& graph, const std::vector<Placement>& placements, int32_t ranks,
              std::optional<OnDevice> on_device = std::nullopt);
  Plan Build();

 private:
  /// The register that holds `node` on `rank` under `distribution`, boxing it there first where needed; in
  /// the memory of the host, or of whichever device.
  RegisterId Piece(NodeId node, const Distribution& distribution, int32_t rank);
  RegisterId PieceAnywhere(NodeId node, const Distribution& distribution, int32_t rank);
  /// The same value in the memory of `device`: the register itself, or a copy that is made once.
  RegisterId InMemoryOf(RegisterId source, Device device);
  /// Whether tasks of the node run on the device.
  bool RunsOnDevice(NodeId node) const { return on_device_ && on_device_->nodes[static_cast<size_t>(node)]; }
  /// Where a live-in is.
  Residence ResidenceOf(const std::string& variable) const;
  bool KeepsValuesOnDevice() const { return on_device_ && on_device_->keeps_values; }
  /// A register of a live-in on each rank that holds it, in that memory.
  std::vector<RegisterId> AddLiveIn(NodeId node, Device device);
  /// A sink for these registers of all ranks that hold the variable of the node, and the live-out of it.
  void AddLiveOut(NodeId node, const std::vector<RegisterId>& values, Device device);
  /// Copies that the plan makes of live-ins stay with them, beside what they are copies of.
  void KeepCopiesOfLiveIns();
  RegisterId MakePiece(NodeId node, const Distribution& distribution, int32_t rank);
  /// The whole value on `rank`, from the parts of all ranks.
  RegisterId GatherParts(NodeId node, const Distribution& split, int32_t rank);
  RegisterId ComputeEverywhere(NodeId node, int32_t rank);
  /// The copy on `rank` of the whole value that is, or is brought, to the rank of `one`.
  RegisterId CopyOf(NodeId node, const Distribution& one, int32_t rank);
  /// Chunk `chunk` of a large value that is whole on rank `from` (ChunksOf), on `rank`, by the two trees of
  /// ParentInTree.
  RegisterId ChunkOf(NodeId node, int32_t from, int32_t chunk, int32_t chunks, int32_t rank);
  /// The value on `rank`, put together from its chunks.
  RegisterId ChunkedCopy(NodeId node, int32_t from, int32_t chunks, int32_t rank);
  /// The rows of ranks [first, last) on each of these ranks: a half of them has its own, and gets those of
  /// the other half from one of its ranks.
  std::vector<RegisterId> GatherByDoubling(NodeId node, const Distribution& split, int32_t first,
                                           int32_t last);
  /// Rows, or columns, [begin, end) of the value on `rank`, from wherever they are.
  RegisterId PartOf(NodeId node, Axis axis, int64_t begin, int64_t end, int32_t rank);
  /// The same of a value that is split by the other axis: from every rank that has some of it.
  RegisterId PartAcross(NodeId node, Axis axis, int64_t begin, int64_t end, int32_t rank);
  /// Rows, or columns, [begin, end) of a register of `rank`; itself where these are all.
  RegisterId Slice(NodeId node, RegisterId source, Axis axis, int64_t begin, int64_t end, int32_t rank);
  /// A value with these sizes, from parts that are on `rank`, one below the other or side by side.
  RegisterId Join(NodeId node, std::vector<RegisterId> parts, Axis axis, const ValueInfo& info, int32_t rank);

  void EmitVariable(NodeId node);
  void EmitAssign(NodeId node);
  void EmitOperator(NodeId node);
  void EmitStages(NodeId node);
  /// What each rank receives, from what each rank has made in a stage.
  std::vector<std::vector<RegisterId>> Exchange(NodeId node, const ops::Stage& stage,
                                                const ops::RankGrid& grid,
                                                const std::vector<std::vector<RegisterId>>& made);
  void AddStagedResults(NodeId node, size_t task);
  /// rbind: each rank puts its rows of the result together from those of the inputs; cbind and ranges of
  /// columns, its columns.
  void EmitMoved(NodeId node);
  /// The registers of one result of a tuple; no task.
  void EmitResult(NodeId node);
  size_t EmitTask(NodeId node, int32_t rank, bool has_effect);
  /// "finish" of reductions on rank 0, from the ranks' partial results of each, into those results.
  void EmitFinish(NodeId node, const std::vector<std::vector<RegisterId>>& partials,
                  const std::vector<size_t>& results);
  /// Finishes in parts the results for which this is chosen. Takes their lists and numbers out.
  void EmitParts(NodeId node, std::vector<std::vector<RegisterId>>* partials, std::vector<size_t>* results);
  /// The results of the node that are reductions and made of the parts of all ranks.
  std::vector<size_t> ReducedResults(NodeId node) const;
  /// Tells all ranks the size (of a frame also the schema) of an assigned value that is at `home`; of one
  /// that is split, how many rows each rank has.
  void EmitShape(NodeId node, const Distribution& home);

  /// Appends a task; returns its index in plan_.tasks. Adds it to the consumers of what it consumes.
  size_t AddTask(int32_t rank, StreamKind stream, TaskKind kind, NodeId node, Phase phase,
                 std::vector<RegisterId> consumed, Device device = {});
  RegisterId AddOutput(size_t task, const ValueInfo& info);
  /// A register for result `i` of the node, whole or, where the task computes rows, this rank's rows of it.
  void AddOutputOf(size_t task, NodeId node, size_t i, bool split);
  /// Says that the register of result `i` of the node is in the memory of its producer's device, if it is.
  void PlaceOutput(RegisterId id, NodeId node, size_t i);
  RegisterId AddCopy(RegisterId remote, int32_t rank);
  /// Rows of all ranks' pieces, one below the other, on `rank`; or columns, side by side.
  RegisterId AddGather(NodeId node, std::vector<RegisterId> pieces, int32_t rank, const ValueInfo& info,
                       Axis axis = Axis::kRows);
  /// The same, of the pieces of ranks [first, last), on rank `first`, by a binary tree of joins.
  RegisterId GatherTree(NodeId node, const std::vector<RegisterId>& pieces, int32_t first, int32_t last,
                        const ValueInfo& info, Axis axis = Axis::kRows);
  /// The same on every rank.
  std::vector<RegisterId> GatherToAll(NodeId node, const std::vector<RegisterId>& pieces,
                                      const ValueInfo& info);
  /// The register on `rank` with the copy of one that is on `from`, by a binomial tree of copies.
  RegisterId Broadcast(std::vector<RegisterId>* copies, int32_t from, int32_t rank);
  /// Before the task of `node` on another rank is made: what the script does before it on rank 0 alone is
  /// told there. A failure ends the run on all ranks, and what was to be printed first would be lost.
  void BringOrder(NodeId node, int32_t rank);
  /// The task must not act before the tasks of node.after on its rank have acted, nor, if it updates its
  /// first input, before those that read it. Cells that outlive the plan are copied by whoever updates them:
  /// such a task waits for no reader.
  void AddControl(size_t task);
  /// Whether a variable has the cells of the register all the time: a live-in that the plan does not replace.
  bool OutlivesPlan(const Register& reg) const;
  void AddOrder(size_t earlier, size_t later);
  /// Tasks of rank 0, one for every other rank, that act when that rank has read all that the script reads
  /// before `node`, in this plan and in those before it: a rank that is in this plan has done with them.
  std::vector<size_t> OtherRanksReady(NodeId node);
  /// The last nodes before a node in the order of effects that have a task on `rank`. Those that have none
  /// there (ranges whose rows are only moved, what another rank computes) pass the order on.
  std::vector<NodeId> NodesBefore(NodeId node, int32_t rank) const;
  uint32_t RankOf(RegisterId id) const;
  /// Where it stands in plan_.tasks.
  size_t TaskOf(TaskId id) const {
    return tasks_of_[id.rank() * plan_.streams.size() + id.stream()][id.index()];
  }
  static ValueInfo PartInfo(const ValueInfo& whole, const Split& split, int32_t rank);
  /// Place of the first stream of that kind and device in the plan's list.
  uint32_t StreamOf(StreamKind kind, Device device = {}) const;

  const Graph& graph_;
  const std::vector<Placement>& placements_;
  const int32_t ranks_;
  const std::optional<OnDevice> on_device_;
  Plan plan_;
  std::map<std::pair<NodeId, Distribution>, std::vector<RegisterId>> pieces_;  // by rank; -1: not there yet
  std::map<RegisterId, RegisterId> transfers_;  ///< Copies on the device of what is on the host, and back.
  std::map<NodeId, std::vector<RegisterId>> copies_;  // By value and rank: copies of the whole.
  std::map<std::pair<NodeId, int32_t>, std::vector<RegisterId>> chunks_;  // By value, chunk and rank.
  /// By operator, result and rank: what it leaves before any boxing.
  std::map<NodeId, std::vector<std::vector<RegisterId>>> outputs_;
  std::map<std::pair<NodeId, int32_t>, size_t> last_task_;  // (node, rank) -> task, for order edges
  std::map<size_t, RegisterId> control_of_;                 // task -> its control register
  std::vector<std::vector<size_t>> tasks_of_;  // By rank and stream: where tasks stand in plan_.tasks.
};

}  // namespace heddle::scheduler
