// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/join_columns.h"

#include <utility>

#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

template <typename T>
Result<Matrix> JoinDense(const std::vector<Matrix>& parts, int64_t rows, int64_t columns) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows, columns, parts[0].element_type()));
  T* out = result.mutable_data<T>();
  ParallelFor(rows, RowGrain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* cell = out + i * columns;
      for (const Matrix& part : parts) {
        CopyRow(part, i, cell);
        cell += part.columns();
      }
    }
  });
  return result;
}

template <typename T>
Result<Matrix> JoinSparse(const std::vector<Matrix>& parts, int64_t rows, int64_t columns) {
  std::vector<int64_t> counts(static_cast<size_t>(rows), 0);
  for (const Matrix& part : parts)
    for (int64_t i = 0; i < rows; ++i)
      counts[static_cast<size_t>(i)] += part.row_offsets()[i + 1] - part.row_offsets()[i];
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(columns, counts, parts[0].element_type()));
  int32_t* indexes = result.mutable_column_indexes();
  T* values = result.mutable_values<T>();
  ParallelFor(rows, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = result.row_offsets()[i];
      int32_t shift = 0;
      for (const Matrix& part : parts) {
        for (int64_t k = part.row_offsets()[i]; k < part.row_offsets()[i + 1]; ++k, ++at) {
          indexes[at] = part.column_indexes()[k] + shift;
          values[at] = part.values<T>()[k];
        }
        shift += static_cast<int32_t>(part.columns());
      }
    }
  });
  return result;
}

}  // namespace

Result<Matrix> JoinColumns(std::vector<Matrix> parts, Format format) {
  const int64_t rows = parts[0].rows();
  const bool has_singles = parts[0].element_type() == ElementType::kFloat32;
  int64_t columns = 0;
  for (const Matrix& part : parts) columns += part.columns();
  if (format == Format::kDense)
    return has_singles ? JoinDense<float>(parts, rows, columns) : JoinDense<double>(parts, rows, columns);
  for (Matrix& part : parts) {
    HEDDLE_ASSIGN_OR_RETURN(part, AsSparse(part));
  }
  return has_singles ? JoinSparse<float>(parts, rows, columns) : JoinSparse<double>(parts, rows, columns);
}

}  // namespace heddle::ops
