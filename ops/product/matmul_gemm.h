// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace heddle::ops {

/// Rows of A in one block: packed, they stay in the second-level cache while tiles read a strip of B from the
/// first.
constexpr int64_t kBlockRows = 144;

/// A copy of a k x n matrix B (row-major, without gaps) in the order in which Run reads it, for several
/// products with one B. The threads of the calling arena make it together. k and n are at least 1.
template <typename Cell>
class PackedRightOf {
 public:
  PackedRightOf(const Cell* b, int64_t k, int64_t n);
  ~PackedRightOf();
  /// The strips that begin with that column and row of B, which a step of Run begins with.
  const Cell* At(int64_t j0, int64_t k0) const;

 private:
  struct Cells;
  std::unique_ptr<Cells> cells_;
};
using PackedRight = PackedRightOf<double>;
using SinglePackedRight = PackedRightOf<float>;

/// C = A * B for dense doubles: every cell of C is one chain s = fma(a_ik, b_kj, s), k ascending from +0.0
/// (docs/numerics.md, section 3); or for dense floats: chains of floats over blocks of kSingleBlock terms,
/// their sums joined in doubles from +0.0 (section 9). A may be any strided view, so t(X) needs no copy:
/// A(i, k) = a[i * a_row + k * a_column].
///
/// Cost: 2*m*n*k flops near the FMA peak; packs blocks of A and B into cache-sized buffers (about 9 MB, with
/// AVX-512 17 MB; twice as much where threads share the work).
template <typename Cell>
struct GemmOf {
  int64_t m = 0, n = 0, k = 0;
  const Cell* a = nullptr;
  int64_t a_row = 0, a_column = 1;
  const Cell* b = nullptr;
  int64_t b_row = 0;  ///< Cells between rows of B.
  /// All of B, in place of `b`; then the cells of a row of A lie side by side.
  const PackedRightOf<Cell>* packed = nullptr;
  double* c = nullptr;
  int64_t c_row = 0;
  /// Of floats only: C, rounded to floats, in place of `c`.
  float* singles = nullptr;
  /// Of floats only: all k terms belong to one block, and more terms of it may follow in a later call. The
  /// chains stay in `singles`; with `accumulate` they continue from there.
  bool open = false;
  /// Chains continue from the cells of C. Chains of floats are added to them, so C must hold sums of whole
  /// blocks.
  bool accumulate = false;
  bool canonical = false;  ///< Add + 0.0 to every cell at the end; k is the whole length of its chain.
  /// Cells below the diagonal of C need not be right: they may be left as they are or overwritten. With
  /// `accumulate` C must hold zeros, or the sums of an earlier product of the same shape.
  bool upper_only = false;
  bool b_continues = false;  ///< The caller's next product reads the rows behind those of B: prefetch them.
  bool parallel = false;     ///< Blocks of rows of C are tasks of the calling arena.
  /// Cells that the caller reads next: the product prefetches so many of them. Not with `parallel`.
  const Cell* prefetched = nullptr;
  int64_t prefetched_cells = 0;
  const std::atomic<bool>* cancelled = nullptr;  ///< When set, C is left unfinished.
};
using Gemm = GemmOf<double>;
using SingleGemm = GemmOf<float>;
void Run(const Gemm& gemm);
void Run(const SingleGemm& gemm);

/// The cells of a whole product, complete, go to `cells`: doubles end with + 0.0, floats are rounded.
inline void WriteCells(double* cells, Gemm* product) {
  product->c = cells;
  product->canonical = true;
}
inline void WriteCells(float* cells, SingleGemm* product) { product->singles = cells; }

}  // namespace heddle::ops
