// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "core/status.h"

namespace heddle::cluster {

/// How a server that compiles for others divides its memory.
struct CompileShares {
  int at_a_time = 2;  ///< Scripts that are compiled at once.
  int64_t bytes = 0;  ///< For each of them, and as much for the server itself.
};
/// One script for each processor, and two at least, so that a long one does not hold up all others; fewer
/// where a share would be less than a script of some thousand lines takes.
CompileShares SharesOf(int64_t memory_bytes, int processors);
constexpr int64_t kLeastCompileBytes = int64_t{256} << 20;

/// The order in which a server compiles scripts for others: a few at a time, those that came first, a few
/// more wait, and the rest is refused. Thread-safe.
class CompileQueue {
 public:
  CompileQueue(int at_a_time, int most_waiting) : at_a_time_(at_a_time), most_waiting_(most_waiting) {}

  /// Runs `work` on the calling thread when it is its turn. kUnavailable when too many wait; kCancelled when
  /// `given_up`, which is asked now and then, says that nobody waits for the result.
  Status Run(const std::string& request_id, const std::function<void()>& work,
             const std::function<bool()>& given_up);

  /// Where a request is on its way.
  struct Place {
    bool waits = false;    ///< Else its work runs.
    int running = 0;       ///< All that run.
    int ahead = 0;         ///< Those that wait and came before it.
    int64_t since_ns = 0;  ///< By the clock of the machine: since when it waits or runs.
  };
  /// nullopt for one that is not here.
  std::optional<Place> Find(const std::string& request_id) const;

 private:
  struct Entry {
    std::string request_id;
    int64_t since_ns = 0;
  };

  const int at_a_time_;
  const int most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry> running_;
  std::list<Entry> waiting_;  // the next one first
};

}  // namespace heddle::cluster
