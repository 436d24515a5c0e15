// SPDX-License-Identifier: Apache-2.0
// Plans are made of a sample. What they make takes at most a tenth more than the best plan of two that know
// all rows: greedy joins of every pair, and, of few columns, the best of all.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ops/compressed/plan_groups.h"
#include "tests/unit/ops/compressed/reference_groups.h"

namespace heddle::ops {
namespace {

// Ranks by Zipf's law.
class Zipf {
 public:
  Zipf(int64_t distinct, double exponent) {
    for (int64_t rank = 1; rank <= distinct; ++rank)
      sums_.push_back((sums_.empty() ? 0 : sums_.back()) + std::pow(static_cast<double>(rank), -exponent));
  }
  int64_t Draw(std::mt19937_64& random) const {
    const double at = static_cast<double>(random() >> 11) * 0x1p-53 * sums_.back();
    return std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
  }

 private:
  std::vector<double> sums_;
};

void SetColumn(Matrix* matrix, int64_t column, const std::vector<int64_t>& ranks, double step) {
  for (int64_t row = 0; row < matrix->rows(); ++row)
    matrix->mutable_data()[row * matrix->columns() + column] =
        step * static_cast<double>(ranks[static_cast<size_t>(row)]);
}

// Columns of few and of many values, skewed or not, in runs, constant, dummies of one of several, and such
// that an earlier column decides, always or but for some rows.
Matrix RandomColumns(int64_t rows, int64_t columns, uint64_t seed) {
  std::mt19937_64 random(seed);
  Matrix matrix = *Matrix::Dense(rows, columns);
  std::vector<std::vector<int64_t>> earlier;
  const int64_t sizes[] = {2, 3, 5, 12, 16, 17, 60, 250, 700, 3000};
  for (int64_t column = 0; column < columns;) {
    std::vector<int64_t> ranks(static_cast<size_t>(rows));
    const Zipf law(sizes[random() % std::size(sizes)], static_cast<double>(random() % 4) * 0.6);
    const uint64_t kind = random() % 8;
    if (kind == 0) {  // Runs.
      const uint64_t run = 1 + random() % 300;
      for (size_t row = 0; row < ranks.size(); ++row)
        ranks[row] = row > 0 && random() % run != 0 ? ranks[row - 1] : law.Draw(random);
    } else if (kind <= 2 && !earlier.empty()) {  // Decided by an earlier one.
      const std::vector<int64_t>& leader = earlier[random() % earlier.size()];
      const uint64_t strays = kind == 1 ? 0 : 20 + random() % 500;
      std::vector<int64_t> decided;
      for (size_t row = 0; row < ranks.size(); ++row) {
        while (decided.size() <= static_cast<size_t>(leader[row])) decided.push_back(law.Draw(random));
        ranks[row] = strays > 0 && random() % strays == 0 ? law.Draw(random)
                                                          : decided[static_cast<size_t>(leader[row])];
      }
    } else if (kind == 3) {  // Dummies.
      const int64_t count = std::min<int64_t>(columns - column, 2 + static_cast<int64_t>(random() % 6));
      const Zipf set(count, 1);
      for (int64_t& rank : ranks) rank = set.Draw(random);
      for (int64_t hot = 0; hot + 1 < count; ++hot, ++column) {
        std::vector<int64_t> dummy;
        for (const int64_t rank : ranks) dummy.push_back(rank == hot ? 1 : 0);
        SetColumn(&matrix, column, dummy, 1);
      }
      for (int64_t& rank : ranks) rank = rank == count - 1 ? 1 : 0;
    } else if (kind == 4 && random() % 2 == 0) {
      for (int64_t& rank : ranks) rank = 0;
    } else {
      for (int64_t& rank : ranks) rank = law.Draw(random);
    }
    SetColumn(&matrix, column++, ranks, random() % 2 == 0 ? 1 : 0.37);
    earlier.push_back(std::move(ranks));
  }
  return matrix;
}

ColumnGroups Planned(const Matrix& matrix) {
  const KernelContext context;
  const Result<CompressionPlan> plan = PlanCompression(matrix, context);
  EXPECT_TRUE(plan.ok());
  Result<ColumnGroups> groups = CompressColumns(matrix, *plan, context);
  EXPECT_TRUE(groups.ok());
  EXPECT_TRUE(Verify(*groups).ok());
  return *std::move(groups);
}

// Bytes that groups take beside codes and dictionaries: the numbers of the columns.
double Overhead(const Matrix& matrix) { return static_cast<double>(sizeof(int32_t) * matrix.columns()); }

struct Ratios {
  double worst = 0;
  double mean = 0;
};

template <typename Best>
Ratios RatiosOf(uint64_t first_seed, int64_t rows, int64_t least_columns, uint64_t more_columns, Best best) {
  constexpr uint64_t kSeeds = 24;
  Ratios ratios;
  for (uint64_t seed = first_seed; seed < first_seed + kSeeds; ++seed) {
    const Matrix matrix =
        RandomColumns(rows + 1000 * static_cast<int64_t>(seed % 40),
                      least_columns + static_cast<int64_t>(seed % (more_columns + 1)), seed);
    const double ours = ReadCost(Planned(matrix)) - Overhead(matrix);
    const double ratio = ours / best(matrix);
    EXPECT_LT(ratio, 1.35) << "seed " << seed;
    ratios.worst = std::max(ratios.worst, ratio);
    ratios.mean += ratio / static_cast<double>(kSeeds);
  }
  return ratios;
}

// A sample of 3,000 rows cannot tell 16 values from 17, nor 250 from 260, which decides on twice as many
// bits: single matrices, which have many such columns, may be worse than the mean.
TEST(PlanRatioTest, CostsLittleMoreThanGreedyPlansOfAllRows) {
  EXPECT_LT(RatiosOf(0, 20'000, 8, 16, reference::GreedyCost).mean, 1.1);
}

TEST(PlanRatioTest, CostsLittleMoreThanTheBestPlanOfFewColumns) {
  EXPECT_LT(RatiosOf(1000, 20'000, 2, 5, reference::LowestCost).mean, 1.05);
}

// Where an earlier column decides of most rows, a sample has few of the pairs of the other ones.
TEST(PlanRatioTest, GroupsOfMoreTuplesThanTheSampleToldAreMadeAsTheirParts) {
  constexpr int64_t kRows = 300'000;
  std::mt19937_64 random(7);
  Matrix matrix = *Matrix::Dense(kRows, 3);
  for (int64_t row = 0; row < kRows; ++row) {
    double* cells = matrix.mutable_data() + row * 3;
    cells[0] = static_cast<double>(random() % 2000);
    cells[1] = random() % 3 == 0 ? static_cast<double>(random() % 2000) : cells[0] * 0.5;
    cells[2] = static_cast<double>(random() % 3);
  }
  // As if the sample had told of few pairs.
  CompressionPlan plan;
  PlannedGroup pair{.columns = {0, 1},
                    .encoding = Encoding::kDenseCodes,
                    .tuples = 6000,
                    .bytes = 700'000,
                    .cost = 700'000};
  pair.parts = {
      {.columns = {0}, .encoding = Encoding::kDenseCodes, .tuples = 2000, .bytes = 620'000, .cost = 620'000},
      {.columns = {1}, .encoding = Encoding::kDenseCodes, .tuples = 2000, .bytes = 620'000, .cost = 620'000}};
  PlannedGroup all{.columns = {0, 1, 2},
                   .encoding = Encoding::kDenseCodes,
                   .tuples = 7000,
                   .bytes = 700'000,
                   .cost = 700'000};
  all.parts = {
      pair,
      {.columns = {2}, .encoding = Encoding::kDenseCodes, .tuples = 3, .bytes = 150'000, .cost = 150'000}};
  plan.groups = {all};
  for (const Matrix& stored : {matrix, *ToSparse(matrix), *ToElementType(matrix, ElementType::kFloat32)}) {
    const Result<ColumnGroups> groups = CompressColumns(stored, plan, KernelContext());
    ASSERT_TRUE(groups.ok());
    ASSERT_TRUE(Verify(*groups).ok());
    ASSERT_EQ(groups->groups.size(), 3u);
    for (const ColumnGroup& group : groups->groups) EXPECT_EQ(group.encoding, Encoding::kDenseCodes);
    EXPECT_LT(groups->bytes(), kRows * 9 / 2 + 100'000);
    EXPECT_TRUE(Matrix::SameCells(Matrix::OfGroups(std::make_shared<ColumnGroups>(*groups)), stored));
  }
}

// A dictionary may take more than the cells.
TEST(PlanRatioTest, ColumnsOfManyValuesStayUncompressedInOneGroup) {
  Matrix matrix = *Matrix::Dense(40'000, 2);
  for (int64_t i = 0; i < matrix.cells(); ++i) matrix.mutable_data()[i] = static_cast<double>(i);
  CompressionPlan plan;
  for (int32_t column = 0; column < 2; ++column)
    plan.groups.push_back({.columns = {column}, .encoding = Encoding::kDenseCodes, .tuples = 9, .bytes = 9});
  const Result<ColumnGroups> groups = CompressColumns(matrix, plan, KernelContext());
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->groups.size(), 1u);
  EXPECT_EQ(groups->groups[0].encoding, Encoding::kUncompressed);
}

}  // namespace
}  // namespace heddle::ops
