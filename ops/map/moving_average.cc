// SPDX-License-Identifier: Apache-2.0
#include "ops/map/moving_average.h"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "core/text/double_text.h"
#include "ops/frame/arrange.h"
#include "ops/frame/convert.h"
#include "ops/frame/text_column.h"
#include "ops/generate/random_stream.h"

// The order of the sums is that of SystemDS's EMAUtils, so that the cells are the same.
namespace heddle::ops {
namespace {

constexpr int64_t kSeed = 7;  // Of the weights that are tried.

using Series = std::vector<double>;
using Weights = MovingAverage::Weights;

Series Single(std::span<const double> data, const Weights& weights) {
  Series foretold(data.size());
  foretold[0] = data[0];
  for (size_t i = 1; i < data.size(); ++i) {
    const double value = std::isnan(data[i]) ? foretold[i - 1] : data[i];
    foretold[i] = weights.alpha * value + (1 - weights.alpha) * foretold[i - 1];
  }
  return foretold;
}

Series Double(std::span<const double> data, const Weights& weights) {
  Series foretold = {data[0]};
  double level = data[1], trend = data[1] - data[0];
  foretold.push_back(level + trend);
  for (size_t i = 2; i < data.size(); ++i) {
    const double value = std::isnan(data[i]) ? foretold[i - 1] : data[i];
    const double before = level;
    level = weights.alpha * value + (1 - weights.alpha) * (level + trend);
    trend = weights.beta * (level - before) + (1 - weights.beta) * trend;
    foretold.push_back(level + trend);
  }
  return foretold;
}

// What the first two seasons tell: a trend as a line, and how far each row of a season is from it.
struct Seasons {
  double intercept = 0, slope = 0;
  Series offsets;
};

Seasons FirstSeasons(std::span<const double> data, size_t frequency) {
  Series filter(frequency - 1, 1.0 / static_cast<double>(frequency));
  filter.insert(filter.begin(), 0.5 / static_cast<double>(frequency));
  filter.push_back(0.5 / static_cast<double>(frequency));
  Series trend(frequency);
  for (size_t i = 0; i < frequency; ++i)
    for (size_t j = 0; j < filter.size(); ++j) trend[i] += data[i + j] * filter[j];
  const size_t half = frequency / 2;
  Seasons seasons;
  seasons.offsets.resize(frequency);
  for (size_t i = 0; i < frequency; ++i) seasons.offsets[(i + half) % frequency] = data[half + i] - trend[i];
  double sum = 0;
  for (const double offset : seasons.offsets) sum += offset;
  const double mean = sum / static_cast<double>(frequency);
  for (double& offset : seasons.offsets) offset -= mean;
  // The line through the trend, by least squares.
  double x_sum = 0, y_sum = 0;
  for (size_t i = 0; i < frequency; ++i) {
    x_sum += static_cast<double>(i + 1);
    y_sum += trend[i];
  }
  const double x_mean = x_sum / static_cast<double>(frequency);
  const double y_mean = y_sum / static_cast<double>(frequency);
  double xx = 0, xy = 0;
  for (size_t i = 0; i < frequency; ++i) {
    const double x = static_cast<double>(i + 1) - x_mean;
    xx += x * x;
    xy += x * (trend[i] - y_mean);
  }
  seasons.slope = xy / xx;
  seasons.intercept = y_mean - seasons.slope * x_mean;
  return seasons;
}

Series Triple(std::span<const double> data, const Weights& weights, size_t frequency) {
  const Seasons seasons = FirstSeasons(data, frequency);
  Series offsets = seasons.offsets;
  double level = seasons.intercept, trend = seasons.slope;
  Series foretold(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(frequency));
  foretold.push_back(level + trend + offsets[0]);
  for (size_t i = 1; i < data.size() - frequency; ++i) {
    const double seen = data[i + frequency - 1];
    const double value = std::isnan(seen) ? foretold[i + frequency - 1] : seen;
    const double before = level;
    level = weights.alpha * (value - offsets[i - 1]) + (1 - weights.alpha) * (level + trend);
    trend = weights.beta * (level - before) + (1 - weights.beta) * trend;
    offsets.push_back(weights.gamma * (value - level) + (1 - weights.gamma) * offsets[i - 1]);
    foretold.push_back(level + trend + offsets[i]);
  }
  return foretold;
}

// Of the values that are there.
double SquaredError(std::span<const double> data, const Series& foretold) {
  double sum = 0;
  for (size_t i = 0; i < data.size(); ++i)
    if (!std::isnan(data[i])) sum += (data[i] - foretold[i]) * (data[i] - foretold[i]);
  return sum;
}

std::optional<int64_t> WholeNumberIn(std::string_view text) {
  const std::optional<double> number = ParseDouble(text);
  if (!number || std::trunc(*number) != *number || std::fabs(*number) > 1e9) return std::nullopt;
  return static_cast<int64_t>(*number);
}

}  // namespace

Result<MovingAverage> MovingAverage::Parse(std::string_view text) {
  const Status wrong = InvalidArgument(
      "map: UtilFunctions.exponentialMovingAverageImputation needs a number of trials, single, double or "
      "triple, a season and three weights: (100;triple;12;0.5;0.7;0.1)");
  const size_t open = text.find('('), close = text.find(')');
  if (open == text.npos || close == text.npos || close < open) return wrong;
  std::vector<std::string_view> parts;
  for (std::string_view rest = text.substr(open + 1, close - open - 1);;) {
    const size_t end = rest.find(';');
    parts.push_back(rest.substr(0, end));
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  if (parts.size() != 6) return wrong;
  MovingAverage average;
  const std::optional<int64_t> iterations = WholeNumberIn(parts[0]), frequency = WholeNumberIn(parts[2]);
  if (!iterations || !frequency) return wrong;
  average.iterations = *iterations;
  average.frequency = *frequency;
  if (parts[1] == "double")
    average.mode = Mode::kDouble;
  else if (parts[1] == "triple")
    average.mode = Mode::kTriple;
  else if (parts[1] != "single")
    return wrong;
  double* const weights[] = {&average.weights.alpha, &average.weights.beta, &average.weights.gamma};
  for (size_t i = 0; i < 3; ++i) {
    const std::optional<double> weight = ParseDouble(parts[3 + i]);
    if (!weight) return wrong;
    *weights[i] = *weight;
  }
  if (average.iterations < 1)
    return InvalidArgument("map: the number of trials must be at least 1, not {}", average.iterations);
  if (average.mode == Mode::kTriple && (average.frequency < 2 || average.frequency % 2 != 0))
    return InvalidArgument("map: a season has an even number of rows, not {}", average.frequency);
  return average;
}

Result<std::vector<double>> MovingAverage::Best(std::span<const double> series) const {
  const auto least = mode == Mode::kSingle ? 1 : mode == Mode::kDouble ? 2 : 2 * frequency;
  if (static_cast<int64_t>(series.size()) < least)
    return FailedPrecondition("a series of {} rows is too short, it needs {}", series.size(), least);
  const bool searches = std::isnan(weights.alpha) || (mode != Mode::kSingle && std::isnan(weights.beta)) ||
                        (mode == Mode::kTriple && std::isnan(weights.gamma));
  JavaRandom random(kSeed);
  Series best;
  double least_error = std::numeric_limits<double>::infinity();
  for (int64_t trial = 0; trial < (searches ? iterations : 1); ++trial) {
    Weights tried = weights;
    for (double* weight : {&tried.alpha, &tried.beta, &tried.gamma})
      if (std::isnan(*weight)) *weight = random.NextDouble();
    Series foretold = mode == Mode::kSingle   ? Single(series, tried)
                      : mode == Mode::kDouble ? Double(series, tried)
                                              : Triple(series, tried, static_cast<size_t>(frequency));
    const double error = SquaredError(series, foretold);
    if (trial > 0 && !(error < least_error)) continue;
    least_error = error;
    best = std::move(foretold);
  }
  return best;
}

Result<Frame> MovingAverage::Apply(const Frame& frame) const {
  auto schema = std::make_shared<Schema>();
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    Series series;
    for (int64_t i = 0; i < frame.rows(); ++i) {
      const std::optional<std::string> text = TextOfCell(frame, i, j);
      const std::optional<double> number = NumberInText(text.value_or(""));
      if (!number)
        return FailedPrecondition("map: row {} of column {}: '{}' is not a number", i + 1,
                                  frame.schema()->NameOf(j), *text);
      series.push_back(*number);
    }
    const Result<Series> best = Best(series);
    if (!best.ok())
      return FailedPrecondition("map: column {}: {}", frame.schema()->NameOf(j), best.status().message());
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfDoubles(*best));
    columns.push_back(std::move(column));
    schema->types.push_back(ColumnType::kFloat64);
  }
  schema->names = CountedNames(frame.columns());
  return Frame(std::move(schema), std::move(columns));
}

}  // namespace heddle::ops
