// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul_gemm.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/panels.h"
#include "ops/cpu.h"
#include "ops/parallel.h"
#include "ops/reduction_tree.h"
#include "ops/simd/gemm.h"

namespace heddle::ops {
namespace {

// A block of A (kBlockRows x kDepth) stays in L2 while a strip of B (kDepth x kernel.columns) is used from
// L1; all of the packed B (kDepth x kBlockColumns) stays in L3.
constexpr int64_t kDepth = 192;
constexpr int64_t kBlockRows = 144;
constexpr int64_t kBlockColumns = 4080;
constexpr int64_t kLargestKernel = 8 * 24;

const GemmKernel& Kernel() { return SelectedCpu() == Cpu::kAvx512 ? kGemmAvx512 : kGemmAvx2; }

// `width` doubles from each of `depth` rows, `stride` apart; `width` is a multiple of 4, a constant size lets
// the copy be inlined.
void CopyRows(const double* from, int64_t stride, int64_t depth, int64_t width, double* out) {
  for (int64_t k = 0; k < depth; ++k, from += stride, out += width)
    for (int64_t v = 0; v < width; v += 4) std::memcpy(out + v, from + v, 4 * sizeof(double));
}

// The same for `here` < `width` doubles, the others zeros.
void CopyNarrowRows(const double* from, int64_t stride, int64_t depth, int64_t here, int64_t width,
                    double* out) {
  std::fill_n(out, depth * width, 0.0);
  for (int64_t k = 0; k < depth; ++k, from += stride, out += width) std::copy_n(from, here, out);
}

// Four doubles of each of four rows, transposed: what PackA does most.
inline void TransposeFour(const double* from, int64_t stride, int64_t width, double* out) {
  const __m256d a = _mm256_loadu_pd(from), b = _mm256_loadu_pd(from + stride),
                c = _mm256_loadu_pd(from + 2 * stride), d = _mm256_loadu_pd(from + 3 * stride);
  const __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b),
                cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
  _mm256_store_pd(out, _mm256_permute2f128_pd(ab0, cd0, 0x20));
  _mm256_store_pd(out + width, _mm256_permute2f128_pd(ab1, cd1, 0x20));
  _mm256_store_pd(out + 2 * width, _mm256_permute2f128_pd(ab0, cd0, 0x31));
  _mm256_store_pd(out + 3 * width, _mm256_permute2f128_pd(ab1, cd1, 0x31));
}

// Strips of `width` rows of A, k-major within a strip; missing rows are zeros.
void PackA(const Gemm& g, int64_t i0, int64_t rows, int64_t k0, int64_t depth, int64_t width, double* out) {
  for (int64_t i = 0; i < rows; i += width, out += depth * width) {
    const int64_t here = std::min(width, rows - i);
    const double* a = g.a + (i0 + i) * g.a_row + k0 * g.a_column;
    if (g.a_row == 1) {
      if (here == width)
        CopyRows(a, g.a_column, depth, width, out);
      else
        CopyNarrowRows(a, g.a_column, depth, here, width, out);
      continue;
    }
    int64_t r = 0;
    if (here < width) std::fill_n(out, depth * width, 0.0);
    for (; r + 4 <= here && g.a_column == 1; r += 4) {
      int64_t k = 0;
      for (; k + 4 <= depth; k += 4) TransposeFour(a + r * g.a_row + k, g.a_row, width, out + k * width + r);
      for (; k < depth; ++k)
        for (int64_t q = 0; q < 4; ++q) out[k * width + r + q] = a[(r + q) * g.a_row + k];
    }
    for (; r < here; ++r)
      for (int64_t k = 0; k < depth; ++k) out[k * width + r] = a[r * g.a_row + k * g.a_column];
  }
}

// Strip `strip` of `width` columns of B, k-major; missing columns are zeros.
void PackB(const Gemm& g, int64_t j0, int64_t columns, int64_t k0, int64_t depth, int64_t width,
           int64_t strip, double* packed) {
  const int64_t j = strip * width, here = std::min(width, columns - j);
  const double* b = g.b + k0 * g.b_row + j0 + j;
  if (here == width)
    CopyRows(b, g.b_row, depth, width, packed + j * depth);
  else
    CopyNarrowRows(b, g.b_row, depth, here, width, packed + j * depth);
}

struct Step {
  int64_t j0, columns, k0, depth;
  bool first, last;
};

// Rows [i0, i0 + rows) of C take one step of k.
void MultiplyBlock(const Gemm& g, const GemmKernel& kernel, const Step& step, int64_t i0, int64_t rows,
                   const double* packed_a, const double* packed_b) {
  alignas(64) double edge[kLargestKernel] = {};
  for (int64_t j = 0; j < step.columns; j += kernel.columns) {
    const int64_t width = std::min(kernel.columns, step.columns - j);
    for (int64_t i = 0; i < rows; i += kernel.rows) {
      if (g.upper_only && step.j0 + j + width <= i0 + i) continue;
      const int64_t height = std::min(kernel.rows, rows - i);
      double* c = g.c + (i0 + i) * g.c_row + step.j0 + j;
      const double *a = packed_a + i * step.depth, *b = packed_b + j * step.depth;
      // A chain cannot start before its cell of C is there: fetch the next block's cells while this one
      // computes.
      for (int64_t r = 0; r < kernel.rows && i + kernel.rows + r < rows; ++r)
        for (int64_t v = 0; v < width; v += 8)
          _mm_prefetch(reinterpret_cast<const char*>(c + (kernel.rows + r) * g.c_row + v), _MM_HINT_T0);
      if (height == kernel.rows && width == kernel.columns) {
        kernel.run(step.depth, a, b, c, g.c_row, step.first, step.last);
        continue;
      }
      if (!step.first)
        for (int64_t r = 0; r < height; ++r) std::copy_n(c + r * g.c_row, width, edge + r * kernel.columns);
      kernel.run(step.depth, a, b, edge, kernel.columns, step.first, step.last);
      for (int64_t r = 0; r < height; ++r) std::copy_n(edge + r * kernel.columns, width, c + r * g.c_row);
    }
  }
}

void MaybeParallel(bool parallel, int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  if (parallel)
    ParallelFor(count, 1, body);
  else
    body(0, count);
}

}  // namespace

void Run(const Gemm& g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    if (g.accumulate) return;
    for (int64_t i = 0; i < g.m; ++i) std::fill_n(g.c + i * g.c_row, g.n, 0.0);
    return;
  }
  const GemmKernel& kernel = Kernel();
  const int64_t most_depth = std::min(kDepth, g.k);
  const int64_t strips = CeilDivide(std::min(kBlockColumns, g.n), kernel.columns);
  AlignedArray packed_b(strips * kernel.columns * most_depth);
  const int64_t blocks = CeilDivide(g.m, kBlockRows);
  for (int64_t j0 = 0; j0 < g.n; j0 += kBlockColumns) {
    for (int64_t k0 = 0; k0 < g.k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, g.k - k0), columns = std::min(kBlockColumns, g.n - j0);
      const Step step{j0, columns, k0, depth, k0 == 0 && !g.accumulate, g.canonical && k0 + depth == g.k};
      MaybeParallel(g.parallel, CeilDivide(columns, kernel.columns), [&](int64_t begin, int64_t end) {
        for (int64_t strip = begin; strip < end; ++strip)
          PackB(g, j0, columns, k0, depth, kernel.columns, strip, packed_b.data());
      });
      MaybeParallel(g.parallel, blocks, [&](int64_t begin, int64_t end) {
        AlignedArray packed_a((kBlockRows + kernel.rows) * depth);
        for (int64_t block = begin; block < end; ++block) {
          const int64_t i0 = block * kBlockRows, rows = std::min(kBlockRows, g.m - i0);
          if ((g.upper_only && j0 + columns <= i0) || IsCancelled(g.cancelled)) continue;
          PackA(g, i0, rows, k0, depth, kernel.rows, packed_a.data());
          MultiplyBlock(g, kernel, step, i0, rows, packed_a.data(), packed_b.data());
        }
      });
    }
  }
}

}  // namespace heddle::ops
