// SPDX-License-Identifier: Apache-2.0
#include "actor/mailbox.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <thread>

#include "core/environment/clock.h"

namespace heddle::actor {
namespace {

uint32_t* WordOf(std::atomic<uint32_t>& word) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  return reinterpret_cast<uint32_t*>(&word);
}

}  // namespace

void Mailbox::Post(const Message& message) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    messages_.push_back(message);
    count_.store(static_cast<uint32_t>(messages_.size()), std::memory_order_seq_cst);
  }
  // Sequentially consistent with Wait: either it sees the count or we see that it sleeps.
  if (sleeping_.load(std::memory_order_seq_cst) != 0 &&
      sleeping_.exchange(0, std::memory_order_seq_cst) != 0) {
    syscall(SYS_futex, WordOf(sleeping_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

bool Mailbox::Take(std::vector<Message>* messages) {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  messages->swap(messages_);
  messages_.clear();
  count_.store(0, std::memory_order_relaxed);
  return true;
}

bool Mailbox::Wait(int64_t spin_ns, int64_t timeout_ns) {
  Clock& clock = SystemClock();
  const int64_t start = clock.MonotonicNs();
  while (count_.load(std::memory_order_acquire) == 0) {
    const int64_t passed = clock.MonotonicNs() - start;
    if (passed < spin_ns) {
      for (int i = 0; i < 16; ++i) _mm_pause();
      continue;
    }
    if (passed >= timeout_ns) return false;
    sleeping_.store(1, std::memory_order_seq_cst);
    if (count_.load(std::memory_order_seq_cst) == 0) {
      const int64_t left = timeout_ns - passed;
      const timespec relative{static_cast<time_t>(left / 1'000'000'000),
                              static_cast<long>(left % 1'000'000'000)};
      syscall(SYS_futex, WordOf(sleeping_), FUTEX_WAIT_PRIVATE, 1, &relative, nullptr, 0);
    }
    sleeping_.store(0, std::memory_order_seq_cst);
  }
  return true;
}

int64_t HandOverNs() {
  static const int64_t hand_over_ns = [] {
    if (std::thread::hardware_concurrency() < 4) return int64_t{0};
    constexpr int kRounds = 20;
    constexpr int64_t kForeverNs = 1'000'000'000;
    const auto here = std::make_unique<Mailbox>();
    const auto there = std::make_unique<Mailbox>();
    std::vector<Message> messages;
    std::thread echo([&] {
      std::vector<Message> received;
      for (int i = 0; i < kRounds; ++i) {
        while (!there->Wait(0, kForeverNs)) {
        }
        received.clear();
        there->Take(&received);
        here->Post(Message());
      }
    });
    const int64_t start = SystemClock().MonotonicNs();
    for (int i = 0; i < kRounds; ++i) {
      there->Post(Message());
      while (!here->Wait(0, kForeverNs)) {
      }
      messages.clear();
      here->Take(&messages);
    }
    const int64_t end = SystemClock().MonotonicNs();
    echo.join();
    return std::min<int64_t>((end - start) / (2 * kRounds), 20'000);
  }();
  return hand_over_ns;
}

}  // namespace heddle::actor
