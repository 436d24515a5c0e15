// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// A step X %*% v and a root t(X) %*% w of the same narrow input X, which share one loop
/// (simd::MultiplyRowsAndColumns): the root takes the rows of the tile before, whose w is still in its
/// buffer, for whatever is computed between the two; or, where w is the product itself, the same rows.
/// (Of floats a step that rounds the product lies between the two; the loop does it.)
struct PairedProduct {
  int multiply = -1, root = -1;  ///< Positions in TileProgram::steps; -1: there is none.
  bool at_once = false;          ///< The same rows.
  bool keeps = true;             ///< The product is read by others than the root of the same rows.
};
PairedProduct FindPairedProduct(const TileProgram& program);
/// A step X %*% v and, right after it, the root t(X) %*% (X %*% v) of the same CSR input: one loop
/// (MultiplyAndAddRows).
PairedProduct FindSparsePair(const TileProgram& program);

}  // namespace heddle::ops
