// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

namespace heddle::ops {

/// A fused operator t(P) %*% Y whose P, cell by cell made of inputs or the cells of U %*% t(S) at the entries
/// of one, is there by columns: each rank makes the rows of the result that its columns of P give. It has Y,
/// U and columns of numbers whole, and of S the rows of its columns of P. Y has more than 8 columns: the
/// order of a cell does not depend on the number of columns of P then (docs/numerics.md, section 3).
extern const StagedForm kFusedTurned;

}  // namespace heddle::ops
