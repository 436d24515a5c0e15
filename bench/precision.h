// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Expressions on doubles and on the same cells as floats, in turns: how much faster floats are and how far
/// their results are from those of doubles, products beside OpenBLAS's. Returns an exit status.
int RunPrecision(const BenchOptions& options);

}  // namespace heddle::bench
