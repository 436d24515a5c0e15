// SPDX-License-Identifier: Apache-2.0
#include "cluster/compiling/compiled_scripts.h"

#include <chrono>

namespace heddle::cluster {
namespace {

constexpr int64_t kKeptNs = 60'000'000'000;
constexpr auto kAskAgain = std::chrono::milliseconds(200);

}  // namespace

Result<CompiledScripts::Reply> CompiledScripts::Get(const std::string& key,
                                                    const std::function<Result<CompileReply>()>& make,
                                                    const std::function<bool()>& given_up) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) break;
    const auto entry = found->second;
    if (entry->reply == nullptr) {
      if (given_up()) return Cancelled("nobody waits for this script any more");
      changed_.wait_for(lock, kAskAgain);
    } else if (clock_.MonotonicNs() - entry->made_ns > kKeptNs) {
      Erase(entry);
    } else {
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->reply;
    }
  }
  entries_.push_front({key, nullptr, 0, 0});
  const auto entry = entries_.begin();
  by_key_[key] = entry;
  lock.unlock();
  Result<CompileReply> made = make();
  lock.lock();
  changed_.notify_all();
  if (!made.ok()) {
    Erase(entry);
    return made.status();
  }
  const auto reply = std::make_shared<const CompileReply>(*std::move(made));
  Keep(entry, reply);
  return reply;
}

void CompiledScripts::Keep(Entries::iterator entry, const Reply& reply) {
  const auto bytes = static_cast<int64_t>(reply->ByteSizeLong() + entry->key.size());
  if (!reply->status().empty() || bytes > most_bytes_) return Erase(entry);
  entry->reply = reply;
  entry->made_ns = clock_.MonotonicNs();
  entry->bytes = bytes;
  bytes_ += bytes;
  while (bytes_ > most_bytes_) {
    auto oldest = std::prev(entries_.end());
    while (oldest->reply == nullptr) --oldest;
    Erase(oldest);
  }
}

void CompiledScripts::Erase(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace heddle::cluster
