// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/storage.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "core/values/column_groups.h"
#include "core/values/device_cells.h"
#include "ops/base/parallel.h"
#include "ops/cells/decode_sparse.h"
#include "ops/cells/decode_tile.h"
#include "ops/cells/move_cells.h"

namespace heddle::ops {
namespace {

// Which of the `count` <= 4 cells from `cells` on are not zero.
unsigned NonzerosOfFour(const double* cells, int64_t count) {
  if (count < 4) {
    unsigned mask = 0;
    for (int64_t k = 0; k < count; ++k) mask |= static_cast<unsigned>(cells[k] != 0) << k;
    return mask;
  }
  return static_cast<unsigned>(
      _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(cells), _mm256_setzero_pd(), _CMP_NEQ_UQ)));
}

int64_t CountNonzeros(const double* row, int64_t n) {
  int64_t count = 0;
  for (int64_t j = 0; j < n; j += 4) count += std::popcount(NonzerosOfFour(row + j, n - j));
  return count;
}

void CompressRow(const double* row, int64_t n, int32_t* columns, double* values) {
  for (int64_t j = 0; j < n; j += 4)
    for (unsigned mask = NonzerosOfFour(row + j, n - j); mask != 0; mask &= mask - 1) {
      const int64_t column = j + std::countr_zero(mask);
      *columns++ = static_cast<int32_t>(column);
      *values++ = row[column];
    }
}

// With fewer rows preparing a decoder takes longer than the cells.
constexpr int64_t kLeastDecodedRows = 64;

template <typename T>
void DecodeCellsOf(const Matrix& x, T* cells) {
  if (x.rows() < kLeastDecodedRows)
    return DecodeRows(x.groups(), x.first_row(), x.first_row() + x.rows(), cells);
  const TileDecoder<T> decoder(x);
  ParallelFor(x.rows(), RowGrain(x.columns()), [&](int64_t begin, int64_t end) {
    typename TileDecoder<T>::Cursor cursor;
    decoder.Decode(&cursor, begin, end, cells + begin * x.columns());
  });
}

}  // namespace

void DecodeCells(const Matrix& x, void* cells) {
  if (x.element_type() == ElementType::kFloat64)
    DecodeCellsOf(x, static_cast<double*>(cells));
  else
    DecodeCellsOf(x, static_cast<float*>(cells));
}

Result<Value> Decoded(Value value) {
  if (!value.IsMatrix() || !(value.matrix().IsCompressed() || value.matrix().IsOnDevice())) return value;
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells,
                          value.matrix().IsOnDevice() ? ToHost(value.matrix()) : AsDense(value.matrix()));
  return Value(std::move(cells));
}

Result<Matrix> AsDense(const Matrix& x) {
  if (x.IsOnDevice()) return ToDense(x);
  if (x.IsCompressed()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix dense, Matrix::Dense(x.rows(), x.columns(), x.element_type()));
    DecodeCells(x, dense.mutable_data<char>());
    return dense;
  }
  if (!x.IsSparse() || x.element_type() != ElementType::kFloat64) return ToDense(x);
  HEDDLE_ASSIGN_OR_RETURN(Matrix dense, Matrix::Dense(x.rows(), x.columns()));
  ParallelFor(x.rows(), RowGrain(x.columns()), [&](int64_t begin, int64_t end) {
    double* row = dense.mutable_data() + begin * x.columns();
    std::fill_n(row, (end - begin) * x.columns(), 0.0);
    for (int64_t i = begin; i < end; ++i, row += x.columns())
      for (int64_t e = x.row_offsets()[i]; e < x.row_offsets()[i + 1]; ++e)
        row[x.column_indexes()[e]] = x.values()[e];
  });
  return dense;
}

Result<Matrix> AsSparse(const Matrix& x) {
  if (x.IsCompressed()) return SparseRows(x).DecodeAll();
  if (!x.IsDense() || x.element_type() != ElementType::kFloat64 || x.cells() == 0) return ToSparse(x);
  const int64_t n = x.columns();
  std::vector<int64_t> counts(static_cast<size_t>(x.rows()));
  ParallelFor(x.rows(), RowGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) counts[static_cast<size_t>(i)] = CountNonzeros(x.data() + i * n, n);
  });
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, SparseOfCounts(n, counts));
  ParallelFor(x.rows(), RowGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = sparse.row_offsets()[i];
      CompressRow(x.data() + i * n, n, sparse.mutable_column_indexes() + at, sparse.mutable_values() + at);
    }
  });
  return sparse;
}

}  // namespace heddle::ops
