// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace heddle::ops::reference {
namespace {

double WeightAt(const Matrix* weights, int64_t i, int64_t j) {
  return weights == nullptr ? 1 : weights->At(i, j);
}

// Every value as often as it counts, ascending, each with the place of its row in that order.
std::vector<std::pair<double, int64_t>> Expanded(const Matrix& x, const Matrix* weights) {
  std::vector<std::pair<double, double>> rows;
  for (int64_t i = 0; i < x.rows(); ++i) rows.emplace_back(x.At(i, 0), WeightAt(weights, i, 0));
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.first < b.first || (std::isnan(b.first) && !std::isnan(a.first));
  });
  std::vector<std::pair<double, int64_t>> values;
  for (size_t i = 0; i < rows.size(); ++i)
    values.insert(values.end(), static_cast<size_t>(rows[i].second),
                  {rows[i].first, static_cast<int64_t>(i)});
  return values;
}

}  // namespace

double Quantile(const Matrix& x, const Matrix* weights, double p, bool may_average) {
  const auto values = Expanded(x, weights);
  const auto n = static_cast<int64_t>(values.size());
  const auto wanted = static_cast<int64_t>(std::ceil(p * static_cast<double>(n)));
  const int64_t rank = std::max<int64_t>(1, wanted);
  const auto& here = values[static_cast<size_t>(rank - 1)];
  if (!may_average || n % 2 != 0 || wanted < 1 || rank == n || rank >= x.rows()) return here.first;
  const auto& next = values[static_cast<size_t>(rank)];
  return next.second == here.second ? here.first : (here.first + next.first) / 2;
}

double InterQuartileMean(const Matrix& x, const Matrix* weights) {
  const auto values = Expanded(x, weights);
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto begin = static_cast<double>(i);
    const double inside = std::min(begin + 1, 0.75 * n) - std::max(begin, 0.25 * n);
    sum += std::max(0.0, inside) * values[i].first;
  }
  return sum / (n / 2);
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

}  // namespace heddle::ops::reference
