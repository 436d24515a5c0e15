// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "core/matrix.h"
#include "core/panels.h"
#include "ops/kernel.h"
#include "ops/reduction_tree.h"

// What the files matmul*.cc and sparse_matmul*.cc share. Which definition of docs/numerics.md, section 3 a
// product follows depends on the whole shapes only.
namespace heddle::ops {

/// Results (and right operands) with at most this many columns are computed as X %*% v, column by column.
constexpr int64_t kFewColumns = 8;
/// A narrow right operand counts as dense: its absent cells are 0.0.
constexpr bool IsNarrow(int64_t columns) { return columns <= kFewColumns; }
/// A %*% B with more than 8 columns is cut into panels of Granule(inner) along the inner dimension, joined by
/// the tree.
constexpr bool SplitsInner(int64_t rows, int64_t inner, int64_t columns) {
  return !IsNarrow(columns) && rows * columns <= 65536 && inner >= 65536;
}

/// Inside a fused operator a product of dense rows with so many columns or more packs its right operand once, and a tile is a block
/// of rows as in a product of its own (kBlockRows), or a lower one where rows of X and of all that is computed of them took more than
/// kWideTileBytes. (The right operand is read once for each tile: lower tiles cost more than cells that leave the second-level cache.)
constexpr int64_t kWideProduct = 64;
constexpr int64_t kLeastWideRows = 48;
constexpr int64_t kWideTileBytes = 4 << 20;
constexpr bool FitsTiles(int64_t inner, int64_t columns) { return 2 * kLeastWideRows * 8 * (inner + columns) <= kWideTileBytes; }

/// Columns of an inner x k matrix, k <= 8, as k rows padded with zeros to a multiple of 8 doubles.
struct PaddedColumns {
  int64_t count = 0;
  int64_t stride = 0;
  AlignedArray cells;
  const double* Column(int64_t c) const { return cells.data() + c * stride; }
};
PaddedColumns PadColumns(const Matrix& dense);

/// Entries [first, last) of a CSR row that fits one column chunk times v: eight lanes by column, L, plus +0.0.
inline double DotSparseRow(const double* values, const int32_t* columns, int64_t first, int64_t last, const double* v) {
  if (last - first <= 1) return last == first ? 0.0 : std::fma(values[first], v[columns[first]], 0.0) + 0.0;
  double s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int64_t e = first; e < last; ++e) s[columns[e] & 7] = std::fma(values[e], v[columns[e]], s[columns[e] & 7]);
  return (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))) + 0.0;
}

/// Rows [begin, end) of A %*% B, B with at most 8 columns, to out[i * b.count + c] for row i.
void MultiplyNarrowRows(const Matrix& a, const PaddedColumns& b, int64_t begin, int64_t end, double* out);

/// A %*% B for the rows of A at hand.
Result<Matrix> MultiplyNarrow(const Matrix& a, const Matrix& b,
                              const KernelContext& context);  ///< B has at most 8 columns.
Result<Matrix> MultiplySplit(const Matrix& a, const Matrix& b,
                             const KernelContext& context);  ///< SplitsInner of the whole.
Result<Matrix> MultiplyWide(const Matrix& a, const Matrix& b,
                            const KernelContext& context);  ///< One chain over all of k.
/// CSR %*% CSR with more than 8 columns, one chain a cell; zeros are dropped.
Result<Matrix> MultiplySparse(const Matrix& a, const Matrix& b, const KernelContext& context);

/// The cells of A %*% B that come from inner indexes [begin, end): row-major `out` (row stride b.columns()),
/// whose cells are taken as the chains so far. Rows [row_begin, row_end) of A. Any pair of formats but dense
/// x dense.
void MultiplySparseInto(const Matrix& a, const Matrix& b, int64_t row_begin, int64_t row_end, int64_t begin,
                        int64_t end, double* out);

/// t(X) %*% Y for any shapes, in the phases of a kReduce operator.
Result<Value> RunTransposedProduct(const KernelCall& call);

}  // namespace heddle::ops
