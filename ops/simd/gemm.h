// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::ops {

/// Rows of A as a tile reads them: A(r, k) = a[r * row + k * column], for r of one strip; the rows after
/// them, of a tile that is higher than a strip, likewise from `next`.
struct GemmRows {
  const double* a;
  const double* next;
  int64_t row, column;
};

/// What later tiles read and a tile fetches meanwhile, bit by bit where the CPU waits for a burst of it;
/// nothing unless said.
struct GemmFetches {
  /// With every eight of `depth` products: so many lines, so many doubles apart, and so many doubles further
  /// each time.
  const double* memory = nullptr;
  int64_t memory_line = 0, memory_lines = 0, memory_step = 8;
  const double* strip =
      nullptr;  ///< Cells of the next strip of B, from the third-level cache into the second.
  int64_t strip_cells = 0;
  const double* c = nullptr;  ///< So many rows of C, as far apart and as wide as those of this tile.
  int64_t c_rows = 0;
};

/// A block of C, `rows` x `columns`, in registers.
struct GemmTile {
  int64_t rows;
  int64_t columns;
  /// C(r, c) = chain of fma(A(r, k), b[k * b_row + c], .) over k < depth, ascending, from +0.0 when `first`,
  /// else from C; plus +0.0 at the end when `last` (so that no -0.0 of an underflow remains). The first
  /// `width` columns of C are read and written, all but less than a vector of them. A packed b (b_row =
  /// columns, of the kernel or of the tile) is 32-byte aligned and has all columns, another b `width` of
  /// them.
  void (*run)(int64_t depth, const GemmRows& rows, const GemmFetches& fetches, const double* b, int64_t b_row,
              double* c, int64_t c_stride, int64_t width, bool first, bool last);
};

/// The innermost loops of matrix products, one set per CPU.
struct GemmKernel {
  static constexpr int kTiles = 3;
  int64_t rows;     ///< Of a strip of A; tiles have as many or twice as many.
  int64_t columns;  ///< Of a strip of B: those of the widest tile.
  int64_t depth;  ///< Rows of B in a strip: it stays in the first-level cache, or is read from the second at
                  ///< full speed.
  GemmTile tiles[kTiles];  ///< Wider and wider, by equal steps: a narrow last strip wastes little.
  GemmTile low =
      {};  ///< As wide as the widest and of fewer rows than a strip, for the last rows of C; no rows: none.
  bool any_b = false;  ///< Rows of b may lie anywhere; else b_row = tile.columns.

  const GemmTile& TileFor(int64_t width) const { return tiles[(width - 1) / tiles[0].columns]; }
};

extern const GemmKernel kGemmAvx2;    ///< 4 x 12: 12 accumulators of 4 doubles.
extern const GemmKernel kGemmAvx512;  ///< 8 x 24: 24 accumulators of 8 doubles.

}  // namespace heddle::ops
