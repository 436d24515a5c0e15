// SPDX-License-Identifier: Apache-2.0
#include "ops/product/few_rows.h"

#include <algorithm>
#include <type_traits>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/product/matmul_pack.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

constexpr int64_t kWidestStrip = 48;

// The next tile of `left` rows, of strips of that width: rows are cut evenly, so that no tile has so few that
// its chains wait for each other.
template <typename Cell>
const GemmTile<Cell>& TileOf(const GemmKernel<Cell>& kernel, int64_t width, int64_t left) {
  const int64_t of_width = (width - 1) / kernel.tiles[0].columns;
  const GemmTile<Cell>& highest = kernel.tiles[of_width];
  const int64_t rows = CeilDivide(left, CeilDivide(left, highest.rows));
  return rows == highest.rows ? highest : kernel.few[rows - 1][of_width];
}

// Columns of one strip of B.
template <typename Cell>
void MultiplyStrip(const FewRowsOf<Cell>& g, const GemmKernel<Cell>& kernel, int64_t strip) {
  constexpr bool kIsSingle = std::is_same_v<Cell, float>;
  alignas(64) double sums[kIsSingle ? kMostFewRows * kWidestStrip : 1];  // Of floats, on their way.
  const int64_t j = strip * kernel.columns, j0 = j / kBlockColumns * kBlockColumns;
  const int64_t width = std::min(kernel.columns, g.n - j), depth = std::min(kernel.depth, g.k);
  const int64_t b_row = kernel.TileFor(width).columns, of_block = (j - j0) / kernel.columns;
  for (int64_t k0 = 0; k0 < g.k; k0 += depth) {
    const int64_t here = std::min(depth, g.k - k0);
    const Cell* const b = g.packed->At(j0, k0) + of_block * StripCells(kernel.columns, here);
    for (int64_t i = 0; i < g.m;) {
      const GemmTile<Cell>& tile = TileOf(kernel, width, g.m - i);
      const Cell* const a = g.a + i * g.a_row + k0;
      GemmCells to{.c = nullptr, .row = 0, .width = width, .first = k0 == 0, .last = k0 + here == g.k};
      if constexpr (kIsSingle) {
        to.c = sums + i * kWidestStrip;
        to.row = kWidestStrip;
        to.singles = g.c + i * g.c_row + j;
        to.singles_row = g.c_row;
      } else {
        to.c = g.c + i * g.c_row + j;
        to.row = g.c_row;
      }
      tile.run(here, {a, a + kernel.rows * g.a_row, g.a_row, 1}, {}, b, b_row, to);
      i += tile.rows;
    }
  }
}

template <typename Cell>
void RunStrips(const FewRowsOf<Cell>& g) {
  const GemmKernel<Cell>& kernel = SelectedGemm<Cell>();
  const int64_t strips = CeilDivide(g.n, kernel.columns);
  if (!g.parallel) {
    for (int64_t strip = 0; strip < strips; ++strip) MultiplyStrip(g, kernel, strip);
    return;
  }
  ParallelFor(strips, CeilDivide(strips, 2 * ParallelThreads()), [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) MultiplyStrip(g, kernel, strip);
  });
}

}  // namespace

void Run(const FewRowsOf<double>& product) { RunStrips(product); }
void Run(const FewRowsOf<float>& product) { RunStrips(product); }

}  // namespace heddle::ops
