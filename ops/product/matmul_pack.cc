// SPDX-License-Identifier: Apache-2.0
#include "ops/product/matmul_pack.h"

#include <immintrin.h>

#include <algorithm>
#include <new>

#include "core/counted_heap.h"
#include "ops/simd/rows.h"
#include "ops/simd/transpose.h"

namespace heddle::ops {
namespace {

// Cells of a row that are packed together, and how many rows ahead they are fetched: rows lie pages apart,
// and every row would begin with a wait for memory.
constexpr int64_t kCellsTogether = 144, kRowsAhead = 6;

}  // namespace

PackedCells::PackedCells(int64_t count) : bytes_(count * static_cast<int64_t>(sizeof(double))) {
  const Result<void*> block = BlockPool::Process().Allocate(bytes_);
  if (!block.ok()) {
    NoteRefused(bytes_);
    throw std::bad_alloc();
  }
  cells_ = static_cast<double*>(*block);
}

void PackStrips(const double* from, int64_t stride, int64_t depth, int64_t width, int64_t count,
                double* out) {
  const int64_t strip_cells = StripCells(width, depth), together = kCellsTogether / width;
  for (; count > 0; count -= together, from += together * width, out += together * strip_cells) {
    const int64_t strips = std::min(together, count);
    const double* row = from;
    for (int64_t k = 0; k < depth; ++k, row += stride) {
      for (int64_t j = 0; j < strips * width; j += 8)
        _mm_prefetch(reinterpret_cast<const char*>(row + kRowsAhead * stride + j), _MM_HINT_T0);
      for (int64_t strip = 0; strip < strips; ++strip)
        for (int64_t v = 0; v < width; v += 4)
          _mm256_storeu_pd(out + strip * strip_cells + k * width + v,
                           _mm256_loadu_pd(row + strip * width + v));
    }
  }
}

void PackNarrowStrip(const double* from, int64_t stride, int64_t depth, int64_t here, int64_t width,
                     double* out) {
  const int64_t whole = here / 4 * 4;
  for (int64_t k = 0; k < depth; ++k, from += stride, out += width) {
    int64_t v = 0;
    for (; v < whole; v += 4) _mm256_storeu_pd(out + v, _mm256_loadu_pd(from + v));
    if (whole < here) {
      _mm256_storeu_pd(out + v, simd::LoadFirst(from + v, here - whole));
      v += 4;
    }
    for (; v < width; v += 4) _mm256_storeu_pd(out + v, _mm256_setzero_pd());
  }
}

void PackA(const Gemm& g, int64_t i0, int64_t rows, int64_t k0, int64_t depth, int64_t width, double* out) {
  const double* block = g.a + i0 * g.a_row + k0 * g.a_column;
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
    const double* a = block + i * g.a_row;
    int64_t r = 0;
    if (here < width) std::fill_n(out, depth * width, 0.0);
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

}  // namespace heddle::ops
