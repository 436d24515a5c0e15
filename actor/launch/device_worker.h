// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace heddle::actor {

/// The CPU device as a first-in first-out queue of kernels: where launches go that would keep the thread of
/// their stream from its messages (runtime reference 6.2).
///
/// Its thread is the one member of the device's pool of `threads` kernel threads that is ours; the others are
/// oneTBB's and belong to its arena. While it works the thread of the stream only handles messages, so no
/// more than `threads` threads compute at a time. There is one per runtime, whatever the plan.
class DeviceWorker {
 public:
  DeviceWorker(int threads, bool set_floating_point_mode)
      : threads_(threads), set_floating_point_mode_(set_floating_point_mode) {}
  /// Ends and joins the thread. Only between runs.
  ~DeviceWorker();

  /// Spawns the thread, the first time. Only between runs: from the start of a run to its end the number of
  /// threads does not change (I9).
  void Start();
  bool has_started() const { return thread_.joinable(); }

  /// Runs `work` after everything that was launched before. Returns at once; the queue holds at most one
  /// launch per actor. Only after Start.
  void Launch(std::function<void()> work);

 private:
  void ThreadMain();

  const int threads_;
  const bool set_floating_point_mode_;
  std::mutex mutex_;  ///< Held for a few instructions, never while a kernel runs.
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace heddle::actor
