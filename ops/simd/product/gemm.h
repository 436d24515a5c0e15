// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::ops {

/// Products of floats are chains of at most so many terms, whose sums are joined in doubles
/// (docs/numerics.md, section 9).
constexpr int64_t kSingleBlock = 64;
/// Terms of such a product in one step of the packed kernel: whole blocks.
constexpr int64_t kSingleDepth = 256;
static_assert(kSingleDepth % kSingleBlock == 0 && kSingleBlock % 32 == 0);

/// Rows of A as a tile reads them: A(r, k) = a[r * row + k * column], for r of one strip; the rows after
/// them, of a tile that is higher than a strip, likewise from `next`.
template <typename Cell>
struct GemmRows {
  const Cell* a;
  const Cell* next;
  int64_t row, column;
};

/// What a tile prefetches for later tiles while it computes: a few lines after every few inner indexes, since
/// the processor would wait for a burst of them.
template <typename Cell>
struct GemmFetches {
  static constexpr int64_t kLine = 64 / sizeof(Cell);  ///< Cells of a cache line.
  /// With every kLine of `depth` products: so many lines, so many cells apart, and so many cells further each
  /// time.
  const Cell* memory = nullptr;
  int64_t memory_line = 0, memory_lines = 0, memory_step = kLine;
  const Cell* strip = nullptr;  ///< Cells of the next strip of B, from the third-level cache into the second.
  int64_t strip_cells = 0;
  const double* c = nullptr;  ///< So many rows of C, as far apart and as wide as those of this tile.
  int64_t c_rows = 0;
};

/// Cells of C that a tile makes: C(r, c) = c[r * row + c], the first `width` columns, all but less than a
/// vector of them. A tile of doubles makes the chain of fma(A(r, k), b[k * b_row + c], .) over k < depth,
/// ascending, from +0.0 when `first`, else from C; plus +0.0 at the end when `last` (so that no -0.0 of an
/// underflow remains). A tile of floats makes chains of floats over blocks of kSingleBlock terms, from +0.0,
/// and adds each of them to C in doubles: the first to +0.0 when `first`. Where `singles` is set and `last`
/// holds, the sum goes there, rounded to a float, and not to C. `open`: the chains do not end; they go on
/// from `singles`, unless `first`, and stay there.
struct GemmCells {
  double* c;
  int64_t row;
  int64_t width;
  bool first, last;
  float* singles = nullptr;
  int64_t singles_row = 0;
  bool open = false;

  /// The cells so many rows and columns further, as many columns less.
  GemmCells From(int64_t rows, int64_t columns) const {
    GemmCells cells = *this;
    if (c != nullptr) cells.c += rows * row + columns;
    if (singles != nullptr) cells.singles += rows * singles_row + columns;
    cells.width -= columns;
    return cells;
  }
};

/// A block of C, `rows` x `columns`, in registers.
template <typename Cell>
struct GemmTile {
  int64_t rows;
  int64_t columns;
  /// A packed b (b_row = columns, of the kernel or of the tile) is 32-byte aligned and has all columns,
  /// another b as many as C has.
  void (*run)(int64_t depth, const GemmRows<Cell>& rows, const GemmFetches<Cell>& fetches, const Cell* b,
              int64_t b_row, const GemmCells& to);
};

/// The innermost loops of matrix products, one set per CPU and type of cells.
template <typename Cell>
struct GemmKernel {
  static constexpr int kTiles = 3;
  int64_t rows;     ///< Of a strip of A; tiles have as many or twice as many.
  int64_t columns;  ///< Of a strip of B: those of the widest tile.
  int64_t depth;  ///< Rows of B in a strip: it stays in the first-level cache, or is read from the second at
                  ///< full speed. Of floats kSingleDepth.
  GemmTile<Cell> tiles[kTiles];  ///< Wider and wider, by equal steps: a narrow last strip wastes little.
  GemmTile<Cell> low =
      {};  ///< As wide as the widest and of fewer rows than a strip, for the last rows of C; no rows: none.
  bool any_b = false;  ///< Rows of b may lie anywhere; else b_row = tile.columns.
  /// Tiles of 1, 2, ... rows of a row-major A beside a packed b, each as wide as those above; of fewer rows
  /// where registers hold no more.
  static constexpr int kFew = 7;
  GemmTile<Cell> few[kFew][kTiles] = {};

  const GemmTile<Cell>& TileFor(int64_t width) const { return tiles[(width - 1) / tiles[0].columns]; }
};

extern const GemmKernel<double> kGemmAvx2;         ///< 4 x 12: 12 accumulators of 4 doubles.
extern const GemmKernel<double> kGemmAvx512;       ///< 8 x 24: 24 accumulators of 8 doubles.
extern const GemmKernel<float> kSingleGemmAvx2;    ///< 4 x 24: 12 accumulators of 8 floats.
extern const GemmKernel<float> kSingleGemmAvx512;  ///< 8 x 48: 24 accumulators of 16 floats.

}  // namespace heddle::ops
