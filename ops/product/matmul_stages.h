// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

// How ranks compute X %*% Y together where both operands are split by rows and no rank needs to hold either
// (docs/distribution.md, "Products"). Every cell is the chain or the tree of docs/numerics.md, section 3.
namespace heddle::ops {

/// On a grid of ranks; the other forms stand behind it.
extern const StagedForm kProductStaged;
/// Chains go from rank to rank.
extern const StagedForm kProductInTurns;
/// On a grid, a range of inner indexes at a time: less memory, more messages.
extern const StagedForm kProductOnGridInSteps;
/// Leaves of the tree of a small result with a long inner dimension.
extern const StagedForm kProductByPanels;
/// By columns of Y, where a rank has all of X.
extern const StagedForm kProductByColumns;
/// By columns of X and the rows of Y that meet them: nodes of a tree to all, or chains from rank to rank.
extern const StagedForm kProductByLeftColumns;

}  // namespace heddle::ops
