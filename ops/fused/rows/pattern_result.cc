// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/rows/pattern_result.h"

#include <algorithm>

#include "ops/elementwise/elementwise_sparse.h"
#include "ops/elementwise/single_precision.h"
#include "ops/fused/rows/background_rows.h"

namespace heddle::ops {
namespace {

// With all cells of the rows whose background is not 0.
Result<Matrix> FillRows(const Matrix& x, const double* background) {
  FilledRows filled;
  filled.Fill({x.row_offsets(), x.column_indexes(), x.values()}, background, x.rows(), x.columns());
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(x.rows(), x.columns(), filled.offsets.back()));
  std::copy(filled.offsets.begin(), filled.offsets.end(), result.mutable_row_offsets());
  std::copy_n(filled.columns.begin(), result.stored(), result.mutable_column_indexes());
  std::copy_n(filled.values.begin(), result.stored(), result.mutable_values());
  return result;
}

}  // namespace

Result<PatternResult> PatternResult::Make(const Matrix& driver) {
  PatternResult result;
  HEDDLE_ASSIGN_OR_RETURN(result.cells_, SamePattern(driver));
  result.background_ = AlignedArray(driver.rows() + 8);
  std::fill_n(result.background_.data(), driver.rows(), 0.0);
  return result;
}

Result<Matrix> PatternResult::Close(ElementType type) {
  const double* const background = background_.data();
  if (HasNonzero(background, cells_.rows())) {
    HEDDLE_ASSIGN_OR_RETURN(cells_, FillRows(cells_, background));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, DropZerosOfOwn(std::move(cells_)));
  return type == ElementType::kFloat32 ? Narrow(result) : result;
}

}  // namespace heddle::ops
