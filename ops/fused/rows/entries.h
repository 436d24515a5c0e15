// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/matrix.h"
#include "ops/fused/program/tile_program.h"
#include "ops/product/matmul.h"
#include "ops/sparse/sparse_leaves.h"

// Loops along the entries of some CSR rows, in the orders of docs/numerics.md. An explicit zero counts as
// absent.
namespace heddle::ops {

/// Entries of some rows of a CSR matrix; `values` may be others than its own.
struct Entries {
  const int64_t* offsets;  ///< Of the first row and those after it; places in columns and values.
  const int32_t* columns;
  const double* values;
};

/// True if every step before the sums makes one value for each entry: then one tile may span several leaves.
bool HoldsSeveralLeaves(const TileProgram& program);

/// Adds t(X) Y of some rows of X to a payload. In a payload of vectors the cells that one column of X makes
/// lie side by side (SeparateCells moves them apart). `lane` is the first row's place in its panel, modulo 8.
void AddSparseProduct(const TileRoot& root, const Entries& x, int64_t rows, const double* y, int64_t y_stride,
                      int64_t lane, double* payload);
/// Writes w = X %*% v for rows [begin, end) of X to `out` and adds t(X) %*% w of these rows to a payload of
/// vectors; the entries of each row are read once.
void MultiplyAndAddRows(const Matrix& x, const double* v, int64_t begin, int64_t end, double* out,
                        double* payload);
/// The terms of AddEntries of column sums, and of AddSparseProduct into vectors.
void AddTerms(const TileRoot& root, const Entries& x, int64_t rows, const double* y, int64_t y_stride,
              SparseLeaf& terms);
/// rowSums of rows of n columns.
void SumRows(const Entries& x, int64_t rows, int64_t n, double* out);
/// X %*% B; `prefetch_distance` as in simd::MultiplySparseRow.
void MultiplyEntries(const Entries& x, int64_t rows, const Matrix& b, const NarrowRight& narrow, double* out,
                     int64_t prefetch_distance);
/// Adds some rows to the payload of a sum or of column sums; `row_in_panel` is that of the first.
void AddEntries(const TileRoot& root, const Entries& x, int64_t rows, int64_t row_in_panel, double* payload);
/// True for sums whose lanes follow from the columns alone.
inline bool SumsByColumn(const TileRoot& root) {
  return root.kind == TileRoot::Kind::kFull && (root.n & 7) == 0;
}
/// AddEntries of such sums for leaf after leaf of `height` rows (of the last one fewer) into payloads of
/// eight doubles. Two leaves take turns: each addition waits for the one before it in its lane.
void AddEntriesOfLeaves(const Entries& x, int64_t rows, int64_t height, double* payloads);

}  // namespace heddle::ops
