// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actor/actor_host.h"
#include "actor/message.h"
#include "actor/protocol.h"
#include "actor/register_state.h"
#include "actor/slot_queue.h"
#include "core/programs/plan.h"

namespace heddle::actor {

/// One consumed register as its reader sees it: filled slots that wait to be read.
struct InputEdge {
  RegisterId register_id = 0;
  TaskId producer;
  uint16_t producer_port = 0;  ///< Position among the producer's registers, for ACK.
  bool control = false;
  RegisterState* source = nullptr;  ///< Read only. nullptr when the producer lives on another rank.
  SlotQueue queue{1};
  bool ended = false;     ///< EOS has come.
  uint32_t received = 0;  ///< READYs so far: the sequence number expected next (I5).
};

/// The state machine of one task (runtime reference 2.4-2.6). It acts when every consumed edge, data or
/// control, has a filled slot and every produced register a free one; both conditions are counters, tested
/// per message. What decides and what changes is in protocol.h.
///
/// Rates: kAccumulate and kPack fill their outputs (control registers too) at every rate-th act and need a
/// free slot at every act; kRepeat and kUnpack use one input for `rate` acts and release it when all outputs
/// made from it have come back. All other kinds do both at every act. Not thread-safe: the host that runs it
/// owns it.
class Actor {
 public:
  using State = ActorState;

  Actor(const Task& task, size_t number, std::vector<InputEdge> edges, std::vector<RegisterState*> produced,
        std::vector<int> data_edges);

  const Task& task() const { return *task_; }
  size_t number() const { return number_; }  ///< Dense among the actors of this rank and plan.
  State state() const { return now_.state; }
  int64_t acts() const { return now_.acts; }
  int64_t pulled_bytes() const { return pulled_bytes_; }  ///< Bodies fetched from other ranks in this run.
  /// Of the pull that is on its way; nullptr: none is.
  const PulledBody* pulled() const { return pulled_.get(); }
  const std::vector<InputEdge>& edges() const { return edges_; }
  const std::vector<RegisterState*>& produced() const { return produced_; }

  /// Back to the state before the first message of `run`. Only while no host runs the actor.
  void Begin(uint32_t run);
  /// The first act, where nothing has to arrive for it.
  void Start(ActorHost& host);
  /// kReady, kAck, kEos, kDone of this run. Bounded work but for the kernels it runs.
  void Handle(const Message& message, ActorHost& host);
  /// Ends whatever it is at: at once, or, with a kernel on the device, when that has come back. Registers
  /// keep their slots (a reader on another thread may still use them) until the next Begin or Clear.
  void Abort(ActorHost& host);
  /// Drops what registers and queues still hold. Only while no host runs any actor of the plan.
  void Clear();

  /// I1-I3 of this actor's own registers and edges; I12 with `quiet` (the run ended well). O(edges + slots).
  Status CheckInvariants(bool quiet) const;
  /// I2 with the registers of other actors: only where one thread runs all of them.
  Status CheckEdges() const;
  /// What the actor waits for, e.g. "task 3 (sum, rank 0) after 1 acts waits for register 2 of task 1"; empty
  /// when done.
  std::string DescribeWait() const;
  /// True if another rank must move first: an open edge from it, or a slot it still reads.
  bool WaitsForOtherRank() const;

 private:
  friend class ActorSnapshot;  // tests/models: stores and restores what an actor knows.

  void OnReady(const Message& message, ActorHost& host);
  void OnAck(const Message& message, ActorHost& host);
  void OnEos(const Message& message, ActorHost& host);
  void OnPullDone(ActorHost& host);
  void OnLaunchDone(ActorHost& host);
  void TryAct(ActorHost& host);
  void TryFinish(ActorHost& host);
  /// True if the act is over and went well: the next one may follow.
  bool Act(ActorHost& host);
  bool StartPull(const InputEdge& edge, ActorHost& host);
  /// Fills inputs_ for the next act.
  void BindInputs();
  /// What follows when a kernel has filled result_. False if it failed.
  bool CompleteAct(ActorHost& host);
  /// Moves the values into the data registers, in order.
  void Publish(std::span<Value> values, ActorHost& host);
  void ReleaseInputs(ActorHost& host);
  void SendEos(ActorHost& host);
  void End(ActorHost& host);
  void Fail(Status status, ActorHost& host);

  const Task* task_;
  size_t number_;
  std::vector<InputEdge> edges_;
  std::vector<RegisterState*> produced_;  ///< In the order of task.produced; owned by the plan instance.
  std::vector<int> data_edges_;  ///< Per entry of task.consumed: position in edges_, -1 where left out.
  TaskRules rules_;

  uint32_t run_ = 0;
  Counters now_;
  int64_t pulled_bytes_ = 0;
  std::vector<const Value*> inputs_;  ///< Of the act under way.
  ActResult result_;                  ///< Of the act under way, written by the host.
  std::vector<Value> held_;           ///< kPack: pieces so far; kAccumulate: the one value so far.
  std::shared_ptr<PulledBody> pulled_;
};

}  // namespace heddle::actor
