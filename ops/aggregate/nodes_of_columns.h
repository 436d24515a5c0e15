// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/aggregate/aggregate.h"

namespace heddle::ops {

/// The partial value of a full aggregate of a matrix with rows of more than one column chunk, of the columns
/// of it that `x` holds, from the beginning of a chunk on. Not of kTrace.
Result<Matrix> NodesOfColumns(const Matrix& x, AggregateKind kind, const Shape& whole, int64_t first_column,
                              const KernelContext& context);

}  // namespace heddle::ops
