// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/node_products.h"

#include <algorithm>

#include "ops/product/matmul_gemm.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/product/single_rows.h"

namespace heddle::ops {
namespace {

// With fewer rows of A than this, B is read where it is, so many columns at a time.
constexpr int64_t kFewRows = 4, kColumnsTogether = 512;

// c = a * B, a row of k cells by `count` columns of B, which has zeros in `sums`, rounded up to eight.
void MultiplyRow(const double* a, int64_t k, const double* b, int64_t b_row, int64_t count, double* sums,
                 double* c) {
  simd::MultiplyColumns(b, k, b_row, count, a, 1, 1, sums, 0);
  for (int64_t j = 0; j < count; ++j) c[j] = sums[j] + 0.0;
}
void MultiplyRow(const float* a, int64_t k, const float* b, int64_t b_row, int64_t count, double* sums,
                 float* c) {
  simd::AddRowOfSingles(a, k, b, b_row, count, sums);
  SelectedElementwiseKernels().narrow(sums, c, count);
}

}  // namespace

template <typename Cell>
void Run(const NodeProduct<Cell>& g) {
  if (g.m >= kFewRows) {
    GemmOf<Cell> product{.m = g.m, .n = g.n, .k = g.k, .a = g.a, .a_row = g.k, .b = g.b, .b_row = g.n};
    product.c_row = g.n;
    product.cancelled = g.cancelled;
    WriteCells(g.c, &product);
    return Run(product);
  }
  alignas(64) double sums[kColumnsTogether];
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; j += kColumnsTogether) {
      const int64_t here = std::min(kColumnsTogether, g.n - j);
      std::fill_n(sums, (here + 7) / 8 * 8, 0.0);
      MultiplyRow(g.a + i * g.k, g.k, g.b + j, g.n, here, sums, g.c + i * g.n + j);
    }
}
template void Run(const NodeProduct<double>&);
template void Run(const NodeProduct<float>&);

}  // namespace heddle::ops
