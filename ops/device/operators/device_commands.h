// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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
  /// The same for one of several launches that take long: waits for the one before. kCancelled when the job
  /// is.
  Status LaunchNext(const std::string& source, const std::string& name,
                    std::span<const DeviceArgument> arguments, const LaunchShape& shape);
  /// Work-items for a loop over so many cells in which each takes every cell behind as many as there are
  /// work-items.
  LaunchShape ShapeOfCells(int64_t cells) const;

 private:
  ComputeDevice& device_;
  DeviceQueue& queue_;
  const std::atomic<bool>* const cancelled_;
  bool has_launched_ = false;  // By LaunchNext.
};

}  // namespace heddle::ops
