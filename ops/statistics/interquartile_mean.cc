// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/statistics/ranks.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferInterQuartileMean(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(CheckRankedColumns(context, "interQuartileMean", 1));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

Result<Value> RunInterQuartileMean(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const RankedColumn column, RankColumn(call, "interQuartileMean", 1));
  if (column.has_nan) return Value(Scalar(std::numeric_limits<double>::quiet_NaN()));
  double sum = 0;
  column.ForMiddleHalf([&](size_t place, double amount) {
    if (amount != 0) sum += amount * column.values[place];
  });
  return Value(Scalar(sum / (0.5 * column.total)));
}

double SortedWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 5 * sizeof(double) * static_cast<double>(inputs[0].shape.rows);
}

}  // namespace

/// interQuartileMean(X), interQuartileMean(X, W): the mean of the middle half of a column, X[i] counted W[i]
/// times; values at the ranks N/4 and 3N/4 count with the part of them that is inside.
///
/// Shapes:  X and W are n x 1; a number.
/// Value:   NaN if a cell that counts is.
/// Errors:  as quantile.
/// Order:   the values add up in ascending order.
/// Cost:    sorts a copy of X.
extern constexpr Operator kInterQuartileMean = {.name = "interQuartileMean",
                                                .form = CallForm::kPositional,
                                                .parameters = "X W?",
                                                .min_inputs = 1,
                                                .max_inputs = 2,
                                                .infer = InferInterQuartileMean,
                                                .run = RunInterQuartileMean,
                                                .may_fail = true,
                                                .working_bytes = SortedWorkingBytes,
                                                .adjoints = "*; 0",
                                                .differentiate = DifferentiateRanks};

}  // namespace heddle::ops
