// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cluster/language_server/protocol_values.h"

namespace heddle::cluster {

/// What the reading thread has for the one that answers.
struct WaitingMessage {
  Json json;          ///< Discarded (Json::is_discarded()) of what is no JSON.
  std::string error;  ///< Not "": what was read is no message, for this reason.
};

/// Messages in their order, and the requests among them that need no answer any more. Thread-safe.
class MessageQueue {
 public:
  void Push(WaitingMessage message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    changed_.notify_one();
  }
  /// No more messages come.
  void Close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_one();
  }
  /// The next message, once there is one; nullopt: none will come.
  std::optional<WaitingMessage> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_closed_ || !messages_.empty(); });
    if (messages_.empty()) return std::nullopt;
    WaitingMessage message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  bool IsEmpty() const {
    const std::lock_guard lock(mutex_);
    return messages_.empty() && !is_closed_;
  }
  /// A request is not to be answered, if its turn has not come.
  void Cancel(const Json& id) {
    const std::lock_guard lock(mutex_);
    for (const WaitingMessage& message : messages_) {
      const Json* const other = FindMember(message.json, {"id"});
      if (other != nullptr && *other == id)
        cancelled_.insert(id.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  }
  /// Whether it was cancelled; forgets it.
  bool TakeCancelled(const Json& id) {
    const std::lock_guard lock(mutex_);
    return cancelled_.erase(id.dump(-1, ' ', false, Json::error_handler_t::replace)) > 0;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WaitingMessage> messages_;
  std::set<std::string> cancelled_;
  bool is_closed_ = false;
};

}  // namespace heddle::cluster
