// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/base/operator.h"

// What the order statistics share: a column in ascending order, each value so often as its weight says.
namespace heddle::ops {

/// kInvalidArgument unless input 0 can be a column and input `weights`, where it is given, a column as long.
/// `name` is the function as scripts know it.
Status CheckRankedColumns(const InferContext& context, std::string_view name, int weights);

/// The same of sizes that are known, while running: kFailedPrecondition, also for a column without rows.
/// `weights` is nullptr where there are none.
Status CheckRankedSizes(std::string_view name, const Shape& x, const Shape* weights);

/// kFailedPrecondition unless the weight is a count.
Status CheckCount(std::string_view name, double weight);

/// The ranks, whole numbers from 1 to `total`, of the values whose mean is the quantile for p of `total`
/// values; twice the same where it is one of them. With `averages` as R's type 2, where p * total is whole
/// the values at this rank and the next; else always that at rank ceil(p * total), R's type 1.
std::pair<double, double> RanksOf(double p, double total, bool averages);

/// The quantile of the values at two such ranks.
double QuantileOf(double low, double high);

/// The cells of a column that count, sorted ascending, with whole positive weights.
struct RankedColumn {
  std::vector<double> values;
  std::vector<double> weights;
  double total = 0;      ///< Sum of the weights: the number of values.
  bool has_nan = false;  ///< A cell that counts is NaN; it has no rank, so every order statistic is NaN.

  /// The quantile for p.
  double Quantile(double p, bool averages) const;
  /// Places in `values` of RanksOf(p, total, averages). `values` has no NaN.
  std::pair<size_t, size_t> PlacesOf(double p, bool averages) const;
  /// Calls add(place, amount) for the values of the middle half: the rank from a quarter of the total to
  /// three quarters, values at its ends with the part of them that is inside. Ascending; a value at an end is
  /// counted whole first, and what is outside taken off by a second call.
  template <typename Add>
  void ForMiddleHalf(const Add& add) const;

 private:
  size_t PlaceOfRank(double rank) const;
};

/// Of input 0 with the weights of input `weights`, or 1 each where that is -1 or left out.
/// kFailedPrecondition for what is no column, no rows, weights that are no counts.
Result<RankedColumn> RankColumn(const KernelCall& call, std::string_view name, int weights);

/// What a call of quantile(), weightedQuantile() or median() asks for.
struct QuantileRequest {
  std::string_view name;              ///< The function as scripts know it.
  int weights = -1;                   ///< The input, as above.
  std::vector<double> probabilities;  ///< From 0 to 1.
  bool averages = false;              ///< As of RanksOf().
};

/// The quantiles of input 0: means of the values at RanksOf(), NaN of a column with NaN.
Result<std::vector<double>> Quantiles(const KernelCall& call, const QuantileRequest& request);

/// Of quantile, median and interQuartileMean: by the operator ranks_backward (ranks_backward.cc).
void DifferentiateRanks(AdjointCall& call);

template <typename Add>
void RankedColumn::ForMiddleHalf(const Add& add) const {
  const double first = 0.25 * total, third = 0.75 * total;
  size_t i = 0;
  double reached = weights[0];
  const auto go_to = [&](double rank, const auto& visit) {
    while (reached < std::ceil(rank) && i + 1 < values.size()) {
      reached += weights[++i];
      visit();
    }
  };
  go_to(first, [] {});
  add(i, reached - first);
  go_to(third, [&] { add(i, weights[i]); });
  add(i, third - reached);
}

}  // namespace heddle::ops
