// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/rows/pattern_result.h"

#include <algorithm>

#include "ops/elementwise/elementwise_sparse.h"
#include "ops/elementwise/single_precision.h"
#include "ops/fused/rows/default_rows.h"

namespace heddle::ops {
namespace {

// All cells of rows that are not 0 elsewhere, as entries.
Result<Matrix> FillRows(const Matrix& x, const double* elsewhere) {
  FilledRows filled;
  filled.Fill({x.row_offsets(), x.column_indexes(), x.values()}, elsewhere, x.rows(), x.columns());
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
  result.elsewhere_ = AlignedArray(driver.rows() + 8);
  std::fill_n(result.elsewhere_.data(), driver.rows(), 0.0);
  return result;
}

Result<Matrix> PatternResult::Close(ElementType type) {
  const double* const elsewhere = elsewhere_.data();
  if (HasNonzero(elsewhere, cells_.rows())) {
    HEDDLE_ASSIGN_OR_RETURN(cells_, FillRows(cells_, elsewhere));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, DropZeros(cells_));
  return type == ElementType::kFloat32 ? Narrow(result) : result;
}

}  // namespace heddle::ops
