// SPDX-License-Identifier: Apache-2.0
#include "cluster/compiling/compile_queue.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "core/environment/clock.h"

namespace heddle::cluster {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(200);

}  // namespace

CompileShares SharesOf(int64_t memory_bytes, int processors) {
  const auto share = [memory_bytes](int scripts) { return memory_bytes / (scripts + 1); };
  CompileShares shares = {.at_a_time = std::max(2, processors)};
  while (shares.at_a_time > 1 && share(shares.at_a_time) < kLeastCompileBytes) --shares.at_a_time;
  shares.bytes = share(shares.at_a_time);
  return shares;
}

Status CompileQueue::Run(const std::string& request_id, const std::function<void()>& work,
                         const std::function<bool()>& given_up) {
  const auto now_ns = [] { return SystemClock().MonotonicNs(); };
  std::unique_lock lock(mutex_);
  const auto may_run = [&] { return static_cast<int>(running_.size()) < at_a_time_; };
  if (!may_run() && static_cast<int>(waiting_.size()) >= most_waiting_)
    return Unavailable("the master compiles {} scripts and {} wait for it: try again later", running_.size(),
                       waiting_.size());
  const auto place = waiting_.insert(waiting_.end(), Entry{request_id, now_ns()});
  const auto is_its_turn = [&] { return may_run() && place == waiting_.begin(); };
  while (!is_its_turn() && !given_up()) changed_.wait_for(lock, kAskAgain, is_its_turn);
  if (!is_its_turn()) {
    waiting_.erase(place);
    changed_.notify_all();
    return Cancelled("nobody waits for this script any more");
  }
  running_.splice(running_.end(), waiting_, place);
  place->since_ns = now_ns();
  changed_.notify_all();  // the next one may have its turn as well
  lock.unlock();
  // Also when work() throws: what serves a call catches that, and the place would be lost for good.
  const auto leave = [&](void*) {
    const std::lock_guard again(mutex_);
    running_.erase(place);
    changed_.notify_all();
  };
  const std::unique_ptr<void, decltype(leave)> guard(this, leave);
  work();
  return OkStatus();
}

std::optional<CompileQueue::Place> CompileQueue::Find(const std::string& request_id) const {
  const std::lock_guard lock(mutex_);
  Place place{.running = static_cast<int>(running_.size())};
  for (const Entry& entry : running_) {
    if (entry.request_id != request_id) continue;
    place.since_ns = entry.since_ns;
    return place;
  }
  place.waits = true;
  for (const Entry& entry : waiting_) {
    place.since_ns = entry.since_ns;
    if (entry.request_id == request_id) return place;
    ++place.ahead;
  }
  return std::nullopt;
}

}  // namespace heddle::cluster
