// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heddle::ops {

/// How often values occur in a sample: of each number of occurrences, ascending, how many values have it.
using FrequencyOfFrequencies = std::vector<std::pair<int64_t, int64_t>>;
FrequencyOfFrequencies FrequenciesOf(std::span<const int64_t> counts);

/// How many distinct values a population of `rows` has of which a simple random sample without replacement
/// has these. At least those of the sample, at most `rows`.
///
/// Source: Haas and Stokes, Estimating the Number of Classes in a Finite Population (JASA 93, 1998), the
/// hybrid estimator of section 5.2: by the squared coefficient of variation of the class sizes the second
/// order unsmoothed jackknife (below 0.9), the same without classes of more than 50 occurrences (below 30),
/// or the modified Shlosser estimator.
double EstimateDistinct(const FrequencyOfFrequencies& sample, int64_t rows);

}  // namespace heddle::ops
