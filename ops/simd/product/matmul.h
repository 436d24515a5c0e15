// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "ops/simd/prefetch.h"

// Inner loops of matrix-vector products over dense doubles: every cell is a chain s = fma(x, y, s)
// (docs/numerics.md, section 3). AVX2, as simd/aggregate.h says, but for several vectors or columns where the
// CPU has AVX-512 (few_columns.h). Accumulators are read and written in place; those called `columns` are
// 64-byte aligned and padded to a multiple of 8 doubles, the padding ends up arbitrary.
namespace heddle::ops::simd {

/// lanes[p mod 8] = fma(x[p], v[p], lanes[p mod 8]), p ascending.
void MultiplyFlat(const double* x, const double* v, int64_t count, double lanes[8]);

/// out[i * out_stride + c] = L of eight lanes over j of fma(x[i, j], v_c[j], .), plus +0.0, for c < count;
/// v_c = vectors + c * vector_stride is 64-byte aligned and padded with zeros to a multiple of 8. Lines
/// are fetched meanwhile as `prefetch` says.
void MultiplyRows(const double* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                  int64_t vector_stride, int64_t count, double* out, int64_t out_stride,
                  const Prefetch& prefetch = {});
/// The same of floats, which are doubles from the register on.
void MultiplyRows(const float* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                  int64_t vector_stride, int64_t count, double* out, int64_t out_stride,
                  const Prefetch& prefetch = {});

/// Columns of a skinny product, which has eight rows at least.
constexpr int kLeastSkinny = 9, kMostSkinny = 13;
/// True if MultiplySkinny does a product of so many rows with so many columns, n cells long: with AVX-512 a
/// tile of GemmKernel would leave too many of its lanes empty.
bool IsSkinny(int64_t rows, int64_t n, int64_t columns);
/// out[i * out_stride + c] = chain of fma(x[i, j], b[j * count + c], .), j ascending from +0.0, plus +0.0 at
/// the end.
void MultiplySkinny(const double* x, int64_t rows, int64_t stride, int64_t n, const double* b, int64_t count,
                    double* out, int64_t out_stride, const Prefetch& prefetch = {});

/// True for so few columns of Y that t(X) Y, n columns of X, is fastest as MultiplyColumns with the rows of X
/// as vectors: tiles of GemmKernel leave lanes empty, and packing short rows takes longer than the product.
bool AreFewForTiles(int64_t n, int64_t columns);
/// columns[c * columns_stride + j] = fma(x[i, j], w[i * w_stride + c], .), i ascending, for c < count.
void MultiplyColumns(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                     int64_t w_stride, int64_t count, double* columns, int64_t columns_stride,
                     const Prefetch& prefetch = {});
void MultiplyColumns(const float* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                     int64_t w_stride, int64_t count, double* columns, int64_t columns_stride,
                     const Prefetch& prefetch = {});

/// So many columns of a row are held in registers at once.
constexpr int64_t kMostRegisterColumns = 32;

/// out[j * k + c] = fma(x[i * x_stride + j], y[i * y_stride + c], .), i ascending, for j < n <= 8, c < k <=
/// kMostRegisterColumns.
void MultiplyFewColumns(const double* x, int64_t rows, int64_t x_stride, int64_t n, const double* y,
                        int64_t y_stride, int64_t k, double* out);

/// MultiplyRows of `x` with one vector v, and MultiplyColumns of other rows of the same matrix, `previous`,
/// with the weights w, in one loop: one of the two waits for memory, the other computes. 8 < n. out[i] may be
/// the place of w[i]; previous_rows >= rows. Where `previous` is x the weights are what came of the product,
/// w = out: t(X) (X v). Of floats these are rounded to floats, as X v is where it is stored.
template <typename Cell>
struct RowsAndColumnsCall {
  int64_t n, stride;
  const Cell* x;
  int64_t rows;
  const double* v;  ///< Padded with zeros to a multiple of 8, 16 at least.
  double* out;
  const Cell* previous;
  int64_t previous_rows;
  const double* w;
  double* columns;
  int64_t out_step = 1;  ///< 0: nobody reads the products after this (previous == x); `out` and `w` are the
                         ///< same four places.
  Prefetch prefetch = {};
};
void MultiplyRowsAndColumns(const RowsAndColumnsCall<double>& call);
void MultiplyRowsAndColumns(const RowsAndColumnsCall<float>& call);

/// lanes[(i mod 8) * n + j] = fma(x[i, j], w[i], .), i ascending, for n <= 8 and rows without gaps.
void MultiplyNarrow(const double* x, int64_t rows, int64_t n, const double* w, double* lanes,
                    const Prefetch& prefetch = {});

}  // namespace heddle::ops::simd
