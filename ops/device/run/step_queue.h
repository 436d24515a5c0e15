// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "ops/device/device.h"

namespace heddle::ops {

/// The queue of a device as one call of an operator uses it: a step that is postponed is kept for who takes
/// it when the commands so far are done, and so is what the host looks at when all are. It outlives the
/// steps; `queue` outlives it.
class StepQueue : public DeviceQueue {
 public:
  explicit StepQueue(DeviceQueue& queue) : queue_(queue) {}

  const DeviceQueue& target() const override { return queue_.target(); }
  bool HasStep() const { return step_ != nullptr; }
  /// Needs HasStep.
  Status TakeStep() { return std::exchange(step_, nullptr)(); }
  bool HasCheck() const { return check_ != nullptr; }
  /// When all commands are done. OK where there is nothing to look at.
  Status Check() const { return check_ == nullptr ? OkStatus() : check_(); }

  bool Postpone(std::function<Status()> step) override {
    HEDDLE_CHECK(step_ == nullptr, "who has postponed a step does nothing else");
    step_ = std::move(step);
    return true;
  }
  Status AtEnd(std::function<Status()> check) override {
    HEDDLE_CHECK(check_ == nullptr, "a call looks at its numbers once");
    check_ = std::move(check);
    return OkStatus();
  }
  Status Write(const void* from, int64_t bytes, DeviceMemory& to, int64_t offset) override {
    return queue_.Write(from, bytes, to, offset);
  }
  Status Read(const DeviceMemory& from, int64_t offset, int64_t bytes, void* to) override {
    return queue_.Read(from, offset, bytes, to);
  }
  Status Launch(const std::shared_ptr<DeviceKernel>& kernel, std::span<const DeviceArgument> arguments,
                const LaunchShape& shape) override {
    return queue_.Launch(kernel, arguments, shape);
  }
  Status WhenDone(std::function<void(const Status&)> done) override {
    return queue_.WhenDone(std::move(done));
  }
  Status Finish() override { return queue_.Finish(); }
  Result<std::shared_ptr<DeviceMark>> Mark() override { return queue_.Mark(); }
  Status WaitFor(const std::shared_ptr<DeviceMark>& mark) override { return queue_.WaitFor(mark); }

 private:
  DeviceQueue& queue_;
  std::function<Status()> step_;
  std::function<Status()> check_;
};

}  // namespace heddle::ops
