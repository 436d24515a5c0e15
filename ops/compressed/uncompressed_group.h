// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/base/parallel.h"
#include "ops/cells/tuple_tables.h"
#include "ops/compressed/entries_of_columns.h"

namespace heddle::ops {

/// The columns as they are, dense or CSR as the matrix is. kResourceExhausted.
template <typename T>
Result<ColumnGroup> UncompressedGroup(const Matrix& matrix, const std::vector<int32_t>& columns) {
  ColumnGroup group;
  group.encoding = Encoding::kUncompressed;
  group.columns = columns;
  const int64_t width = group.width();
  if (matrix.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(group.dictionary, EntriesOfColumns<T>(matrix, columns));
    return group;
  }
  constexpr int64_t kRowsOfTask = int64_t{1} << 14;
  HEDDLE_ASSIGN_OR_RETURN(group.dictionary, Matrix::Dense(matrix.rows(), width, matrix.element_type()));
  T* const cells = group.dictionary.template mutable_data<T>();
  ParallelFor(matrix.rows(), kRowsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* const row = matrix.data<T>() + i * matrix.columns();
      for (int64_t k = 0; k < width; ++k)
        cells[i * width + k] = Canonical(row[columns[static_cast<size_t>(k)]]);
    }
  });
  return group;
}

}  // namespace heddle::ops
