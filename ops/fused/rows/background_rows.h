// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/fused/rows/entries.h"
#include "ops/simd/aggregate.h"

// Rows that have values at the entries of a CSR matrix and one value in all other cells
// (lower/row_background.h). `backgrounds` has that value by row; null: 0.
namespace heddle::ops {

/// `sum + x + x + ...`, so many additions one after the other, each rounded. Takes steps of a whole binade of
/// the sum, in which all of them add the same.
double AddRepeatedly(double sum, double x, int64_t times);

/// True if some of the numbers is not 0.
bool HasNonzero(const double* numbers, int64_t count);

/// Such rows as entries of their own: a row whose background is not 0 has an entry in every cell.
struct FilledRows {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<double> values;
  void Fill(const Entries& x, const double* backgrounds, int64_t rows, int64_t n);
  Entries entries() const { return {offsets.data(), columns.data(), values.data()}; }
};

/// The fold of each of `rows` rows of n columns, in the order of simd::FoldRows, or of the
/// tree over its column chunks.
void FoldRowsWithBackground(simd::Fold fold, const Entries& x, const double* backgrounds, int64_t rows,
                            int64_t n, double* out);

/// All cells of the rows, `stride` apart.
void SpreadRowsWithBackground(const Entries& x, const double* backgrounds, int64_t rows, int64_t n,
                              double* out, int64_t stride);

}  // namespace heddle::ops
