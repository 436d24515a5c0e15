// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/operators.h"

namespace heddle::bench {

/// What a round of a loop costs whose predicate depends on a matrix and whose data are so small that nothing
/// else matters: by a plan in one process, and on two and four executors. In processes of their own, by the
/// `heddle` beside this program. One line a case.
int RunRounds(const BenchOptions& options);

}  // namespace heddle::bench
