// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/values/matrix.h"

// Moving cells, doubles or floats, without computing: kernels that several operators share. Exact, so any
// order of work will do (docs/numerics.md R4).
namespace heddle::ops {

/// t(X), dense or CSR as X is; a dense vector shares X's memory. Cost: reads and writes X once; parallel when
/// dense.
Result<Matrix> Transpose(const Matrix& x);

/// The rows of X named by `rows` (0-based, repeats allowed), in that order; same format as X. Parallel.
Result<Matrix> GatherRows(const Matrix& x, std::span<const int64_t> rows);

/// The columns of X named by `columns` (0-based, strictly ascending); same format as X. Parallel.
Result<Matrix> GatherColumns(const Matrix& x, std::span<const int64_t> columns);

/// Columns [begin, end) of X; same format. Shares memory when that is all of X.
/// Parallel.
Result<Matrix> SliceColumns(const Matrix& x, int64_t begin, int64_t end);

/// A CSR matrix with counts[i] entries in row i; their columns and values are the caller's to write.
Result<Matrix> SparseOfCounts(int64_t columns, std::span<const int64_t> counts,
                              ElementType type = ElementType::kFloat64);

/// Rows of a matrix that make up about 256 KiB: the grain of loops that copy rows.
int64_t RowGrain(int64_t columns);

}  // namespace heddle::ops
