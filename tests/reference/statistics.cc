// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace heddle::ops::reference {
namespace {

double WeightAt(const Matrix* weights, int64_t i, int64_t j) {
  return weights == nullptr ? 1 : weights->At(i, j);
}

// Every value as often as it counts, ascending, each with its row.
std::vector<std::pair<double, int64_t>> Expanded(const Matrix& x, const Matrix* weights) {
  std::vector<std::pair<double, int64_t>> values;
  for (int64_t i = 0; i < x.rows(); ++i)
    values.insert(values.end(), static_cast<size_t>(WeightAt(weights, i, 0)), {x.At(i, 0), i});
  std::stable_sort(values.begin(), values.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return values;
}

bool HasNaN(const std::vector<std::pair<double, int64_t>>& values) {
  return std::any_of(values.begin(), values.end(), [](const auto& value) { return std::isnan(value.first); });
}

// How much of each of n sorted values there is in their quantile.
std::vector<double> PartsInQuantile(size_t n, double p, bool averages) {
  std::vector<double> parts(n, 0.0);
  const double rank = p * static_cast<double>(n);
  const auto last = static_cast<int64_t>(n) - 1, below = static_cast<int64_t>(std::floor(rank + 0x1p-50));
  const bool is_whole = rank <= static_cast<double>(below);
  const auto at = [&](int64_t i) -> double& {
    return parts[static_cast<size_t>(std::clamp<int64_t>(i, 0, last))];
  };
  at(is_whole ? below - 1 : averages ? below : static_cast<int64_t>(std::ceil(rank)) - 1) += 0.5;
  at(averages ? below : static_cast<int64_t>(std::ceil(rank)) - 1) += 0.5;
  return parts;
}

std::vector<double> PartsInMiddleHalf(size_t n) {
  std::vector<double> parts;
  const auto count = static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) {
    const auto begin = static_cast<double>(i);
    const double inside = std::min(begin + 1, 0.75 * count) - std::max(begin, 0.25 * count);
    parts.push_back(std::max(0.0, inside) / (count / 2));
  }
  return parts;
}

double SumOf(const std::vector<std::pair<double, int64_t>>& values, const std::vector<double>& parts) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (parts[i] != 0) sum += parts[i] * values[i].first;
  return sum;
}

}  // namespace

double Quantile(const Matrix& x, const Matrix* weights, double p, bool may_average) {
  const auto values = Expanded(x, weights);
  if (HasNaN(values)) return std::numeric_limits<double>::quiet_NaN();
  return SumOf(values, PartsInQuantile(values.size(), p, may_average));
}

double InterQuartileMean(const Matrix& x, const Matrix* weights) {
  const auto values = Expanded(x, weights);
  if (HasNaN(values)) return std::numeric_limits<double>::quiet_NaN();
  return SumOf(values, PartsInMiddleHalf(values.size()));
}

Matrix RanksAdjoint(std::string_view of, const Matrix& x, const Matrix* weights, const Value* p,
                    const Value& adjoint) {
  const auto values = Expanded(x, weights);
  Matrix result = *FilledMatrix(x.rows(), 1, HasNaN(values) ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  if (HasNaN(values)) return result;
  std::vector<double> parts(values.size(), 0.0);
  const auto add = [&](const std::vector<double>& more, double factor) {
    for (size_t i = 0; i < parts.size(); ++i) parts[i] += factor * more[i];
  };
  if (of == "interQuartileMean") {
    add(PartsInMiddleHalf(values.size()), adjoint.scalar().AsDouble());
  } else if (adjoint.IsScalar()) {
    add(PartsInQuantile(values.size(), p == nullptr ? 0.5 : p->scalar().AsDouble(), true),
        adjoint.scalar().AsDouble());
  } else {
    for (int64_t i = 0; i < p->matrix().rows(); ++i)
      add(PartsInQuantile(values.size(), p->matrix().At(i, 0), false), adjoint.matrix().At(i, 0));
  }
  for (const auto& [value, row] : values) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].first != value) continue;
      sum += parts[i];
      count += 1;
    }
    result.mutable_data()[row] += sum / count;
  }
  return result;
}

double Moment(const Matrix& x, const Matrix* weights, int64_t k) {
  double count = 0, mean = 0, sum = 0;
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j) count += WeightAt(weights, i, j);
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j) mean += WeightAt(weights, i, j) * x.At(i, j) / count;
  if (k == 0) return mean;
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j)
      sum += WeightAt(weights, i, j) * std::pow(x.At(i, j) - mean, static_cast<double>(k));
  return sum / count;
}

double Covariance(const Matrix& a, const Matrix& b, const Matrix* weights) {
  const double mean_a = Moment(a, weights, 0), mean_b = Moment(b, weights, 0);
  double count = 0, sum = 0;
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.columns(); ++j) {
      count += WeightAt(weights, i, j);
      sum += WeightAt(weights, i, j) * (a.At(i, j) - mean_a) * (b.At(i, j) - mean_b);
    }
  return count > 1 ? sum / (count - 1) : 0;
}

Matrix Histograms(const Matrix& g, const Matrix& b, const Matrix& w, int64_t groups, int64_t bins) {
  Matrix result = *FilledMatrix(w.columns() * groups, b.columns() * bins, 0);
  for (int64_t s = 0; s < w.columns(); ++s)
    for (int64_t i = 0; i < b.rows(); ++i)
      for (int64_t j = 0; j < b.columns(); ++j) {
        const double group = std::trunc(g.At(i, 0)), bin = std::trunc(b.At(i, j));
        if (!(group >= 1 && group <= static_cast<double>(groups) && bin >= 1 &&
              bin <= static_cast<double>(bins)))
          continue;
        const int64_t row = s * groups + static_cast<int64_t>(group) - 1;
        const int64_t column = j * bins + static_cast<int64_t>(bin) - 1;
        result.mutable_data()[row * result.columns() + column] += w.At(i, s);
      }
  return result;
}

}  // namespace heddle::ops::reference
