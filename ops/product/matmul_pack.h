// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/block_pool.h"
#include "ops/product/matmul_gemm.h"

// Operands of products as tiles read them: strips of a few columns of B, or rows of A, k-major within a
// strip.
namespace heddle::ops {

/// Doubles from strip to strip. Two lines more than a strip has: without them the strips of one row would lie
/// multiples of a page apart and share a few places of the first-level cache.
constexpr int64_t StripCells(int64_t width, int64_t depth) { return width * depth + 16; }

/// Packed operands: on huge pages, which are kept and used again and again. With small pages a product takes
/// four percent longer. std::bad_alloc where there is no memory (core/counted_heap.h).
class PackedCells {
 public:
  explicit PackedCells(int64_t count);
  ~PackedCells() { BlockPool::Process().Free(cells_, bytes_); }
  PackedCells(const PackedCells&) = delete;
  PackedCells& operator=(const PackedCells&) = delete;
  double* data() const { return cells_; }

 private:
  int64_t bytes_;
  double* cells_;
};

/// `count` strips of `width` doubles (a multiple of 4) of each of `depth` rows.
void PackStrips(const double* from, int64_t stride, int64_t depth, int64_t width, int64_t count, double* out);
/// One strip of `here` <= `width` doubles of each row, the others zeros.
void PackNarrowStrip(const double* from, int64_t stride, int64_t depth, int64_t here, int64_t width,
                     double* out);
/// Strips of `width` rows of A from row i0 on; missing rows are zeros.
void PackA(const Gemm& g, int64_t i0, int64_t rows, int64_t k0, int64_t depth, int64_t width, double* out);

}  // namespace heddle::ops
