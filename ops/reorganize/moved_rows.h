// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

// How ranks together compute operators that only move cells: each sends every other one what is of that one's
// rows of the result, once.
namespace heddle::ops {

extern const StagedForm kTransposeStaged;  ///< t(X); or each rank turns what it has, rows into columns, and
                                           ///< columns into rows.
extern const StagedForm kRollStaged;       ///< roll(X, shift)
extern const StagedForm kReshapeStaged;    ///< matrix(X, rows, cols) of a dense X, row by row.

}  // namespace heddle::ops
