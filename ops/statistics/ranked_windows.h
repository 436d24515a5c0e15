// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/base/stages.h"
#include "ops/cells/global_places.h"
#include "ops/statistics/ranks.h"

// Values at some ranks of a column that lies on several ranks of the job, which stays where it is: only
// samples, and what is between two of them, travel (ops/cells/global_places.h). How often a value counts is
// its weight there. These are the first two stages of every order statistic.
//
// Weights whose sum is 2^53 or more have a sum that depends on the order in which they are added: all values
// and weights go to rank 0 then, which adds them up as a whole column does. Weights of which few are much
// larger than all others may leave many values between two samples.
namespace heddle::ops {

/// Of which column.
struct ColumnOfRanks {
  std::string_view name;  ///< The function as scripts know it.
  int weights = -1;       ///< The input that holds weights, if it is given.
};

/// What all ranks know of the column after the first stage.
struct RankedTotals {
  double total = 0;  ///< The sum of the weights: the number of values.
  bool has_nan = false;
  bool is_weighted = false;

  /// Whether the total, and what is part of it, is exact.
  bool is_exact() const { return total < 0x1p53; }
  /// Without weights, equal values are the same bytes, so -0.0 and 0.0 have an order. With weights they are
  /// in the order of their rows (RankColumn).
  KeyOrder order() const { return {.zeros_differ = !is_weighted}; }
  Result<Value> ToRow() const;
  static RankedTotals OfRow(const Matrix& row);
};

/// The first four stages of an order statistic find the windows of some ranks, counted from 1: `ranks` tells
/// for each window the lowest and the highest that must be in it.
///   1. Each rank tells all others some of its cells, drawn by their rows.
///   2. Between which values the windows are is guessed from these, with room to spare: each rank keeps its
///      cells between them, and tells all how many it has of those and in front of them.
///   3. Where the guess was right, the samples of global_places.h are of these cells; else, and of a column
///      with weights, of all.
///   4. Windows go to the ranks that look them up (OwnPlaces): kHere the totals, kHere the sorted values with
///      their weights if they have any, kParts windows. No windows of a column with NaN; one of all values,
///      to rank 0, where the total is not exact, with the weights alone in place of sums of weights.
using RanksOfTotal = std::function<std::vector<std::pair<double, double>>(double total)>;
Status FindWindows(const StageCall& call, const ColumnOfRanks& column, const RanksOfTotal& ranks,
                   std::span<Value> outputs);
inline constexpr int kWindowStages = 4;
inline constexpr Reach kDrawnOutputs[] = {Reach::kAll}, kNarrowOutputs[] = {Reach::kHere, Reach::kAll},
                       kSampleOutputs[] = {Reach::kHere, Reach::kHere, Reach::kAll, Reach::kAll},
                       kWindowOutputs[] = {Reach::kHere, Reach::kHere, Reach::kParts};
inline constexpr Stage kDrawnStage = {.outputs = kDrawnOutputs, .reads_inputs = true},
                       kNarrowStage = {.outputs = kNarrowOutputs, .reads_inputs = true},
                       kSampleStage = {.outputs = kSampleOutputs, .reads_inputs = true},
                       kWindowStage = {.outputs = kWindowOutputs, .reads_inputs = true};

/// Reads the windows in the stage behind them.
WindowReader WindowsOf(const StageCall& call, const RankedTotals& totals);
/// The column of a window of all values.
RankedColumn ColumnOf(const MergedWindow& all);

/// Rows of a value and its weight, in their order.
class WeightedValues final : public RankElements {
 public:
  explicit WeightedValues(const Matrix& rows);
  int64_t count() const override { return rows_.rows(); }
  double Key(int64_t element, size_t) const override { return rows_.data()[2 * element]; }
  double Before(int64_t element) const override { return before_[static_cast<size_t>(element)]; }
  double Weight(int64_t element) const { return rows_.data()[2 * element + 1]; }

 private:
  const Matrix& rows_;
  std::vector<double> before_;
};

}  // namespace heddle::ops
