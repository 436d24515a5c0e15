// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/aggregate/aggregate.h"
#include "ops/aggregate/wide_leaves.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/reduction/wide_number.h"

// What a node of the reduction tree holds, in wide numbers: how leaves make it, how nodes join, which result
// the root gives, and where its numbers are in the doubles of a partial value.
namespace heddle::ops {

/// What a node holds of some results: of each its lanes (lane r of result k at r * results + k), or means and
/// then squares.
struct WidePayload {
  double count = 0;
  std::vector<WideNumber> numbers;
};

/// The payload of the node above nodes a and b; `moments`: of means and squares.
WidePayload JoinPayloads(bool moments, WidePayload a, const WidePayload& b);

/// Joins payloads that come in the order of their leaves (docs/numerics.md, section 2).
class WideTree {
 public:
  explicit WideTree(bool moments) : moments_(moments) {}
  void Push(int64_t leaf, WidePayload payload) {
    while (stack_.size() >= 2 && CommonLevel(stack_[stack_.size() - 2].first, stack_.back().first) <
                                     CommonLevel(stack_.back().first, leaf))
      JoinTop();
    stack_.emplace_back(leaf, std::move(payload));
  }
  bool IsEmpty() const { return stack_.empty(); }
  WidePayload Finish() {
    while (stack_.size() > 1) JoinTop();
    WidePayload root = std::move(stack_.back().second);
    stack_.clear();
    return root;
  }

 private:
  void JoinTop() {
    WidePayload right = std::move(stack_.back().second);
    stack_.pop_back();
    stack_.back().second = JoinPayloads(moments_, std::move(stack_.back().second), right);
  }
  const bool moments_;
  std::vector<std::pair<int64_t, WidePayload>> stack_;
};

/// L over the lanes of result k of so many results.
WideNumber JoinLanes(const std::vector<WideNumber>& numbers, size_t k, size_t results);

/// The aggregates of some columns of the matrices that leaves are.
class WideLeaves {
 public:
  /// `columns`: those wanted, ascending, of so many.
  WideLeaves(AggregateKind kind, int64_t lanes, int64_t all_columns, std::vector<int64_t> columns)
      : moments_(IsSpread(kind)), lanes_(lanes), all_(all_columns), columns_(std::move(columns)) {
    if (all_ == 1) return;
    number_of_.assign(static_cast<size_t>(all_), -1);
    for (size_t k = 0; k < columns_.size(); ++k)
      number_of_[static_cast<size_t>(columns_[k])] = static_cast<int64_t>(k);
  }

  bool moments() const { return moments_; }
  WidePayload Make(const LeafCells& cells) const;

 private:
  template <typename Term>
  std::vector<WideNumber> Sum(const LeafCells& cells, const Term& term) const;

  const bool moments_;
  const int64_t lanes_, all_;
  const std::vector<int64_t> columns_;
  std::vector<int64_t> number_of_;  // By column: its place among those wanted, or -1.
};

/// Result k of a root; `cells` are those that it adds up.
double ResultOf(AggregateKind kind, const WidePayload& root, size_t k, size_t results, double cells);

/// Columns in which each result of a column aggregate has eight lanes; of more it has one.
constexpr int64_t kMostColumnsOfLanes = 8;

/// How many results there are, and how many lanes each has in a leaf.
inline int64_t ResultsOf(const SumsOfMatrix& sums) {
  return sums.scope == AggregateScope::kFull ? 1 : sums.columns;
}
inline int64_t LanesOf(const SumsOfMatrix& sums) {
  if (sums.scope == AggregateScope::kFull) return 8;
  return sums.columns <= kMostColumnsOfLanes && !sums.is_part ? 8 : 1;
}

/// Calls visit(place, index) for the numbers of result r in a payload of doubles: where each is there,
/// and in WidePayload::numbers.
template <typename Visit>
void EachPlace(const SumsOfMatrix& sums, int64_t r, const Visit& visit) {
  const int64_t results = ResultsOf(sums);
  const bool moments = IsSpread(sums.kind);
  const int64_t count = moments ? 2 : LanesOf(sums);
  for (int64_t i = 0; i < count; ++i) visit(sums.offset + (moments ? 1 : 0) + i * results + r, i);
}

/// The node of a row of a partial value.
inline TreeNode NodeOf(const double* row) { return {static_cast<int64_t>(row[0]), static_cast<int>(row[1])}; }

/// Whether none of any number of results is infinite or NaN: on all threads where they are many.
bool AreFinite(const double* numbers, int64_t count);

}  // namespace heddle::ops
