// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::actor {

/// Finds out that a run can never end, because no rank can do anything any more (runtime reference 2.11).
/// Defence in depth: plans are checked for liveness before they run.
///
/// A rank alone knows only that nothing happens on it; it may wait for a long kernel of another one. So each
/// rank that has been idle for a whole period tells the others, once a period, with its count of handled
/// messages. A rank calls the run stalled when it is idle itself and has heard the same count from every
/// other rank (or that it is through with the run) in each of the last periods. Not thread-safe.
class StallDetector {
 public:
  enum class Verdict : uint8_t { kBusy, kIdle, kStalled };

  /// `needs_peers`: the plan joins this rank to others.
  void Begin(uint32_t rank, uint32_t ranks, bool needs_peers) {
    rank_ = rank;
    needs_peers_ = needs_peers;
    progress_ = UINT64_MAX;
    peers_.assign(ranks, Peer());
  }

  /// Once a period: whether this rank did something in it, and is doing so now. kIdle: tell the others.
  Verdict Tick(uint64_t progress, bool busy) {
    if (busy || progress != progress_) {
      progress_ = progress;
      for (Peer& peer : peers_) peer = Peer{.reports = 0, .progress = 0, .age = 0, .is_done = peer.is_done};
      return Verdict::kBusy;
    }
    if (!needs_peers_) return Verdict::kStalled;
    bool all_idle = true;
    for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
      if (rank == rank_ || peers_[rank].is_done) continue;
      if (++peers_[rank].age > kFreshPeriods) peers_[rank].reports = 0;
      all_idle &= peers_[rank].reports >= kReports;
    }
    return all_idle ? Verdict::kStalled : Verdict::kIdle;
  }

  /// Another rank said that it is idle with this count, or done with the run.
  void OnPeerIdle(uint32_t rank, uint32_t progress, bool is_done) {
    if (rank >= peers_.size()) return;
    Peer& peer = peers_[rank];
    peer.reports = peer.progress == progress ? peer.reports + 1 : 1;
    peer.progress = progress;
    peer.age = 0;
    peer.is_done |= is_done;
  }

 private:
  static constexpr int kReports = 3;
  static constexpr int kFreshPeriods = 2;
  struct Peer {
    int reports = 0;
    uint32_t progress = 0;
    int age = 0;
    bool is_done = false;
  };
  uint32_t rank_ = 0;
  bool needs_peers_ = false;
  uint64_t progress_ = 0;
  std::vector<Peer> peers_;
};

}  // namespace heddle::actor
