// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/environment/clock.h"
#include "core/status.h"
#include "proto/compile.pb.h"

namespace heddle::cluster {

/// What scripts were compiled to, for those who submit the same again: many jobs of one script cost one run
/// of the compiler a minute. Not longer, as the plans are made for the sizes that files had then; a plan for
/// another size is of no use, but does no harm. Thread-safe.
class CompiledScripts {
 public:
  using Reply = std::shared_ptr<const CompileReply>;

  /// `clock` outlives it. Of all replies at most about `most_bytes` are kept, the latest used ones.
  CompiledScripts(Clock& clock, int64_t most_bytes) : clock_(clock), most_bytes_(most_bytes) {}

  /// The reply of `key`: the one that is kept, or what `make` returns. While one caller makes it, others with
  /// the same key wait for it, unless `given_up` says that nobody waits for them. A failure, or a script that
  /// does not compile, is its maker's alone: the next one makes it again.
  Result<Reply> Get(const std::string& key, const std::function<Result<CompileReply>()>& make,
                    const std::function<bool()>& given_up);

 private:
  struct Entry {
    std::string key;
    Reply reply;  // nullptr: somebody is making it
    int64_t made_ns = 0;
    int64_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // the latest used first

  void Erase(Entries::iterator entry);
  void Keep(Entries::iterator entry, const Reply& reply);

  Clock& clock_;
  const int64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Entries entries_;
  std::map<std::string, Entries::iterator> by_key_;
  int64_t bytes_ = 0;
};

}  // namespace heddle::cluster
