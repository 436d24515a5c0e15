// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {

/// A CSR result with the entries of the driver of a fused operator. Elsewhere each of its rows is one number,
/// almost always 0: softmax at the entries of a mask is NaN in all of a row that has none (0 / 0).
class PatternResult {
 public:
  /// Uninitialised at the entries of `driver`, 0 elsewhere.
  static Result<PatternResult> Make(const Matrix& driver);
  double* values() { return cells_.mutable_values(); }
  double* elsewhere() { return elsewhere_.data(); }
  /// The matrix, without zeros; rows that are not 0 elsewhere have all their cells.
  Result<Matrix> Close(ElementType type);

 private:
  Matrix cells_;
  AlignedArray elsewhere_;  // By row.
};

}  // namespace heddle::ops
