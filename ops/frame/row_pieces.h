// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/programs/graph.h"
#include "core/values/value.h"

namespace heddle::ops {

/// Rows [begin, end) of a matrix or frame, sharing its memory. kInternal for a scalar or rows that are not
/// there.
Result<Value> SliceRows(const Value& whole, int64_t begin, int64_t end);

/// All rows of the pieces, which are all matrices or all frames, one below the other; those of matrices
/// stored as the first piece that has rows. A single piece with rows is returned as it is.
///
/// Shapes:  pieces of r_i x n cells give (sum of r_i) x n.
/// Errors:  kInternal when a piece is of another kind or has other columns; kResourceExhausted.
/// Cost:    one copy of every stored entry, parallel by rows.
Result<Value> JoinRows(std::span<const Value* const> pieces);
/// The same, matrices stored in the format of `info`.
Result<Value> JoinRowsAs(std::span<const Value* const> pieces, const ValueInfo& info);

}  // namespace heddle::ops
