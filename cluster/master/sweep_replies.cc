// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/sweep_replies.h"

#include <algorithm>
#include <utility>

#include "core/environment/clock.h"

namespace heddle::cluster {

int64_t SweepReplies::Begin() {
  const std::lock_guard lock(mutex_);
  // No number of a master before: a worker may still answer that one.
  last_ = std::max(last_ + 1, SystemClock().WallMs());
  replies_[last_];
  return last_;
}

void SweepReplies::Take(const std::string& uuid, const Swept& reply) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = replies_.find(reply.id());
    if (found == replies_.end()) return;
    found->second[uuid] = reply;
  }
  changed_.notify_all();
}

std::map<std::string, Swept> SweepReplies::Await(int64_t id, size_t workers,
                                                 std::chrono::milliseconds patience,
                                                 const std::function<bool()>& given_up) {
  constexpr std::chrono::milliseconds kLook(200);
  const auto end = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mutex_);
  while (replies_[id].size() < workers && !given_up() && std::chrono::steady_clock::now() < end)
    changed_.wait_for(lock, kLook);
  std::map<std::string, Swept> replies = std::move(replies_[id]);
  replies_.erase(id);
  return replies;
}

}  // namespace heddle::cluster
