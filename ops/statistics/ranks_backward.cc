// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/cells/storage.h"
#include "ops/statistics/ranks.h"

namespace heddle::ops {
namespace {

enum Input { kX, kAdjoint, kW, kP };

// The operator whose adjoint it is, and its name for scripts.
std::string_view NameOf(const Node& node) { return node.Text("of"); }

Result<ValueInfo> InferRanksBackward(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(CheckRankedColumns(context, NameOf(context.node), kW));
  return ValueInfo::OfMatrix({context.inputs[kX].shape.rows, 1});
}

// What the places of the sorted column get of the adjoint.
std::vector<double> SharesOfPlaces(const KernelCall& call, const RankedColumn& column) {
  std::vector<double> shares(column.values.size(), 0.0);
  const Value& adjoint = *call.inputs[kAdjoint];
  const auto give = [&](double p, bool averages, double amount) {
    const auto [low, high] = column.PlacesOf(p, averages);
    shares[low] += 0.5 * amount;
    shares[high] += 0.5 * amount;
  };
  if (NameOf(call.node) == "interQuartileMean") {
    const double part = adjoint.scalar().AsDouble() / (0.5 * column.total);
    column.ForMiddleHalf([&](size_t place, double amount) { shares[place] += amount * part; });
  } else if (adjoint.IsScalar()) {
    give(NumberOr(call, kP, 0.5), true, adjoint.scalar().AsDouble());
  } else {
    const Matrix& p = call.inputs[kP]->matrix();
    for (int64_t i = 0; i < p.rows(); ++i) give(p.At(i, 0), false, adjoint.matrix().At(i, 0));
  }
  return shares;
}

Result<Value> RunRanksBackward(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const RankedColumn column, RankColumn(call, NameOf(call.node), kW));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix x, AsDense(call.inputs[kX]->matrix()));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(x.rows(), 1, column.has_nan ? nan : 0));
  if (column.has_nan) return Value(std::move(result));
  std::vector<double> shares = SharesOfPlaces(call, column);
  // Cells of one value share what their places get, each as often as it counts: at the first of these places
  // stands what a count of 1 gets.
  for (size_t begin = 0, end = 0; begin < shares.size(); begin = end) {
    double sum = 0, count = 0;
    for (; end < shares.size() && column.values[end] == column.values[begin]; ++end) {
      sum += shares[end];
      count += column.weights[end];
    }
    shares[begin] = sum / count;
  }
  const Value* const weights = call.inputs[kW];
  for (int64_t i = 0; i < x.rows(); ++i) {
    const double count = weights == nullptr ? 1 : weights->matrix().At(i, 0);
    if (count == 0) continue;
    const auto first = std::lower_bound(column.values.begin(), column.values.end(), x.data()[i]);
    result.mutable_data()[i] = count * shares[static_cast<size_t>(first - column.values.begin())];
  }
  return Value(std::move(result));
}

double RanksWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 6 * sizeof(double) * static_cast<double>(inputs[kX].shape.rows);
}

}  // namespace

void DifferentiateRanks(AdjointCall& call) {
  const Node& node = call.node();
  const bool has_p = node.Is("quantile") || node.Is("weightedQuantile");
  const bool weighted = IsGiven(node, 1) && !node.Is("quantile");
  const size_t p = node.inputs.size() - 1;
  call.Give(0, call.Add("ranks_backward",
                        {call.Input(0), call.Adjoint(), weighted ? call.Input(1) : kNoNode,
                         has_p ? call.Input(p) : kNoNode},
                        {{"of", Scalar(std::string(node.Is("weightedQuantile") ? "quantile" : node.op))}}));
}

/// ranks_backward(X, dy, W, p): the adjoint of X of the order statistic that attribute "of" names. It goes to
/// the cells whose values the statistic has taken, half to each of two; cells that are equal share it, each
/// as often as it counts.
///
/// Shapes:  as of quantile, median, interQuartileMean; W and p may be left out; the result is n x 1.
/// Value:   NaN in all cells if a cell that counts is.
/// Errors:  as quantile.
/// Cost:    sorts a copy of X.
extern constexpr Operator kRanksBackward = {.name = "ranks_backward",
                                            .parameters = "X dy W? p?",
                                            .min_inputs = 2,
                                            .max_inputs = 4,
                                            .infer = InferRanksBackward,
                                            .run = RunRanksBackward,
                                            .may_fail = true,
                                            .working_bytes = RanksWorkingBytes};

}  // namespace heddle::ops
