// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/read_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ops/io/formats/readers.h"
#include "ops/io/formats/records.h"
#include "ops/io/formats/text/cell_exchange.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class ReadStagesTest : public FormatsTest {
 protected:
  Result<ReadOptions> Options(const std::string& name, int64_t chunk_bytes) {
    HEDDLE_ASSIGN_OR_RETURN(ReadOptions options, ResolveReadOptions(Node(), name, *files_));
    options.chunk_bytes = chunk_bytes;
    return options;
  }

  // The rows of all ranks, of cells that each has parsed in its share of the file.
  std::vector<Matrix> ReadTogether(const ReadOptions& options, const FileSummary& summary,
                                   const std::vector<int64_t>& cuts) {
    const int64_t ranks = std::ssize(cuts) - 1;
    std::vector<std::vector<Value>> sent;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const TextFile text = *OpenText(options, *files_);
      Result<std::vector<Matrix>> cells = CellsByRank(options, summary, text, {rank, ranks}, cuts);
      EXPECT_TRUE(cells.ok()) << cells.status().ToString();
      sent.emplace_back(cells->begin(), cells->end());
    }
    std::vector<Matrix> rows;
    for (size_t rank = 0; rank + 1 < cuts.size(); ++rank) {
      std::vector<const Value*> parts;
      for (const std::vector<Value>& of_rank : sent) parts.push_back(&of_rank[rank]);
      const Shape shape = {cuts[rank + 1] - cuts[rank], summary.shape.columns};
      Result<Matrix> joined = JoinCells(options, shape, summary.format, parts);
      EXPECT_TRUE(joined.ok()) << joined.status().ToString();
      rows.push_back(*std::move(joined));
    }
    return rows;
  }

  void ExpectSameRows(const std::string& name, int64_t chunk_bytes, const std::vector<int64_t>& cuts) {
    SCOPED_TRACE(testing::Message() << name << ", chunks of " << chunk_bytes << ", "
                                    << testing::PrintToString(cuts));
    const Result<ReadOptions> options = Options(name, chunk_bytes);
    ASSERT_TRUE(options.ok()) << options.status().ToString();
    const Result<FileSummary> summary = Summarize(*options, *files_);
    ASSERT_TRUE(summary.ok()) << summary.status().ToString();
    const Matrix whole = *ReadRows(*options, *summary, 0, summary->shape.rows, *files_);
    const std::vector<Matrix> rows = ReadTogether(*options, *summary, cuts);
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      EXPECT_EQ(rows[rank].IsSparse(), whole.IsSparse());
      EXPECT_TRUE(Matrix::SameCells(rows[rank], whole.Rows(cuts[rank], cuts[rank + 1]))) << "rank " << rank;
    }
  }
};

TEST_F(ReadStagesTest, RowsAreThoseOfOneReader) {
  Put("columns.ijv", "1 1 2\n3 1 0.5\n6 1 -1\n% no\n2 2 4.5\n5 2 1e300\n1 3 7\n4 3 0\n6 3 -0.25\n");
  // In the order of the file: other orders give other sums.
  Put("twice.ijv", "5 1 1\n6 2 4.5\n5 1 1e-16\n1 1 1\n5 1 1e-16\n5 1 -1\n6 2 0\n");
  Put("wide.ijv", "1 1 1\n6 1000 2\n3 500 3\n6 1000 1e-17\n");
  Put("s.mtx", "%%MatrixMarket matrix coordinate real symmetric\n6 6 4\n6 1 2\n4 2 3\n3 3 4\n6 1 0.1\n");
  Put("skew.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n6 6 2\n6 1 2\n4 2 3\n");
  Put("pattern.mtx", "%%MatrixMarket matrix coordinate pattern general\n6 2 2\n6 1\n4 2\n");
  Put("array.mtx", "%%MatrixMarket matrix array real general\n6 2\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
  for (const char* const name :
       {"columns.ijv", "twice.ijv", "wide.ijv", "s.mtx", "skew.mtx", "pattern.mtx", "array.mtx"})
    for (const int64_t chunk_bytes : {1, 9, 20, 1000})
      for (const std::vector<int64_t>& cuts :
           {std::vector<int64_t>{0, 6}, {0, 3, 6}, {0, 0, 1, 1, 5, 6, 6}, {0, 1, 2, 3, 4, 5, 6}})
        ExpectSameRows(name, chunk_bytes, cuts);
}

TEST_F(ReadStagesTest, ManyCellsInAnyOrderSomeOfThemTwice) {
  std::mt19937_64 random(5);
  for (const int64_t columns : {7, 300}) {
    std::string text;
    for (int k = 0; k < 20'000; ++k)
      text += fmt::format("{} {} {}\n", random() % 900 + 1, random() % static_cast<uint64_t>(columns) + 1,
                          static_cast<double>(random() % 1000) / 7 - 20);
    Put("cells.ijv", text + fmt::format("900 {} 1\n", columns));
    for (const int64_t chunk_bytes : {1000, 60'000})
      ExpectSameRows("cells.ijv", chunk_bytes, {0, 100, 101, 640, 900});
  }
}

// By each for itself two ranks would parse all of a file in the order of its columns, and of one in the order
// of its rows a half.
TEST_F(ReadStagesTest, CellsAreSentWhereRanksWouldParseMostOfTheFile) {
  std::string by_rows, by_columns;
  for (int i = 1; i <= 400; ++i)
    for (int j = 1; j <= 1000; ++j) by_rows += fmt::format("{} {} 1.5\n", i, j);
  for (int j = 1; j <= 1000; ++j)
    for (int i = 1; i <= 400; ++i) by_columns += fmt::format("{} {} 1.5\n", i, j);
  Put("rows.ijv", by_rows);
  Put("columns.ijv", by_columns);
  Put("table.csv", "1,2\n3,4\n");
  EXPECT_FALSE(ShouldSendCells(Node(), "rows.ijv", 2, 0, *files_));
  EXPECT_TRUE(ShouldSendCells(Node(), "columns.ijv", 2, 0, *files_));
  EXPECT_TRUE(ShouldSendCells(Node(), "columns.ijv", 4, 0, *files_));
  EXPECT_FALSE(ShouldSendCells(Node(), "columns.ijv", 1, 0, *files_));
  EXPECT_FALSE(ShouldSendCells(Node(), "columns.ijv", 1 << 11, 0, *files_));
  EXPECT_FALSE(ShouldSendCells(Node(), "table.csv", 4, 0, *files_));
  EXPECT_FALSE(ShouldSendCells(Node(), "absent.ijv", 4, 0, *files_));
  // 400,000 cells of 48 bytes on their way and 8 in their place, a fourth of them on each rank.
  EXPECT_TRUE(ShouldSendCells(Node(), "columns.ijv", 4, 11'200'000, *files_));
  EXPECT_FALSE(ShouldSendCells(Node(), "columns.ijv", 4, 11'199'999, *files_));
}

TEST_F(ReadStagesTest, CellsThatDoNotFitAreRefused) {
  Put("x.ijv", "1 1 1\n9 2 2\n");
  const ReadOptions options = *Options("x.ijv", 1000);
  const FileSummary summary = *Summarize(options, *files_);
  const TextFile text = *OpenText(options, *files_);
  // The file has more rows, or columns, than it had.
  const auto message = [&](const FileSummary& of, const std::vector<int64_t>& cuts) {
    return CellsByRank(options, of, text, {0, 1}, cuts).status().ToString();
  };
  FileSummary narrow = summary;
  narrow.shape.columns = 1;
  EXPECT_EQ(message(summary, {0, 9}), "ok");
  EXPECT_EQ(message(summary, {0, 8}), "cannot read 'x.ijv': it changed while it was read");
  EXPECT_EQ(message(narrow, {0, 9}), "cannot read 'x.ijv': it changed while it was read");

  const auto joined = [&](Matrix cells) {
    const Value part(std::move(cells));
    const Value* const parts[] = {&part};
    return JoinCells(options, {3, 2}, Format::kDense, parts).status();
  };
  Matrix cells = *FilledMatrix(1, 2, 5);
  EXPECT_TRUE(joined(cells).ok());
  cells.mutable_data()[0] = 6;
  EXPECT_EQ(joined(cells).code(), StatusCode::kInternal);
  EXPECT_EQ(joined(*FilledMatrix(1, 3, 0)).code(), StatusCode::kInternal);
}

TEST_F(ReadStagesTest, PlacesMustBeExactInADouble) {
  EXPECT_TRUE(CanExchangeCells({int64_t{1} << 40, 1 << 12}, 4));
  EXPECT_FALSE(CanExchangeCells({int64_t{1} << 40, 1 << 13}, 4));
}

}  // namespace
}  // namespace heddle::ops
