// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"

namespace heddle::ops {

/// How many pieces of a file may be in memory at once: a few for each thread, fewer where the budget has no
/// room for so many.
inline size_t PiecesAtOnce(int threads) {
  // A piece, and what it is made from.
  constexpr int64_t kBytesOfPiece = int64_t{4} << 20;
  const MemoryBudget& budget = MemoryBudget::Process();
  const int64_t room = budget.limit() - budget.used() + BlockPool::Process().Statistics().trimmable_bytes;
  const int64_t most = threads == 1 ? 1 : 3 * int64_t{threads};
  return static_cast<size_t>(std::clamp<int64_t>(room / kBytesOfPiece, 1, most));
}

/// Makes the pieces of a file on all threads and gives them away in order, one at a time, while others are
/// made: whoever has nothing to make gives. PiecesAtOnce() are in memory.
///
///   next(&piece)  tells what the next piece is, in order; false: there is none. One thread at a time.
///   make(&piece)  makes it; several at once, on memory that it may have from an earlier piece.
///   give(&piece)  takes it, in order, one at a time.
///
/// The status of the first piece that failed, or kCancelled.
template <typename Piece, typename Next, typename Make, typename Give>
Status GiveInOrder(const std::atomic<bool>* cancelled, const Next& next, const Make& make, const Give& give) {
  struct Slot {
    Piece piece;
    Status status;
    bool is_made = false;
  };
  const int threads = ParallelThreads();
  std::vector<Slot> slots(PiecesAtOnce(threads));
  std::mutex mutex;
  std::condition_variable changed;
  size_t begun = 0, given = 0;  // Pieces, counted from the first; slot i has those of number i modulo slots.
  bool no_more = false, is_giving = false, is_over = false;
  Status result;

  const auto work = [&] {
    std::unique_lock lock(mutex);
    // What is thrown for want of memory ends the work of all.
    struct Leaving {
      ~Leaving() {
        if (!lock.owns_lock()) lock.lock();
        is_over = true;
        changed.notify_all();
      }
      std::unique_lock<std::mutex>& lock;
      bool& is_over;
      std::condition_variable& changed;
    } leaving{lock, is_over, changed};
    while (!is_over) {
      Slot& oldest = slots[given % slots.size()];
      if (IsCancelled(cancelled)) {
        result = Cancelled("cancelled");
        return;
      }
      if (given < begun && oldest.is_made && !is_giving) {
        is_giving = true;
        lock.unlock();
        Status status = oldest.status.ok() ? give(&oldest.piece) : oldest.status;
        lock.lock();
        is_giving = oldest.is_made = false;
        ++given;
        if (!status.ok()) {
          result = std::move(status);
          return;
        }
      } else if (!no_more && begun - given < slots.size()) {
        Slot& slot = slots[begun % slots.size()];
        if (!next(&slot.piece)) {
          no_more = true;
          continue;
        }
        ++begun;
        lock.unlock();
        slot.status = make(&slot.piece);
        lock.lock();
        slot.is_made = true;
      } else if (given == begun) {
        return;
      } else {
        changed.wait(lock);
        continue;
      }
      changed.notify_all();
    }
  };
  ParallelFor(threads, 1, [&](int64_t, int64_t) { work(); });
  return result;
}

}  // namespace heddle::ops
