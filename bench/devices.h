// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Expressions that memory bounds, by the processor and by the first OpenCL device of the machine, in turns:
/// how many times longer the device takes. Inputs are in its memory. Every result must have the same bytes.
/// Returns an exit status.
int RunDevices(const BenchOptions& options);

}  // namespace heddle::bench
