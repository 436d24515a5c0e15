// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Convolutions of 64 images, forward and both gradients: GFLOP/s beside the packed product of the same size
/// (windows that are unfolded already, times filters), one line a case.
int RunConvolution(const BenchOptions& options);

}  // namespace heddle::bench
