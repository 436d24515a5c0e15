// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {

/// ReduceLeaves of `ranges` ranges of leaves, of which range r is the `count` leaves from r * stride + first
/// on: the nodes of the first range, then those of the next. All ranges are one parallel loop.
Result<Matrix> ReduceRanges(const Reduction& reduction, int64_t ranges, int64_t stride, int64_t first,
                            int64_t count, const LeafFunction& leaf);

}  // namespace heddle::ops
