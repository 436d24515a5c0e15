// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ops/aggregate/aggregate.h"
#include "ops/cells/decode_tile.h"
#include "ops/compressed/fold_columns.h"

// Aggregates of compressed matrices (docs/compression.md): where the order of cells cannot be seen from codes
// and dictionaries, minima and maxima and sums that are exact; elsewhere from tiles of decoded rows. Partial
// values of sums and products are those of `run` to the last bit, those of extremes finish to the same bits.
namespace heddle::ops {

/// Operator::run_compressed of all aggregates; leaves spreads of all cells and of columns, and the trace.
Result<std::optional<Value>> RunAggregateOfCodes(const KernelCall& call);

/// Whether the columns of a compressed matrix may be folded in any order, by CodedColumns.
bool FoldsInAnyOrder(const Aggregate& aggregate, const Matrix& x);

/// Codes whose cells CodedColumns folds in the time that a cell takes, about; of extremes it reads few.
constexpr int64_t CodesOfCell(AggregateKind kind) {
  return kind == AggregateKind::kMinimum || kind == AggregateKind::kMaximum ? 64 : 4;
}

/// The columns of a compressed matrix that FoldsInAnyOrder. Not changed by folding: for all threads.
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

/// The cells of a compressed matrix as doubles, tile by tile. For all threads.
class DecodedCells {
 public:
  explicit DecodedCells(const Matrix& x);
  /// Calls body(cells, rows) for the rows [begin, end) of x, row-major without gaps, in their order: a
  /// multiple of eight of them but for the last.
  void ForTiles(int64_t begin, int64_t end,
                const std::function<void(const double* cells, int64_t rows)>& body) const;

 private:
  int64_t columns_;
  std::optional<TileDecoder<double>> doubles_;
  std::optional<TileDecoder<float>> floats_;
};

}  // namespace heddle::ops
