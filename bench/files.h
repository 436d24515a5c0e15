// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Files of each format, written and read: milliseconds, the best of `options.rounds`, and the most memory
/// that a read took over what it gave. Binary files beside copies of the same bytes. The files go to the
/// folder `options.data`, where `bench/peers/files.py` finds them; without one to a folder that is removed.
int RunFiles(const BenchOptions& options);

}  // namespace heddle::bench
