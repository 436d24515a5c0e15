// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/merge_cells.h"

#include <cstring>

#include "ops/parallel.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kGrainCells = 1 << 14;

// The bits of a cell.
template <typename Bits>
void Merge(const Matrix& before, const Matrix& other, Matrix* merged) {
  const Bits* old_cells = before.data<Bits>();
  const Bits* new_cells = other.data<Bits>();
  Bits* out = merged->mutable_data<Bits>();
  ops::ParallelFor(before.cells(), kGrainCells, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (new_cells[i] != old_cells[i]) out[i] = new_cells[i];
  });
}

Result<Matrix> Copy(const Matrix& matrix) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix copy, Matrix::Dense(matrix.rows(), matrix.columns(), matrix.element_type()));
  std::memcpy(copy.mutable_data<char>(), matrix.data<char>(),
              static_cast<size_t>(matrix.cells() * BytesOf(matrix.element_type())));
  return copy;
}

}  // namespace

Result<Matrix> MergeCells(const Matrix& before, Matrix last, std::span<const Matrix> others) {
  const bool is_sparse = last.IsSparse();
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense_before, ToDense(before));
  Matrix merged = std::move(last);
  if (is_sparse) {
    HEDDLE_ASSIGN_OR_RETURN(merged, ToDense(merged));
  } else if (!merged.HoldsCellsAlone()) {
    HEDDLE_ASSIGN_OR_RETURN(merged, Copy(merged));
  }
  for (const Matrix& other : others) {
    if (other.shape() != before.shape() || merged.shape() != before.shape() ||
        other.element_type() != before.element_type() || merged.element_type() != before.element_type())
      return Internal("iterations of a parfor made matrices of different shapes of one");
    HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, ToDense(other));
    if (before.element_type() == ElementType::kFloat64) {
      Merge<uint64_t>(dense_before, dense, &merged);
    } else {
      Merge<uint32_t>(dense_before, dense, &merged);
    }
  }
  return is_sparse ? ToSparse(merged) : merged;
}

}  // namespace heddle::cluster
