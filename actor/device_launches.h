// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "actor/active_run.h"
#include "actor/actor_host.h"
#include "actor/mailbox.h"
#include "ops/device/run/device_act.h"

namespace heddle::actor {

class DeviceWorker;

/// The acts of streams of devices that one dispatcher has begun. Their steps run where they belong: commands
/// are queued on one thread for all streams, since a kernel may have to be compiled before; what is long runs
/// on the processor's thread; what is short here. Behind each step a message kDone comes, sent by that thread
/// or by the driver's, and nobody waits. Used by the thread of the dispatcher alone.
class DeviceLaunches {
 public:
  explicit DeviceLaunches(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}

  /// In front of what records call the streams: "" or the name of a lane beside the first.
  void set_lane_name(std::string name) { lane_name_ = std::move(name); }
  /// All outlive the launches. Only between runs.
  void SetPlaces(DeviceWorker* queueing, DeviceWorker* processor, ops::DeviceStreams* streams) {
    queueing_ = queueing;
    processor_ = processor;
    streams_ = streams;
  }

  /// Begins an act of the actor if its task is one of a device's stream: then true, and `done` comes one time
  /// or several. The rest is as in ActorHost::Perform.
  bool Begin(ActiveRun& active, size_t number, std::span<const Value* const> inputs, int64_t act,
             ActResult* result, const Message& done);

  /// `done` has come for the act of that actor. True when the act is over and its result is there, or there
  /// is no such act; false when another step is on its way.
  bool Continue(size_t number);

  /// How many steps are on their way on the processor's thread.
  int on_processor() const { return on_processor_; }

 private:
  struct Launched {
    ActiveRun& active;
    size_t number;
    ActResult* result;
    Message done;
    std::unique_ptr<ops::DeviceAct> act;
    Clock* clock = nullptr;  ///< Of acts that are timed, as
    int64_t begin_ns = 0;    ///< when its first step was taken, and
    int64_t end_ns = 0;      ///< when the last one was done.
    bool is_on_processor = false;
  };
  void TakeStep(Launched& launched);
  void Note(const Launched& launched);

  const std::shared_ptr<Mailbox> mailbox_;
  std::string lane_name_;
  DeviceWorker* queueing_ = nullptr;
  DeviceWorker* processor_ = nullptr;
  ops::DeviceStreams* streams_ = nullptr;
  std::unordered_map<size_t, std::unique_ptr<Launched>> launched_;  ///< By actor; there is one act of each.
  /// When the last act of a stream that was timed has ended, by name: the next one begins no earlier.
  std::map<std::string, int64_t, std::less<>> ends_ns_;
  int on_processor_ = 0;
};

/// Counts the rows that an act has made, of those that went well.
void NoteRows(ActiveRun& active, size_t number, const ActResult& result);

}  // namespace heddle::actor
