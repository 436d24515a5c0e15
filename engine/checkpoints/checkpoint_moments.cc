// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoints/checkpoint_moments.h"

#include <algorithm>

namespace heddle::engine {

void CheckpointMoments::BeginLoop(int32_t block, int64_t now_ns) {
  Loop& loop = loops_[block];
  loop.left = std::min(loop.left, kFirstRounds);
  loop.rounds = 0;
  loop.begin_ns = now_ns;
}

bool CheckpointMoments::Meet(const StateTaker::Moment& moment) {
  // Steps of the main program are few.
  if (moment.block == StateTaker::Moment::kMain) return true;
  if (!moment.ends_round) return false;
  Loop& loop = loops_[moment.block];
  if (!moment.is_first_round) ++loop.rounds;
  return --loop.left == 0;
}

uint64_t CheckpointMoments::NextOf(int32_t block, int64_t now_ns) const {
  if (block == StateTaker::Moment::kMain) return 1;
  const Loop& loop = loops_.at(block);
  if (loop.rounds == 0) return std::min(loop.interval, kFirstRounds);  // Nobody has measured one.
  const double round_ns =
      std::max(1.0, static_cast<double>(now_ns - loop.begin_ns)) / static_cast<double>(loop.rounds);
  const double wanted = static_cast<double>(kPauseNs) / round_ns;
  const uint64_t most = std::min(kMostRounds, 2 * loop.interval);
  return wanted >= static_cast<double>(most) ? most : std::max<uint64_t>(1, static_cast<uint64_t>(wanted));
}

void CheckpointMoments::SetNext(int32_t block, uint64_t rounds, int64_t now_ns) {
  loops_[block] = {.interval = rounds, .left = rounds, .begin_ns = now_ns};
}

}  // namespace heddle::engine
