// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ops/base/kernel.h"
#include "ops/device/device.h"
#include "ops/device/device_matrix.h"

// What operators with kernels of their own (Operator::run_on_device) share.
namespace heddle::ops {

/// A program of kernels over cells of that type: `text` with CELL, the type; SINGLE, 1 for floats; and
/// ROUNDED(x), a double as a cell. Doubles are allowed, contraction is off.
std::string OverCells(ElementType type, std::string_view text);
/// The same for kernels that only move cells: CELL is a whole number of as many bits.
std::string OverBits(ElementType type, std::string_view text);

/// The commands of one operator to a device.
class DeviceCommands {
 public:
  DeviceCommands(ComputeDevice& device, DeviceQueue& queue, const std::atomic<bool>* cancelled)
      : device_(device), queue_(queue), cancelled_(cancelled) {}
  /// Of a call whose first input is a matrix on the device of the queue.
  DeviceCommands(const KernelCall& call, DeviceQueue& queue)
      : DeviceCommands(DeviceOf(call.inputs[0]->matrix()), queue, call.context.cancelled) {}

  ComputeDevice& device() const { return device_; }
  const DeviceDescription& description() const { return device_.description(); }
  DeviceQueue& queue() const { return queue_; }

  /// Queues the kernel `name` of a program, which is compiled once for each device of the process.
  Status Launch(const std::string& source, const std::string& name,
                std::span<const DeviceArgument> arguments, const LaunchShape& shape);
  /// Work-items for a loop over so many cells in which each takes every cell behind as many as there are
  /// work-items.
  LaunchShape ShapeOfCells(int64_t cells) const;
  bool IsCancelled() const { return ops::IsCancelled(cancelled_); }

 private:
  ComputeDevice& device_;
  DeviceQueue& queue_;
  const std::atomic<bool>* cancelled_;
};

/// What an operator queues one after the other, where some of it takes long: a few launches are queued at a
/// time, and more when these are done (DeviceQueue::Postpone), so that other acts get their turn and a job
/// that is cancelled ends soon. Steps are called in their order; the memory that one needs is best allocated
/// in it. Held by a shared pointer, and by the queue until the last step.
class DeviceSteps : public std::enable_shared_from_this<DeviceSteps> {
 public:
  explicit DeviceSteps(const DeviceCommands& commands) : commands_(commands) {}
  virtual ~DeviceSteps() = default;
  DeviceSteps(const DeviceSteps&) = delete;
  DeviceSteps& operator=(const DeviceSteps&) = delete;

  void Add(std::function<Status()> step) { steps_.push_back({std::move(step), false}); }
  /// One that launches a kernel which takes up to about 50 ms.
  void AddLong(std::function<Status()> step) { steps_.push_back({std::move(step), true}); }
  /// Takes the first steps, or, with a queue that postpones none, all of them. The error of the first step
  /// that has one; kCancelled when the job is.
  Status Run();

  DeviceCommands& commands() { return commands_; }

 private:
  struct Step {
    std::function<Status()> take;
    bool is_long;
  };
  DeviceCommands commands_;
  std::deque<Step> steps_;
};

}  // namespace heddle::ops
