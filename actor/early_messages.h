// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "actor/message.h"
#include "actor/run_number.h"

namespace heddle::actor {

/// What other ranks have sent for runs of a lane that this rank has not begun, until it begins them.
///
/// A peer cannot know how far this rank is, so that its first messages of a run may come early. How many do
/// is in the plan (MostEarlyMessages in plan_instance.h), which this rank may not have yet; so the room for
/// them is a number, `room`, that all lanes of a runtime share. Who fills it does not keep the protocol. Not
/// thread-safe, but for the room.
class EarlyMessages {
 public:
  explicit EarlyMessages(std::atomic<int64_t>& room) : room_(room) {}
  ~EarlyMessages() {
    for (const auto& [run, messages] : by_run_) Release(messages.size());
  }

  /// False: there is no room, and the message is gone.
  bool Add(const Message& message) {
    if (room_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
      Release(1);
      return false;
    }
    by_run_[message.run].push_back(message);
    return true;
  }
  /// Those of a run that begins, in their order. Forgets those of runs before it.
  std::vector<Message> Take(uint32_t run) {
    std::vector<Message> taken;
    std::erase_if(by_run_, [&](auto& early) {
      if (ComesAfter(early.first, run)) return false;
      Release(early.second.size());
      if (early.first == run) taken = std::move(early.second);
      return true;
    });
    return taken;
  }
  bool empty() const { return by_run_.empty(); }

 private:
  void Release(size_t messages) {
    room_.fetch_add(static_cast<int64_t>(messages), std::memory_order_relaxed);
  }

  std::atomic<int64_t>& room_;
  std::map<uint32_t, std::vector<Message>> by_run_;
};

}  // namespace heddle::actor
