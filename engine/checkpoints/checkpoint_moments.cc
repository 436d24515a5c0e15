// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoints/checkpoint_moments.h"

#include <algorithm>

namespace heddle::engine {

bool CheckpointMoments::Meet(const StateTaker::Moment& moment) {
  // Steps of the main program are few.
  if (moment.block != StateTaker::Moment::kMain && !moment.ends_round) return false;
  return --loops_[moment.block].left == 0;
}

uint64_t CheckpointMoments::NextOf(int32_t block, int64_t now_ns) const {
  if (block == StateTaker::Moment::kMain) return 1;
  const Loop& loop = loops_.at(block);
  if (loop.met_ns == INT64_MIN) return 1;
  const double round_ns =
      std::max(1.0, static_cast<double>(now_ns - loop.met_ns)) / static_cast<double>(loop.rounds);
  const double wanted = static_cast<double>(kPauseNs) / round_ns;
  const uint64_t most = std::min(kMostRounds, 2 * loop.rounds);
  return wanted >= static_cast<double>(most) ? most : std::max<uint64_t>(1, static_cast<uint64_t>(wanted));
}

void CheckpointMoments::SetNext(int32_t block, uint64_t rounds, int64_t now_ns) {
  loops_[block] = {.rounds = rounds, .left = rounds, .met_ns = now_ns};
}

}  // namespace heddle::engine
