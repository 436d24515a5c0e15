// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// A step X %*% v and a root t(X) %*% w of the same narrow input X that run in one loop
/// (simd::MultiplyRowsAndColumns), so that memory is read while the other half computes. In t(X) %*% (X %*%
/// v) both halves take the same rows. In t(X) %*% f(X %*% v) the root takes the rows of the tile before,
/// whose w is still in its buffer, since f runs between the two halves. (In single precision a step that
/// rounds the product stands between the two; the loop rounds in its place.)
struct PairedProduct {
  int multiply = -1, root = -1;  ///< Positions in TileProgram::steps; -1: there is no pair.
  bool same_rows = false;        ///< Both halves take the same rows.
  bool stores_product = true;    ///< Some other step reads the product.
};
PairedProduct FindPairedProduct(const TileProgram& program);
/// The same of a CSR input, where the root stands right after the product (MultiplyAndAddRows).
PairedProduct FindSparsePair(const TileProgram& program);

}  // namespace heddle::ops
