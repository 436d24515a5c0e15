// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/single_cells.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/values/sizes.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCellsAtOnce = 1 << 16;
constexpr int64_t kRowsAtOnce = 1 << 12;

// Orders the entries of a row by column, and adds those of one column up in the order in which they stand.
// How many are left.
int64_t TidyRow(int64_t entries, int32_t* columns, double* values) {
  const auto out_of_order = [&](int64_t k) { return columns[k] <= columns[k - 1]; };
  int64_t k = 1;
  while (k < entries && !out_of_order(k)) ++k;
  if (k >= entries) return entries;
  std::vector<std::pair<int32_t, double>> sorted;
  for (k = 0; k < entries; ++k) sorted.emplace_back(columns[k], values[k]);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  int64_t left = 0;
  for (const auto& [column, value] : sorted) {
    if (left > 0 && columns[left - 1] == column) {
      values[left - 1] += value;
      continue;
    }
    columns[left] = column;
    values[left++] = value;
  }
  return left;
}

// Moves what is left of each row to the front.
void CloseGaps(const std::vector<int64_t>& left, Matrix* matrix) {
  int64_t* const offsets = matrix->mutable_row_offsets();
  int64_t at = 0, begin = 0;
  for (int64_t i = 0; i < matrix->rows(); ++i) {
    const int64_t end = offsets[i + 1], count = left[static_cast<size_t>(i)];
    if (at != begin) {
      std::memmove(matrix->mutable_column_indexes() + at, matrix->column_indexes() + begin,
                   static_cast<size_t>(count) * sizeof(int32_t));
      std::memmove(matrix->mutable_values() + at, matrix->values() + begin,
                   static_cast<size_t>(count) * sizeof(double));
    }
    at += count;
    begin = end;
    offsets[i + 1] = at;
  }
}

}  // namespace

Result<Matrix> CollectCells(const ReadOptions& options, const FileSummary& summary, int64_t stored,
                            int64_t row_begin, int64_t row_end, const FillCells& fill) {
  const int64_t rows = row_end - row_begin;
  std::vector<StoredCell> cells(static_cast<size_t>(std::min(stored, kCellsAtOnce)));
  // Calls take(row, column, value) for the cells of these rows, rows counted from the first of them.
  const auto visit = [&](const auto& take) -> Status {
    for (int64_t begin = 0, end; begin < stored; begin = end) {
      if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
      end = std::min(stored, begin + kCellsAtOnce);
      HEDDLE_RETURN_IF_ERROR(fill(begin, end, cells.data()));
      for (int64_t k = begin; k < end; ++k) {
        const auto& [row, column, value] = cells[static_cast<size_t>(k - begin)];
        if (row < 0 || row >= summary.shape.rows || column < 0 || column >= summary.shape.columns)
          return DataLoss("cannot read '{}': stored cell {}, ({}, {}), is outside of the {} matrix",
                          options.path, k + 1, row + 1, column + 1, summary.shape);
        if (row >= row_begin && row < row_end && std::bit_cast<uint64_t>(value) != 0)
          HEDDLE_RETURN_IF_ERROR(take(row - row_begin, column, value));
      }
    }
    return OkStatus();
  };
  // A small file may name a huge row: what grows with the rows comes from the budget.
  HEDDLE_ASSIGN_OR_RETURN(Matrix counted, Matrix::Sparse(rows, summary.shape.columns, 0));
  int64_t* const next = counted.mutable_row_offsets();
  HEDDLE_RETURN_IF_ERROR(visit([&](int64_t row, int64_t, double) {
    ++next[row + 1];
    return OkStatus();
  }));
  for (int64_t i = 0; i < rows; ++i) next[i + 1] += next[i];
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Sparse(rows, summary.shape.columns, next[rows]));
  std::copy_n(next, rows + 1, matrix.mutable_row_offsets());
  HEDDLE_RETURN_IF_ERROR(visit([&](int64_t row, int64_t column, double value) {
    const int64_t place = next[row]++;
    if (place >= matrix.row_offsets()[row + 1]) return ItChanged(options);
    matrix.mutable_column_indexes()[place] = static_cast<int32_t>(column);
    matrix.mutable_values()[place] = value;
    return OkStatus();
  }));
  for (int64_t i = 0; i < rows; ++i)
    if (next[i] != matrix.row_offsets()[i + 1]) return ItChanged(options);
  counted = Matrix();
  std::vector<int64_t> left(static_cast<size_t>(rows));
  ParallelFor(rows, kRowsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = matrix.row_offsets()[i];
      left[static_cast<size_t>(i)] =
          TidyRow(matrix.row_offsets()[i + 1] - first, matrix.mutable_column_indexes() + first,
                  matrix.mutable_values() + first);
    }
  });
  CloseGaps(left, &matrix);
  return summary.format == Format::kSparse ? Result<Matrix>(std::move(matrix)) : ToDense(matrix);
}

Status CheckLength(const std::string& path, const Shape& shape, bool is_sparse) {
  if (shape.rows > kMostLength || shape.columns > kMostLength || shape.Cells() == INT64_MAX ||
      (shape.Cells() == 0 && std::max(shape.rows, shape.columns) > kMostLengthOfEmpty))
    return DataLoss("cannot read '{}': it is larger than a matrix can be", path);
  if (is_sparse && shape.columns > std::numeric_limits<int32_t>::max())
    return DataLoss("cannot read '{}': it is {}, a sparse matrix has at most {} columns", path, shape,
                    std::numeric_limits<int32_t>::max());
  return OkStatus();
}

}  // namespace heddle::ops
