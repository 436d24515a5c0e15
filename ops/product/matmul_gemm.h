// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace heddle::ops {

/// Rows of A that are packed together; a block of them stays in the second-level cache while a strip of B is
/// used from the first.
constexpr int64_t kBlockRows = 144;

/// All of a k x n matrix B (row-major, without gaps) as Run reads it, for several products with one B; packed
/// in parallel by the threads of the calling arena. As large as B; k and n are 1 at least.
template <typename Cell>
class PackedRightOf {
 public:
  PackedRightOf(const Cell* b, int64_t k, int64_t n);
  ~PackedRightOf();
  /// Strips of the step of Run that begins with that column and row of B.
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
  const PackedRightOf<Cell>* packed =
      nullptr;  ///< All of B, which is not read then; A's cells of a row lie side by side.
  double* c = nullptr;
  int64_t c_row = 0;
  /// Of floats only: C rounded to floats, as far apart; `c` is not read or written then.
  float* singles = nullptr;
  /// Of floats only: k terms of one block, the chains of which have not ended; they are in `singles`, not
  /// rounded. With `accumulate` they go on from there.
  bool open = false;
  /// Chains go on from the cells of C; those of floats are added to them, so that what C has must be of whole
  /// blocks.
  bool accumulate = false;
  bool canonical = false;  ///< End every cell with + 0.0; k must be all of its chain.
  /// Cells below the diagonal of C need not be right (they are left or overwritten). With `accumulate` they
  /// are what products of the same size and kind have left there, or as the cells above.
  bool upper_only = false;
  bool b_continues = false;  ///< The caller multiplies the rows behind those of B next.
  bool parallel = false;     ///< Blocks of rows of C are tasks of the calling arena.
  /// What the caller reads next from memory: so many cells are fetched meanwhile. Not with `parallel`.
  const Cell* ahead = nullptr;
  int64_t ahead_cells = 0;
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
