// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/merge_cells.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "ops/base/parallel.h"

namespace heddle::engine {
namespace {

constexpr int64_t kGrainCells = 1 << 14;

// Whether cells with these bits differ: one NaN is as good as another (docs/numerics.md R7), and a matrix
// that is compressed has one of them.
template <typename Bits>
bool Differ(Bits a, Bits b) {
  using Cell = std::conditional_t<sizeof(Bits) == sizeof(double), double, float>;
  return a != b && !(std::isnan(std::bit_cast<Cell>(a)) && std::isnan(std::bit_cast<Cell>(b)));
}

template <typename Bits>
void Merge(const Matrix& before, const Matrix& other, Matrix* merged) {
  const Bits* old_cells = before.data<Bits>();
  const Bits* new_cells = other.data<Bits>();
  Bits* out = merged->mutable_data<Bits>();
  ops::ParallelFor(before.cells(), kGrainCells, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (Differ(new_cells[i], old_cells[i])) out[i] = new_cells[i];
  });
}

template <typename Bits>
Result<Matrix> Changes(const Matrix& before, const Matrix& after) {
  const Bits* old_cells = before.data<Bits>();
  const Bits* new_cells = after.data<Bits>();
  int64_t count = 0;
  for (int64_t i = 0; i < before.cells(); ++i) count += Differ(new_cells[i], old_cells[i]);
  HEDDLE_ASSIGN_OR_RETURN(Matrix changes, Matrix::Dense(count, 2));
  double* out = changes.mutable_data();
  for (int64_t i = 0; i < before.cells(); ++i) {
    if (!Differ(new_cells[i], old_cells[i])) continue;
    *out++ = static_cast<double>(i);
    if constexpr (sizeof(Bits) == sizeof(double)) {
      *out++ = std::bit_cast<double>(new_cells[i]);
    } else {
      *out++ = static_cast<double>(new_cells[i]);
    }
  }
  return changes;
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
  if (!merged.IsDense()) {
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

Result<Matrix> ChangedCells(const Matrix& before, const Matrix& after) {
  if (after.shape() != before.shape() || after.element_type() != before.element_type())
    return Internal("iterations of a parfor made matrices of different shapes of one");
  HEDDLE_ASSIGN_OR_RETURN(const Matrix old_cells, ToDense(before));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix new_cells, ToDense(after));
  return before.element_type() == ElementType::kFloat64 ? Changes<uint64_t>(old_cells, new_cells)
                                                        : Changes<uint32_t>(old_cells, new_cells);
}

Result<Matrix> WithCells(const Matrix& before, int64_t begin, int64_t end, const Matrix& changes) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, ToDense(before.Rows(begin, end)));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Copy(dense));
  const double* cells = changes.data();
  for (int64_t i = 0; i < changes.rows(); ++i) {
    const double place = cells[2 * i];
    if (!(place >= 0 && place < static_cast<double>(before.cells())))
      return Internal("a cell that a parfor changed is not there");
    const int64_t cell = static_cast<int64_t>(place) - begin * before.columns();
    if (cell < 0 || cell >= result.cells()) continue;
    if (before.element_type() == ElementType::kFloat64) {
      result.mutable_data()[cell] = cells[2 * i + 1];
    } else {
      result.mutable_data<uint32_t>()[cell] = static_cast<uint32_t>(cells[2 * i + 1]);
    }
  }
  return result;
}

}  // namespace heddle::engine
