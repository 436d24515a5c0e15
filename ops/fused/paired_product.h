// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/fused/tile_program.h"

namespace heddle::ops {

/// A step X %*% v and a root t(X) %*% w of the same narrow input X: the root of one tile runs in one loop with the
/// product of the next tile (simd::MultiplyRowsAndColumns), w being still in its buffer. Whatever is computed between
/// them may be in between.
struct PairedProduct {
  int multiply = -1, root = -1;  ///< Positions in TileProgram::steps; -1: there is none.
};
PairedProduct FindPairedProduct(const TileProgram& program);
/// A step X %*% v and, right after it, the root t(X) %*% (X %*% v) of the same CSR input: one loop (MultiplyAndAddRows).
PairedProduct FindSparsePair(const TileProgram& program);

}  // namespace heddle::ops
