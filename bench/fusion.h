// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Fused expressions against hand-written loops of the same run (bench/hand/fusion.h), one line a case.
/// options.plan is --fusion. 1 when some result differs from the loop's by more than 1e-9.
int RunFusion(const BenchOptions& options);

}  // namespace heddle::bench
