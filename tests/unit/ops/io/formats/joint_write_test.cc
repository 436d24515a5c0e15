// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ops/io/formats/joint_write_fixture.h"

namespace heddle::ops {
namespace {

TEST_F(JointWriteTest, MatricesHaveTheBytesOfOneWriter) {
  const Matrix dense = SomeCells(10, 4);
  for (const FileFormat format : kOfMatrices)
    for (const bool sparse : {false, true})
      for (const auto& [packing, parts] :
           {std::pair(Packing::kNone, 0), {Packing::kGzip, 0}, {Packing::kNone, 3}, {Packing::kZstd, 3}}) {
        WriteOptions options = In(format, packing, parts);
        options.header = sparse;
        for (const std::vector<int64_t>& cuts : CutsOfTen()) {
          SCOPED_TRACE(testing::Message()
                       << Name(format) << " in " << cuts.size() - 1 << ", parts " << parts);
          ExpectSameFiles(Value(sparse ? *ToSparse(dense) : dense), cuts, options);
        }
        ExpectSameFiles(Value(*FilledMatrix(10, 2, 0)), {0, 4, 10}, options);
        ExpectSameFiles(Value(*Matrix::Dense(0, 3)), {0, 0, 0}, options);
      }
}

TEST_F(JointWriteTest, FramesHaveTheBytesOfOneWriter) {
  for (const FileFormat format : kOfFrames)
    for (const std::vector<int64_t>& cuts : CutsOfTen())
      for (const bool header : {false, true})
        for (const auto& [packing, parts] : {std::pair(Packing::kNone, 0), {Packing::kZstd, 4}}) {
          SCOPED_TRACE(testing::Message()
                       << Name(format) << " in " << cuts.size() - 1 << ", parts " << parts);
          WriteOptions options = In(format, packing, parts);
          options.header = header;
          ExpectSameFiles(Value(SomeTexts(10, {"a text", "n,m"})), cuts, options);
        }
}

// In a csv file of one column the first text that is there may need quotes.
TEST_F(JointWriteTest, TheFirstTextOfAColumnIsKnownToAll) {
  const auto schema = std::make_shared<Schema>(Schema{{ColumnType::kString}, {}});
  for (const size_t missing : {0, 1, 4, 6}) {
    std::vector<std::optional<std::string>> texts(6, "a;b c");
    std::fill_n(texts.begin(), missing, std::nullopt);
    for (const std::vector<int64_t>& cuts :
         {std::vector<int64_t>{0, 3, 6}, {0, 1, 2, 3, 4, 5, 6}, {0, 0, 5, 6}})
      ExpectSameFiles(Value(Frame(schema, {*TextColumn(texts)})), cuts, In(FileFormat::kCsv));
  }
}

// Blocks of binary files and pieces of packed ones end in the rows of any rank.
TEST_F(JointWriteTest, SectionsGoOnInTheRowsOfOtherRanks) {
  std::mt19937_64 random(7);
  const std::vector<Value> values = {Value(SomeCells(40'000, 9)), Value(*ToSparse(SomeCells(3'000, 200))),
                                     Value(SomeCells(3, 70'000)), Value(*ToSparse(SomeCells(7, 70'000))),
                                     Value(SomeTexts(150'000, {}))};
  for (int round = 0; round < 30; ++round) {
    const Value& value = values[random() % values.size()];
    const int64_t rows = value.shape().rows;
    std::vector<int64_t> cuts = {0, rows};
    for (auto more = random() % 5; more > 0; --more)
      cuts.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows + 1)));
    std::sort(cuts.begin(), cuts.end());
    const FileFormat format = value.IsFrame() ? kOfFrames[random() % std::size(kOfFrames)]
                                              : kOfMatrices[random() % std::size(kOfMatrices)];
    const auto packing = static_cast<Packing>(random() % 3);
    SCOPED_TRACE(testing::Message() << "round " << round << ", " << Name(format) << ", " << Name(packing)
                                    << ", " << testing::PrintToString(cuts));
    ExpectSameFiles(value, cuts, In(format, packing, static_cast<int64_t>(random() % 6)));
  }
}

// How cells are stored is nothing that a file tells.
TEST_F(JointWriteTest, PackedBytesAreThoseOfTheCells) {
  const Matrix dense = SomeCells(9, 40'000);
  for (const FileFormat format : {FileFormat::kText, FileFormat::kLibsvm, FileFormat::kCsv}) {
    ASSERT_TRUE(WriteValue(Value(dense), "dense", In(format, Packing::kGzip), *files_).ok());
    ASSERT_TRUE(WriteValue(Value(*ToSparse(dense)), "sparse", In(format, Packing::kGzip), *files_).ok());
    EXPECT_TRUE(BytesOf("dense") == BytesOf("sparse")) << Name(format);
  }
}

// What a rank has to hold until it knows where it belongs goes to the disk where memory has no room; of text
// the bytes are counted instead.
TEST_F(JointWriteTest, WhatMemoryCannotHoldIsCountedOrHeldOnTheDisk) {
  const Value cells(SomeCells(60'000, 9)), texts(SomeTexts(200'000, {"text", "n"}));
  for (const auto& [value, format] : {std::pair(&cells, FileFormat::kCsv),
                                      {&cells, FileFormat::kText},
                                      {&cells, FileFormat::kNpy},
                                      {&texts, FileFormat::kCsv},
                                      {&texts, FileFormat::kText},
                                      {&texts, FileFormat::kJsonl}}) {
    SCOPED_TRACE(Name(format));
    ASSERT_TRUE(WriteValue(*value, "alone", In(format), *files_).ok());
    const int64_t rows = value->shape().rows;
    Ranks ranks = MakeRanks(*value, {0, rows / 3, rows / 3 * 2, rows}, "together", In(format));
    ASSERT_TRUE(ranks.Begin().ok());
    MemoryBudget& budget = MemoryBudget::Process();
    const int64_t limit = budget.limit();
    budget.SetLimit(budget.used() + (int64_t{3} << 20));
    const Status given = ranks.Give();
    const Status placed = ranks.Place();
    budget.SetLimit(limit);
    ASSERT_TRUE(given.ok()) << given.ToString();
    ASSERT_TRUE(placed.ok()) << placed.ToString();
    ASSERT_TRUE(ranks.Finish().ok());
    EXPECT_TRUE(BytesOf("together") == BytesOf("alone"));
  }
}

// Rows that are in panels are read a few at a time, each at most twice but those at the ends of what ranks
// have, and their bytes are not held in memory.
TEST_F(JointWriteTest, RowsOfPanelsAreReadAFewAtATimeAndAtMostTwice) {
  constexpr int64_t kRows = 300'000, kFewRows = kRows / 5;
  const Value dense(SomeCells(kRows, 9)), sparse(*ToSparse(dense.matrix())), texts(SomeTexts(kRows, {}));
  for (const Value* const value : {&dense, &sparse, &texts})
    for (const FileFormat format :
         {FileFormat::kCsv, FileFormat::kText, FileFormat::kMatrixMarket, FileFormat::kLibsvm,
          FileFormat::kNpy, FileFormat::kBinary, FileFormat::kJsonl, FileFormat::kArff})
      for (const auto& [packing, parts] :
           {std::pair(Packing::kNone, 0), {Packing::kZstd, 0}, {Packing::kNone, 2}}) {
        SCOPED_TRACE(testing::Message() << Name(format) << ", " << Name(packing) << ", parts " << parts
                                        << (value == &sparse ? ", sparse" : ""));
        const WriteOptions options = In(format, packing, parts);
        if (!WriteValue(*value, "alone", options, *files_).ok()) continue;  // It holds no such values.
        Ranks ranks = MakeRanks(*value, {0, 100'001, 100'001, 250'000, kRows}, "together", options);
        const Status all = ranks.InPanels().All();
        ASSERT_TRUE(all.ok()) << all.ToString();
        EXPECT_TRUE(BytesOf("together") == BytesOf("alone"));
        EXPECT_TRUE(BytesOf("together.mtd") == BytesOf("alone.mtd"));
        for (const auto& panels : ranks.panels) {
          EXPECT_LE(panels->read(), 2 * panels->shape().rows + kFewRows);
          EXPECT_LT(panels->most_read(), 2 * kFewRows);
        }
      }
}

// What a plan lets a write hold, rows that are read and what they are put together from, it does not exceed.
TEST_F(JointWriteTest, RowsThatAreReadAtOnceFollowWhatMayBeHeld) {
  constexpr int64_t kRows = 100'000, kColumns = 9, kHeld = 64 << 10;
  const Value dense(SomeCells(kRows, kColumns));
  for (const auto& [format, packing, parts] : {std::tuple(FileFormat::kCsv, Packing::kNone, 0),
                                               {FileFormat::kText, Packing::kNone, 0},
                                               {FileFormat::kNpy, Packing::kNone, 2}}) {
    SCOPED_TRACE(testing::Message() << Name(format) << ", parts " << parts);
    const WriteOptions options = In(format, packing, parts);
    ASSERT_TRUE(WriteValue(dense, "alone", options, *files_).ok());
    Ranks ranks = MakeRanks(dense, {0, 40'001, kRows}, "together", options, kHeld);
    const Status all = ranks.InPanels().All();
    ASSERT_TRUE(all.ok()) << all.ToString();
    EXPECT_TRUE(BytesOf("together") == BytesOf("alone"));
    for (const auto& panels : ranks.panels) EXPECT_LE(panels->most_read() * kColumns * 8, kHeld / 2);
  }
}

// Where memory has room for some of the text, that is held and the rest is counted.
TEST_F(JointWriteTest, SomeRowsAreHeldAndTheOthersCounted) {
  const Value value(SomeCells(700'000, 9));
  ASSERT_TRUE(WriteValue(value, "alone", In(FileFormat::kCsv), *files_).ok());
  for (const int64_t held_mib : {20, 40, 120}) {
    SCOPED_TRACE(held_mib);
    Ranks ranks = MakeRanks(value, {0, 100'000, 700'000}, "together", In(FileFormat::kCsv));
    ASSERT_TRUE(ranks.Begin().ok());
    MemoryBudget& budget = MemoryBudget::Process();
    const int64_t limit = budget.limit();
    BlockPool::Process().Trim();
    budget.SetLimit(budget.used() + (4 * held_mib << 20));
    const Status given = ranks.Give();
    budget.SetLimit(limit);
    ASSERT_TRUE(given.ok()) << given.ToString();
    const auto made_by = [&](size_t rank) { return RecordTaker(ranks.given[rank].kept).Take<int64_t>(); };
    EXPECT_EQ(made_by(0), 100'000);  // Those of the first rank go to the file at once.
    EXPECT_EQ(made_by(1) > 0, held_mib > 20);
    EXPECT_EQ(made_by(1) == 600'000, held_mib == 120);
    ASSERT_TRUE(ranks.Place().ok());
    ASSERT_TRUE(ranks.Finish().ok());
    EXPECT_TRUE(BytesOf("together") == BytesOf("alone"));
  }
}

}  // namespace
}  // namespace heddle::ops
