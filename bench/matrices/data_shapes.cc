// SPDX-License-Identifier: Apache-2.0
#include "bench/matrices/data_shapes.h"

#include <algorithm>
#include <cmath>

#include "core/hash.h"
#include "ops/base/parallel.h"

namespace heddle::bench {
namespace {

constexpr int64_t kQuantiles = 1 << 14;

ColumnShape Uniform(int64_t distinct) { return {.distinct = distinct}; }
ColumnShape Zipf(int64_t distinct, double exponent) { return {.distinct = distinct, .zipf = exponent}; }
ColumnShape ZipfFromZero(int64_t distinct, double exponent) {
  return {.distinct = distinct, .zipf = exponent, .first = 0};
}
ColumnShape Sorted(int64_t distinct, int64_t run) { return {.distinct = distinct, .run = run}; }
ColumnShape Dummy(double zeros) { return {.distinct = 1, .zeros = zeros}; }

// Dummies of one of so many, by Zipf's law.
void AddDummies(int32_t count, double exponent, DataShape* shape) {
  const auto leader = static_cast<int32_t>(shape->columns.size());
  for (int32_t rank = 0; rank < count; ++rank)
    shape->columns.push_back({.distinct = count, .zipf = exponent, .draws_as = leader, .hot = rank});
}

// Year, month, day, weekday, four times, carrier, numbers of flight and plane, three durations, two delays,
// two airports, distance, two times on the ground, flags, and five causes of delays, most of them 0.
DataShape Airline() {
  DataShape shape{.name = "Airline78", .rows = 14'462'943, .few_rows = 400'000};
  shape.columns = {Sorted(2, 7'200'000),
                   Sorted(12, 600'000),
                   Sorted(31, 200),
                   Uniform(7),
                   Zipf(1200, 0.4),
                   Zipf(1100, 0.4),
                   Zipf(1300, 0.4),
                   Zipf(1150, 0.4),
                   Zipf(20, 0.8),
                   Zipf(7000, 0.6),
                   Zipf(5000, 0.7),
                   Zipf(620, 0.9),
                   Zipf(560, 0.9),
                   Zipf(500, 0.9),
                   ZipfFromZero(1100, 1.2),
                   ZipfFromZero(1000, 1.2),
                   Zipf(300, 0.9),
                   Zipf(300, 0.9),
                   Zipf(1300, 0.8),
                   Zipf(150, 1.3),
                   Zipf(230, 1.2),
                   Dummy(0.98),
                   Dummy(0.985),
                   Dummy(0.997),
                   ZipfFromZero(600, 2.5),
                   ZipfFromZero(900, 3.5),
                   ZipfFromZero(800, 2),
                   ZipfFromZero(250, 5),
                   ZipfFromZero(850, 2.5)};
  for (const int32_t column : {5, 7, 12, 13, 18})
    shape.columns[static_cast<size_t>(column)].follows = column - 1;
  return shape;
}

// Ten measures, and one of four areas and of forty soils as dummies.
DataShape Covtype() {
  DataShape shape{.name = "Covtype", .rows = 581'012, .few_rows = 250'000};
  shape.columns = {Zipf(1978, 0.3), Uniform(361),   Zipf(67, 0.6),  Zipf(551, 0.6), Zipf(700, 0.6),
                   Uniform(5785),   Zipf(207, 0.5), Zipf(185, 0.5), Uniform(255),   Uniform(5827)};
  AddDummies(4, 1, &shape);
  AddDummies(40, 0.9, &shape);
  return shape;
}

// Answers by number, most of them 0, many of which decide others.
DataShape Census() {
  DataShape shape{.name = "Census", .rows = 2'458'285, .few_rows = 200'000};
  const int64_t distinct[] = {8, 10, 13, 5, 2, 4, 3, 3, 7, 2, 9, 2, 3, 18, 5, 6, 5};
  for (int32_t j = 0; j < 68; ++j) {
    ColumnShape column = ZipfFromZero(distinct[j % 17], 1.2 + 0.1 * (j % 5));
    if (j % 4 != 0) column.follows = j - 1;
    if (j % 4 == 3) column.strays = 0;
    shape.columns.push_back(column);
  }
  return shape;
}

// Pixels: the rim is empty, the middle has all of 256 shades.
DataShape Mnist() {
  DataShape shape{.name = "Mnist", .rows = 1'000'000, .few_rows = 20'000};
  for (int i = 0; i < 784; ++i) {
    const double from_middle = std::hypot(i / 28 - 13.5, i % 28 - 13.5) / 13.5;
    const double zeros = std::clamp(0.28 + 0.6 * from_middle, 0.0, 1.0);
    shape.columns.push_back({.distinct = zeros >= 1 ? 1 : 255, .zipf = 0.3, .zeros = zeros});
  }
  return shape;
}

// Measures of particles: a lepton, missing energy and four jets, of each two angles in thousandths, of jets a
// tag of three values; momenta and masses.
DataShape Higgs() {
  DataShape shape{.name = "Higgs", .rows = 11'000'000, .few_rows = 300'000};
  const ColumnShape measure{.distinct = 0};
  const ColumnShape slope{.distinct = 5001, .first = -2.5, .step = 0.001};
  const ColumnShape angle{.distinct = 6284, .first = -3.142, .step = 0.001};
  const ColumnShape tag{.distinct = 3, .zipf = 0.5, .first = 0, .step = 1.0865};
  shape.columns = {measure, slope, angle, measure, measure};
  for (int jet = 0; jet < 4; ++jet) shape.columns.insert(shape.columns.end(), {measure, slope, angle, tag});
  shape.columns.insert(shape.columns.end(), 7, measure);
  return shape;
}

double UnitOf(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Ranks at the quantiles of the law: a draw is a look-up.
std::vector<int32_t> RanksOf(const ColumnShape& column) {
  std::vector<double> sums;
  double sum = 0;
  for (int64_t rank = 0; rank < column.distinct; ++rank)
    sums.push_back(sum += std::pow(static_cast<double>(rank + 1), -column.zipf));
  std::vector<int32_t> ranks(static_cast<size_t>(kQuantiles));
  for (int64_t q = 0; q < kQuantiles; ++q) {
    const double at = (static_cast<double>(q) + 0.5) / static_cast<double>(kQuantiles) * sum;
    ranks[static_cast<size_t>(q)] =
        static_cast<int32_t>(std::lower_bound(sums.begin(), sums.end(), at) - sums.begin());
  }
  return ranks;
}

struct DrawnColumn {
  ColumnShape shape;
  uint64_t number = 0;
  std::vector<int32_t> ranks;
};

// The rank of a cell, -1 for a zero beside the law. What follows a column has a rank for each of its ranks.
int64_t RankOf(const std::vector<DrawnColumn>& columns, size_t j, int64_t row) {
  const DrawnColumn& column = columns[j];
  uint64_t bits = FoldHash(FoldHash(1, column.number), static_cast<uint64_t>(row / column.shape.run));
  const uint64_t strays = column.shape.strays;
  if (column.shape.follows >= 0 && (strays == 0 || bits % strays != 0)) {
    const int64_t leader = RankOf(columns, static_cast<size_t>(column.shape.follows), row);
    bits = FoldHash(FoldHash(2, column.number), static_cast<uint64_t>(leader));
  }
  if (UnitOf(FoldHash(bits, 3)) < column.shape.zeros) return -1;
  return column.ranks[static_cast<size_t>(FoldHash(bits, 4) >> 50)];
}

double CellOf(const std::vector<DrawnColumn>& columns, size_t j, int64_t row) {
  const ColumnShape& column = columns[j].shape;
  if (column.distinct == 0) return UnitOf(FoldHash(FoldHash(5, j), static_cast<uint64_t>(row)));
  const int64_t rank = RankOf(columns, j, row);
  if (rank < 0) return 0;
  if (column.hot >= 0) return rank == column.hot ? 1 : 0;
  return column.first + column.step * static_cast<double>(rank);
}

}  // namespace

std::vector<DataShape> DataShapes() { return {Airline(), Covtype(), Census(), Mnist(), Higgs()}; }

Result<Matrix> MatrixOfShape(const DataShape& shape, int64_t rows) {
  std::vector<DrawnColumn> columns;
  for (const ColumnShape& column : shape.columns)
    columns.push_back(
        {.shape = column,
         .number = column.draws_as < 0 ? columns.size() : static_cast<uint64_t>(column.draws_as),
         .ranks = column.distinct == 0 ? std::vector<int32_t>() : RanksOf(column)});
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(rows, static_cast<int64_t>(columns.size())));
  ops::ParallelFor(rows, 1024, [&](int64_t begin, int64_t end) {
    double* cell = matrix.mutable_data() + begin * matrix.columns();
    for (int64_t i = begin; i < end; ++i) {
      for (size_t j = 0; j < columns.size(); ++j, ++cell) *cell = CellOf(columns, j, i);
    }
  });
  return matrix;
}

}  // namespace heddle::bench
