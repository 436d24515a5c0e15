// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace heddle::actor {

/// Who may ring a doorbell: threads of this process, or of all that have its memory mapped.
enum class DoorbellReach : uint8_t { kProcess, kMachine };

// A doorbell is a word that is 1 while a thread sleeps at it. Whoever has something for that thread stores it
// where the thread looks, sequentially consistent, and rings; the thread announces its sleep, looks again,
// and sleeps: either it sees what was stored, or it is woken.
//
//     bell.store(1); if (nothing is there) SleepAt(bell, ...); bell.store(0);

inline long FutexAt(std::atomic<uint32_t>& doorbell, DoorbellReach reach, int operation, uint32_t value,
                    const timespec* timeout) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&doorbell),
                 reach == DoorbellReach::kProcess ? operation | FUTEX_PRIVATE_FLAG : operation, value,
                 timeout, nullptr, 0);
}

/// Wakes whoever sleeps there; true if somebody did. No system call when nobody does. Any thread.
inline bool Ring(std::atomic<uint32_t>& doorbell, DoorbellReach reach) {
  if (doorbell.load(std::memory_order_seq_cst) == 0 || doorbell.exchange(0, std::memory_order_seq_cst) == 0)
    return false;
  FutexAt(doorbell, reach, FUTEX_WAKE, INT_MAX, nullptr);
  return true;
}

/// Returns when somebody rings, when `timeout_ns` have passed, or for no reason.
inline void SleepAt(std::atomic<uint32_t>& doorbell, DoorbellReach reach, int64_t timeout_ns) {
  const timespec relative{static_cast<time_t>(timeout_ns / 1'000'000'000),
                          static_cast<long>(timeout_ns % 1'000'000'000)};
  FutexAt(doorbell, reach, FUTEX_WAIT, 1, &relative);
}

}  // namespace heddle::actor
