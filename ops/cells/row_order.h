// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/values/matrix.h"
#include "ops/cells/sort_keys.h"

namespace heddle::ops {

/// How order() sorts rows.
struct RowOrder {
  std::vector<int64_t> columns;  ///< From 0, the most important one first.
  KeyOrder keys;                 ///< Of every column.
};

/// The cell, dense or CSR.
inline double CellAt(const Matrix& x, int64_t row, int64_t column) {
  return x.IsSparse() ? x.At(row, column) : x.data()[row * x.columns() + column];
}

/// A row, from 0, and its key in the most important column, 0 if there is none.
struct KeyedRow {
  uint64_t key;
  int64_t row;
};

/// The rows of X in their order; ties as they stand in X. On all threads.
///
/// Cost: 8 passes over the keys of a column, and one more to merge what each thread has sorted.
Result<std::vector<KeyedRow>> SortedRows(const Matrix& x, const RowOrder& order,
                                         const std::atomic<bool>* cancelled);

/// The numbers of the rows.
std::vector<int64_t> NumbersOf(const std::vector<KeyedRow>& rows);

/// Matrices of as many columns, each with its rows in their order: all rows in their order, those that tie as
/// the matrices and their rows stand. Stored as the first is, which is returned if no other has rows.
Result<Matrix> MergeSortedRows(const std::vector<Matrix>& parts, const RowOrder& order,
                               const std::atomic<bool>* cancelled);

}  // namespace heddle::ops
