// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/values/frame.h"

namespace heddle::ops {

/// All rows of the pieces, one below the other; a single piece as it is.
///
/// Shapes:  pieces of r_i x n cells give (sum of r_i) x n. There is at least one piece.
/// Errors:  kInternal when column types or names differ; kResourceExhausted.
/// Cost:    one copy of every cell, parallel by bytes.
Result<Frame> StackRows(std::span<const Frame> pieces);

/// The same cells in memory of their own, where `frame` may be rows of a larger one. kResourceExhausted.
Result<Frame> CopyRows(const Frame& frame);

}  // namespace heddle::ops
