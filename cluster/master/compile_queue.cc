// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/compile_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace heddle::cluster {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(200);
constexpr int kNiceness = 5;

}  // namespace

Status CompileQueue::Run(const std::function<void()>& work, const std::function<bool()>& given_up) {
  {
    std::unique_lock lock(mutex_);
    if (running_ >= at_a_time_ && waiting_ >= most_waiting_)
      return Unavailable("the master compiles {} scripts and {} wait for it: try again later", running_,
                         waiting_);
    ++waiting_;
    while (running_ >= at_a_time_ && !given_up())
      changed_.wait_for(lock, kAskAgain, [&] { return running_ < at_a_time_; });
    --waiting_;
    if (running_ >= at_a_time_) return Cancelled("nobody waits for this script any more");
    ++running_;
  }
  std::thread([&] {
    // On Linux a priority is that of a thread.
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
    work();
  }).join();
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
  return OkStatus();
}

}  // namespace heddle::cluster
