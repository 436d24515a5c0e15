// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/operator.h"

// What the order statistics share: a column in ascending order, each value so often as its weight says.
namespace heddle::ops {

/// kInvalidArgument unless input 0 can be a column and input `weights`, where it is given, a column as long.
/// `name` is the function as scripts know it.
Status CheckRankedColumns(const InferContext& context, std::string_view name, int weights);

/// A column sorted ascending, NaN last (as order() has it), with whole weights.
struct RankedColumn {
  std::vector<double> values;
  std::vector<double> weights;
  double total = 0;  ///< Sum of the weights: the number of values.

  /// Value of rank 1 <= rank <= total. With `averages` the mean of that rank and the next where a value ends
  /// at this rank, another follows, and the rank is below the number of rows (language reference 3.6).
  double AtRank(double rank, bool averages) const;
  /// The value at ceil(p * total), averaged where `may_average`, the total is even and this is a rank.
  double Quantile(double p, bool may_average) const;
};

/// Of input 0 with the weights of input `weights`, or 1 each where that is -1 or left out.
/// kFailedPrecondition for what is no column, no rows, weights that are no counts.
Result<RankedColumn> RankColumn(const KernelCall& call, std::string_view name, int weights);

}  // namespace heddle::ops
