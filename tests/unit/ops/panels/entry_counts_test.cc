// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/entry_counts.h"

#include <algorithm>

#include "core/values/panels.h"
#include "tests/unit/ops/panels/panels_fixture.h"

namespace heddle::ops {
namespace {

using testing::Kind;
using testing::RowsOf;

int64_t StoredIn(int64_t begin, int64_t end) {
  return RowsOf(Kind::kSparseDoubles, begin, end).matrix().stored();
}

TEST(EntryCountsTest, CountsAreThoseOfGranulesInWhateverPiecesRowsCome) {
  for (const int64_t rows : {1, 63, 64, 65, 1000, 4097}) {
    for (const int64_t step : {1, 7, 64, 100, 5000}) {
      EntryCounts counts(rows);
      for (int64_t row = 0; row < rows; row += step)
        counts.Add(RowsOf(Kind::kSparseDoubles, row, std::min(rows, row + step)).matrix());
      const std::vector<int64_t> before = counts.Finish();
      const int64_t granules = CeilDivide(rows, Granule(rows));
      ASSERT_EQ(before.size(), static_cast<size_t>(granules + 1));
      for (int64_t i = 0; i <= granules; ++i)
        EXPECT_EQ(before[static_cast<size_t>(i)], StoredIn(0, std::min(rows, i * Granule(rows))));
    }
  }
}

TEST(EntryCountsTest, ViewsOfRowsAreCountedAsTheRows) {
  const Value all = RowsOf(Kind::kSparseDoubles, 0, 1000);
  EntryCounts counts(600);
  counts.Add(all.matrix().Rows(300, 900));
  EXPECT_EQ(counts.Finish().back(), StoredIn(300, 900));
}

TEST(EntryCountsTest, WithoutAllRowsThereAreNoCounts) {
  EntryCounts counts(1000);
  counts.Add(RowsOf(Kind::kSparseDoubles, 0, 999).matrix());
  EXPECT_TRUE(counts.Finish().empty());
  EXPECT_TRUE(MostEntries({}).empty());
}

// Granules of 10, 20, 30, 1 and 2 entries.
TEST(EntryCountsTest, TheMostOfRunsOfGranules) {
  const std::vector<int64_t> before = {0, 10, 30, 60, 61, 63};
  EXPECT_EQ(MostEntries(before), (std::vector<int64_t>{30, 31, 61, 63}));
  const std::vector<int64_t> many = {0, 1'000'001};
  ASSERT_EQ(MostEntries(many).size(), 1U);
  EXPECT_GE(MostEntries(many)[0], 1'000'001);
  EXPECT_LE(MostEntries(many)[0], 1'032'000);
}

}  // namespace
}  // namespace heddle::ops
