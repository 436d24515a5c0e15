// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

// t(X) %*% Y of floats with more than 8 columns of Y, row after row (docs/numerics.md, section 9).
namespace heddle::ops {

/// The chains of floats of one panel that have not ended yet, for a payload of n x k sums in doubles. Rows
/// come in their order, in pieces of any size; a block of kSingleBlock rows ends its chains.
class TransposedSingles {
 public:
  /// `symmetric`: Y is X, and cells below the diagonal need not be right.
  TransposedSingles(int64_t n, int64_t k, bool symmetric = false);

  /// Rows of dense X and Y; `row` is the place of the first in its panel. Blocks that end are added to
  /// `payload`.
  void Add(const float* x, int64_t x_stride, const float* y, int64_t y_stride, int64_t rows, int64_t row,
           double* payload);

  /// The same cell by cell. BeginRow before the first cell of each row; then for each cell (i, j) of X that
  /// is there the chains of column j of X, `k` of them, to be gone on with.
  void BeginRow(int64_t row, double* payload);
  float* ChainsOf(int64_t j);
  /// chains[c] = fma(x, y[c], chains[c]) for c < k.
  static void AddCell(float x, const float* y, int64_t k, float* chains);

  /// Ends all chains: the panel has no more rows.
  void End(double* payload);

 private:
  int64_t n_, k_;
  bool symmetric_;
  bool all_open_ = false;            // Rows of dense X touch all chains.
  std::vector<float> chains_;        // n x k; zeros where nothing is open.
  std::vector<uint8_t> is_touched_;  // Of each column of X.
  std::vector<int64_t> touched_;     // Those that are.
};

}  // namespace heddle::ops
