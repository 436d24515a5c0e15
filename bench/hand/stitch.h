// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"

// Hand-written loops that stitched operators are compared with, on all threads of the arena that calls them.
// One pass over the rows; a single long row takes a pass for each value that all of its cells need.
namespace heddle::bench {

/// The softmax of each row of x; doubles or floats, as `out`.
void HandSoftmax(const Matrix& x, Matrix* out);
/// Layer norm of each row with the weights g and the shifts b, rows both.
void HandLayerNorm(const Matrix& x, const Matrix& g, const Matrix& b, Matrix* out);

}  // namespace heddle::bench
