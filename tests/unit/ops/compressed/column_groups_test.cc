// SPDX-License-Identifier: Apache-2.0
#include "core/values/column_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "core/hash.h"
#include "ops/base/parallel.h"
#include "ops/compressed/distinct.h"
#include "ops/compressed/occurring_cells.h"
#include "ops/compressed/plan_groups.h"

namespace heddle::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Matrix Filled(int64_t rows, int64_t columns, const std::function<double(int64_t, int64_t)>& cell,
              ElementType type = ElementType::kFloat64) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) matrix.mutable_data()[i * columns + j] = cell(i, j);
  return *ToElementType(matrix, type);
}

// Number `i` of a sequence that looks random, below `bound`.
int64_t Draw(int64_t i, int64_t bound) {
  return static_cast<int64_t>((FoldHash(7, static_cast<uint64_t>(i)) >> 20) % static_cast<uint64_t>(bound));
}

CompressionPlan OneGroupEach(int64_t columns, Encoding encoding = Encoding::kDenseCodes) {
  CompressionPlan plan;
  for (int32_t j = 0; j < columns; ++j) plan.groups.push_back({.columns = {j}, .encoding = encoding});
  return plan;
}

std::map<Encoding, int> EncodingsOf(const ColumnGroups& groups) {
  std::map<Encoding, int> encodings;
  for (const ColumnGroup& group : groups.groups) ++encodings[group.encoding];
  return encodings;
}

// By row number modulo `classes`, as reading one code after the other counts them.
void ExpectCounts(const ColumnGroup& group, int64_t begin, int64_t end) {
  std::vector<uint16_t> codes(static_cast<size_t>(end - begin));
  DecodeCodes(group, begin, end, codes.data());
  for (const int classes : {1, 2, 8}) {
    std::vector<int64_t> counts(static_cast<size_t>(classes * group.tuples()), 0);
    for (size_t i = 0; i < codes.size(); ++i)
      ++counts[i % static_cast<size_t>(classes) * static_cast<size_t>(group.tuples()) + codes[i]];
    EXPECT_EQ(CountTuples(group, begin, end, classes), counts)
        << Name(group.encoding) << " modulo " << classes;
  }
}

// Counts that stay with codes are those of all rows, whatever asks for them.
void ExpectKeptCounts(const ColumnGroup& group, int64_t rows) {
  const std::vector<int64_t> counts = CountRowsOfTuples(group, 0, rows);
  ExpectCounts(group, 0, rows);
  EXPECT_EQ(CountRowsOfTuples(group, 0, rows), counts);
  if (rows > 20) ExpectCounts(group, 6, rows - 3);
  const bool keeps = group.encoding == Encoding::kDenseCodes || group.encoding == Encoding::kDefault;
  EXPECT_EQ(group.codes.counts() != nullptr, keeps) << Name(group.encoding);
  const ColumnGroup copy = group;  // As a result that shares the codes.
  EXPECT_EQ(copy.codes.counts(), group.codes.counts());
}

// Cells are those of the matrix, in every range of rows that begins or ends near a border of something.
void ExpectCells(const ColumnGroups& groups, const Matrix& matrix) {
  ASSERT_TRUE(Verify(groups).ok()) << Verify(groups).message();
  const Matrix dense = *ToDense(matrix);
  const std::vector<int64_t> places = {
      0, 1, 15, 511, 513, 16383, 16385, 65535, 65537, matrix.rows() - 1, matrix.rows()};
  for (const int64_t begin : places)
    for (const int64_t end : places) {
      if (begin > end || end > matrix.rows() || begin < 0) continue;
      const Matrix rows = *DecodeRows(groups, begin, end);
      ASSERT_TRUE(Matrix::SameCells(rows, dense.Rows(begin, end))) << begin << " to " << end;
    }
  for (const ColumnGroup& group : groups.groups) {
    if (group.tuples() == 0) continue;
    int64_t rows = 0;
    const int64_t begin = std::min<int64_t>(3, matrix.rows());
    for (const int64_t count : CountTuples(group, begin, matrix.rows())) rows += count;
    EXPECT_EQ(rows, matrix.rows() - begin);
    ExpectCounts(group, begin, matrix.rows());
    ExpectKeptCounts(group, matrix.rows());
  }
}

class ColumnGroupsTest : public testing::TestWithParam<ElementType> {
 protected:
  KernelContext context_;
};

TEST_P(ColumnGroupsTest, EveryEncodingGivesTheCellsBack) {
  const int64_t rows = 150'000;
  const Matrix matrix = Filled(
      rows, 9,
      [](int64_t i, int64_t j) -> double {
        switch (j) {
          case 0: return 0;                                                        // EMPTY
          case 1: return 7.5;                                                      // CONST
          case 2: return static_cast<double>(Draw(i, 12)) - 3;                     // DDC, 4 bits
          case 3: return static_cast<double>(Draw(i + 1, 200)) / 8;                // DDC, 8 bits
          case 4: return static_cast<double>(Draw(i + 2, 3000));                   // DDC, 16 bits
          case 5: return Draw(i, 100) == 0 ? static_cast<double>(i % 5) : -1.0;    // SDC
          case 6: return static_cast<double>(i / 9000);                            // RLE
          case 7: return Draw(i, 50) == 0 ? kNan : Draw(i, 50) == 1 ? -0.0 : 0.0;  // SDC
          default: return static_cast<double>(i);                                  // too many tuples
        }
      },
      GetParam());
  const ColumnGroups groups = *CompressColumns(matrix, OneGroupEach(9), context_);
  EXPECT_EQ(EncodingsOf(groups), (std::map<Encoding, int>{{Encoding::kEmpty, 1},
                                                          {Encoding::kConstant, 1},
                                                          {Encoding::kDenseCodes, 3},
                                                          {Encoding::kDefault, 2},
                                                          {Encoding::kRuns, 1},
                                                          {Encoding::kUncompressed, 1}}));
  EXPECT_EQ(groups.groups[2].codes.bits(), 4);
  EXPECT_EQ(groups.groups[3].codes.bits(), 8);
  EXPECT_EQ(groups.groups[4].codes.bits(), 16);
  ExpectCells(groups, matrix);
  EXPECT_LT(groups.bytes(), matrix.bytes() / 4);
}

TEST_P(ColumnGroupsTest, ColumnsOfAGroupNeedNotBeNeighbours) {
  const Matrix matrix = Filled(
      20'000, 5, [](int64_t i, int64_t j) { return static_cast<double>(Draw(i, 30) * (j % 2 + 1)); },
      GetParam());
  CompressionPlan plan;
  plan.groups = {{.columns = {0, 2, 4}, .encoding = Encoding::kDenseCodes},
                 {.columns = {1, 3}, .encoding = Encoding::kRuns}};
  const ColumnGroups groups = *CompressColumns(matrix, plan, context_);
  EXPECT_EQ(groups.groups[0].tuples(), 30);
  ExpectCells(groups, matrix);
}

TEST_P(ColumnGroupsTest, SparseMatricesCompress) {
  const Matrix matrix = *ToSparse(Filled(
      70'000, 6,
      [](int64_t i, int64_t j) { return Draw(i * 6 + j, 40) == 0 ? static_cast<double>(1 + i % 3) : 0.0; },
      GetParam()));
  CompressionPlan plan = OneGroupEach(4);
  plan.groups.push_back({.columns = {4, 5}, .encoding = Encoding::kUncompressed});
  const ColumnGroups groups = *CompressColumns(matrix, plan, context_);
  EXPECT_TRUE(groups.groups[4].dictionary.IsSparse());
  ExpectCells(groups, matrix);
  EXPECT_LT(groups.bytes(), matrix.bytes());
}

TEST_P(ColumnGroupsTest, MatricesOfNoRowsAndOfFewRowsAreMatrices) {
  for (const int64_t rows : {0, 1, 2, 17}) {
    const Matrix matrix = Filled(
        rows, 2, [](int64_t i, int64_t j) { return static_cast<double>(i * j); }, GetParam());
    ExpectCells(*CompressColumns(matrix, OneGroupEach(2), context_), matrix);
    ExpectCells(*CompressColumns(matrix, *PlanCompression(matrix, context_), context_), matrix);
  }
}

TEST_P(ColumnGroupsTest, PlannedGroupsGiveTheCellsBack) {
  const Matrix matrix = Filled(
      40'000, 12,
      [](int64_t i, int64_t j) {
        // Columns in threes that say the same in other words, and two that nothing can be done with.
        if (j >= 10) return std::sqrt(static_cast<double>(i * 12 + j));
        return static_cast<double>(Draw(i * 7 + j / 3, 9) + j % 3);
      },
      GetParam());
  const CompressionPlan plan = *PlanCompression(matrix, context_);
  EXPECT_LT(plan.bytes, plan.plain_bytes / 3);
  const ColumnGroups groups = *CompressColumns(matrix, plan, context_);
  ExpectCells(groups, matrix);
  // What the plan said is what it takes, nearly.
  EXPECT_NEAR(static_cast<double>(groups.bytes()), plan.bytes, 0.1 * plan.bytes);
  const auto group_of = [&](int32_t column) {
    for (size_t g = 0; g < groups.groups.size(); ++g)
      for (const int32_t of : groups.groups[g].columns)
        if (of == column) return g;
    return groups.groups.size();
  };
  EXPECT_EQ(group_of(0), group_of(1));
  EXPECT_EQ(group_of(0), group_of(2));
  EXPECT_EQ(group_of(3), group_of(5));
  EXPECT_EQ(group_of(10), group_of(11));
  EXPECT_EQ(groups.groups[group_of(10)].encoding, Encoding::kUncompressed);
}

INSTANTIATE_TEST_SUITE_P(Types, ColumnGroupsTest,
                         testing::Values(ElementType::kFloat64, ElementType::kFloat32),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST(CompressionPlanTest, WhatDoesNotCompressIsLeftAlone) {
  KernelContext context;
  const Matrix matrix =
      Filled(10'000, 4, [](int64_t i, int64_t j) { return std::sin(static_cast<double>(i * 4 + j)); });
  const CompressionPlan plan = *PlanCompression(matrix, context);
  EXPECT_FALSE(plan.Pays());
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].encoding, Encoding::kUncompressed);
}

TEST(CompressionPlanTest, ManyColumnsAreJoinedByTheQueueFirst) {
  KernelContext context;
  const Matrix matrix = Filled(8'000, 120, [](int64_t i, int64_t j) {
    return static_cast<double>(Draw(i * 40 + j / 3, 4) * (j % 3 + 1));
  });
  const CompressionPlan plan = *PlanCompression(matrix, context);
  EXPECT_TRUE(plan.Pays());
  EXPECT_LE(plan.groups.size(), 60u);
  ExpectCells(*CompressColumns(matrix, plan, context), matrix);
}

TEST(CompressionPlanTest, PlansAndGroupsAreTheSameOnEveryNumberOfThreads) {
  const Matrix matrix =
      Filled(60'000, 20, [](int64_t i, int64_t j) { return static_cast<double>(Draw(i * 20 + j, 3 + j)); });
  std::vector<std::string> seen;
  for (const int threads : {1, 2, 3}) {
    KernelContext context;
    Arena arena(threads);
    arena.Execute([&] {
      const ColumnGroups groups = *CompressColumns(matrix, *PlanCompression(matrix, context), context);
      std::string text;
      for (const ColumnGroup& group : groups.groups) {
        text += Name(group.encoding);
        for (const int32_t column : group.columns) text += " " + std::to_string(column);
        text.append(reinterpret_cast<const char*>(group.codes.data()),
                    static_cast<size_t>(group.codes.bytes()));
      }
      seen.push_back(std::move(text));
    });
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST(CompressionPlanTest, CancelledPlansEnd) {
  std::atomic<bool> cancelled = true;
  KernelContext context;
  context.cancelled = &cancelled;
  const Matrix matrix = Filled(100, 3, [](int64_t i, int64_t) { return static_cast<double>(i % 2); });
  EXPECT_EQ(PlanCompression(matrix, context).status().code(), Cancelled("").code());
  EXPECT_EQ(CompressColumns(matrix, OneGroupEach(3), context).status().code(), Cancelled("").code());
}

TEST(CompressionPlanTest, SampledRowsAscendAndAreSpread) {
  for (const int64_t rows : {0, 1, 2999, 3000, 3001, 1'000'003}) {
    const std::vector<int64_t> sample = SampledRows(rows);
    EXPECT_EQ(static_cast<int64_t>(sample.size()), std::min(rows, std::max<int64_t>(3000, rows / 100)));
    for (size_t i = 0; i < sample.size(); ++i) {
      EXPECT_LT(i == 0 ? -1 : sample[i - 1], sample[i]);
      EXPECT_LT(sample[i], rows);
    }
  }
}

// Groups of every encoding, for what damages them.
ColumnGroups Sound() {
  KernelContext context;
  const Matrix matrix = Filled(70'000, 3, [](int64_t i, int64_t j) {
    if (j == 0) return static_cast<double>(i % 20);
    if (j == 1) return i % 100 == 0 ? 1.0 + static_cast<double>(i / 100 % 3) : 0.0;
    return static_cast<double>(i / 10'000);
  });
  return *CompressColumns(matrix, OneGroupEach(3), context);
}

TEST(ColumnGroupsVerifyTest, DamagedGroupsAreNamed) {
  const auto says = [](const std::function<void(ColumnGroups*)>& damage) {
    ColumnGroups groups = Sound();
    damage(&groups);
    const Status status = Verify(groups);
    EXPECT_EQ(status.code(), DataLoss("").code());
    return std::string(status.message());
  };
  ASSERT_TRUE(Verify(Sound()).ok());
  const std::string prefix = "a compressed matrix is damaged: ";
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[0].columns = {}; }),
            prefix + "group 1: it has no columns");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[1].columns = {0}; }),
            prefix + "group 2: another group has one of its columns");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[1].columns = {3}; }),
            prefix + "group 2: its columns are not in the matrix");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups.pop_back(); }),
            prefix + "1 of its 3 columns are missing");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[0].codes.mutable_data()[5] = 250; }),
            prefix + "group 1: a code is beyond its dictionary");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[2].starts[1] = 0; }),
            prefix + "group 3: runs do not ascend");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[1].segments[1] = 1 << 20; }),
            prefix + "group 2: segments do not ascend");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[1].segments.pop_back(); }),
            prefix + "group 2: exceptions are missing");
  EXPECT_EQ(says([](ColumnGroups* all) { all->rows = 70'001; }), prefix + "group 1: codes are missing");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[0].dictionary = *Matrix::Dense(20, 2); }),
            prefix + "group 1: its dictionary is of other columns");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[0].dictionary = *Matrix::Dense(0, 1); }),
            prefix + "group 1: its dictionary is none");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[0].dictionary = *FilledMatrix(300, 1, 0); }),
            prefix + "group 1: a code cannot name all of its tuples");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[0].encoding = Encoding::kConstant; }),
            prefix + "group 1: its dictionary is none");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[0].encoding = Encoding::kEmpty; }),
            prefix + "group 1: its dictionary is none");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[0].encoding = Encoding::kUncompressed; }),
            prefix + "group 1: rows are missing");
  EXPECT_EQ(says([](ColumnGroups* all) { all->groups[2].starts.pop_back(); }),
            prefix + "group 3: runs are missing");
  EXPECT_EQ(says([](ColumnGroups* all) { static_cast<uint16_t*>(all->groups[1].positions->data())[1] = 0; }),
            prefix + "group 2: exceptions do not ascend");
  EXPECT_EQ(says([](ColumnGroups* all) {
              const int64_t last = all->groups[1].codes.count() - 1;
              static_cast<uint16_t*>(all->groups[1].positions->data())[last] = UINT16_MAX;
            }),
            prefix + "group 2: an exception is behind the last row");
}

// Against the literal definition: the sample of a population whose classes are known.
TEST(DistinctTest, EstimatesAreNearWhatThereIs) {
  std::mt19937_64 engine(7);
  const int64_t rows = 200'000;
  for (const int64_t classes : {1, 10, 500, 5'000}) {
    std::vector<int64_t> sample(static_cast<size_t>(classes), 0);
    for (int64_t i = 0; i < 8'000; ++i) ++sample[engine() % static_cast<uint64_t>(classes)];
    const double estimate = EstimateDistinct(FrequenciesOf(sample), rows);
    EXPECT_NEAR(estimate, static_cast<double>(classes), 0.1 * static_cast<double>(classes)) << classes;
  }
}

TEST(DistinctTest, EstimatesAreAtLeastWhatWasSeenAndAtMostTheRows) {
  EXPECT_EQ(EstimateDistinct({}, 100), 0);
  EXPECT_EQ(EstimateDistinct({{1, 100}}, 100), 100);           // The sample is the population.
  EXPECT_NEAR(EstimateDistinct({{1, 50}}, 1000), 1000, 1e-6);  // All of them differ: so will the others.
  EXPECT_EQ(EstimateDistinct({{50, 1}}, 1000), 1);
  // Zipf: a few frequent ones and many rare ones.
  const double zipf = EstimateDistinct({{1, 300}, {2, 60}, {5, 10}, {900, 1}, {2000, 1}}, 1'000'000);
  EXPECT_GE(zipf, 372);
  EXPECT_LE(zipf, 1'000'000);
}

}  // namespace
}  // namespace heddle::ops
