// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/rows/dense_rows.h"

#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/base/kernel.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/product/few_nonzeros.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/rows.h"

namespace heddle::ops {
namespace {

// Calls fold(lanes) with lanes[j] the accumulator of the cells whose flat place is j modulo 8, when the first
// cell's is `base`.
template <typename Fold>
void WithLanes(double* payload, int64_t base, Fold fold) {
  if (base == 0) return fold(payload);
  alignas(64) double lanes[8];
  for (int64_t j = 0; j < 8; ++j) lanes[j] = payload[(j + base) & 7];
  fold(lanes);
  for (int64_t j = 0; j < 8; ++j) payload[(j + base) & 7] = lanes[j];
}

}  // namespace

void AddRows(const TileRoot& root, const double* x, int64_t x_stride, int64_t rows, int64_t columns,
             int64_t row_in_panel, double* payload) {
  const simd::Fold fold = FoldOf(root.aggregate);
  if (root.kind == TileRoot::Kind::kFull)
    return WithLanes(payload, (row_in_panel * root.n) & 7,
                     [&](double* lanes) { simd::FoldFlat(fold, x, rows * columns, lanes); });
  if (root.n <= 8) return simd::FoldNarrow(fold, x, rows, root.n, payload);
  simd::FoldColumns(fold, x, rows, x_stride, columns, payload);
}

void AddProduct(const TileRoot& root, const double* x, int64_t x_stride, const double* y, int64_t y_stride,
                int64_t rows, const simd::Prefetch& prefetch, int64_t lane, double* payload) {
  switch (root.kind) {
    case TileRoot::Kind::kLanes:
      if (root.k == 1) return simd::MultiplyNarrow(x, rows, root.n, y, payload, prefetch);
      if (root.n == 1) return simd::MultiplyNarrow(y, rows, root.k, x, payload);
      for (int64_t i = 0; i < rows; ++i) {
        double* cells = payload + ((lane + i) & 7) * root.n * root.k;
        for (int64_t j = 0; j < root.n; ++j)
          for (int64_t c = 0; c < root.k; ++c)
            cells[j * root.k + c] = std::fma(x[i * x_stride + j], y[i * y_stride + c], cells[j * root.k + c]);
      }
      return;
    default:
      if (!root.symmetric) {
        const int64_t done = simd::AddFewNonzeros(x, rows, x_stride, root.n, y, y_stride, root.k, payload);
        x += done * x_stride;
        y += done * y_stride;
        rows -= done;
        if (rows == 0) return;
      }
      if (root.n <= kFewColumns && root.k <= simd::kMostRegisterColumns)
        return simd::MultiplyFewColumns(x, rows, x_stride, root.n, y, y_stride, root.k, payload);
      if (simd::AreFewForTiles(root.n, root.k))
        return AddProductByColumns(x, rows, x_stride, root.n, y, y_stride, root.k, payload, prefetch);
      return Run(Gemm{.m = root.n,
                      .n = root.k,
                      .k = rows,
                      .a = x,
                      .a_row = 1,
                      .a_column = x_stride,
                      .b = y,
                      .b_row = y_stride,
                      .c = payload,
                      .c_row = root.k,
                      .accumulate = true,
                      .upper_only = root.symmetric,
                      .prefetched = prefetch ? x + rows * x_stride : nullptr,
                      .prefetched_cells = rows * root.n});
  }
}

void CopyRows(const double* from, int64_t from_stride, int64_t rows, int64_t columns, double* to,
              int64_t to_stride) {
  const auto copy = [&](auto count) __attribute__((always_inline)) {
    for (int64_t i = 0; i < rows; ++i) {
      // Between two tiles the processor's prefetcher loses its place.
      _mm_prefetch(reinterpret_cast<const char*>(from + (rows + i) * from_stride), _MM_HINT_T0);
      std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<size_t>(count) * sizeof(double));
    }
  };
  // Few cells of known number are a move or two, without a call.
  if (!simd::WithConstant<1, 8>(columns, copy)) copy(columns);
}

}  // namespace heddle::ops
