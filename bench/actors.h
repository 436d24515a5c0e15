// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// What the actor runtime costs beside the kernels, one line per case: an act with its messages and with an
/// empty kernel on one thread, beside the same messages through a bare ring; the beginning and end of a run;
/// and a hand-off between two threads, beside two threads that wake each other by a futex. Best of the
/// rounds; the pairs of a line take turns.
int RunActors(const BenchOptions& options);

}  // namespace heddle::bench
