// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "actor/actor.h"
#include "actor/memory_ledger.h"
#include "actor/register_state.h"
#include "core/programs/plan.h"

namespace heddle::actor {

/// The actors and registers of one rank of a plan, with all routes resolved. Made once, used for many runs.
class PlanInstance {
 public:
  /// kInternal when the plan is not one that actors can run: unknown streams, more than 255 slots, a register
  /// of another rank that is read by anything but a kCopy task. Linear in the plan.
  static Result<std::unique_ptr<PlanInstance>> Create(std::shared_ptr<const Plan> plan, uint32_t rank);

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<const Plan>& shared_plan() const { return plan_; }
  /// The actors in plan order: actors()[i].number() == i.
  std::deque<Actor>& actors() { return actors_; }
  const std::deque<Actor>& actors() const { return actors_; }
  const std::vector<Actor*>& OnStream(uint32_t stream) const { return streams_[stream].actors; }
  /// The actor of that task on this rank; nullptr when there is none.
  Actor* Find(TaskId task) const {
    if (task.stream() >= streams_.size()) return nullptr;
    const StreamActors& stream = streams_[task.stream()];
    return task.index() < stream.by_index.size() ? stream.by_index[task.index()] : nullptr;
  }
  /// True if an edge joins this rank to another one.
  bool HasRemoteEdges() const { return has_remote_edges_; }
  /// True if every task of the plan, on any rank, acts once a run.
  bool acts_once() const { return acts_once_; }
  /// By rank: how many edges lead from this rank to it.
  const std::vector<int32_t>& edges_to() const { return edges_to_; }

  void Begin(uint32_t run);
  /// Drops every value. Only while no host runs an actor.
  void Clear();
  /// I1-I3, I8 (in debug builds), with `quiet` I12. Only while no host runs an actor.
  Status CheckInvariants(bool quiet) const;
  /// Who knows of the memory in use; nullptr in release builds and for plans that place no registers.
  const MemoryLedger* ledger() const { return ledger_.get(); }
  /// One line per actor that is not done, at most `limit`.
  std::vector<std::string> DescribeWaits(size_t limit) const;
  bool WaitsForOtherRank() const;

 private:
  class Builder;
  struct StreamActors {
    std::vector<Actor*> actors;
    std::vector<Actor*> by_index;
  };
  PlanInstance() = default;

  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<MemoryLedger> ledger_;
  std::deque<RegisterState> registers_;
  std::deque<Actor> actors_;
  std::vector<StreamActors> streams_;  // By stream of the plan.
  bool has_remote_edges_ = false;
  bool acts_once_ = true;
  std::vector<int32_t> edges_to_;
};

/// How many messages of a run other ranks may send to `rank` before it begins the run: over each edge that
/// comes from elsewhere one for each slot, since none is given back before, and the end of the stream.
int64_t MostEarlyMessages(const Plan& plan, uint32_t rank);

}  // namespace heddle::actor
