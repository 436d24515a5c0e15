// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/memory/block_pool.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/gemm.h"

// Operands of products as tiles read them: strips of a few columns of B, or rows of A, k-major within a
// strip.
namespace heddle::ops {

/// Doubles from strip to strip. Two lines more than a strip has: without them the strips of one row would lie
/// multiples of a page apart and share a few places of the first-level cache.
constexpr int64_t StripCells(int64_t width, int64_t depth) { return width * depth + 16; }

/// Packed operands: on huge pages, which are kept and used again and again. With small pages a product takes
/// four percent longer. std::bad_alloc where there is no memory (core/memory/counted_heap.h).
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

/// The one of this processor.
const GemmKernel& SelectedGemm();
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
void PackB(const Gemm& g, const GemmKernel& kernel, const GemmStep& step, int64_t begin, int64_t end,
           double* packed);

/// True where rows of B are read where they are: so few tiles use a strip that packing it would cost more.
/// Rows whose distance is a multiple of 512 bytes would share a few places of the first-level cache.
bool ReadsInPlace(const Gemm& g, const GemmKernel& kernel);

enum class FormOfA : uint8_t {
  kPacked,
  kUnpacked,   ///< Read where it is.
  kSymmetric,  ///< t(B), and one step has all columns: read from the packed B.
};
FormOfA FindForm(const Gemm& g, const GemmKernel& kernel);
/// t(B) B, and its upper half is enough.
bool IsSymmetric(const Gemm& g);

/// Rows of B in one step. Cells of a transposed A that is not packed for itself lie apart and take as much of
/// the first-level cache as the strip of B does.
int64_t DepthOf(const Gemm& g, const GemmKernel& kernel);

/// Where the tiles of one block of rows find A.
class RowsOfA {
 public:
  RowsOfA(const Gemm& g, const GemmKernel& kernel)
      : g_(g),
        kernel_(kernel),
        form_(FindForm(g, kernel)),
        packed_(StripsOf(form_, kernel) * StripCells(kernel.rows, DepthOf(g, kernel))) {}

  /// Rows [i0, i0 + rows).
  void Prepare(const GemmStep& step, int64_t i0, int64_t rows, const double* packed_b);

  const GemmRows& Strip(int64_t strip) const { return strips_[strip]; }

 private:
  static constexpr int64_t kMostStrips = kBlockRows / 4;
  static int64_t StripsOf(FormOfA form, const GemmKernel& kernel) {
    return form == FormOfA::kSymmetric ? 0 : form == FormOfA::kUnpacked ? 1 : kBlockRows / kernel.rows;
  }
  const Gemm& g_;
  const GemmKernel& kernel_;
  const FormOfA form_;
  PackedCells packed_;
  GemmRows strips_[kMostStrips];
};

}  // namespace heddle::ops
