// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/base/kernel.h"

namespace heddle::ops {

/// The seed of an operator that draws: its scalar input `input`. Without one, or with -1, mixed from the
/// job's seed, the node's "stream" and the number of blocks run so far.
Result<int64_t> SeedOf(const KernelCall& call, int input);

}  // namespace heddle::ops
