// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ops/device/device.h"

namespace heddle::testing_support {

/// What a test does to the commands of a device.
class DeviceTroubles {
 public:
  enum class Failure : uint8_t {
    kNone,
    kWhenQueued,  ///< The command is refused.
    kLater,       ///< It is queued, and not done.
  };

  /// Command number `command`, and all that follow it, fail.
  void FailAt(int command, Failure failure) {
    const std::lock_guard lock(mutex_);
    fails_at_ = command;
    failure_ = failure;
    commands_ = 0;
    allocations_left_ = INT32_MAX;
  }
  /// After so many allocations `refused` ones find no memory.
  void RefuseAllocations(int after, int refused) {
    FailAt(INT32_MAX, Failure::kNone);
    const std::lock_guard lock(mutex_);
    allocations_left_ = after;
    refusals_left_ = refused;
  }
  /// Callbacks of commands that are done wait for Open.
  void Close() {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  void Open() {
    std::deque<std::function<void()>> waiting;
    {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
      waiting.swap(waiting_);
    }
    for (const auto& callback : waiting) callback();
  }
  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  int commands() {
    const std::lock_guard lock(mutex_);
    return commands_;
  }

  Failure NextCommand() {
    const std::lock_guard lock(mutex_);
    return ++commands_ > fails_at_ ? failure_ : Failure::kNone;
  }
  bool HasFailed() {
    const std::lock_guard lock(mutex_);
    return commands_ > fails_at_;
  }
  bool MayAllocate() {
    const std::lock_guard lock(mutex_);
    if (allocations_left_ > 0) {
      --allocations_left_;
      return true;
    }
    return refusals_left_-- <= 0;
  }
  void CallOrKeep(std::function<void()> callback) {
    {
      const std::lock_guard lock(mutex_);
      if (!is_open_) return waiting_.push_back(std::move(callback));
    }
    callback();
  }

 private:
  std::mutex mutex_;
  int fails_at_ = INT32_MAX;
  int commands_ = 0;
  Failure failure_ = Failure::kNone;
  bool is_open_ = true;
  std::deque<std::function<void()>> waiting_;
  int allocations_left_ = INT32_MAX;
  int refusals_left_ = 0;
};

/// A device that is another one, but for its troubles.
class WrappedDevice : public ops::ComputeDevice, public ops::DeviceSet {
 public:
  explicit WrappedDevice(ops::ComputeDevice& inner) : inner_(inner) {}
  DeviceTroubles& troubles() { return troubles_; }
  int queues() const { return queues_; }
  int callbacks() const { return callbacks_; }  ///< WhenDone
  int waits() const { return waits_; }          ///< WaitFor commands of another queue.

  const ops::DeviceDescription& description() const override { return inner_.description(); }
  Result<std::shared_ptr<ops::DeviceMemory>> Allocate(int64_t bytes) override {
    if (!troubles_.MayAllocate()) return ResourceExhausted("a device of a test has no memory");
    return inner_.Allocate(bytes);
  }
  Result<std::unique_ptr<ops::DeviceQueue>> MakeQueue() override {
    ++queues_;
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<ops::DeviceQueue> queue, inner_.MakeQueue());
    return std::unique_ptr<ops::DeviceQueue>(std::make_unique<Queue>(*this, std::move(queue)));
  }
  Result<std::shared_ptr<ops::DeviceKernel>> Compile(const std::string& source,
                                                     const std::string& name) override {
    return inner_.Compile(source, name);
  }
  std::vector<ops::ComputeDevice*> devices() override { return {this}; }

 private:
  class Queue : public ops::DeviceQueue {
   public:
    Queue(WrappedDevice& device, std::unique_ptr<ops::DeviceQueue> inner)
        : device_(device), troubles_(device.troubles_), inner_(std::move(inner)) {}
    Status Write(const void* from, int64_t bytes, ops::DeviceMemory& to, int64_t offset) override {
      return Do([&] { return inner_->Write(from, bytes, to, offset); });
    }
    Status Read(const ops::DeviceMemory& from, int64_t offset, int64_t bytes, void* to) override {
      return Do([&] { return inner_->Read(from, offset, bytes, to); });
    }
    Status Launch(const std::shared_ptr<ops::DeviceKernel>& kernel,
                  std::span<const ops::DeviceArgument> arguments, const ops::LaunchShape& shape) override {
      return Do([&] { return inner_->Launch(kernel, arguments, shape); });
    }
    Status WhenDone(std::function<void(const Status&)> done) override {
      ++device_.callbacks_;
      return inner_->WhenDone([done = std::move(done), troubles = &troubles_](const Status& status) {
        const Status ended = troubles->HasFailed() ? LostStatus() : status;
        troubles->CallOrKeep([done, ended] { done(ended); });
      });
    }
    Status Finish() override {
      HEDDLE_RETURN_IF_ERROR(inner_->Finish());
      return troubles_.HasFailed() ? LostStatus() : OkStatus();
    }
    Result<std::shared_ptr<ops::DeviceMark>> Mark() override { return inner_->Mark(); }
    Status WaitFor(const std::shared_ptr<ops::DeviceMark>& mark) override {
      device_.waits_ += mark != nullptr;
      return inner_->WaitFor(mark);
    }

   private:
    static Status LostStatus() { return Unavailable("a device of a test does not answer"); }
    template <typename Command>
    Status Do(const Command& command) {
      switch (troubles_.NextCommand()) {
        case DeviceTroubles::Failure::kWhenQueued: return LostStatus();
        case DeviceTroubles::Failure::kLater: return OkStatus();
        case DeviceTroubles::Failure::kNone: break;
      }
      return command();
    }

    WrappedDevice& device_;
    DeviceTroubles& troubles_;
    const std::unique_ptr<ops::DeviceQueue> inner_;
  };

  ops::ComputeDevice& inner_;
  DeviceTroubles troubles_;
  std::atomic<int> queues_{0}, callbacks_{0}, waits_{0};
};

}  // namespace heddle::testing_support
