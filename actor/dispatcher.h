// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/active_run.h"
#include "actor/actor_host.h"
#include "actor/device_launches.h"
#include "actor/link.h"
#include "actor/mailbox.h"
#include "actor/message_times.h"
#include "actor/outgoing_messages.h"
#include "core/programs/stream.h"

namespace heddle::ops {
class Arena;
}

namespace heddle::actor {

class DeviceWorker;

/// First-in first-out messages between actors of one thread: no locks, no atomics, grows to the most ever in
/// flight.
class LocalQueue {
 public:
  bool empty() const { return head_ == tail_; }
  void Push(const Message& message) {
    if (tail_ - head_ == ring_.size()) Grow();
    ring_[tail_++ & (ring_.size() - 1)] = message;
  }
  Message Pop() { return ring_[head_++ & (ring_.size() - 1)]; }

 private:
  void Grow();
  std::vector<Message> ring_ = std::vector<Message>(64);
  size_t head_ = 0;
  size_t tail_ = 0;
};

/// Runs the actors of one or more streams on one thread, those of all runs that are in flight on it: takes
/// messages, hands them to actors, runs short kernels in place and launches long ones on the device. Either
/// it owns its thread (StartThread) or the caller of a run lends its own (Step, Wait).
class Dispatcher : public ActorHost {
 public:
  /// `link` may be nullptr when no plan has remote edges. All pointers outlive the dispatcher.
  Dispatcher(uint32_t rank, RunControl& control, Link* link);
  ~Dispatcher() override;

  /// What records call its thread.
  void set_thread_name(std::string name) {
    on_devices_.set_lane_name(name == "main" ? "" : name);
    thread_name_ = std::move(name);
  }
  /// Where long kernels run; nullptr: in place, as all others. Only between runs.
  void set_device(DeviceWorker* device) { device_ = device; }
  /// Where acts of streams of kind kDisk run; they wait for files while other acts compute.
  void set_disk(DeviceWorker* disk) { disk_ = disk; }
  /// Who queues the commands of acts of devices' streams, and the queues: set_device comes before. Only
  /// between runs.
  void SetQueueing(DeviceWorker* queueing, ops::DeviceStreams* streams) {
    on_devices_.SetPlaces(queueing, device_, streams);
  }

  /// Spawns the thread; kernels on it run in an arena of `threads` threads, made when the first one comes.
  void StartThread(int threads, bool set_floating_point_mode);
  /// Ends and joins the thread. Only between runs.
  void StopThread();

  /// Before the next run: it alone is served, and `inbox`, which this thread has begun to look at, brings the
  /// messages of other ranks. nullptr: any runs are, and others hand over the messages.
  void ServeAlone(const PlanInstance* instance, MessageInbox* inbox) {
    outgoing_.Begin(instance);
    messages_inbox_ = inbox;
  }

  /// Any thread.
  void Post(const Message& message) { mailbox_->Post(message); }

  /// Handles what is there, at most a bounded number of local messages; false when there was nothing. Own
  /// thread only.
  bool Step();
  /// Waits for a message from another thread. Own thread only.
  bool Wait(int64_t timeout_ns);

  /// Messages handled so far; with is_busy, what the stall detector looks at. Any thread.
  uint64_t progress() const { return progress_.load(std::memory_order_acquire); }
  bool is_busy() const {
    return busy_.load(std::memory_order_acquire) || pulls_->load(std::memory_order_acquire) > 0 ||
           launches_.load(std::memory_order_acquire) > 0;
  }
  /// Kernels of its actors are on the device: a message will come. Own thread only.
  bool HasLaunches() const { return launches_.load(std::memory_order_relaxed) > 0; }

  void Send(const Message& message) override;
  Launch Perform(Actor& actor, std::span<const Value* const> inputs, int64_t act, ActResult* result) override;
  void Pull(Actor& actor, TaskId producer, RegisterId register_id, uint8_t slot,
            std::shared_ptr<PulledBody> body) override;
  void Expose(RegisterId register_id, uint8_t slot, const Value& value) override;
  void Withdraw(RegisterId register_id, uint8_t slot) override;
  void Failed(Actor& actor, Status status) override;
  void Finished(Actor& actor) override;

 private:
  /// A run in which this dispatcher has actors that are not done.
  struct Entered {
    uint32_t run = 0;
    ActiveRun* active = nullptr;
    size_t remaining = 0;  ///< Actors that are not done.
  };
  void ThreadMain(bool set_floating_point_mode);
  void Handle(const Message& message);
  void HandleForActor(const Message& message);
  /// What actors have for other ranks goes out.
  void SendOutgoing();
  /// Whether acts of the task's stream run beside this thread and the processor's (set_device): those that
  /// wait for files, and those of devices.
  bool IsBeside(const ActiveRun& active, TaskId task) const;
  void Abort(bool describe_waits);
  /// A pull of the actor is over: it is recorded, where the run is.
  void NoteCopy(const Actor& actor);
  /// One act, on whatever thread calls it: measured, and nothing once the run has been aborted. `thread` is
  /// what records call that thread.
  static void RunKernel(ActiveRun& active, size_t number, std::span<const Value* const> inputs, int64_t act,
                        std::string_view thread, ActResult* result);
  /// Makes `run` the one this dispatcher works on; false when it is not in flight (any more).
  bool TurnTo(uint32_t run);
  /// The present run is over for this dispatcher.
  void Leave();
  template <typename Body>
  void ForEachActor(const Body& body);

  const uint32_t rank_;
  std::string thread_name_ = "main";
  RunControl& control_;
  Link* const link_;
  DeviceWorker* device_ = nullptr;
  DeviceWorker* disk_ = nullptr;
  const std::shared_ptr<Mailbox> mailbox_ =
      std::make_shared<Mailbox>();  ///< Shared with pulls that end late.
  DeviceLaunches on_devices_{mailbox_};
  LocalQueue local_;
  std::vector<Message> inbox_;
  MessageInbox* messages_inbox_ = nullptr;
  OutgoingMessages outgoing_;
  int short_acts_ = 0;  ///< Since something has been in outgoing_.

  std::vector<Entered> entered_;
  Entered* now_ = nullptr;  ///< The one of entered_ to which the message under way belongs.
  std::unordered_map<uint32_t, uint32_t> finished_;  ///< By lane: messages up to this run are stale.

  std::atomic<uint64_t> progress_{0};
  std::atomic<bool> busy_{false};
  const std::shared_ptr<std::atomic<int>> pulls_ = std::make_shared<std::atomic<int>>(0);  ///< In flight.
  std::atomic<int> launches_{0};  ///< On other threads; changed by the own thread only.
  int beside_launches_ = 0;       ///< Of them those that are not on the processor's.
  MessageTimes message_times_;    ///< Debug builds only, as the next.
  int64_t kernel_cpu_ns_ = 0;
  std::atomic<bool> stop_{false};
  int64_t spin_ns_ = 0;
  int arena_threads_ = 0;  ///< 0: the thread is in an arena already.
  std::unique_ptr<ops::Arena> arena_;
  std::thread thread_;
};

}  // namespace heddle::actor
