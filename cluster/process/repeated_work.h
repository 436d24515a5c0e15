// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace heddle::cluster {

/// Calls a function again and again on a thread of its own, until it is destroyed: first after `first`, then
/// `pause` after each call has ended. The destructor waits for a call in progress.
class RepeatedWork {
 public:
  RepeatedWork(std::chrono::milliseconds first, std::chrono::milliseconds pause, std::function<void()> work)
      : thread_([this, first, pause, work = std::move(work)] { Repeat(first, pause, work); }) {}
  ~RepeatedWork() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void Repeat(std::chrono::milliseconds first, std::chrono::milliseconds pause,
              const std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    for (auto wait = first; !changed_.wait_for(lock, wait, [&] { return ended_; }); wait = pause) {
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace heddle::cluster
