// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/move_cells.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/simd/transpose.h"

namespace heddle::ops {
namespace {

// body(T{}) with the type of x's cells.
template <typename Body>
auto OfType(const Matrix& x, const Body& body) {
  return x.element_type() == ElementType::kFloat64 ? body(double{}) : body(float{});
}

template <typename T>
Result<Matrix> TransposeDense(const Matrix& x) {
  const int64_t m = x.rows();
  const int64_t n = x.columns();
  if (m <= 1 || n <= 1) return x.Reshaped(n, m);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(n, m, x.element_type()));
  const T* in = x.data<T>();
  T* out = result.mutable_data<T>();
  constexpr int64_t kRows = 256;
  constexpr int64_t kColumns = 64;
  const int64_t column_blocks = CeilDivide(n, kColumns);
  ParallelFor(CeilDivide(m, kRows) * column_blocks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task / column_blocks * kRows;
      const int64_t j = task % column_blocks * kColumns;
      simd::Transpose(in + i * n + j, n, std::min(m - i, kRows), std::min(n - j, kColumns), out + j * m + i,
                      m);
    }
  });
  return result;
}

// Counting sort by column; rows are met in ascending order, so columns of the result ascend.
template <typename T>
Result<Matrix> TransposeSparse(const Matrix& x) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(x.columns(), x.rows(), x.stored(), x.element_type()));
  const int64_t* offsets = x.row_offsets();
  std::vector<int64_t> next(static_cast<size_t>(x.columns()) + 1, 0);
  for (int64_t k = x.rows() == 0 ? 0 : offsets[0]; k < (x.rows() == 0 ? 0 : offsets[x.rows()]); ++k)
    ++next[static_cast<size_t>(x.column_indexes()[k]) + 1];
  for (size_t j = 1; j < next.size(); ++j) next[j] += next[j - 1];
  std::copy(next.begin(), next.end(), result.mutable_row_offsets());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) {
      const int64_t at = next[static_cast<size_t>(x.column_indexes()[k])]++;
      result.mutable_column_indexes()[at] = static_cast<int32_t>(i);
      result.mutable_values<T>()[at] = x.values<T>()[k];
    }
  }
  return result;
}

template <typename T>
Result<Matrix> SliceColumnsOf(const Matrix& x, int64_t begin, int64_t end) {
  const int64_t m = x.rows();
  const int64_t n = x.columns();
  const int64_t width = end - begin;
  if (!x.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(m, width, x.element_type()));
    T* out = result.mutable_data<T>();
    ParallelFor(m, RowGrain(width), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) std::copy_n(x.data<T>() + i * n + begin, width, out + i * width);
    });
    return result;
  }
  // Entries of row i between the two columns.
  std::vector<int64_t> from(static_cast<size_t>(m));
  std::vector<int64_t> counts(static_cast<size_t>(m));
  ParallelFor(m, 1024, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int32_t* row = x.column_indexes() + x.row_offsets()[i];
      const int32_t* row_end = x.column_indexes() + x.row_offsets()[i + 1];
      const int32_t* lower = std::lower_bound(row, row_end, begin);
      const int32_t* upper = std::lower_bound(lower, row_end, end);
      from[static_cast<size_t>(i)] = lower - x.column_indexes();
      counts[static_cast<size_t>(i)] = upper - lower;
    }
  });
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(width, counts, x.element_type()));
  int32_t* indexes = result.mutable_column_indexes();
  T* values = result.mutable_values<T>();
  ParallelFor(m, 1024, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t at = result.row_offsets()[i];
      for (int64_t k = 0; k < counts[static_cast<size_t>(i)]; ++k) {
        indexes[at + k] = x.column_indexes()[from[static_cast<size_t>(i)] + k] - static_cast<int32_t>(begin);
        values[at + k] = x.values<T>()[from[static_cast<size_t>(i)] + k];
      }
    }
  });
  return result;
}

template <typename T>
Result<Matrix> GatherRowsOf(const Matrix& x, std::span<const int64_t> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t n = x.columns();
  if (!x.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(count, n, x.element_type()));
    T* out = result.mutable_data<T>();
    ParallelFor(n == 0 ? 0 : count, RowGrain(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::copy_n(x.data<T>() + rows[static_cast<size_t>(i)] * n, n, out + i * n);
    });
    return result;
  }
  const int64_t* offsets = x.row_offsets();
  std::vector<int64_t> counts(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) counts[i] = offsets[rows[i] + 1] - offsets[rows[i]];
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(n, counts, x.element_type()));
  int32_t* indexes = result.mutable_column_indexes();
  T* values = result.mutable_values<T>();
  ParallelFor(count, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = offsets[rows[static_cast<size_t>(i)]];
      std::copy_n(x.column_indexes() + from, counts[static_cast<size_t>(i)],
                  indexes + result.row_offsets()[i]);
      std::copy_n(x.values<T>() + from, counts[static_cast<size_t>(i)], values + result.row_offsets()[i]);
    }
  });
  return result;
}

template <typename T>
Result<Matrix> GatherColumnsOf(const Matrix& x, std::span<const int64_t> columns) {
  const auto count = static_cast<int64_t>(columns.size());
  const int64_t m = x.rows();
  const int64_t n = x.columns();
  if (!x.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(m, count, x.element_type()));
    T* out = result.mutable_data<T>();
    ParallelFor(m, RowGrain(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < count; ++j)
          out[i * count + j] = x.data<T>()[i * n + columns[static_cast<size_t>(j)]];
    });
    return result;
  }
  std::vector<int32_t> target(static_cast<size_t>(n), -1);
  for (size_t j = 0; j < columns.size(); ++j)
    target[static_cast<size_t>(columns[j])] = static_cast<int32_t>(j);
  std::vector<int64_t> counts(static_cast<size_t>(m), 0);
  ParallelFor(m, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t k = x.row_offsets()[i]; k < x.row_offsets()[i + 1]; ++k)
        counts[static_cast<size_t>(i)] += target[static_cast<size_t>(x.column_indexes()[k])] >= 0;
  });
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(count, counts, x.element_type()));
  int32_t* indexes = result.mutable_column_indexes();
  T* values = result.mutable_values<T>();
  ParallelFor(m, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = result.row_offsets()[i];
      for (int64_t k = x.row_offsets()[i]; k < x.row_offsets()[i + 1]; ++k) {
        const int32_t column = target[static_cast<size_t>(x.column_indexes()[k])];
        if (column < 0) continue;
        indexes[at] = column;
        values[at++] = x.values<T>()[k];
      }
    }
  });
  return result;
}

}  // namespace

int64_t RowGrain(int64_t columns) { return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, columns)); }

Result<Matrix> SparseOfCounts(int64_t columns, std::span<const int64_t> counts, ElementType type) {
  const int64_t stored = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix,
                          Matrix::Sparse(static_cast<int64_t>(counts.size()), columns, stored, type));
  std::partial_sum(counts.begin(), counts.end(), matrix.mutable_row_offsets() + 1);
  return matrix;
}

Result<Matrix> Transpose(const Matrix& x) {
  return OfType(x, [&](auto cell) {
    using T = decltype(cell);
    return x.IsSparse() ? TransposeSparse<T>(x) : TransposeDense<T>(x);
  });
}

Result<Matrix> GatherRows(const Matrix& x, std::span<const int64_t> rows) {
  return OfType(x, [&](auto cell) { return GatherRowsOf<decltype(cell)>(x, rows); });
}

Result<Matrix> GatherColumns(const Matrix& x, std::span<const int64_t> columns) {
  return OfType(x, [&](auto cell) { return GatherColumnsOf<decltype(cell)>(x, columns); });
}

Result<Matrix> SliceColumns(const Matrix& x, int64_t begin, int64_t end) {
  if (begin == 0 && end == x.columns()) return x;
  return OfType(x, [&](auto cell) { return SliceColumnsOf<decltype(cell)>(x, begin, end); });
}

}  // namespace heddle::ops
