// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Chains of row and column reductions, broadcasts and functions (softmax, layer norm, Sinkhorn steps, ...),
/// in doubles and in floats, one line a case: operators of the plan, bytes moved beside the least that a pass
/// needs, time beside a hand-written loop and beside --fusion off. options.plan is --fusion. 1 when some
/// result differs from that of the operators one by one in a bit, or from the loop's.
int RunStitch(const BenchOptions& options);

}  // namespace heddle::bench
