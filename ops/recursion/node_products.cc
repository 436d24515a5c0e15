// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/node_products.h"

#include <algorithm>

#include "ops/product/matmul_gemm.h"
#include "ops/simd/elementwise.h"
#include "ops/simd/matmul.h"
#include "ops/simd/single_rows.h"
#include "ops/simd/transpose.h"

namespace heddle::ops {
namespace {

// With fewer rows of A than this, B is read where it is, so many columns at a time.
constexpr int64_t kFewRows = 4, kColumnsTogether = 512;

}  // namespace

template <typename Cell>
void TransposeNode(const Cell* from, int64_t rows, int64_t columns, Cell* to) {
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t i = 0; i < whole_rows; i += 4)
    for (int64_t j = 0; j < whole_columns; j += 4)
      simd::TransposeFour(from + i * columns + j, columns, to + j * rows + i, rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      to[j * rows + i] = from[i * columns + j];
}
template void TransposeNode(const double*, int64_t, int64_t, double*);
template void TransposeNode(const float*, int64_t, int64_t, float*);

void Run(const NodeProduct<double>& g) {
  if (g.m >= kFewRows)
    return Run(Gemm{.m = g.m,
                    .n = g.n,
                    .k = g.k,
                    .a = g.a,
                    .a_row = g.k,
                    .b = g.b,
                    .b_row = g.n,
                    .c = g.c,
                    .c_row = g.n,
                    .canonical = true,
                    .parallel = g.parallel,
                    .cancelled = g.cancelled});
  alignas(64) double columns[kColumnsTogether];
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; j += kColumnsTogether) {
      const int64_t here = std::min(kColumnsTogether, g.n - j);
      std::fill_n(columns, (here + 7) / 8 * 8, 0.0);
      simd::MultiplyColumns(g.b + j, g.k, g.n, here, g.a + i * g.k, 1, 1, columns, 0);
      for (int64_t c = 0; c < here; ++c) g.c[i * g.n + j + c] = columns[c] + 0.0;
    }
}

void Run(const NodeProduct<float>& g) {
  if (g.m >= kFewRows)
    return Run(SingleGemm{.m = g.m,
                          .n = g.n,
                          .k = g.k,
                          .a = g.a,
                          .a_row = g.k,
                          .b = g.b,
                          .b_row = g.n,
                          .c_row = g.n,
                          .singles = g.c,
                          .parallel = g.parallel,
                          .cancelled = g.cancelled});
  double sums[kColumnsTogether];
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; j += kColumnsTogether) {
      const int64_t here = std::min(kColumnsTogether, g.n - j);
      std::fill_n(sums, here, 0.0);
      simd::AddRowOfSingles(g.a + i * g.k, g.k, g.b + j, g.n, here, sums);
      SelectedElementwiseKernels().narrow(sums, g.c + i * g.n + j, here);
    }
}

}  // namespace heddle::ops
