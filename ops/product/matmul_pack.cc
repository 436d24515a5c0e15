// SPDX-License-Identifier: Apache-2.0
#include "ops/product/matmul_pack.h"

#include <immintrin.h>

#include <algorithm>
#include <new>
#include <type_traits>

#include "core/memory/counted_heap.h"
#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/simd/rows.h"
#include "ops/simd/transpose.h"

namespace heddle::ops {
namespace {

// Cells of a row that are packed together, and how many rows earlier they are prefetched: rows lie pages
// apart, so that otherwise every row would begin with a wait for memory.
constexpr int64_t kCellsTogether = 144, kRowsPrefetched = 6;
// Up to so many strips of B, packing rows of A costs more than it gives (columns of A: kFewStrips).
constexpr int64_t kUnpackedStrips = 4;
// The most rows of C and columns of B of a product that reads B in place.
constexpr int64_t kFewRowsInPlace = 128, kFewColumnsInPlace = 256;

template <typename Cell>
constexpr bool kIsSingle = std::is_same_v<Cell, float>;

// Four cells side by side.
inline __m256d LoadFour(const double* cells) { return _mm256_loadu_pd(cells); }
inline __m128 LoadFour(const float* cells) { return _mm_loadu_ps(cells); }
inline void StoreFour(double* to, __m256d cells) { _mm256_storeu_pd(to, cells); }
inline void StoreFour(float* to, __m128 cells) { _mm_storeu_ps(to, cells); }
inline void CopyFour(const auto* from, auto* to) { StoreFour(to, LoadFour(from)); }

// `count` strips of `width` cells (a multiple of 4) of each of `depth` rows.
template <typename Cell>
void PackStrips(const Cell* from, int64_t stride, int64_t depth, int64_t width, int64_t count, Cell* out) {
  constexpr int64_t kLine = GemmFetches<Cell>::kLine;
  const int64_t strip_cells = StripCells(width, depth), together = kCellsTogether / width;
  for (; count > 0; count -= together, from += together * width, out += together * strip_cells) {
    const int64_t strips = std::min(together, count);
    const Cell* row = from;
    for (int64_t k = 0; k < depth; ++k, row += stride) {
      for (int64_t j = 0; j < strips * width; j += kLine)
        _mm_prefetch(reinterpret_cast<const char*>(row + kRowsPrefetched * stride + j), _MM_HINT_T0);
      for (int64_t strip = 0; strip < strips; ++strip)
        for (int64_t v = 0; v < width; v += 4)
          CopyFour(row + strip * width + v, out + strip * strip_cells + k * width + v);
    }
  }
}

// One strip of `here` <= `width` cells of each row, the others zeros.
template <typename Cell>
void PackNarrowStrip(const Cell* from, int64_t stride, int64_t depth, int64_t here, int64_t width,
                     Cell* out) {
  const int64_t whole = here / 4 * 4;
  for (int64_t k = 0; k < depth; ++k, from += stride, out += width) {
    int64_t v = 0;
    for (; v < whole; v += 4) CopyFour(from + v, out + v);
    if (whole < here) {
      StoreFour(out + v, simd::LoadFirst(from + v, here - whole));
      v += 4;
    }
    for (; v < width; v += 4) StoreFour(out + v, decltype(LoadFour(from)){});
  }
}

// Strips of `width` rows of A from row i0 on; missing rows are zeros.
template <typename Cell>
void PackA(const GemmOf<Cell>& g, int64_t i0, int64_t rows, int64_t k0, int64_t depth, int64_t width,
           Cell* out) {
  const Cell* block = g.a + i0 * g.a_row + k0 * g.a_column;
  if (g.a_row == 1) {
    const int64_t whole = rows / width;
    PackStrips(block, g.a_column, depth, width, whole, out);
    if (const int64_t left = rows - whole * width; left > 0)
      PackNarrowStrip(block + whole * width, g.a_column, depth, left, width,
                      out + whole * StripCells(width, depth));
    return;
  }
  for (int64_t i = 0; i < rows; i += width, out += StripCells(width, depth)) {
    const int64_t here = std::min(width, rows - i);
    const Cell* a = block + i * g.a_row;
    int64_t r = 0;
    if (here < width) std::fill_n(out, depth * width, Cell{0});
    for (; r + 4 <= here && g.a_column == 1; r += 4) {
      int64_t k = 0;
      for (; k + 4 <= depth; k += 4) {
        for (int64_t q = 4; q < 8; ++q)
          _mm_prefetch(reinterpret_cast<const char*>(a + (r + q) * g.a_row + k), _MM_HINT_T0);
        simd::TransposeFour(a + r * g.a_row + k, g.a_row, out + k * width + r, width);
      }
      for (; k < depth; ++k)
        for (int64_t q = 0; q < 4; ++q) out[k * width + r + q] = a[(r + q) * g.a_row + k];
    }
    for (; r < here; ++r)
      for (int64_t k = 0; k < depth; ++k) out[k * width + r] = a[r * g.a_row + k * g.a_column];
  }
}

}  // namespace

template <typename Cell>
PackedCells<Cell>::PackedCells(int64_t count) : bytes_(count * static_cast<int64_t>(sizeof(Cell))) {
  const Result<void*> block = BlockPool::Process().Allocate(bytes_);
  if (!block.ok()) {
    NoteRefused(bytes_);
    throw std::bad_alloc();
  }
  cells_ = static_cast<Cell*>(*block);
}

template <>
const GemmKernel<double>& SelectedGemm<double>() {
  return SelectedCpu() == Cpu::kAvx512 ? kGemmAvx512 : kGemmAvx2;
}
template <>
const GemmKernel<float>& SelectedGemm<float>() {
  return SelectedCpu() == Cpu::kAvx512 ? kSingleGemmAvx512 : kSingleGemmAvx2;
}

template <typename Cell>
void PackB(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel, const GemmStep& step, int64_t begin,
           int64_t end, Cell* packed) {
  const int64_t width = kernel.columns, whole = std::min(end, step.columns / width) - begin;
  const Cell* b = g.b + step.k0 * g.b_row + step.j0;
  if (whole > 0)
    PackStrips(b + begin * width, g.b_row, step.depth, width, whole,
               packed + begin * StripCells(width, step.depth));
  if (end * width <= step.columns || begin == end) return;
  const int64_t last = end - 1, left = step.columns - last * width;
  PackNarrowStrip(b + last * width, g.b_row, step.depth, left, kernel.TileFor(left).columns,
                  packed + last * StripCells(width, step.depth));
}

template <typename Cell>
bool ReadsInPlace(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel) {
  return !kIsSingle<Cell> && g.packed == nullptr && kernel.any_b && g.m <= kFewRowsInPlace &&
         g.n <= kFewColumnsInPlace && g.n > kernel.columns && g.b_row % 64 != 0 &&
         (g.a_row == 1 || g.a_column == 1);
}

template <typename Cell>
bool IsSymmetric(const GemmOf<Cell>& g) {
  return g.upper_only && g.a == g.b && g.a_row == 1 && g.a_column == g.b_row && g.m == g.n;
}

template <typename Cell>
SourceOfA FindSourceOfA(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel) {
  if (ReadsInPlace(g, kernel)) return SourceOfA::kInPlace;
  if (IsSymmetric(g) && g.n <= kBlockColumns) return SourceOfA::kPackedB;
  const int64_t few = g.a_column == 1 ? kUnpackedStrips : g.a_row == 1 ? kFewStrips : 0;
  return g.n <= few * kernel.columns && g.packed == nullptr ? SourceOfA::kInPlace : SourceOfA::kPacked;
}

template <typename Cell>
int64_t DepthOf(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel) {
  if (kIsSingle<Cell>) return std::min(kSingleDepth, g.k);
  if (ReadsInPlace(g, kernel)) return std::min(kernel.depth / 4, g.k);
  const bool apart = g.a_row == 1 && FindSourceOfA(g, kernel) != SourceOfA::kPacked;
  return std::min(apart ? kernel.depth / 2 : kernel.depth, g.k);
}

template <typename Cell>
void RowsOfA<Cell>::Prepare(const GemmStep& step, int64_t i0, int64_t rows, const Cell* packed_b) {
  const int64_t height = kernel_.rows, depth = step.depth, whole = rows / height * height;
  if (source_ == SourceOfA::kPacked) {
    PackA(g_, i0, rows, step.k0, depth, height, packed_.data());
  } else if (source_ == SourceOfA::kInPlace && whole < rows) {
    PackA(g_, i0 + whole, rows - whole, step.k0, depth, height, packed_.data());
  }
  for (int64_t i = 0; i < rows; i += height) {
    GemmRows<Cell>& strip = strips_[i / height];
    strip = {packed_.data(), nullptr, 1, height};
    if (source_ == SourceOfA::kPackedB) {
      // A strip of B holds whole strips of A: they are the same cells.
      const int64_t row = i0 + i, of_b = row / kernel_.columns, first = of_b * kernel_.columns;
      strip.a = packed_b + of_b * StripCells(kernel_.columns, depth) + (row - first);
      strip.column = kernel_.TileFor(std::min(kernel_.columns, step.columns - first)).columns;
    } else if (source_ == SourceOfA::kPacked) {
      strip.a += i / height * StripCells(height, depth);
    } else if (i < whole) {
      strip = {g_.a + (i0 + i) * g_.a_row + step.k0 * g_.a_column, nullptr, g_.a_row, g_.a_column};
    }
    strip.next = strip.a;
  }
}

// The steps of Run, one after the other.
template <typename Cell>
struct PackedRightOf<Cell>::Cells {
  explicit Cells(const GemmOf<Cell>& product)
      : g(product),
        depth(DepthOf(g, kernel)),
        whole_step(CellsOf(kBlockColumns, depth)),
        last_step(CellsOf(g.n - LastBlock(), depth)),
        whole_block(CellsOfBlock(kBlockColumns)),
        cells(LastBlock() / kBlockColumns * whole_block + CellsOfBlock(g.n - LastBlock())) {}
  int64_t LastBlock() const { return (g.n - 1) / kBlockColumns * kBlockColumns; }
  int64_t ColumnsAt(int64_t j0) const { return std::min(kBlockColumns, g.n - j0); }
  int64_t CellsOf(int64_t columns, int64_t rows) const {
    return CeilDivide(columns, kernel.columns) * StripCells(kernel.columns, rows);
  }
  int64_t CellsOfBlock(int64_t columns) const {
    return g.k / depth * CellsOf(columns, depth) + (g.k % depth == 0 ? 0 : CellsOf(columns, g.k % depth));
  }
  // Cells of the steps before. Asked for each strip of a product of few rows.
  int64_t Before(int64_t j0, int64_t k0) const {
    return j0 / kBlockColumns * whole_block +
           k0 / depth * (j0 + kBlockColumns <= g.n ? whole_step : last_step);
  }
  const GemmKernel<Cell>& kernel = SelectedGemm<Cell>();
  const GemmOf<Cell> g;
  const int64_t depth, whole_step, last_step, whole_block;
  PackedCells<Cell> cells;
};

template <typename Cell>
PackedRightOf<Cell>::PackedRightOf(const Cell* b, int64_t k, int64_t n)
    : cells_(std::make_unique<Cells>(
          GemmOf<Cell>{.m = kBlockRows, .n = n, .k = k, .a_row = k, .b = b, .b_row = n, .packed = this})) {
  const GemmOf<Cell>& g = cells_->g;
  for (int64_t j0 = 0; j0 < n; j0 += kBlockColumns)
    for (int64_t k0 = 0; k0 < k; k0 += cells_->depth) {
      const GemmStep step{j0, cells_->ColumnsAt(j0), k0, std::min(cells_->depth, k - k0), false, false};
      Cell* const to = cells_->cells.data() + cells_->Before(j0, k0);
      const int64_t strips = CeilDivide(step.columns, cells_->kernel.columns);
      ParallelFor(CeilDivide(strips, kStripsTogether), 1, [&](int64_t begin, int64_t end) {
        PackB(g, cells_->kernel, step, begin * kStripsTogether, std::min(strips, end * kStripsTogether), to);
      });
    }
}
template <typename Cell>
PackedRightOf<Cell>::~PackedRightOf() = default;
template <typename Cell>
const Cell* PackedRightOf<Cell>::At(int64_t j0, int64_t k0) const {
  return cells_->cells.data() + cells_->Before(j0, k0);
}

#define HEDDLE_PRODUCTS_OF(Cell)                                                                       \
  template class PackedCells<Cell>;                                                                    \
  template class RowsOfA<Cell>;                                                                        \
  template class PackedRightOf<Cell>;                                                                  \
  template void PackB(const GemmOf<Cell>&, const GemmKernel<Cell>&, const GemmStep&, int64_t, int64_t, \
                      Cell*);                                                                          \
  template bool ReadsInPlace(const GemmOf<Cell>&, const GemmKernel<Cell>&);                            \
  template SourceOfA FindSourceOfA(const GemmOf<Cell>&, const GemmKernel<Cell>&);                      \
  template bool IsSymmetric(const GemmOf<Cell>&);                                                      \
  template int64_t DepthOf(const GemmOf<Cell>&, const GemmKernel<Cell>&);
HEDDLE_PRODUCTS_OF(double)
HEDDLE_PRODUCTS_OF(float)
#undef HEDDLE_PRODUCTS_OF

}  // namespace heddle::ops
