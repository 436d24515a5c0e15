// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/programs/graph.h"
#include "core/values/value.h"

// The counterpart of ops/frame/row_pieces.h for matrices that are cut by columns.
namespace heddle::ops {

/// Columns [begin, end) of a matrix. kInternal for another value, or columns that are not there.
Result<Value> ColumnsOfValue(const Value& whole, int64_t begin, int64_t end);

/// All columns of the pieces, side by side, stored as the first piece that has columns. A single piece with
/// columns is returned as it is.
///
/// Errors:  kInternal when a piece is no matrix or has other rows or cells; kResourceExhausted.
Result<Value> JoinColumns(std::span<const Value* const> pieces);
/// The same, stored in the format of `info`.
Result<Value> JoinColumnsAs(std::span<const Value* const> pieces, const ValueInfo& info);

}  // namespace heddle::ops
