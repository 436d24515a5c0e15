// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

namespace heddle::ops {

/// X %*% Y where both are split by rows and no rank holds either (docs/distribution.md): on a grid of ranks;
/// by sums that go from rank to rank; by panels of the inner dimension, joined by the tree. Or
/// by columns of Y, where a rank has all of X.
extern const StagedForm kProductStaged;

}  // namespace heddle::ops
