// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/environment/clock.h"
#include "core/status.h"
#include "engine/checkpoints/checkpoint_moments.h"
#include "engine/checkpoints/checkpoint_store.h"
#include "engine/session/state_taker.h"

namespace heddle::engine {

struct CheckpointOptions {
  std::string folder;       ///< Of the objects of this attempt: "j17/3". Number n is in "`folder`-n".
  int64_t interval_ns = 0;  ///< From one checkpoint to the next; 0: by what one costs (CheckpointIntervalOf).
  /// How long the machines of a job run, on average, before one of them is lost.
  int64_t mean_time_to_loss_ns = int64_t{7} * 24 * 3'600 * 1'000'000'000;
};

/// What a rank has written of a checkpoint, or could not.
struct WrittenCheckpoint {
  int64_t number = 0;
  Status status;
  int64_t bytes = 0;     ///< Of this rank's object.
  int64_t printed = 0;   ///< On rank 0: bytes of standard output before it.
  int64_t stood_ns = 0;  ///< How long the program stood still for it,
  int64_t took_ns = 0;   ///< and how long it took to write, the program going on.
};

/// How long to compute between two checkpoints so that writing them and repeating what a loss undoes cost
/// least together: sqrt(2 C M) for a cost C of one and a mean time M to a loss (Young 1974; Daly 2006 has the
/// terms of higher order, which are below a percent where C is far below M). At least kLeastNs, and so long
/// that checkpoints take at most 2 % of the time.
int64_t CheckpointIntervalOf(int64_t cost_ns, int64_t mean_time_to_loss_ns);

/// Takes checkpoints of a session (docs/recovery.md): rank 0 says when, all ranks take the state between the
/// same two steps, and each writes what it holds. The program goes on meanwhile, until the next checkpoint is
/// due or memory is needed that the state of before holds; it stands still where that state has values in
/// panels, whose rows take the room of those that the program reads, or more than a quarter of the memory
/// that is free.
class Checkpoints : public StateTaker {
 public:
  static constexpr int64_t kLeastNs = int64_t{30} * 1'000'000'000;

  /// `store` and `clock` outlive it. `printed`: bytes of standard output so far, of all attempts. `written`
  /// is called when an object has been written or could not be, on another thread.
  Checkpoints(const CheckpointOptions& options, int rank, CheckpointStore& store, Clock& clock,
              std::function<int64_t()> printed, std::function<void(const WrittenCheckpoint&)> written);
  ~Checkpoints() override;  ///< Gives up one that is being written.

  Result<bool> Wants(const Moment& moment, const Share& share) override;
  int64_t working_bytes() const override;
  Status Take(ControlState state) override;
  void WaitForWrite() override;
  /// A checkpoint is wanted soon, as before a worker goes. Rank 0; any thread.
  void Ask() { asked_ = true; }
  /// Checkpoints that nobody needs any more go with the next one that is written. Any thread.
  void Drop(const std::vector<std::string>& checkpoints);

 private:
  std::string Answer(int32_t block);
  bool IsDue(int64_t now_ns) const;
  void Write(const ControlState& state, WrittenCheckpoint* about);

  const CheckpointOptions options_;
  const int rank_;
  CheckpointStore& store_;
  Clock& clock_;
  const std::function<int64_t()> printed_;
  const std::function<void(const WrittenCheckpoint&)> written_;
  CheckpointMoments moments_;
  int64_t begun_ns_;  // When the last one was taken.
  std::atomic<int64_t> cost_ns_{0};
  std::atomic<bool> asked_{false};
  std::atomic<bool> is_over_{false};
  int64_t number_ = 0;
  std::mutex mutex_;
  std::vector<std::string> dropped_;  // Under mutex_.
  std::thread writing_;
};

}  // namespace heddle::engine
