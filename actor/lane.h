// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actor/active_run.h"
#include "actor/launch/device_worker.h"
#include "actor/dispatcher.h"
#include "actor/early_messages.h"
#include "actor/exposed_slots.h"
#include "actor/ready_plan.h"
#include "actor/run_admission.h"
#include "actor/run_errors.h"
#include "actor/run_number.h"
#include "actor/runtime.h"
#include "actor/stall_detector.h"
#include "ops/base/parallel.h"
#include "ops/device/run/device_streams.h"

namespace heddle::actor {

/// What the lanes of a runtime share. All of it outlives them.
struct LaneSurroundings {
  const RuntimeOptions& options;
  const ops::KernelSource& kernels;
  Link* link;  ///< nullptr when plans have one rank.
  RunControl& control;
  RunAdmission& admission;
  std::atomic<int64_t>& early_room;                         ///< EarlyMessages
  const std::vector<StreamDescription>& streams;            ///< Of this rank; the first is the caller's.
  const std::vector<std::unique_ptr<Dispatcher>>& threads;  ///< Of the others, in order.
};

/// The runs of one lane on one rank, one after the other: their plans, errors, published values. The thread
/// that calls Run serves the compute stream, or all of them. A lane is there from the first word that this
/// rank hears of it, which may come from another rank; Run needs Open.
class Lane {
 public:
  Lane(uint32_t number, const LaneSurroundings& surroundings);

  /// Gives the lane its kernel threads and what its kernels may use; forgets what ended it. Not while it
  /// runs. `context` outlives the lane.
  void Open(int threads, ops::KernelContext& context);
  /// The same with a copy of `context`.
  void OpenWithCopy(int threads, const ops::KernelContext& context);
  /// Runtime::Run for runs of this lane.
  Result<RunResult> Run(std::shared_ptr<const Plan> plan, uint32_t run, std::map<std::string, Value> live_in);
  /// Runtime::HasFailedElsewhere.
  bool has_failed_elsewhere() const { return has_failed_elsewhere_; }
  /// Runtime::Leave. Any thread.
  void Leave(uint32_t run, uint32_t ranks, const Status& why);
  /// Runtime::Cancel for runs of this lane. Any thread.
  void Cancel(const Status& why);

  // What LinkHandler and RunControl say of runs of this lane. Any thread.
  void OnMessage(const Message& message);
  void OnError(uint32_t rank, uint32_t run, NodeId node, const Status& status);
  Result<Value> Published(uint32_t run, RegisterId register_id, uint8_t slot) {
    return exposed_.Find(run, register_id, slot);
  }
  ActiveRun* Active(uint32_t run);
  void ActorFailed(uint32_t run, NodeId node, Status status);
  void Expose(RegisterId register_id, uint8_t slot, const Value& value) {
    exposed_.Expose(register_id, slot, value);
  }
  void Withdraw(RegisterId register_id, uint8_t slot) { exposed_.Withdraw(register_id, slot); }
  void AddWaits(std::vector<std::string> lines);

 private:
  // An error to tell other ranks about, collected under the lock and sent outside of it.
  struct Announcement {
    bool needed = false;
    uint32_t run = 0;
    NodeId node = kNoNode;
    Status status;
  };

  Result<ReadyPlan*> Prepare(const std::shared_ptr<const Plan>& plan);
  Result<RunResult> RunAdmitted(ReadyPlan& ready, uint32_t run, std::map<std::string, Value> live_in);
  // Makes `ready` the run in flight. From here to End the other threads may work on it.
  Status Begin(ReadyPlan& ready, uint32_t run);
  void StartWorkers(const ReadyPlan& ready);
  Status ChooseDispatchers(const PlanInstance& instance, bool is_short);
  void LookAtInbox(bool by_caller);
  /// The dispatcher of a stream of a plan; nullptr where this rank has no such stream.
  Dispatcher* DispatcherOf(const StreamDescription& stream);
  /// Who runs the actor that a message of the run in flight is for; nullptr where nobody does.
  Dispatcher* ServerOf(const Message& message) const;
  void DeliverEarly(uint32_t run);
  void FailEarly(uint32_t run);
  bool AddEarlyError(uint32_t run, NodeId node, uint32_t rank, const Status& status);
  void KeepEarly(const Message& message, Status* refused);
  Status FailBeforeStart(uint32_t run, uint32_t ranks, Status status);
  void ServeUntilDone();
  void Tick();
  void OnIdle(const Message& message);
  void FailStalled(std::vector<std::string> waits);
  Announcement FailLocked(NodeId node, uint32_t rank, Status status, bool announce, uint16_t abort_port = 0);
  void Announce(const Announcement& announcement);
  void TellOthers(uint32_t ranks, uint32_t run, NodeId node, const Status& status);
  Result<RunResult> End(ReadyPlan& ready);

  bool IsNew(uint32_t run) const { return !last_run_ || ComesAfter(run, *last_run_); }

  const uint32_t number_;
  const LaneSurroundings surroundings_;
  Dispatcher caller_;
  std::unique_ptr<ops::Arena> arena_;     ///< Caller only, as all down to stop_kernels_.
  std::unique_ptr<DeviceWorker> device_;  ///< Of `arena_`'s size, as
  std::unique_ptr<DeviceWorker> disk_;    ///< this: readers make numbers of text on the way.
  ops::DeviceStreams device_streams_;
  std::unique_ptr<DeviceWorker> queueing_;  ///< Alone it uses `device_streams_`.
  ops::KernelContext own_context_;
  ops::KernelContext* context_ = nullptr;
  ReadyPlans plans_;
  std::vector<TaskStatistics> statistics_;
  std::vector<Dispatcher*> participants_;  ///< Those with actors in the run in flight. Changed under mutex_.
  bool is_alone_ = false;                  ///< One thread serves the run, and no other rank takes part.
  MessageInbox* inbox_ = nullptr;          ///< At which the caller looks in the run in flight.
  bool has_failed_elsewhere_ = false;      ///< The last run.
  std::atomic<bool> stop_kernels_{false};
  std::atomic<bool> is_cancelled_{false};
  std::atomic<int32_t> ranks_{1};  ///< Of the run in flight.

  std::mutex mutex_;  ///< Guards what follows; never held while the link is called.
  ActiveRun active_;
  bool is_running_ = false;
  std::optional<uint32_t> last_run_;    ///< The run in flight or the last one.
  std::optional<uint32_t> failed_run_;  ///< The last run that ended in an error here.
  Status cancelled_;
  RunErrors errors_;
  RunErrors late_errors_;                       ///< Of runs that ended well here.
  std::map<uint32_t, RunErrors> early_errors_;  ///< Of runs that this rank has not begun: of the first ones.
  EarlyMessages early_messages_;
  std::vector<std::string> waits_;
  StallDetector detector_;

  ExposedSlots exposed_;
};

}  // namespace heddle::actor
