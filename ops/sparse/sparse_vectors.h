// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Products of rows of a CSR matrix and one column (docs/numerics.md, section 3). How many entries the next
// row has no branch foresees: rows of few entries are computed many together, entry by entry, whatever row
// each is of.
namespace heddle::ops::simd {

/// Rows i < rows have the entries [offsets[i], offsets[i + 1]) of columns and values.
struct SparseRows {
  const int64_t* offsets;
  const int32_t* columns;
  const double* values;
  int64_t rows;
  bool has_zeros = false;  ///< Explicit ones may be there; they count as absent.
};

/// out[i] = row i times v, n columns: eight lanes by column, the tree over the chunks of the row, L, + 0.0.
void MultiplySparseRows(const SparseRows& x, const double* v, int64_t n, double* out);
/// The same with ones for v, without + 0.0.
void SumSparseRows(const SparseRows& x, int64_t n, double* out);
/// out[j] = fma(x_ij, w[i * w_stride], out[j]) for the entries of all rows, i ascending.
void AddScaledSparseRows(const SparseRows& x, const double* w, int64_t w_stride, double* out);
/// w as by MultiplySparseRows for n <= 65536, and AddScaledSparseRows with it: the entries come from memory
/// once.
void MultiplyAndAddSparseRows(const SparseRows& x, const double* v, double* w, double* out);

}  // namespace heddle::ops::simd
