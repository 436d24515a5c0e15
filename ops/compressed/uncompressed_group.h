// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/base/parallel.h"
#include "ops/compressed/tuple_tables.h"

namespace heddle::ops {

/// The cells of some columns, row by row.
template <typename T>
class Tuples {
 public:
  Tuples(const Matrix& matrix, const std::vector<int32_t>& columns) : matrix_(matrix), columns_(columns) {}

  // Calls visit(row, tuple) for rows [begin, end); the tuple is there until visit returns.
  template <typename Visit>
  void ForRows(int64_t begin, int64_t end, Visit visit) {
    std::vector<T> tuple(columns_.size());
    if (!matrix_.IsSparse()) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = matrix_.data<T>() + i * matrix_.columns();
        for (size_t k = 0; k < columns_.size(); ++k) tuple[k] = Canonical(row[columns_[k]]);
        visit(i, tuple.data());
      }
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* at = matrix_.column_indexes() + matrix_.row_offsets()[i];
      const int32_t* last = matrix_.column_indexes() + matrix_.row_offsets()[i + 1];
      for (size_t k = 0; k < columns_.size(); ++k) {
        at = std::lower_bound(at, last, columns_[k]);
        tuple[k] = at != last && *at == columns_[k]
                       ? Canonical(matrix_.values<T>()[at - matrix_.column_indexes()])
                       : T{0};
        if (tuple[k] == 0) tuple[k] = 0;  // The sign of a zero means nothing here.
      }
      visit(i, tuple.data());
    }
  }

 private:
  const Matrix& matrix_;
  const std::vector<int32_t>& columns_;
};

/// The columns as they are, dense or CSR as the matrix is. kResourceExhausted.
template <typename T>
Result<ColumnGroup> UncompressedGroup(const Matrix& matrix, const std::vector<int32_t>& columns) {
  ColumnGroup group;
  group.encoding = Encoding::kUncompressed;
  group.columns = columns;
  const int64_t width = group.width();
  constexpr int64_t kRowsOfTask = int64_t{1} << 14;
  Tuples<T> tuples(matrix, columns);
  if (!matrix.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(group.dictionary, Matrix::Dense(matrix.rows(), width, matrix.element_type()));
    T* cells = group.dictionary.mutable_data<T>();
    ParallelFor(matrix.rows(), kRowsOfTask, [&](int64_t begin, int64_t end) {
      Tuples<T>(matrix, columns).ForRows(begin, end, [&](int64_t row, const T* tuple) {
        std::copy_n(tuple, width, cells + row * width);
      });
    });
    return group;
  }
  int64_t entries = 0;
  tuples.ForRows(0, matrix.rows(),
                 [&](int64_t, const T* tuple) { entries += width - std::count(tuple, tuple + width, T{0}); });
  HEDDLE_ASSIGN_OR_RETURN(group.dictionary,
                          Matrix::Sparse(matrix.rows(), width, entries, matrix.element_type()));
  Matrix& sparse = group.dictionary;
  int64_t at = 0;
  tuples.ForRows(0, matrix.rows(), [&](int64_t row, const T* tuple) {
    for (int64_t k = 0; k < width; ++k) {
      if (tuple[k] == 0) continue;
      sparse.mutable_column_indexes()[at] = static_cast<int32_t>(k);
      sparse.mutable_values<T>()[at++] = tuple[k];
    }
    sparse.mutable_row_offsets()[row + 1] = at;
  });
  return group;
}

}  // namespace heddle::ops
