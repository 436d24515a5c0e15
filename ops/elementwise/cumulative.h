// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/programs/graph.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {

/// What cumsum, cumprod, cummin and cummax fold with.
simd::Fold FoldOfCumulative(const Node& node);

}  // namespace heddle::ops
