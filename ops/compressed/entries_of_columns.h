// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/tuple_tables.h"

namespace heddle::ops {

/// Calls visit(k, value) for the entries of a row of a CSR matrix in columns[k], which ascend: by looking for
/// the columns, or at the entries, whichever are fewer. `place_of`: of each column of the matrix its k, or
/// -1.
template <typename T, typename Visit>
void ForEntriesIn(const Matrix& matrix, int64_t row, const std::vector<int32_t>& columns,
                  const std::vector<int32_t>& place_of, const Visit& visit) {
  constexpr int64_t kEntriesOfSearch = 4;
  const int32_t* const indexes = matrix.column_indexes();
  const T* const values = matrix.values<T>();
  const int64_t begin = matrix.row_offsets()[row], end = matrix.row_offsets()[row + 1];
  const auto width = static_cast<int32_t>(columns.size());
  if (width * kEntriesOfSearch < end - begin) {
    const int32_t* at = indexes + begin;
    for (int32_t k = 0; k < width; ++k) {
      const int32_t column = columns[static_cast<size_t>(k)];
      at = std::lower_bound(at, indexes + end, column);
      if (at != indexes + end && *at == column && values[at - indexes] != 0) visit(k, values[at - indexes]);
    }
    return;
  }
  for (int64_t e = begin; e < end; ++e)
    if (const int32_t k = place_of[static_cast<size_t>(indexes[e])]; k >= 0 && values[e] != 0)
      visit(k, values[e]);
}

/// These columns of a CSR matrix, in their order, as CSR without zeros. Cost: the entries, or the columns of
/// each row where they are fewer. Parallel.
template <typename T>
Result<Matrix> EntriesOfColumns(const Matrix& matrix, const std::vector<int32_t>& columns) {
  constexpr int64_t kGrainRows = int64_t{1} << 14;
  std::vector<int32_t> place_of(static_cast<size_t>(matrix.columns()), -1);
  for (size_t k = 0; k < columns.size(); ++k)
    place_of[static_cast<size_t>(columns[k])] = static_cast<int32_t>(k);
  std::vector<int64_t> counts(static_cast<size_t>(matrix.rows()), 0);
  ParallelFor(matrix.rows(), kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      ForEntriesIn<T>(matrix, row, columns, place_of,
                      [&](int32_t, T) { ++counts[static_cast<size_t>(row)]; });
  });
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix entries, SparseOfCounts(static_cast<int64_t>(columns.size()), counts, matrix.element_type()));
  ParallelFor(matrix.rows(), kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t at = entries.row_offsets()[row];
      ForEntriesIn<T>(matrix, row, columns, place_of, [&](int32_t k, T value) {
        entries.mutable_column_indexes()[at] = k;
        entries.template mutable_values<T>()[at++] = Canonical(value);
      });
    }
  });
  return entries;
}

}  // namespace heddle::ops
