// SPDX-License-Identifier: Apache-2.0
// What becomes of the file that was there, and what is told, when ranks write one together.
#include "tests/unit/ops/io/formats/joint_write_fixture.h"

namespace heddle::ops {
namespace {

TEST_F(JointWriteTest, UntilAllIsThereTheOldFileStays) {
  for (const int64_t parts : {0, 2}) {
    const WriteOptions options = In(FileFormat::kCsv, std::nullopt, parts);
    const Value value(SomeCells(10, 4)), other(SomeCells(20, 3));
    ASSERT_TRUE(WriteValue(value, "x", options, *files_).ok());
    const auto old = BytesOf("x");
    for (int steps = 0; steps <= 3; ++steps) {
      {
        Ranks ranks = MakeRanks(other, {0, 5, 20}, "x", options);
        ASSERT_TRUE(steps < 1 || ranks.Begin().ok());
        ASSERT_TRUE(steps < 2 || ranks.Give().ok());
        ASSERT_TRUE(steps < 3 || ranks.Place().ok());
        EXPECT_EQ(BytesOf("x"), old);
        EXPECT_EQ(Names().size(), steps > 0 ? 3U : 2U);  // The file, its metadata, what is to come.
        // Rank 0 is killed: the other one takes away what it has left.
        if (steps > 0) {
          const std::string hidden = Names()[0];
          ASSERT_TRUE(IsHiddenName(hidden)) << hidden;
          ranks.files[0].reset();
          if (parts > 0)
            fs::create_directory(directory_ + "/" + hidden);
          else
            std::ofstream(directory_ + "/" + hidden).put('1');
        }
      }
      EXPECT_EQ(Names(), (std::vector<std::string>{"x", "x.mtd"})) << steps;
      EXPECT_EQ(BytesOf("x"), old);
    }
    fs::remove_all(directory_ + "/x");
  }
}

TEST_F(JointWriteTest, AFolderTakesThePlaceOfAFileAndOfAFolderOfParts) {
  const Value value(SomeCells(10, 4));
  const WriteOptions in_parts = In(FileFormat::kCsv, std::nullopt, 2);
  ASSERT_TRUE(WriteValue(value, "x", In(FileFormat::kCsv), *files_).ok());
  ASSERT_TRUE(WriteValue(value, "x", in_parts, *files_).ok());
  EXPECT_EQ(BytesOf("x").size(), 2U);
  // As Spark leaves it.
  std::ofstream(directory_ + "/x/_SUCCESS").flush();
  std::ofstream(directory_ + "/x/.part-00000.csv.crc").put('c');
  ASSERT_TRUE(WriteValue(value, "x", In(FileFormat::kBinary, std::nullopt, 3), *files_).ok());
  const auto parts = BytesOf("x");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts.begin()->first, "part-00000.bin");
  EXPECT_EQ(Names(), (std::vector<std::string>{"x", "x.mtd"}));
  // What may be somebody's is not removed.
  std::ofstream(directory_ + "/x/notes").put('n');
  EXPECT_EQ(WriteValue(value, "x", in_parts, *files_).ToString(),
            "cannot write 'x': a folder is there that holds 'notes'\n"
            "only folders that hold nothing but files called part-... are replaced");
  EXPECT_EQ(BytesOf("x").size(), 4U);
}

TEST_F(JointWriteTest, FoldersAreForFormatsThatStandBelowEachOther) {
  EXPECT_EQ(WriteValue(Value(SomeCells(4, 2)), "x", In(FileFormat::kMatrixMarket, std::nullopt, 2), *files_)
                .ToString(),
            "write: parts=2, but a folder in format 'mm' is no value\n"
            "formats of folders are csv, text, libsvm, binary, jsonl, npy, parquet and arrow");
  EXPECT_TRUE(Names().empty());
}

TEST_F(JointWriteTest, PartsAreAboutEqualAndFitTheCutsOfRanks) {
  EXPECT_EQ(CutsOfFiles(10, 0), (std::vector<int64_t>{0, 10}));
  EXPECT_EQ(CutsOfFiles(10, 4), (std::vector<int64_t>{0, 2, 5, 7, 10}));
  EXPECT_EQ(CutsOfFiles(2, 4), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(CutsOfFiles(0, 4), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(CutsOfFiles(1'000'000, 3), Distribution::SplitRows(1'000'000, 3).split.cuts);
}

TEST_F(JointWriteTest, AWorkerThatSeesAnotherFolderSaysSo) {
  const Value value(SomeCells(10, 4));
  Ranks ranks = MakeRanks(value, {0, 5, 10}, "x", In(FileFormat::kCsv));
  ASSERT_TRUE(ranks.Begin().ok());
  for (const std::string& name : Names()) fs::remove(directory_ + "/" + name);
  EXPECT_EQ(ranks.Give().ToString(),
            "cannot write 'x': this worker does not see what worker 0 has begun to write\n"
            "every worker must see the same files of a job");
}

// The fault of the first row that has one, whichever rank meets one first.
TEST_F(JointWriteTest, TheFirstFaultIsTold) {
  const auto schema = std::make_shared<Schema>(Schema{{ColumnType::kString}, {}});
  std::vector<std::optional<std::string>> texts(9, "fine");
  texts[4] = texts[7] = "\xff";
  const Value value(Frame(schema, {*TextColumn(texts)}));
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{0, 9}, {0, 6, 9}, {0, 2, 6, 9}})
    for (const int64_t parts : {0, 3})
      ExpectSameFiles(value, cuts, In(FileFormat::kJsonl, std::nullopt, parts));
  EXPECT_EQ(WriteValue(value, "x", In(FileFormat::kJsonl), *files_).message(),
            "write: row 5, column 1: the text is no UTF-8, which jsonl cannot hold");
  // While the session goes on.
  EXPECT_FALSE(WriteValue(value, "x", In(FileFormat::kJsonl, std::nullopt, 3), *files_).ok());
  EXPECT_EQ(Names(), std::vector<std::string>());
}

TEST_F(JointWriteTest, ADiskThatIsFullLeavesTheOldFile) {
  const Value value(SomeCells(10, 4)), large(SomeCells(60'000, 4));
  ASSERT_TRUE(WriteValue(value, "x", In(FileFormat::kCsv), *files_).ok());
  const auto old = BytesOf("x");
  // A file may not become larger than that.
  rlimit limits{};
  getrlimit(RLIMIT_FSIZE, &limits);
  const rlimit small = {.rlim_cur = 1 << 16, .rlim_max = limits.rlim_max};
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  Status failed;
  {
    Ranks ranks = MakeRanks(large, {0, 20'000, 60'000}, "x", In(FileFormat::kCsv));
    failed = ranks.All();
  }
  setrlimit(RLIMIT_FSIZE, &limits);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(failed.message(), "cannot write 'x': File too large");
  EXPECT_EQ(BytesOf("x"), old);
  EXPECT_EQ(Names(), (std::vector<std::string>{"x", "x.mtd"}));
}

TEST_F(JointWriteTest, WhatArrivesMalformedIsNamed) {
  const Value value(SomeCells(10, 4));
  Ranks ranks = MakeRanks(value, {0, 5, 10}, "x", In(FileFormat::kCsv));
  EXPECT_FALSE(ranks.writes[0].UseTotals(std::vector<std::string>{"short"}, "").ok());
  ASSERT_TRUE(ranks.Begin().ok());
  ASSERT_TRUE(ranks.Give().ok());
  EXPECT_FALSE(ranks.writes[0].Place(ranks.rows[0], "", ranks.for_all).ok());
  EXPECT_FALSE(
      FinishJointWrite(std::vector<std::string>{"short"}, ranks.info, "x", ranks.options, *files_).ok());
}

}  // namespace
}  // namespace heddle::ops
