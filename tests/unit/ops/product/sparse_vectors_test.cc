// SPDX-License-Identifier: Apache-2.0
// Products of CSR rows and one column against loops that follow docs/numerics.md to the letter.
#include "ops/sparse/sparse_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "core/values/panels.h"

namespace heddle::ops::simd {
namespace {

struct Rows {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> columns;
  std::vector<double> values;
  bool has_zeros = false;
  int64_t count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  SparseRows View() const { return {offsets.data(), columns.data(), values.data(), count(), has_zeros}; }
};

// Rows of `entries` entries on average, some empty, one much longer than all others.
Rows RandomRows(int64_t rows, int64_t n, double entries, bool zeros, uint32_t seed) {
  std::mt19937 random(seed);
  std::poisson_distribution<int> length(entries);
  std::uniform_int_distribution<int32_t> column(0, static_cast<int32_t>(n - 1));
  std::uniform_real_distribution<double> value(-1, 1);
  Rows x;
  x.has_zeros = zeros;
  for (int64_t i = 0; i < rows; ++i) {
    std::set<int32_t> columns;
    const int64_t count = std::min<int64_t>(n, i == rows / 2 ? 1500 : length(random));
    while (static_cast<int64_t>(columns.size()) < count) columns.insert(column(random));
    for (const int32_t j : columns) {
      x.columns.push_back(j);
      x.values.push_back(zeros && random() % 4 == 0 ? 0.0 : value(random));
    }
    x.offsets.push_back(static_cast<int64_t>(x.columns.size()));
  }
  return x;
}

std::vector<double> RandomVector(int64_t n, bool specials, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::vector<double> v(static_cast<size_t>(n));
  for (double& cell : v) {
    cell = value(random);
    if (specials && random() % 50 == 0) cell = std::numeric_limits<double>::infinity();
    if (specials && random() % 50 == 0) cell = std::numeric_limits<double>::denorm_min();
  }
  return v;
}

double L(const std::vector<double>& r) {
  return ((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]));
}

// T(begin, end) over the lanes of chunks.
std::vector<double> Tree(const std::vector<std::vector<double>>& chunks, size_t begin, size_t end) {
  if (end - begin == 1) return chunks[begin];
  size_t step = 1;
  while (2 * step < end - begin) step *= 2;
  std::vector<double> left = Tree(chunks, begin, begin + step), right = Tree(chunks, begin + step, end);
  for (size_t lane = 0; lane < 8; ++lane) left[lane] = left[lane] + right[lane];
  return left;
}

double Multiply(const Rows& x, int64_t row, const std::vector<double>& v) {
  std::vector<std::vector<double>> chunks(
      static_cast<size_t>(CeilDivide(static_cast<int64_t>(v.size()), kColumnChunk)), std::vector<double>(8));
  for (auto e = static_cast<size_t>(x.offsets[static_cast<size_t>(row)]);
       e < static_cast<size_t>(x.offsets[static_cast<size_t>(row) + 1]); ++e) {
    const int32_t j = x.columns[e];
    double& lane = chunks[static_cast<size_t>(j / kColumnChunk)][static_cast<size_t>(j % 8)];
    if (x.values[e] != 0) lane = std::fma(x.values[e], v[static_cast<size_t>(j)], lane);
  }
  return L(Tree(chunks, 0, chunks.size())) + 0.0;
}

void ExpectBits(const std::vector<double>& expected, const std::vector<double>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
    ASSERT_EQ(std::bit_cast<uint64_t>(expected[i]), std::bit_cast<uint64_t>(actual[i]))
        << i << ": " << expected[i] << " " << actual[i];
  }
}

void ExpectDefinitions(int64_t rows, int64_t n, double entries, bool zeros, uint32_t seed) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(n) + ", " + std::to_string(entries) +
               (zeros ? " with zeros" : ""));
  const Rows x = RandomRows(rows, n, entries, zeros, seed);
  const std::vector<double> v = RandomVector(n, zeros, seed), ones(static_cast<size_t>(n), 1.0),
                            y = RandomVector(2 * rows, zeros, seed + 1);
  std::vector<double> products, sums, actual(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) products.push_back(Multiply(x, i, v));
  for (int64_t i = 0; i < rows; ++i) sums.push_back(Multiply(x, i, ones));
  MultiplySparseRows(x.View(), v.data(), n, actual.data());
  ExpectBits(products, actual);
  SumSparseRows(x.View(), n, actual.data());
  ExpectBits(sums, actual);
  const auto scaled = [&](const double* w, int64_t stride) {
    std::vector<double> cells(static_cast<size_t>(n));
    for (int64_t i = 0; i < rows; ++i)
      for (auto e = static_cast<size_t>(x.offsets[static_cast<size_t>(i)]);
           e < static_cast<size_t>(x.offsets[static_cast<size_t>(i) + 1]); ++e)
        if (double& cell = cells[static_cast<size_t>(x.columns[e])]; x.values[e] != 0)
          cell = std::fma(x.values[e], w[i * stride], cell);
    return cells;
  };
  std::vector<double> cells(static_cast<size_t>(n));
  AddScaledSparseRows(x.View(), y.data(), 2, cells.data());
  ExpectBits(scaled(y.data(), 2), cells);
  if (n > kColumnChunk) return;
  std::fill(cells.begin(), cells.end(), 0.0);
  MultiplyAndAddSparseRows(x.View(), v.data(), actual.data(), cells.data());
  ExpectBits(products, actual);
  ExpectBits(scaled(products.data(), 1), cells);
}

TEST(SparseVectorsTest, RowsOfEveryLengthHaveTheDefinedBits) {
  uint32_t seed = 0;
  for (const bool zeros : {false, true})
    for (const int64_t n : {1, 7, 9, 100, 3000, 65536})
      for (const double entries : {0.0, 0.4, 1.0, 3.0, 5.5, 7.0, 12.0, 30.0, 300.0})
        ExpectDefinitions(777, n, entries, zeros, ++seed);
}

TEST(SparseVectorsTest, LongRowsAreTreesOverChunks) {
  uint32_t seed = 0;
  for (const bool zeros : {false, true})
    for (const int64_t chunks : {2, 3, 5, 7, 16, 17, 33})
      for (const double entries : {0.5, 6.0, 40.0})
        ExpectDefinitions(301, chunks * kColumnChunk - 5, entries, zeros, ++seed);
}

TEST(SparseVectorsTest, NoRows) {
  for (const int64_t rows : {0, 1, 2, 256, 257}) ExpectDefinitions(rows, 50, 0.0, false, 1);
}

}  // namespace
}  // namespace heddle::ops::simd
