// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/frame.h"
#include "core/matrix.h"

namespace heddle::ops::reference {

/// as.frame(X): each column as the first of BOOLEAN, INT32, INT64, FP32 and FP64 that holds all its cells.
Frame AsFrame(const Matrix& x);
/// as.matrix(F).
Matrix AsMatrix(const Frame& frame);

}  // namespace heddle::ops::reference
