// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/programs/stream.h"
#include "core/status.h"
#include "core/values/value.h"

// Devices with memory of their own (docs/devices.md): what operators ask of them, whoever drives them. A
// driver (ops/device/opencl) and the simulated device of tests implement it.
namespace heddle::ops {

/// Bytes in the memory of a device, given back with the last owner.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual int64_t bytes() const = 0;
};

/// A function of a program that a device runs. Thread-safe, as long as each thread launches on a queue of its
/// own.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
};

/// An argument of a kernel: an address, a long or a double.
using DeviceArgument = std::variant<std::shared_ptr<DeviceMemory>, int64_t, double>;

/// Work-groups of a launch, and work-items of each.
struct LaunchShape {
  int64_t groups = 1;
  int64_t group_size = 1;
};

/// A place in the stream of a queue: behind the commands that were queued before it was made.
class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
};

/// A stream of a device: commands that it does one after the other. Calls return when the command is queued;
/// memory of the host that it names stays as it is until it is done. A command whose device is lost ends with
/// kUnavailable, here or in Finish and WhenDone. Once a command that was queued has failed, all that follow
/// it fail: nobody reads what it would have written. One thread at a time uses a queue.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  /// The queue that does the commands: this one, unless it hands them on to another one.
  virtual const DeviceQueue& target() const { return *this; }
  virtual Status Write(const void* from, int64_t bytes, DeviceMemory& to, int64_t offset) = 0;
  virtual Status Read(const DeviceMemory& from, int64_t offset, int64_t bytes, void* to) = 0;
  /// Keeps the memory among the arguments until it is done.
  virtual Status Launch(const std::shared_ptr<DeviceKernel>& kernel,
                        std::span<const DeviceArgument> arguments, const LaunchShape& shape) = 0;
  /// Calls `done`, once, on a thread of the driver's, when all commands before are done or one has failed. It
  /// neither waits for anything nor calls the device. Not called where this returns an error.
  virtual Status WhenDone(std::function<void(const Status&)> done) = 0;
  /// Waits for all commands.
  virtual Status Finish() = 0;
  /// Takes a step, which queues further commands, for whoever waits for the commands so far without blocking
  /// a thread: he calls it when they are done. False where nobody does: then the caller waits himself.
  virtual bool Postpone(std::function<Status()> /*step*/) { return false; }
  /// Has the host look at what has been read, when all commands of the call are done: an error of `check` is
  /// the call's. Whoever waits for the commands without blocking a thread calls it then; where nobody does,
  /// this waits and calls it.
  virtual Status AtEnd(std::function<Status()> check) {
    HEDDLE_RETURN_IF_ERROR(Finish());
    return check();
  }
  /// The place behind all commands so far, which the device begins with. A driver that has no such places
  /// waits for them, and returns nullptr.
  virtual Result<std::shared_ptr<DeviceMark>> Mark() {
    HEDDLE_RETURN_IF_ERROR(Finish());
    return std::shared_ptr<DeviceMark>();
  }
  /// Commands that follow begin when those before `mark` are done, which is of a queue of the same device,
  /// and fail where one of those has failed. nullptr: they are done.
  virtual Status WaitFor(const std::shared_ptr<DeviceMark>& mark) {
    return mark == nullptr ? OkStatus() : Internal("a mark of another driver");
  }
};

/// What a device is, as far as its driver tells.
struct DeviceDescription {
  Device device;
  std::string name;    ///< "NVIDIA H200"
  std::string driver;  ///< Platform and version of the driver: part of the key of kept code.
  int64_t memory_bytes = 0;
  int64_t largest_allocation_bytes = 0;
  int64_t local_bytes = 0;  ///< Of a work-group.
  int64_t compute_units = 1;
  int64_t most_group_size = 1;
  bool has_doubles = false;
  bool is_host = false;  ///< Its compute units are the processor's.
};

class ComputeDevice {
 public:
  ComputeDevice();
  virtual ~ComputeDevice() = default;
  ComputeDevice(const ComputeDevice&) = delete;
  ComputeDevice& operator=(const ComputeDevice&) = delete;
  /// Under which a process keeps what it has made for this device. No other one of the process ever has it:
  /// an address may be that of a device which is gone.
  uint64_t id() const { return id_; }
  virtual const DeviceDescription& description() const = 0;
  /// kResourceExhausted, with the numbers, where the memory of the device does not have them.
  virtual Result<std::shared_ptr<DeviceMemory>> Allocate(int64_t bytes) = 0;
  virtual Result<std::unique_ptr<DeviceQueue>> MakeQueue() = 0;
  /// The function `name` of a program in OpenCL C. kInternal, with what the driver's compiler says.
  virtual Result<std::shared_ptr<DeviceKernel>> Compile(const std::string& source,
                                                        const std::string& name) = 0;
  /// Whether Compile takes the program from what an earlier process of the user has compiled, or such a
  /// process has told that name by Keep.
  virtual bool IsKept(const std::string& source_or_name) const {
    static_cast<void>(source_or_name);
    return false;
  }
  /// Remembers for later processes that all is compiled which has that name.
  virtual void Keep(const std::string& name) { static_cast<void>(name); }

 private:
  const uint64_t id_;
};

/// "opencl:0"; nothing for "cpu" and for what names no device.
std::optional<Device> ParseDevice(std::string_view name);

/// The devices of a process.
class DeviceSet {
 public:
  virtual ~DeviceSet() = default;
  /// In the order of their numbers.
  virtual std::vector<ComputeDevice*> devices() = 0;
};

}  // namespace heddle::ops
