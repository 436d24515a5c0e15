// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "actor/protocol.h"
#include "actor/run_number.h"
#include "tests/models/actor_snapshot.h"
#include "tests/models/world.h"

namespace heddle::actor {

/// One rank of one lane: the host of its actors and, in small, what lane.cc is in production. Values are the
/// numbers of the pieces that they are, so that who reads the wrong one is seen.
class World::Party : public ActorHost {
 public:
  Party(World& world, size_t number, uint32_t rank, uint32_t lane)
      : world_(world), number_(number), rank_(rank), lane_(lane) {
    auto instance = PlanInstance::Create(world.instance_.plans[lane], rank);
    HEDDLE_CHECK(instance.ok(), "instances of models are plans that run");
    instance_ = *std::move(instance);
    run_ = MakeRun(lane, 0);
    failed_run_ = run_;
  }

  PlanInstance& instance() { return *instance_; }
  const PlanInstance& instance() const { return *instance_; }
  uint32_t rank() const { return rank_; }
  uint32_t lane() const { return lane_; }
  bool is_lost() const { return is_lost_; }
  bool IsRunning() const { return remaining_ > 0; }
  bool IsOver() const { return is_lost_ || (!IsRunning() && RunsBegun() == world_.instance_.runs); }
  bool MayBegin() const { return !is_lost_ && !IsRunning() && RunsBegun() < world_.instance_.runs; }
  Fate FateOfMessage(const Message& message) const {
    return FateOf(IsRunning(), message.run == run_, ComesAfter(message.run, run_));
  }

  // --- what happens ---
  void Begin();
  void Handle(const Message& message, uint32_t stream);
  bool HasLaunched(size_t actor) const { return launched_.contains(actor); }
  bool IsAborting() const { return aborting_; }
  /// `saw_the_end`: it began when the run had failed, and did nothing.
  void EndKernel(size_t actor, bool saw_the_end);
  bool CanEndPull(size_t actor) const;
  void EndPull(size_t actor, bool comes_twice);
  bool HasErrorOf(size_t party) const;
  void HearErrorOf(size_t party);
  void Cancel();
  void Lose();
  /// After each event: the end of a run, and what must hold always.
  void Check();
  bool LeavesSomething() const { return !pulls_.empty() || !launched_.empty() || !errors_.empty(); }

  void Save(ByteWriter* out) const;
  void Load(ByteReader* in);

  // --- what its actors ask for ---
  void Send(const Message& message) override;
  Launch Perform(Actor& actor, std::span<const Value* const> inputs, int64_t act, ActResult* result) override;
  void Pull(Actor& actor, TaskId producer, RegisterId register_id, uint8_t slot,
            std::shared_ptr<PulledBody> body) override;
  void Expose(RegisterId register_id, uint8_t slot, const Value& value) override;
  void Withdraw(RegisterId register_id, uint8_t slot) override { exposed_.erase({register_id, slot}); }
  void Failed(Actor& actor, Status status) override;
  void Finished(Actor&) override {
    if (--remaining_ < 0) world_.Broken("a task has ended twice");
  }

 private:
  // A pull that has not been answered; of which run matters where the answer comes late.
  struct PendingPull {
    size_t actor = 0;
    uint32_t run = 0;
    TaskId producer;
    RegisterId register_id = 0;
    uint8_t slot = 0;
  };
  int RunsBegun() const { return static_cast<int>(run_ & 0xff); }
  void Tell(MessageType type);
  void Fail(bool announce);
  void FailBeforeStart();
  void End();
  void SendOutgoing();
  void Compute(Actor& actor, std::span<const Value* const> inputs, int64_t act, ActResult* result);

  World& world_;
  const size_t number_;
  const uint32_t rank_;
  const uint32_t lane_;
  std::unique_ptr<PlanInstance> instance_;
  bool ToldTwice() const { return world_.instance_.trouble == Trouble::kTwice; }

  uint32_t run_ = 0;         // In flight or the last one.
  uint32_t failed_run_ = 0;  // The last one that failed.
  int remaining_ = 0;        // Tasks that are not done.
  bool aborting_ = false;
  bool has_late_error_ = false;
  bool is_lost_ = false;
  uint32_t stream_ = 0;  // Whose thread is at work.
  OutgoingMessages outgoing_;
  std::map<size_t, int64_t> launched_;  // Actors with a kernel on the device: the act that it is.
  std::vector<PendingPull> pulls_;
  std::map<std::pair<RegisterId, uint8_t>, int64_t> exposed_;
  std::vector<std::pair<size_t, uint32_t>> errors_;  // On their way to it: from which party, of which run.
};

}  // namespace heddle::actor
