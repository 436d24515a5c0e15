// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "engine/session/state_taker.h"

namespace heddle::engine {

/// When the ranks of a job meet to hear from rank 0 whether they take a checkpoint. All must take it between
/// the same two steps, and rank 0 knows when it is time; to ask it at each step would cost more than a short
/// step does. So ranks meet at the end of every n-th round of a loop, and rank 0 says at each meeting how
/// many rounds of this loop come before the next: about kPause of its time. A loop starts with n = 1, and n
/// at most doubles, so that a loop whose rounds become slow meets soon enough. Everything but that number
/// follows from the course of the program, which is the same on every rank.
class CheckpointMoments {
 public:
  static constexpr int64_t kPauseNs = 250'000'000;
  static constexpr uint64_t kMostRounds = uint64_t{1} << 20;

  /// Whether the ranks meet at this moment.
  bool Meet(const StateTaker::Moment& moment);
  /// Rank 0, at a meeting in `block`: how many rounds of it until the next.
  uint64_t NextOf(int32_t block, int64_t now_ns) const;
  /// Every rank, with the answer of rank 0.
  void SetNext(int32_t block, uint64_t rounds, int64_t now_ns);

 private:
  struct Loop {
    uint64_t rounds = 1;  // From one meeting to the next,
    uint64_t left = 1;    // until the next.
    int64_t met_ns = INT64_MIN;
  };
  std::unordered_map<int32_t, Loop> loops_;
};

}  // namespace heddle::engine
