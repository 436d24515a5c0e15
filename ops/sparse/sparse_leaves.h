// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"
#include "ops/reduction/reduction_tree.h"

// Sums whose leaves touch few places of a wide payload: column sums and t(X) %*% Y of a sparse X.
namespace heddle::ops {

/// A place is `cells` results side by side: cell c becomes fma(value, weights[c], cell c).
struct SparseTerm {
  int32_t place;
  int32_t weights;  ///< Number of a Weigh(), or of a row that WeighByRow() names.
  double value;
};

/// Where cell c of place j lies in a payload.
enum class PlaceLayout : uint8_t {
  kCellsApart,     ///< c * places + j
  kCellsTogether,  ///< j * cells + c
};

/// What one leaf adds, in the order in which it does.
class SparseLeaf {
 public:
  explicit SparseLeaf(int64_t cells) : cells_(cells) {}
  void Clear() {
    terms_.clear();
    weights_.clear();
    rows_ = nullptr;
    last_ = -1;
  }
  /// The weights of the terms that follow, one for each cell of a place; they are copied.
  void Weigh(const double* weights) {
    for (int64_t c = 0; c < cells_; ++c) weights_.push_back(weights[c]);
    ++last_;
  }
  /// In place of all Weigh(): the weights are rows of `cells` numbers that outlive the reduction. They are
  /// not copied.
  void WeighByRowsOf(const double* rows) { rows_ = rows; }
  /// The row that weighs the terms that follow.
  void WeighByRow(int64_t row) { last_ = static_cast<int32_t>(row); }
  void Add(int64_t place, double value) { terms_.push_back({static_cast<int32_t>(place), last_, value}); }
  void Reserve(int64_t terms) { terms_.reserve(terms_.size() + static_cast<size_t>(terms)); }
  /// Terms of one weight, at columns[e] for entries [first, last).
  void AddEntries(const int32_t* columns, const double* values, int64_t first, int64_t last) {
    for (int64_t e = first; e < last; ++e) Add(columns[e], values[e]);
  }

  const std::vector<SparseTerm>& terms() const { return terms_; }
  /// Those that were copied, and the rows in their place, or nullptr.
  const std::vector<double>& weights() const { return weights_; }
  const double* rows() const { return rows_; }

 private:
  int64_t cells_;
  int32_t last_ = -1;  // Of the weights.
  std::vector<SparseTerm> terms_;
  std::vector<double> weights_;
  const double* rows_ = nullptr;
};

/// Appends what a leaf adds; the leaf's terms are empty before.
using SparseLeafFunction = std::function<void(int64_t leaf, SparseLeaf& terms)>;

/// ReduceLeaves of sums by their terms: time and memory of the terms, and of one pass over each payload.
/// `whole`: there are no other leaves, and the partial value has one node.
///
/// Terms are sorted by blocks of places that fit a cache, as a radix sort does; in each block every place has
/// a tree of its own over the leaves that touch it, since leaves that do not are missing from it, which
/// changes nothing (docs/numerics.md R2).
Result<Matrix> ReduceSparseLeaves(const Reduction& reduction, int64_t cells, int64_t begin, int64_t end,
                                  bool whole, const SparseLeafFunction& leaf,
                                  PlaceLayout layout = PlaceLayout::kCellsApart);

/// True if that is the cheaper way to add `terms` terms to `leaves` payloads of so many places, each of so
/// many cells.
bool AreSparseLeaves(int64_t terms, int64_t leaves, int64_t places, int64_t cells);

}  // namespace heddle::ops
