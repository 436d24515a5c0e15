// SPDX-License-Identifier: Apache-2.0
#include "actor/mailbox.h"

#include <immintrin.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "actor/doorbell.h"
#include "core/environment/clock.h"

namespace heddle::actor {

void Mailbox::Post(const Message& message) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    messages_.push_back(message);
    count_.store(static_cast<uint32_t>(messages_.size()), std::memory_order_seq_cst);
  }
  // Sequentially consistent with Wait: either it sees the count or we see that it sleeps, and where.
  std::atomic<uint32_t>& doorbell = *sleeps_at_.load(std::memory_order_seq_cst);
  Ring(doorbell, &doorbell == &doorbell_ ? DoorbellReach::kProcess : DoorbellReach::kMachine);
}

bool Mailbox::Take(std::vector<Message>* messages) {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  messages->swap(messages_);
  messages_.clear();
  count_.store(0, std::memory_order_relaxed);
  return true;
}

bool Mailbox::Wait(int64_t spin_ns, int64_t timeout_ns, MessageInbox* inbox) {
  Clock& clock = SystemClock();
  const int64_t start = clock.MonotonicNs();
  std::atomic<uint32_t>& doorbell = inbox == nullptr ? doorbell_ : inbox->doorbell();
  const DoorbellReach reach = inbox == nullptr ? DoorbellReach::kProcess : DoorbellReach::kMachine;
  sleeps_at_.store(&doorbell, std::memory_order_seq_cst);
  bool has_messages = false;
  while (!(has_messages = HasMessages(inbox))) {
    const int64_t passed = clock.MonotonicNs() - start;
    if (passed < spin_ns) {
      for (int i = 0; i < 16; ++i) _mm_pause();
      continue;
    }
    if (passed >= timeout_ns) break;
    doorbell.store(1, std::memory_order_seq_cst);
    if (!HasMessages(inbox)) SleepAt(doorbell, reach, timeout_ns - passed);
    doorbell.store(0, std::memory_order_seq_cst);
  }
  // Nobody rings the inbox's doorbell on behalf of this mailbox once the inbox may be gone.
  sleeps_at_.store(&doorbell_, std::memory_order_seq_cst);
  return has_messages;
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
