// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/matrix.h"
#include "core/values/panels.h"
#include "ops/base/kernel.h"
#include "ops/reduction/reduction_tree.h"

// What the files matmul*.cc and sparse_matmul*.cc share. Which definition of docs/numerics.md, section 3 a
// product follows depends on the whole shapes only.
namespace heddle::ops {
namespace simd {
class Prefetch;
}

/// Results (and right operands) with at most this many columns are computed as X %*% v, column by column.
constexpr int64_t kFewColumns = 8;
/// A narrow right operand counts as dense: its absent cells are 0.0.
constexpr bool IsNarrow(int64_t columns) { return columns <= kFewColumns; }
/// Terms a cell from which a product is cut into panels, where it has few cells.
constexpr int64_t kPanelTerms = 65536;
/// A %*% B with more than 8 columns is cut into panels of Granule(inner) along the inner dimension, joined by
/// the tree.
constexpr bool SplitsInner(int64_t rows, int64_t inner, int64_t columns) {
  return !IsNarrow(columns) && rows * columns <= 65536 && inner >= kPanelTerms;
}

/// Inside a fused operator a product of dense rows with so many columns or more packs its right operand once,
/// and a tile is a block of rows as in a product of its own (kBlockRows), or a lower one where rows of X and
/// of all that is computed of them took more than kWideTileBytes. (The right operand is read once for each
/// tile: lower tiles cost more than cells that leave the second-level cache.)
constexpr int64_t kWideProduct = 64;
constexpr int64_t kLeastWideRows = 48;
constexpr int64_t kWideTileBytes = 4 << 20;
constexpr bool FitsTiles(int64_t inner, int64_t columns) {
  return 2 * kLeastWideRows * 8 * (inner + columns) <= kWideTileBytes;
}

/// A dense right operand, inner x count, of at most 8 columns: as it is for entries of a left operand, else
/// as `count` rows padded with zeros to a multiple of 8 doubles.
struct NarrowRight {
  Matrix dense;
  int64_t count = 0;
  int64_t stride = 0;
  AlignedArray cells;
  NarrowRight() = default;
  NarrowRight(Matrix right, bool by_entries);
  const double* Column(int64_t c) const { return cells.data() + c * stride; }
};

/// Rows [begin, end) of A %*% B, B made for the format of A, to out[i * b.count + c] for row i.
void MultiplyNarrowRows(const Matrix& a, const NarrowRight& b, int64_t begin, int64_t end, double* out);

/// Sizes of a whole product, by which the order of its cells goes: rows x inner times inner x columns.
struct ProductSizes {
  int64_t rows = 0, inner = 0, columns = 0;
};
/// Rows of A times columns of B of a product of such sizes: CSR where both are, else dense, of the type of
/// the operands. kCancelled when cancelled.
Result<Matrix> MultiplyPart(const Matrix& a, const Matrix& b, const ProductSizes& whole,
                            const KernelContext& context);

/// A %*% B for the rows of A and the columns of B at hand, by the sizes of the whole product. Both operands
/// hold doubles, or both floats.
///
/// At most 8 columns. Floats: A is dense and at most kColumnChunk columns wide.
Result<Matrix> MultiplyNarrow(const Matrix& a, const Matrix& b, const KernelContext& context);
/// More columns, and SplitsInner says so of the whole product: panels of the inner dimension and the tree.
Result<Matrix> MultiplySplit(const Matrix& a, const Matrix& b, const KernelContext& context);
/// Of the same products, the tree nodes of the panels of inner indexes from `first` on, which is a multiple
/// of Granule(inner): `a` has those columns and `b` those rows of `inner`.
Result<Matrix> PanelNodes(const Matrix& a, const Matrix& b, int64_t first, int64_t inner,
                          const KernelContext& context);
/// Cells of the result, from the payloads of all nodes.
Result<AlignedArray> JoinPanelNodes(const Matrix& nodes);
/// All other products with a dense result: one chain over the whole inner dimension.
Result<Matrix> MultiplyWide(const Matrix& a, const Matrix& b, const KernelContext& context);
/// CSR %*% CSR with a CSR result, without zeros: the chains of MultiplyWide.
Result<Matrix> MultiplySparse(const Matrix& a, const Matrix& b, const KernelContext& context);

/// MultiplyWide where A, B or both are CSR.
Result<Matrix> MultiplyWithSparse(const Matrix& a, const Matrix& b, const KernelContext& context);
/// Rows [row_begin, row_end) of such a product over inner indexes [begin, end) to row-major `out` (row stride
/// b.columns()). Of doubles one chain a cell, + 0.0; of floats the sums of the chains of all blocks, not
/// rounded, and `begin` is a multiple of kSingleBlock.
void MultiplySparseRows(const Matrix& a, const Matrix& b, int64_t row_begin, int64_t row_end, int64_t begin,
                        int64_t end, double* out);

/// t(X) %*% Y for any shapes, in the phases of a kReduce operator; floats where TakesSinglesTransposed says
/// so.
Result<Value> RunTransposedProduct(const KernelCall& call);
bool TakesSinglesTransposed(const KernelCall& call);
/// The same, finished in parts.
extern const StagedForm kTransposedProductParts;

/// out[j * k + c] = fma(x[i * x_stride + j], y[i * y_stride + c], .), i ascending over `rows`, for j < n and
/// c < k, by simd::MultiplyColumns, with its `prefetch`: for simd::AreFewForTiles(n, k).
void AddProductByColumns(const double* x, int64_t rows, int64_t x_stride, int64_t n, const double* y,
                         int64_t y_stride, int64_t k, double* out, const simd::Prefetch& prefetch);

}  // namespace heddle::ops
