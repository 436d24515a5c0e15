// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {

/// A CSR result with the entries of the driver of a fused operator, and a background for each row
/// (lower/row_background.h) that is almost always 0. Softmax at the entries of a mask is NaN (0 / 0) in all
/// cells of a row without entries: such a row is written out whole.
class PatternResult {
 public:
  /// Values at the entries of `driver` are uninitialised, backgrounds are 0.
  static Result<PatternResult> Make(const Matrix& driver);
  double* values() { return cells_.mutable_values(); }
  double* background() { return background_.data(); }
  /// The matrix, without zeros. Rows whose background is not 0 have all their cells.
  Result<Matrix> Close(ElementType type);

 private:
  Matrix cells_;
  AlignedArray background_;  // By row.
};

}  // namespace heddle::ops
