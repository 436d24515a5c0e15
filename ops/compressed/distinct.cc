// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/distinct.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace heddle::ops {
namespace {

constexpr double kFewVariation = 0.9;
constexpr double kMuchVariation = 30;
constexpr int64_t kFrequentClass = 50;

struct Sample {
  double classes = 0;
  double rows = 0;
  double singletons = 0;
  double pairs = 0;  // Sum of i (i - 1) f_i.
};

Sample Count(const FrequencyOfFrequencies& frequencies) {
  Sample sample;
  for (const auto& [occurrences, classes] : frequencies) {
    const auto i = static_cast<double>(occurrences);
    const auto f = static_cast<double>(classes);
    sample.classes += f;
    sample.rows += i * f;
    sample.pairs += i * (i - 1) * f;
    if (occurrences == 1) sample.singletons = f;
  }
  return sample;
}

double FirstJackknife(const Sample& s, double fraction) {
  return s.classes / (1 - (1 - fraction) * s.singletons / s.rows);
}

double Variation(const Sample& s, double classes, double rows) {
  return std::max(0.0, classes / (s.rows * s.rows) * s.pairs + classes / rows - 1);
}

// D_uj2 of a population of `rows` rows.
double SecondJackknife(const Sample& s, double rows) {
  if (s.rows == 0) return 0;
  const double fraction = s.rows / rows;
  if (fraction >= 1) return s.classes;
  const double variation = Variation(s, FirstJackknife(s, fraction), rows);
  return (s.classes - s.singletons * (1 - fraction) * std::log(1 - fraction) * variation / fraction) /
         (1 - (1 - fraction) * s.singletons / s.rows);
}

// D_Sh3.
double Shlosser(const FrequencyOfFrequencies& frequencies, const Sample& s, double fraction) {
  const double q = fraction;
  double absent = 0;     // Sum of (1 - q)^i f_i.
  double seen_once = 0;  // Sum of i q (1 - q)^(i - 1) f_i.
  double above = 0;      // Sum of i q^2 (1 - q^2)^(i - 1) f_i.
  double below = 0;      // Sum of (1 - q)^i ((1 + q)^i - 1) f_i.
  for (const auto& [occurrences, classes] : frequencies) {
    const auto i = static_cast<double>(occurrences);
    const auto f = static_cast<double>(classes);
    absent += std::pow(1 - q, i) * f;
    seen_once += i * q * std::pow(1 - q, i - 1) * f;
    above += i * q * q * std::pow(1 - q * q, i - 1) * f;
    below += (std::pow(1 - q * q, i) - std::pow(1 - q, i)) * f;
  }
  if (seen_once == 0 || below == 0) return s.classes;
  const double ratio = absent / seen_once;
  return s.classes + s.singletons * (above / below) * ratio * ratio;
}

}  // namespace

FrequencyOfFrequencies FrequenciesOf(std::span<const int64_t> counts) {
  // Most values of a sample occur a few times.
  std::array<int64_t, 64> of_few = {};
  std::vector<int64_t> many;
  for (const int64_t count : counts) {
    if (count < static_cast<int64_t>(of_few.size()))
      ++of_few[static_cast<size_t>(count)];
    else
      many.push_back(count);
  }
  FrequencyOfFrequencies frequencies;
  for (size_t count = 1; count < of_few.size(); ++count)
    if (of_few[count] > 0) frequencies.emplace_back(count, of_few[count]);
  std::sort(many.begin(), many.end());
  for (const int64_t count : many) {
    if (frequencies.empty() || frequencies.back().first != count) frequencies.emplace_back(count, 0);
    ++frequencies.back().second;
  }
  return frequencies;
}

double EstimateDistinct(const FrequencyOfFrequencies& sample, int64_t rows) {
  const Sample all = Count(sample);
  const auto population = static_cast<double>(rows);
  if (all.rows == 0 || all.rows >= population) return all.classes;
  const double fraction = all.rows / population;
  const double variation = Variation(all, FirstJackknife(all, fraction), population);
  double estimate = 0;
  if (variation < kFewVariation) {
    estimate = SecondJackknife(all, population);
  } else if (variation < kMuchVariation) {
    FrequencyOfFrequencies rare;
    for (const auto& [occurrences, classes] : sample)
      if (occurrences <= kFrequentClass) rare.emplace_back(occurrences, classes);
    const Sample few = Count(rare);
    // Frequent classes have as large a share of the population as of the sample.
    const double rare_rows = population - (all.rows - few.rows) / fraction;
    estimate = SecondJackknife(few, rare_rows) + (all.classes - few.classes);
  } else {
    estimate = Shlosser(sample, all, fraction);
  }
  if (std::isnan(estimate)) estimate = population;
  return std::clamp(estimate, all.classes, population);
}

}  // namespace heddle::ops
