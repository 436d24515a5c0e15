// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/memory/block_pool.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/product/gemm.h"

// How tiles read operands. A strip is a few columns of B, or a few rows of A, with the cells that one inner
// index k multiplies side by side: cell (k, c) of a strip of B is strip[k * width + c].
namespace heddle::ops {

/// Cells from the beginning of a strip to that of the next: a line or two more than a strip has. Otherwise
/// strips would lie multiples of a page apart and share a few places of the first-level cache.
constexpr int64_t StripCells(int64_t width, int64_t depth) { return width * depth + 16; }

/// Memory for packed operands, from the pool: on huge pages, which later products reuse (on small pages a
/// product takes four percent longer). std::bad_alloc where there is no memory (core/memory/counted_heap.h).
template <typename Cell>
class PackedCells {
 public:
  explicit PackedCells(int64_t count);
  ~PackedCells() { BlockPool::Process().Free(cells_, bytes_); }
  PackedCells(const PackedCells&) = delete;
  PackedCells& operator=(const PackedCells&) = delete;
  Cell* data() const { return cells_; }

 private:
  int64_t bytes_;
  Cell* cells_;
};

/// The kernel for this processor.
template <typename Cell>
const GemmKernel<Cell>& SelectedGemm();
/// Columns of B in one step: its packed strips stay in the third-level cache.
constexpr int64_t kBlockColumns = 4080;
/// Strips of B in one task of packing; the least strips in one task of multiplication.
constexpr int64_t kStripsTogether = 16, kFewStrips = 2;

/// A part of B: columns [j0, j0 + columns), rows [k0, k0 + depth). All rows of A are multiplied with one step
/// before the next. `first` and `last`: the chains of its columns begin, and end, here.
struct GemmStep {
  int64_t j0, columns, k0, depth;
  bool first, last;
};

/// Strips [begin, end) of a step.
template <typename Cell>
void PackB(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel, const GemmStep& step, int64_t begin,
           int64_t end, Cell* packed);

/// True if tiles read rows of B where they are: so few tiles use a strip that packing it would cost more. Not
/// of rows whose distance is a multiple of 512 bytes, which share a few places of the first-level cache; not
/// of floats, whose steps are too deep.
template <typename Cell>
bool ReadsInPlace(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel);

/// Where tiles read the rows of A.
enum class SourceOfA : uint8_t {
  kPacked,
  kInPlace,
  kPackedB,  ///< A is t(B), and one step has all columns: its rows are in the strips of B.
};
template <typename Cell>
SourceOfA FindSourceOfA(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel);
/// True for t(B) B of which the caller needs the upper triangle.
template <typename Cell>
bool IsSymmetric(const GemmOf<Cell>& g);

/// Rows of B in one step. Cells of a transposed A that is read in place lie apart and take as much of the
/// first-level cache as the strip of B, so steps are half as deep then. A step of floats is whole blocks.
template <typename Cell>
int64_t DepthOf(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel);

/// Where the tiles of one block of rows find A.
template <typename Cell>
class RowsOfA {
 public:
  RowsOfA(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel)
      : g_(g),
        kernel_(kernel),
        source_(FindSourceOfA(g, kernel)),
        packed_(StripsOf(source_, kernel) * StripCells(kernel.rows, DepthOf(g, kernel))) {}

  /// Rows [i0, i0 + rows).
  void Prepare(const GemmStep& step, int64_t i0, int64_t rows, const Cell* packed_b);

  const GemmRows<Cell>& Strip(int64_t strip) const { return strips_[strip]; }

 private:
  static constexpr int64_t kMostStrips = kBlockRows / 4;
  static int64_t StripsOf(SourceOfA source, const GemmKernel<Cell>& kernel) {
    return source == SourceOfA::kPackedB ? 0 : source == SourceOfA::kInPlace ? 1 : kBlockRows / kernel.rows;
  }
  const GemmOf<Cell>& g_;
  const GemmKernel<Cell>& kernel_;
  const SourceOfA source_;
  PackedCells<Cell> packed_;
  GemmRows<Cell> strips_[kMostStrips];
};

}  // namespace heddle::ops
