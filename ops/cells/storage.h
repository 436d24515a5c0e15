// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/value.h"

// Changes of storage on all threads of the arena (ToDense and ToSparse of core/values/matrix.h use one).
namespace heddle::ops {

/// The same cells, stored dense; x itself if it is. Shares nothing with x otherwise.
Result<Matrix> AsDense(const Matrix& x);
/// The cells of a compressed matrix, row by row, into memory of their size.
void DecodeCells(const Matrix& compressed, void* cells);
/// The value; a compressed matrix, and one on a device, dense in the memory of the host.
Result<Value> Decoded(Value value);
/// The same cells as CSR without zeros; x itself if it is CSR.
Result<Matrix> AsSparse(const Matrix& x);

}  // namespace heddle::ops
