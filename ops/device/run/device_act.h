// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/programs/stream.h"
#include "ops/base/kernel.h"
#include "ops/device/run/device_streams.h"

// What tasks of plans with devices do (docs/devices.md). A process may lack the device that the plan names,
// and a device may fail: then the host computes, the bytes are the same, and the first time a warning says
// why.
namespace heddle::ops {

/// An act of a task of a device's stream, in steps that wait for nothing but CPU work: between two of them
/// the device may be at work.
class DeviceAct {
 public:
  /// Where a step is taken.
  enum class Place : uint8_t {
    kQueueing,   ///< The one thread that uses the queues of `streams`. May print and compile a kernel. The
                 ///< heap refuses it nothing (HeapMode).
    kHere,       ///< Wherever whoever asks is: short.
    kProcessor,  ///< On the threads of the processor: long.
    kDone,       ///< There is none left: status() and the results are there.
  };

  /// What an act is given. All of it outlives the act.
  struct Surroundings {
    Device device;
    StreamKind stream = StreamKind::kCompute;
    DeviceStreams& streams;
    KernelContext& context;
    std::string_view user;     ///< What asks for memory, for messages.
    SourcePosition position;   ///< Of what runs, for errors.
    std::span<Value> results;  ///< One for each data register of the task.
    /// By result: whether it is in the memory of the host at the end, wherever it is made.
    std::vector<bool> on_host = {};
    /// Else an act that leaves all it makes on the device ends when its commands are queued. Set where acts
    /// are timed.
    bool ends_with_its_commands = false;
  };

  explicit DeviceAct(const Surroundings& surroundings) : given_(surroundings) {}
  virtual ~DeviceAct() = default;
  DeviceAct(const DeviceAct&) = delete;
  DeviceAct& operator=(const DeviceAct&) = delete;

  Place next() const { return next_; }
  /// Takes a step, and calls `ready`, once, when place and status of what follows are known: before it
  /// returns, or on a thread of the driver's when commands are done. From the call of `ready` on the act may
  /// be gone.
  void Step(const std::function<void()>& ready);
  /// In place of a step: the act ends with `why`.
  void End(Status why);
  /// Of an act that is done.
  const Status& status() const { return status_; }

 protected:
  /// The step: says where the next one is taken, by GoOn, WaitThen or Done. An error ends the act.
  virtual Status Advance() = 0;

  void GoOn(Place next) { next_ = next; }
  /// The next step follows when all commands of the queue are done; commands() says how they ended.
  void WaitThen(DeviceQueue& queue, Place next) {
    waits_for_ = &queue;
    next_ = next;
  }
  void Done() { next_ = Place::kDone; }
  const Status& commands() const { return commands_; }
  Result<DeviceStreams::Stream> Stream();
  /// True, once for each stream that it may wait for: earlier acts hold memory of the device until their
  /// commands are done. Then the act waits for those, and tries again.
  bool WaitsForMemory(const Status& status);

  Surroundings given_;

 private:
  Place next_ = Place::kQueueing;
  DeviceQueue* waits_for_ = nullptr;
  size_t waits_ = 0;  // For memory.
  Status commands_;
  Status status_;
};

/// The operator of the call, by the device if the context has it and it takes the call, else by `host`:
/// values on the device among the inputs are then brought back, if they are not in the memory of the host
/// anyway. Results are in the memory of the device where StaysOnDevice says so. The call outlives the act.
std::unique_ptr<DeviceAct> ActOfOperator(const DeviceAct::Surroundings& surroundings,
                                         const KernelSource& host, const KernelCall& call);
/// A matrix in the memory of the device, stored as values of that format are; any other value, a compressed
/// matrix, and one that finds no room there, as it is. The result remembers cells of the host that somebody
/// else holds.
std::unique_ptr<DeviceAct> ActOfCopyIn(const DeviceAct::Surroundings& surroundings, const Value& value,
                                       Format format);
/// A matrix on a device in the memory of the host, stored as values of that format are; any other value as it
/// is.
std::unique_ptr<DeviceAct> ActOfCopyOut(const DeviceAct::Surroundings& surroundings, const Value& value,
                                        Format format);

/// Takes all steps of the act on the calling thread, which waits for the device between them.
Status TakeAllSteps(DeviceAct& act);

}  // namespace heddle::ops
