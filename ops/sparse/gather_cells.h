// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/values/matrix.h"

namespace heddle::ops {

/// Where the entries of the last CSR row lie that was spread out: one place a column. Nothing is cleared
/// between rows; a place counts only if it is one of the row's.
struct SpreadRow {
  std::vector<uint32_t> places;
  int64_t base = 0;              ///< Entry number of place 0.
  std::vector<uint32_t> begins;  ///< Of dense x: rows that begin at an entry.
};

/// Doubles that GatherCells and IntersectRows may write past the last cell.
constexpr int64_t kGatherOverrun = 8;

/// Where the entries of some rows of a CSR matrix are.
struct RowPattern {
  const int64_t* offsets = nullptr;  ///< Of the first row and those after it; places in `columns`.
  const int32_t* columns = nullptr;
  int64_t readable = 0;  ///< Places of `columns` that may be read.

  int64_t Count(int64_t rows) const { return offsets[rows] - offsets[0]; }
};

/// The rows of a CSR matrix from `row` on.
inline RowPattern PatternFrom(const Matrix& matrix, int64_t row) {
  return {matrix.row_offsets() + row, matrix.column_indexes(), matrix.row_offsets()[matrix.rows()]};
}

/// The cells of rows [begin, end) of x (dense or CSR) at the entries of `pattern`, whose first row is
/// `begin`, in their order; 0.0 where a CSR x has no entry. `spread` serves calls with one and the same x and
/// is empty at first. Cost: a few cycles an entry of `pattern` and of x in rows where `pattern` has entries;
/// rows cost a wrong guess of a branch or two.
void GatherCells(const RowPattern& pattern, const Matrix& x, int64_t begin, int64_t end, SpreadRow& spread,
                 double* out);

/// lanes[(base + i n + column) mod 8] += value for the entries of `rows` rows of n columns, i counting the
/// rows: sums of CSR rows in the order of flat cells.
void AddByFlatLanes(const int64_t* offsets, const int32_t* columns, const double* values, int64_t rows,
                    int64_t n, int64_t base, double* lanes);

/// What is left of a tile's pattern.
struct Intersection {
  int64_t* offsets = nullptr;  ///< end - begin + 1; the first is 0.
  int32_t* columns = nullptr;
  double* const* values = nullptr;  ///< Of x, then of each of `others`.
};

/// The entries of rows [begin, end) of the CSR matrix x where all `others`, CSR of its shape, have entries as
/// well. `spreads` has one for each of the others. Room: as many entries as x has there and kGatherOverrun
/// more. Others are only read in rows where something is left.
void IntersectRows(const Matrix& x, std::span<const Matrix* const> others, int64_t begin, int64_t end,
                   std::span<SpreadRow* const> spreads, const Intersection& out);

}  // namespace heddle::ops
