// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

// How ranks together compute operators that only move cells: each sends every other one what is of that one's
// rows of the result, once.
namespace heddle::ops {

extern const StagedForm kTransposeStaged;  ///< t(X)
extern const StagedForm kRollStaged;       ///< roll(X, shift)
extern const StagedForm kReshapeStaged;    ///< matrix(X, rows, cols) of a dense X, row by row.

}  // namespace heddle::ops
