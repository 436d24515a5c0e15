// SPDX-License-Identifier: Apache-2.0
#include "actor/launch/device_worker.h"

#include <utility>

#include "core/status.h"
#include "ops/base/parallel.h"

namespace heddle::actor {

DeviceWorker::~DeviceWorker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void DeviceWorker::Start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { ThreadMain(); });
}

void DeviceWorker::Launch(std::function<void()> work) {
  HEDDLE_CHECK(has_started(), "threads are made before a run starts, never during one (I9)");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void DeviceWorker::ThreadMain() {
  if (set_floating_point_mode_) ops::SetFloatingPointMode();
  ops::Arena arena(threads_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    arena.Execute(work);
    lock.lock();
  }
}

}  // namespace heddle::actor
