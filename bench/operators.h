// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Single operators, one line a case: milliseconds, GB/s of compulsory traffic, the time of as many bytes at
/// the read probe of the same run, and the ratio to it.
int RunOperators(const BenchOptions& options);

}  // namespace heddle::bench
