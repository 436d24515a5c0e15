// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ops/aggregate/aggregate.h"
#include "ops/compressed/fold_columns.h"

// Aggregates of compressed matrices from codes and dictionaries (docs/compression.md): sums and means where
// every order of addition has the same bits, minima and maxima. Partial values are those of `run` to the last
// bit for sums, and finish to the same bits for extremes.
namespace heddle::ops {

/// Operator::run_compressed of all aggregates; leaves what adds up inexactly, and spreads, products, indexes.
Result<std::optional<Value>> RunAggregateOfCodes(const KernelCall& call);

/// Codes whose cells CodedColumns folds in the time that a cell takes, about; of extremes it reads few.
constexpr int64_t CodesOfCell(AggregateKind kind) {
  return kind == AggregateKind::kMinimum || kind == AggregateKind::kMaximum ? 64 : 4;
}

/// The columns of a compressed matrix without uncompressed groups, of which RunAggregateOfCodes has found out
/// that they may be folded in any order. Not changed by folding: for all threads.
class CodedColumns {
 public:
  CodedColumns(AggregateKind kind, const Matrix& x);
  /// totals[c * n + j] = the fold of column j of the rows i of [begin, end) of x for which (i - begin) mod
  /// classes is c; of minima and maxima in class 0, whatever the row. `classes`: 1, 2, 4 or 8.
  void Fold(int64_t begin, int64_t end, int classes, double* totals) const;

 private:
  const Matrix& x_;
  const simd::Fold fold_;
  std::vector<std::unique_ptr<const TupleSums>> sums_;  // Of each group.
  std::vector<std::unique_ptr<const TupleExtremes>> extremes_;
};

}  // namespace heddle::ops
