// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/compressed/read_cost.h"

// What it costs to read column groups at best (ops/compressed/read_cost.h), by counts of all rows in place of
// a sample: columns joined greedily, every pair tried, and every way to put few columns into groups. Literal
// loops; for tests only.
namespace heddle::ops::reference {

/// Columns in one group: of each row, the number of its tuple. Tuples are numbered by first occurrence.
struct CountedGroup {
  int64_t width = 0;
  std::vector<uint32_t> numbers;
  int64_t tuples = 0;
  bool is_zero = false;  ///< All cells are +0.0.
};

/// Column `column` of a dense matrix of doubles.
inline CountedGroup CountColumn(const Matrix& matrix, int64_t column) {
  CountedGroup group;
  group.width = 1;
  std::unordered_map<uint64_t, uint32_t> numbers;
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    const auto bits = std::bit_cast<uint64_t>(matrix.data()[row * matrix.columns() + column]);
    group.numbers.push_back(numbers.emplace(bits, static_cast<uint32_t>(numbers.size())).first->second);
  }
  group.tuples = static_cast<int64_t>(numbers.size());
  group.is_zero = numbers.size() == 1 && numbers.begin()->first == 0;
  return group;
}

/// The columns of both.
inline CountedGroup Joined(const CountedGroup& a, const CountedGroup& b) {
  CountedGroup group;
  group.width = a.width + b.width;
  std::unordered_map<uint64_t, uint32_t> numbers;
  for (size_t row = 0; row < a.numbers.size(); ++row) {
    const uint64_t pair = uint64_t{a.numbers[row]} << 32 | b.numbers[row];
    group.numbers.push_back(numbers.emplace(pair, static_cast<uint32_t>(numbers.size())).first->second);
  }
  group.tuples = static_cast<int64_t>(numbers.size());
  group.is_zero = a.is_zero && b.is_zero;
  return group;
}

/// To read the group in the encoding that costs least (docs/compression.md).
inline double LeastCost(const CountedGroup& group) {
  const auto rows = static_cast<double>(group.numbers.size()), width = static_cast<double>(group.width);
  const double plain = rows * width * sizeof(double);
  const auto tuples = static_cast<double>(group.tuples);
  double least = std::numeric_limits<double>::infinity();
  const auto offer = [&](Encoding encoding, double bytes, double exceptions = 0) {
    // Groups that are no smaller than their cells are none.
    if (encoding != Encoding::kUncompressed && bytes >= plain) return;
    least = std::min(least, ReadCost({.encoding = encoding,
                                      .rows = rows,
                                      .columns = width,
                                      .tuples = tuples,
                                      .exceptions = exceptions,
                                      .bytes = bytes}));
  };
  offer(Encoding::kUncompressed, plain);
  const double dictionary = tuples * width * sizeof(double);
  if (group.tuples == 1)
    offer(group.is_zero ? Encoding::kEmpty : Encoding::kConstant, group.is_zero ? 0 : dictionary);
  if (group.tuples == 1 || group.tuples > kMostTuples) return least;
  std::vector<int64_t> counts(static_cast<size_t>(group.tuples), 0);
  double runs = 1;
  for (size_t row = 0; row < group.numbers.size(); ++row) {
    ++counts[group.numbers[row]];
    if (row > 0 && group.numbers[row] != group.numbers[row - 1]) ++runs;
  }
  const double code_bytes = CodeBits(group.tuples) / 8.0;
  const double exceptions = rows - static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const double segments = 1 + static_cast<double>((static_cast<int64_t>(rows) - 1) / kSegmentRows + 1);
  offer(Encoding::kDenseCodes, rows * code_bytes + dictionary);
  offer(Encoding::kDefault,
        exceptions * (code_bytes + sizeof(uint16_t)) + segments * sizeof(int64_t) + dictionary, exceptions);
  offer(Encoding::kRuns, runs * (code_bytes + sizeof(int64_t)) + dictionary, runs);
  return least;
}

inline std::vector<CountedGroup> CountColumns(const Matrix& matrix) {
  std::vector<CountedGroup> groups;
  for (int64_t column = 0; column < matrix.columns(); ++column) groups.push_back(CountColumn(matrix, column));
  return groups;
}

/// Cost when the pair that saves most is joined, again and again, until no pair saves any.
inline double GreedyCost(const Matrix& matrix) {
  std::vector<CountedGroup> groups = CountColumns(matrix);
  std::vector<double> costs;
  for (const CountedGroup& group : groups) costs.push_back(LeastCost(group));
  std::map<std::pair<size_t, size_t>, double> saved;  // Of groups that are still there.
  std::vector<bool> is_there(groups.size(), true);
  const auto measure = [&](size_t b) {
    for (size_t a = 0; a < b; ++a)
      if (is_there[a]) saved[{a, b}] = costs[a] + costs[b] - LeastCost(Joined(groups[a], groups[b]));
  };
  for (size_t b = 1; b < groups.size(); ++b) measure(b);
  while (!saved.empty()) {
    const auto best = std::max_element(saved.begin(), saved.end(),
                                       [](const auto& x, const auto& y) { return x.second < y.second; });
    if (best->second <= 0) break;
    const auto [a, b] = best->first;
    groups.push_back(Joined(groups[a], groups[b]));
    costs.push_back(LeastCost(groups.back()));
    is_there[a] = is_there[b] = false;
    is_there.push_back(true);
    std::erase_if(
        saved, [&](const auto& pair) { return !is_there[pair.first.first] || !is_there[pair.first.second]; });
    measure(groups.size() - 1);
  }
  double sum = 0;
  for (size_t i = 0; i < groups.size(); ++i)
    if (is_there[i]) sum += costs[i];
  return sum;
}

/// The least cost of all ways to put the columns into groups; of at most about eight columns.
inline double LowestCost(const Matrix& matrix) {
  const std::vector<CountedGroup> columns = CountColumns(matrix);
  const size_t sets = size_t{1} << columns.size();
  std::vector<CountedGroup> groups(sets);
  std::vector<double> costs(sets, 0), lowest(sets, std::numeric_limits<double>::infinity());
  lowest[0] = 0;
  for (size_t set = 1; set < sets; ++set) {
    const size_t rest = set & (set - 1);
    const CountedGroup& first = columns[static_cast<size_t>(std::countr_zero(set))];
    groups[set] = rest == 0 ? first : Joined(groups[rest], first);
    costs[set] = LeastCost(groups[set]);
    // One group has the least column of the set; the others are put best without it.
    for (size_t group = set; group > 0; group = (group - 1) & set)
      if ((group & (set & (~set + 1))) != 0)
        lowest[set] = std::min(lowest[set], costs[group] + lowest[set ^ group]);
  }
  return lowest[sets - 1];
}

}  // namespace heddle::ops::reference
