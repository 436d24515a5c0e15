// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"

// Changes of storage on all threads of the arena (ToDense and ToSparse of core/values/matrix.h use one).
namespace heddle::ops {

/// The same cells, stored dense; x itself if it is. Shares nothing with x otherwise.
Result<Matrix> AsDense(const Matrix& x);
/// The same cells as CSR without zeros; x itself if it is CSR.
Result<Matrix> AsSparse(const Matrix& x);

}  // namespace heddle::ops
