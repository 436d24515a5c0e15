// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/memory/block_pool.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/product/gemm.h"

// Operands of products as tiles read them: strips of a few columns of B, or rows of A, k-major within a
// strip.
namespace heddle::ops {

/// Cells from strip to strip. A line or two more than a strip has: without them the strips of one row would
/// lie multiples of a page apart and share a few places of the first-level cache.
constexpr int64_t StripCells(int64_t width, int64_t depth) { return width * depth + 16; }

/// Packed operands: on huge pages, which are kept and used again and again. With small pages a product takes
/// four percent longer. std::bad_alloc where there is no memory (core/memory/counted_heap.h).
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

/// The one of this processor.
template <typename Cell>
const GemmKernel<Cell>& SelectedGemm();
/// All of the packed B (so many columns) stays in L3.
constexpr int64_t kBlockColumns = 4080;
/// Strips of B in one task of packing; and those that are one task of products at least.
constexpr int64_t kStripsTogether = 16, kFewStrips = 2;

/// Columns [j0, j0 + columns) of B, rows [k0, k0 + depth), in strips: what the tiles read.
struct GemmStep {
  int64_t j0, columns, k0, depth;
  bool first, last;
};

/// Strips [begin, end) of a step.
template <typename Cell>
void PackB(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel, const GemmStep& step, int64_t begin,
           int64_t end, Cell* packed);

/// True where rows of B are read where they are: so few tiles use a strip that packing it would cost more.
/// Rows whose distance is a multiple of 512 bytes would share a few places of the first-level cache. Never of
/// floats, whose steps are too deep for that.
template <typename Cell>
bool ReadsInPlace(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel);

enum class FormOfA : uint8_t {
  kPacked,
  kUnpacked,   ///< Read where it is.
  kSymmetric,  ///< t(B), and one step has all columns: read from the packed B.
};
template <typename Cell>
FormOfA FindForm(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel);
/// t(B) B, and its upper half is enough.
template <typename Cell>
bool IsSymmetric(const GemmOf<Cell>& g);

/// Rows of B in one step. Cells of a transposed A that is not packed for itself lie apart and take as much of
/// the first-level cache as the strip of B does. A step of floats has whole blocks
/// of their chains.
template <typename Cell>
int64_t DepthOf(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel);

/// Where the tiles of one block of rows find A.
template <typename Cell>
class RowsOfA {
 public:
  RowsOfA(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel)
      : g_(g),
        kernel_(kernel),
        form_(FindForm(g, kernel)),
        packed_(StripsOf(form_, kernel) * StripCells(kernel.rows, DepthOf(g, kernel))) {}

  /// Rows [i0, i0 + rows).
  void Prepare(const GemmStep& step, int64_t i0, int64_t rows, const Cell* packed_b);

  const GemmRows<Cell>& Strip(int64_t strip) const { return strips_[strip]; }

 private:
  static constexpr int64_t kMostStrips = kBlockRows / 4;
  static int64_t StripsOf(FormOfA form, const GemmKernel<Cell>& kernel) {
    return form == FormOfA::kSymmetric ? 0 : form == FormOfA::kUnpacked ? 1 : kBlockRows / kernel.rows;
  }
  const GemmOf<Cell>& g_;
  const GemmKernel<Cell>& kernel_;
  const FormOfA form_;
  PackedCells<Cell> packed_;
  GemmRows<Cell> strips_[kMostStrips];
};

}  // namespace heddle::ops
