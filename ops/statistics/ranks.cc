// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/base/arguments.h"
#include "ops/cells/storage.h"
#include "ops/statistics/select_ranks.h"

namespace heddle::ops {
namespace {

Status CheckColumn(std::string_view op, const Shape& shape, StatusCode code) {
  if (shape.columns == kUnknown || shape.columns == 1) return OkStatus();
  return Status(code, fmt::format("{}: needs a column vector, got {}", op, shape))
      .WithNote(shape.rows == 1 ? "t(x) makes a column of a row" : "X[,1] is the first column");
}

Status CheckWeights(std::string_view op, const Shape& shape, const Shape& weights, StatusCode code) {
  const auto fits = [](int64_t a, int64_t b) { return a == kUnknown || b == kUnknown || a == b; };
  if (fits(shape.rows, weights.rows) && fits(shape.columns, weights.columns)) return OkStatus();
  return Status(code, fmt::format("{}: the weights are {} beside values of {}", op, weights, shape));
}

bool HasWeights(const KernelCall& call, int weights) {
  return weights >= 0 && static_cast<size_t>(weights) < call.inputs.size() &&
         call.inputs[static_cast<size_t>(weights)] != nullptr;
}

Result<Matrix> CellsOfColumn(const KernelCall& call, std::string_view name) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckRankedSizes(name, x.shape(), nullptr));
  return AsDense(x);
}

}  // namespace

Status CheckRankedColumns(const InferContext& context, std::string_view name, int weights) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const Shape& shape = context.inputs[0].shape;
  HEDDLE_RETURN_IF_ERROR(CheckColumn(name, shape, StatusCode::kInvalidArgument));
  if (weights < 0 || !IsGiven(context.node, weights)) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, weights, "the weights"));
  return CheckWeights(name, shape, context.inputs[static_cast<size_t>(weights)].shape,
                      StatusCode::kInvalidArgument);
}

Status CheckRankedSizes(std::string_view name, const Shape& x, const Shape* weights) {
  HEDDLE_RETURN_IF_ERROR(CheckColumn(name, x, StatusCode::kFailedPrecondition));
  if (x.rows == 0) return FailedPrecondition("{}: the column has no rows", name);
  return weights == nullptr ? OkStatus() : CheckWeights(name, x, *weights, StatusCode::kFailedPrecondition);
}

Status CheckCount(std::string_view name, double weight) {
  if (weight >= 0 && weight < 0x1p53 && std::floor(weight) == weight) return OkStatus();
  return FailedPrecondition("{}: weights are counts, but one is {}", name, Scalar(weight).ToText());
}

size_t RankedColumn::PlaceOfRank(double rank) const {
  size_t i = 0;
  double reached = weights[0];
  while (reached < rank && i + 1 < values.size()) reached += weights[++i];
  return i;
}

// Hyndman, Fan, Sample quantiles in statistical packages (1996), definitions 1 and 2. R allows a product a
// few units in the last place below a whole number, 3 of 0.3 * 10, to be that number.
std::pair<double, double> RanksOf(double p, double total, bool averages) {
  constexpr double kFuzz = 4 * std::numeric_limits<double>::epsilon();
  const double rank = p * total;
  const auto within = [&](double wanted) { return std::clamp(wanted, 1.0, total); };
  if (!averages) return {within(std::ceil(rank)), within(std::ceil(rank))};
  const double below = std::floor(rank + kFuzz);
  const double next = within(below + 1);
  return {rank > below ? next : within(below), next};
}

std::pair<size_t, size_t> RankedColumn::PlacesOf(double p, bool averages) const {
  const auto [low, high] = RanksOf(p, total, averages);
  return {PlaceOfRank(low), PlaceOfRank(high)};
}

double QuantileOf(double low, double high) { return low == high ? low : std::midpoint(low, high); }

double RankedColumn::Quantile(double p, bool averages) const {
  const auto [low, high] = PlacesOf(p, averages);
  return QuantileOf(values[low], values[high]);
}

Result<std::vector<double>> Quantiles(const KernelCall& call, const QuantileRequest& request) {
  const std::vector<double>& probabilities = request.probabilities;
  std::vector<double> quantiles(probabilities.size(), std::numeric_limits<double>::quiet_NaN());
  if (HasWeights(call, request.weights)) {
    HEDDLE_ASSIGN_OR_RETURN(const RankedColumn column, RankColumn(call, request.name, request.weights));
    for (size_t i = 0; i < quantiles.size() && !column.has_nan; ++i)
      quantiles[i] = column.Quantile(probabilities[i], request.averages);
    return quantiles;
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, CellsOfColumn(call, request.name));
  std::vector<int64_t> places;
  const auto place = [&](double rank) { return static_cast<int64_t>(rank) - 1; };
  for (const double p : probabilities) {
    const auto [low, high] = RanksOf(p, static_cast<double>(cells.rows()), request.averages);
    places.insert(places.end(), {place(low), place(high)});
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  const std::vector<double> selected = SelectRanks({cells.data(), static_cast<size_t>(cells.rows())}, places);
  if (selected.empty()) return quantiles;
  const auto value = [&](double rank) {
    return selected[static_cast<size_t>(std::lower_bound(places.begin(), places.end(), place(rank)) -
                                        places.begin())];
  };
  for (size_t i = 0; i < quantiles.size(); ++i) {
    const auto [low, high] = RanksOf(probabilities[i], static_cast<double>(cells.rows()), request.averages);
    quantiles[i] = QuantileOf(value(low), value(high));
  }
  return quantiles;
}

Result<RankedColumn> RankColumn(const KernelCall& call, std::string_view name, int weights) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, CellsOfColumn(call, name));
  const auto n = static_cast<size_t>(cells.rows());
  RankedColumn column{.values = std::vector<double>(cells.data(), cells.data() + n)};
  const auto has_nan = [](const std::vector<double>& values) {
    return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  };
  if (!HasWeights(call, weights)) {
    column.has_nan = has_nan(column.values);
    if (!column.has_nan) std::sort(column.values.begin(), column.values.end());
    column.weights.assign(n, 1.0);
    column.total = static_cast<double>(n);
    return column;
  }
  const Matrix& w = call.inputs[static_cast<size_t>(weights)]->matrix();
  const Shape shape_of_weights = w.shape();
  HEDDLE_RETURN_IF_ERROR(CheckRankedSizes(name, cells.shape(), &shape_of_weights));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix counts, AsDense(w));
  std::vector<size_t> order;
  column.values.clear();
  for (size_t i = 0; i < n; ++i) {
    const double count = counts.data()[i];
    HEDDLE_RETURN_IF_ERROR(CheckCount(name, count));
    if (count > 0) order.push_back(i);
  }
  for (const size_t i : order) column.values.push_back(cells.data()[i]);
  column.has_nan = has_nan(column.values);
  if (!column.has_nan)
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return cells.data()[a] < cells.data()[b]; });
  for (size_t k = 0; k < order.size(); ++k) {
    column.values[k] = cells.data()[order[k]];
    column.weights.push_back(counts.data()[order[k]]);
    column.total += column.weights[k];
  }
  if (column.total == 0) return FailedPrecondition("{}: all weights are 0", name);
  return column;
}

}  // namespace heddle::ops
