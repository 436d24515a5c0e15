// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/link_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/environment/clock.h"
#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr uint32_t kMostPeers = 8;
constexpr size_t kLeastMessages = 3;  // To one rank,
constexpr size_t kMostMessages = 8;   // and more until the time below is over.
constexpr int64_t kTimeOfPeerNs = 500'000;
// The two shortest of them may differ by this factor, else the machine is at other things.
constexpr double kSteady = 2;
constexpr int kPulls = 3;                    // The first one may take memory.
constexpr int64_t kTimeOfAllNs = 5'000'000;  // No other rank is looked at later.
// For all answers together. Whoever takes longer is at other things: there are no figures then.
constexpr auto kPatience = std::chrono::milliseconds(500);
constexpr RegisterId kRegister = -2;  // Of no plan.
constexpr int64_t kBytes[] = {16 << 10, 512 << 10};
// Besides the message: the actors of both ranks act, and one of them may have to be woken.
constexpr double kTasksNs = 20'000;

// Measurements of one cluster differ from day to day; plans are to stay.
double PowerOfTwo(double rate) { return std::exp2(std::round(std::log2(rate))); }

}  // namespace

void LinkProbe::Say(uint32_t rank, Word word, uint32_t sequence) {
  actor::Message message;
  message.source = TaskId::Make(rank_, 0, 0);
  message.destination = TaskId::Make(rank, 0, 0);
  message.type = actor::MessageType::kWake;
  message.slot = static_cast<uint8_t>(word);
  message.sequence = sequence;
  link_.Send(rank, {&message, 1});
}

void LinkProbe::OnMessage(const actor::Message& message) {
  if (message.type != actor::MessageType::kWake) return served_.OnMessage(message);
  if (message.source.rank() >= ranks_ || message.source.rank() == rank_) return;
  switch (static_cast<Word>(message.slot)) {
    case Word::kQuestion: return Say(message.source.rank(), Word::kAnswer, message.sequence);
    case Word::kAnswer: {
      const std::lock_guard lock(mutex_);
      answered_ = message.sequence;
      return changed_.notify_all();
    }
    case Word::kOver: {
      const std::lock_guard lock(mutex_);
      for (std::optional<Matrix>& value : values_) value.reset();
    }
      on_over_();
      return Say(message.source.rank(), Word::kAnswer, message.sequence);
  }
}

Result<Value> LinkProbe::Published(uint32_t run, RegisterId register_id, uint8_t slot) {
  if (register_id != kRegister || slot >= std::size(kBytes)) return served_.Published(run, register_id, slot);
  const std::lock_guard lock(mutex_);
  std::optional<Matrix>& value = values_[slot];
  if (!value) {
    const int64_t cells = kBytes[slot] / static_cast<int64_t>(sizeof(double));
    HEDDLE_ASSIGN_OR_RETURN(Matrix made, Matrix::Dense(cells, 1));
    std::fill_n(made.mutable_data(), cells, 0.0);
    value = std::move(made);
  }
  return Value(*value);
}

bool LinkProbe::Ask(uint32_t rank, Word word) {
  Say(rank, word, ++asked_);
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, patient_until_, [&] { return answered_ == asked_; });
}

// One way: half of there and back.
std::optional<double> LinkProbe::MessageNs(uint32_t rank) {
  const int64_t begin_ns = SystemClock().MonotonicNs();
  if (!Ask(rank, Word::kQuestion)) return std::nullopt;
  return static_cast<double>(SystemClock().MonotonicNs() - begin_ns) / 2;
}

std::optional<double> LinkProbe::PullNs(uint32_t rank, uint8_t size) {
  struct Arrival {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<bool> ok;
  };
  const auto arrival = std::make_shared<Arrival>();  // It may come too late.
  const int64_t begin_ns = SystemClock().MonotonicNs();
  link_.Pull(rank, /*run=*/0, kRegister, size, [arrival](const Result<Value>& value) {
    const std::lock_guard lock(arrival->mutex);
    arrival->ok = value.ok();
    arrival->changed.notify_all();
  });
  std::unique_lock lock(arrival->mutex);
  arrival->changed.wait_until(lock, patient_until_, [&] { return arrival->ok.has_value(); });
  if (!arrival->ok.value_or(false)) return std::nullopt;
  return static_cast<double>(SystemClock().MonotonicNs() - begin_ns);
}

ops::LinkRates LinkProbe::Measure() {
  const int64_t begin_ns = SystemClock().MonotonicNs();
  patient_until_ = std::chrono::steady_clock::now() + kPatience;
  double message_ns = 0;
  double byte_ns = 0;
  bool is_measured = false;
  std::optional<uint32_t> silent;
  const uint32_t peers = std::min(ranks_ - 1, kMostPeers);
  for (uint32_t i = 0; i < peers; ++i) {
    const int64_t peer_begin_ns = SystemClock().MonotonicNs();
    if (peer_begin_ns - begin_ns > kTimeOfAllNs) break;
    const uint32_t rank = (rank_ + 1 + i * (ranks_ - 1) / peers) % ranks_;
    // The least of each: what else happens on the machines only makes it longer.
    std::vector<double> messages_ns;
    double pull_ns[] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    while (messages_ns.size() < kMostMessages &&
           (messages_ns.size() < kLeastMessages ||
            SystemClock().MonotonicNs() - peer_begin_ns < kTimeOfPeerNs)) {
      const std::optional<double> ns = MessageNs(rank);
      if (!ns) break;
      messages_ns.push_back(*ns);
    }
    bool is_answered = messages_ns.size() >= kLeastMessages;
    for (int pull = 0; pull < 2 * kPulls && is_answered; ++pull) {
      const auto size = static_cast<uint8_t>(pull % 2);
      const std::optional<double> ns = PullNs(rank, size);
      is_answered = ns.has_value();
      pull_ns[size] = std::min(pull_ns[size], ns.value_or(pull_ns[size]));
    }
    if (is_answered)
      is_answered = Ask(rank, Word::kOver);
    else
      Say(rank, Word::kOver, ++asked_);  // It comes before all that follows; nobody waits once more.
    if (!is_answered) silent = rank;
    std::ranges::sort(messages_ns);
    is_measured = is_answered && messages_ns[1] <= kSteady * messages_ns[0] && pull_ns[1] > pull_ns[0];
    if (!is_measured) break;
    message_ns = std::max(message_ns, messages_ns[0]);
    byte_ns = std::max(byte_ns, (pull_ns[1] - pull_ns[0]) / static_cast<double>(kBytes[1] - kBytes[0]));
  }
  on_over_();
  ops::LinkRates rates;
  if (silent)
    HEDDLE_LOG(kInfo, "links are not measured: a worker does not answer", {"worker", *silent},
               {"waited_ms", (SystemClock().MonotonicNs() - begin_ns) / 1'000'000});
  if (!is_measured) return rates;
  const ops::LinkRates measured = {.bytes_per_ns = PowerOfTwo(1 / byte_ns),
                                   .message_ns = PowerOfTwo(message_ns + kTasksNs),
                                   .measured = true};
  return ops::ArePlausible(measured) ? measured : rates;
}

}  // namespace heddle::cluster
