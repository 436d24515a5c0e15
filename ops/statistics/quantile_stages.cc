// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/quantile_stages.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "ops/statistics/ranked_windows.h"

namespace heddle::ops {
namespace {

enum StageNumber { kFind = kWindowStages, kFinish };

// The quantiles that this rank looks up.
std::vector<double> FoundQuantiles(const StageCall& call, const QuantileRequest& request) {
  const RankedTotals totals = RankedTotals::OfRow(call.Received(0).matrix());
  const std::vector<double>& p = request.probabilities;
  const auto [first, last] = OwnPlaces(static_cast<int64_t>(p.size()), call.rank, call.ranks());
  if (totals.has_nan)
    return std::vector<double>(static_cast<size_t>(last - first), std::numeric_limits<double>::quiet_NaN());
  WindowReader reader = WindowsOf(call, totals);
  std::vector<double> quantiles;
  if (!totals.is_exact()) {
    if (call.rank != 0) return quantiles;
    const RankedColumn column = ColumnOf(reader.Next());
    for (const double one : p) quantiles.push_back(column.Quantile(one, request.averages));
    return quantiles;
  }
  for (int64_t i = first; i < last; ++i) {
    const auto [low, high] = RanksOf(p[static_cast<size_t>(i)], totals.total, request.averages);
    const MergedWindow window = reader.Next();
    quantiles.push_back(QuantileOf(window.At(low - 1).keys[0], window.At(high - 1).keys[0]));
  }
  return quantiles;
}

Status RunStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == kFinish) {
    const Value& quantiles = call.Received(0);
    outputs[0] = call.node.info.IsScalar() ? Value(Scalar(quantiles.matrix().data()[0])) : quantiles;
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const QuantileRequest request, RequestOfQuantile(call.WholeCall()));
  const ColumnOfRanks column{.name = request.name, .weights = request.weights};
  if (call.stage < kWindowStages) {
    const auto ranks = [&](double total) {
      std::vector<std::pair<double, double>> wanted;
      for (const double p : request.probabilities) wanted.push_back(RanksOf(p, total, request.averages));
      return wanted;
    };
    return FindWindows(call, column, ranks, outputs);
  }
  const std::vector<double> quantiles = FoundQuantiles(call, request);
  HEDDLE_ASSIGN_OR_RETURN(Matrix found, Matrix::Dense(static_cast<int64_t>(quantiles.size()), 1));
  std::copy(quantiles.begin(), quantiles.end(), found.mutable_data());
  outputs[0] = Value(std::move(found));
  return OkStatus();
}

constexpr Reach kOfFind[] = {Reach::kAll};
constexpr Stage kStages[] = {
    kDrawnStage, kNarrowStage, kSampleStage, kWindowStage, {.outputs = kOfFind, .reads_inputs = true}, {}};

}  // namespace

constexpr StagedForm kQuantileStages = {.stages = kStages, .result = StagedResult::kEach, .run = RunStage};

}  // namespace heddle::ops
