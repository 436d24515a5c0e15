// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "actor/link.h"
#include "core/values/matrix.h"
#include "ops/base/machine_constants.h"

namespace heddle::cluster {

/// Measures how fast the ranks of a job reach each other, over the way that messages and values take. Stands
/// between a link and who it serves at every rank: answers the messages and pulls of a measurement, and hands
/// on all others. Thread-safe.
class LinkProbe : public actor::LinkHandler {
 public:
  /// Both outlive it. `ranks` of the job, of which this is `rank`. `on_over` is called at both ends when a
  /// measurement is over, before Measure returns.
  LinkProbe(actor::Link& link, actor::LinkHandler& served, uint32_t rank, uint32_t ranks,
            std::function<void()> on_over)
      : link_(link), served_(served), rank_(rank), ranks_(ranks), on_over_(std::move(on_over)) {}

  /// The rates between this rank and some others, the slowest of them, as powers of two: a few messages and
  /// two values to each, in some milliseconds. The built-in ones where a rank does not answer, which the log
  /// tells, or the machines are at other things meanwhile: after half a second at the latest. Once all ranks
  /// are linked, and one rank at a time.
  ops::LinkRates Measure();

  void OnMessage(const actor::Message& message) override;
  void OnError(uint32_t rank, uint32_t run, NodeId node, const Status& status) override {
    served_.OnError(rank, run, node, status);
  }
  Result<Value> Published(uint32_t run, RegisterId register_id, uint8_t slot) override;

 private:
  // What a message of a measurement says; it is of a type that nobody else sends to other ranks.
  enum class Word : uint8_t { kQuestion, kAnswer, kOver };

  void Say(uint32_t rank, Word word, uint32_t sequence);
  /// Whether an answer came.
  bool Ask(uint32_t rank, Word word);
  /// How long an answer, or a value, takes; nullopt when none comes.
  std::optional<double> MessageNs(uint32_t rank);
  std::optional<double> PullNs(uint32_t rank, uint8_t size);

  actor::Link& link_;
  actor::LinkHandler& served_;
  const uint32_t rank_;
  const uint32_t ranks_;
  const std::function<void()> on_over_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point patient_until_;  // Of the thread that measures, as asked_.
  uint32_t asked_ = 0;
  uint32_t answered_ = 0;
  std::optional<Matrix> values_[2];  // That are pulled in a measurement.
};

}  // namespace heddle::cluster
