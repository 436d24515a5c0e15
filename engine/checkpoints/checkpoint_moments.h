// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "engine/session/state_taker.h"

namespace heddle::engine {

/// When the ranks of a job meet to hear from rank 0 whether they take a checkpoint. All must take it between
/// the same two steps, and rank 0 knows when it is time; to ask it at each step would cost more than a short
/// step does. So ranks meet at the end of every n-th round of a loop, and rank 0 says at each meeting how
/// many rounds of this loop come before the next: about kPauseNs of its time, at most kMostRounds. The first
/// time that a loop runs n is 1, and from one meeting to the next it at most doubles, so that a loop whose
/// rounds become slow meets soon enough. Rounds of a loop that runs again may be slow where those of before
/// were not: it meets after kFirstRounds, or before. Loops of fewer rounds than that meet in the course of
/// several runs. Everything but the number that rank 0 says follows from the course of the program, which is
/// the same on every rank.
class CheckpointMoments {
 public:
  static constexpr int64_t kPauseNs = 250'000'000;
  static constexpr uint64_t kMostRounds = 4096, kFirstRounds = 16;

  /// A loop runs, perhaps once more: before Meet() at the end of its first round.
  void BeginLoop(int32_t block, int64_t now_ns);
  /// Whether the ranks meet at this moment.
  bool Meet(const StateTaker::Moment& moment);
  /// Rank 0, at a meeting in `block`: how many rounds of it until the next.
  uint64_t NextOf(int32_t block, int64_t now_ns) const;
  /// Every rank, with the answer of rank 0.
  void SetNext(int32_t block, uint64_t rounds, int64_t now_ns);

 private:
  struct Loop {
    uint64_t interval = 1;  // Rounds from the last meeting to the next one,
    uint64_t left = 1;      // those that are left.
    uint64_t rounds = 0;    // Since the moment `begin_ns`.
    int64_t begin_ns = 0;
  };
  std::unordered_map<int32_t, Loop> loops_;
};

}  // namespace heddle::engine
