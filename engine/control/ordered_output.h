// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::engine {

/// Iterations that run at once have their turns one after the other: it is that of the first one that is not
/// over. It prints as it goes, what later ones print waits for their turn. Thread-safe.
class OrderedOutput {
 public:
  using Print = std::function<void(uint64_t iteration, std::string_view text)>;

  /// `print` outlives it, and is called by one thread at a time. The first `printed_before` texts have been
  /// printed before, by iterations that were given up, and are not printed again.
  explicit OrderedOutput(const Print& print, int64_t printed_before = 0)
      : print_(print), printed_before_(printed_before) {}

  void Add(uint64_t iteration, std::string_view text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (iteration == next_) {
      PrintNow(iteration, text);
    } else {
      waiting_[iteration].texts.emplace_back(text);
    }
  }
  /// Waits until it is the turn of the iteration; false once `stopped` is set (then somebody calls Wake).
  bool AwaitTurn(uint64_t iteration, const std::atomic<bool>& stopped) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return iteration == next_ || stopped.load(); });
    return !stopped.load();
  }
  /// Those who wait look at their flags again.
  void Wake() {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    changed_.notify_all();
  }
  /// Texts printed so far, those printed before included.
  int64_t printed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return printed_;
  }
  /// The iteration has printed all, and those after it may. Iterations end in any order, each once; one that
  /// failed never does.
  void End(uint64_t iteration) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_[iteration].is_over = true;
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;) {
      for (const std::string& text : first->second.texts) PrintNow(first->first, text);
      first->second.texts.clear();
      if (!first->second.is_over) break;
      ++next_;
      first = waiting_.erase(first);
    }
    changed_.notify_all();
  }

  /// Prints what waits of iterations up to `iteration`, which have all stopped. For the last word of one that
  /// failed.
  void PrintUpTo(uint64_t iteration) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [number, waiting] : waiting_)
      if (number <= iteration)
        for (const std::string& text : waiting.texts) PrintNow(number, text);
    waiting_.clear();
  }

 private:
  struct Waiting {
    std::vector<std::string> texts;
    bool is_over = false;
  };
  // Under the lock.
  void PrintNow(uint64_t iteration, std::string_view text) {
    if (++printed_ > printed_before_) print_(iteration, text);
  }

  const Print& print_;
  const int64_t printed_before_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t printed_ = 0;
  uint64_t next_ = 0;                    ///< The first iteration that is not over.
  std::map<uint64_t, Waiting> waiting_;  ///< Of iterations from next_ on.
};

}  // namespace heddle::engine
