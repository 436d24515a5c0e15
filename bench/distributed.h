// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/base/options.h"

namespace heddle::bench {

/// What a round of a loop costs whose predicate depends on a matrix and whose data are so small that nothing
/// else matters: by a plan in one process, and on two and four executors. In processes of their own, by the
/// `heddle` beside this program. One line a case.
int RunRounds(const BenchOptions& options);

/// Whole scripts (all that it is made for when `files` is empty) on four executors of one thread each and in
/// one process of as many threads as there are processors, two, in turns, all on the same two processors. One
/// line a script: the best seconds of each without those of a run of few rounds, which draws the same data,
/// and their ratio; those of such a run beside them. Both must print the same.
int RunDistributed(const BenchOptions& options, const std::vector<std::string>& files);

}  // namespace heddle::bench
