// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// transformencode of frames of words: recode and dummycode, a line a case: milliseconds, the best of
/// `options.rounds`. `options.cells` are those of the frame.
int RunTransforms(const BenchOptions& options);

}  // namespace heddle::bench
