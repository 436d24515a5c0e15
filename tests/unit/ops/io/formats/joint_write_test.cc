// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/joint_write.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "core/programs/distribution.h"
#include "ops/base/held_bytes.h"
#include "ops/frame/row_pieces.h"
#include "ops/frame/text_column.h"
#include "ops/io/files/hidden_names.h"
#include "ops/io/files/joint_files.h"
#include "ops/io/formats/write/record_bytes.h"
#include "tests/unit/ops/io/formats/counted_panels.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

namespace fs = std::filesystem;

class JointWriteTest : public FormatsTest {
 protected:
  // What there is below a path, by name; hidden names too.
  std::map<std::string, std::string> BytesOf(const std::string& name) {
    std::map<std::string, std::string> bytes;
    const fs::path path = directory_ + "/" + name;
    const auto read = [](const fs::path& file) {
      std::ifstream in(file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::directory_iterator(path))
        bytes[entry.path().filename().string()] = read(entry.path());
    } else if (fs::exists(path)) {
      bytes[""] = read(path);
    }
    return bytes;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  static ValueInfo InfoOf(const Value& whole) {
    ValueInfo info = whole.IsFrame() ? ValueInfo::OfFrame(whole.shape().rows, whole.frame().schema())
                                     : ValueInfo::OfMatrix(whole.shape());
    if (whole.IsMatrix()) info.element_type = whole.matrix().element_type();
    return info;
  }

  // The ranks of a job, each with files of its own.
  struct Ranks {
    Ranks(std::string directory, const Value& value, std::vector<int64_t> row_cuts, std::string name,
          const WriteOptions& write_options, int64_t held_bytes = kMostHeldByWrite)
        : whole(value),
          info(InfoOf(value)),
          cuts(std::move(row_cuts)),
          path(std::move(name)),
          options(write_options) {
      for (size_t rank = 0; rank + 1 < cuts.size(); ++rank) {
        files.push_back(MakeFiles(directory));
        rows.push_back(*SliceRows(whole, cuts[rank], cuts[rank + 1]));
      }
      for (size_t rank = 0; rank < files.size(); ++rank)
        writes.emplace_back(info, cuts, static_cast<int32_t>(rank), path, options, held_bytes, *files[rank]);
    }
    Status Begin() {
      std::vector<std::string> begun;
      for (size_t rank = 0; rank < files.size(); ++rank) {
        HEDDLE_ASSIGN_OR_RETURN(begun.emplace_back(), writes[rank].Begin(rows[rank]));
      }
      for (JointWrite& write : writes) HEDDLE_RETURN_IF_ERROR(write.UseTotals(begun));
      return OkStatus();
    }
    Status Give() {
      std::vector<std::vector<Value>> moved;
      for (size_t rank = 0; rank < files.size(); ++rank) {
        HEDDLE_ASSIGN_OR_RETURN(moved.emplace_back(), writes[rank].RowsForOthers(rows[rank]));
      }
      for (size_t rank = 0; rank < files.size(); ++rank) {
        std::vector<const Value*> for_rank;
        for (const std::vector<Value>& of_rank : moved) for_rank.push_back(&of_rank[rank]);
        HEDDLE_ASSIGN_OR_RETURN(given.emplace_back(), writes[rank].GiveRows(rows[rank], for_rank));
        for_all.push_back(given.back().for_all);
      }
      return OkStatus();
    }
    Status Place() {
      for (size_t rank = 0; rank < files.size(); ++rank) {
        HEDDLE_ASSIGN_OR_RETURN(placed.emplace_back(),
                                writes[rank].Place(rows[rank], given[rank].kept, for_all));
      }
      return OkStatus();
    }
    // What the ranks have is panels.
    Ranks& InPanels() {
      for (Value& of_rank : rows) {
        panels.push_back(std::make_shared<CountedPanels>(std::move(of_rank)));
        of_rank = Value(std::shared_ptr<const RowPanels>(panels.back()));
      }
      return *this;
    }
    Status Finish() { return FinishJointWrite(placed, info, path, options, *files[0]); }
    Status All() {
      HEDDLE_RETURN_IF_ERROR(Begin());
      HEDDLE_RETURN_IF_ERROR(Give());
      HEDDLE_RETURN_IF_ERROR(Place());
      return Finish();
    }

    Value whole;
    ValueInfo info;
    std::vector<int64_t> cuts;
    std::string path;
    WriteOptions options;
    std::vector<std::unique_ptr<Files>> files;
    std::vector<Value> rows;
    std::vector<std::shared_ptr<const CountedPanels>> panels;
    std::vector<JointWrite> writes;
    std::vector<JointWrite::Given> given;
    std::vector<std::string> for_all, placed;
  };
  Ranks MakeRanks(const Value& whole, const std::vector<int64_t>& cuts, const std::string& name,
                  const WriteOptions& options, int64_t held_bytes = kMostHeldByWrite) {
    return {directory_, whole, cuts, name, options, held_bytes};
  }

  void ExpectSameFiles(const Value& whole, const std::vector<int64_t>& cuts, const WriteOptions& options) {
    const Status one = WriteValue(whole, "alone", options, *files_);
    for (const bool in_panels : {false, true}) {
      SCOPED_TRACE(in_panels);
      {
        Ranks ranks = MakeRanks(whole, cuts, "together", options);
        const Status all = (in_panels ? ranks.InPanels() : ranks).All();
        std::string told = all.ToString();
        if (const size_t at = told.find("'together'"); at != std::string::npos)
          told.replace(at, 10, "'alone'");
        ASSERT_EQ(told, one.ToString());
      }
      if (!one.ok()) continue;
      EXPECT_EQ(BytesOf("together"), BytesOf("alone"));
      EXPECT_EQ(BytesOf("together.mtd"), BytesOf("alone.mtd"));
      for (const std::string& name : Names()) EXPECT_NE(name[0], '.') << name;
      fs::remove_all(directory_ + "/together");
    }
    fs::remove_all(directory_ + "/alone");
  }
};

// Rows of zeros, of few cells and of many, and numbers of any length.
Matrix SomeCells(int64_t rows, int64_t columns) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      matrix.mutable_data()[i * columns + j] =
          i % 3 == 0 || (i + j) % 4 == 0 ? 0 : static_cast<double>(i) / 7 - static_cast<double>(j);
  return matrix;
}

Frame SomeTexts(int64_t rows, std::vector<std::string> names) {
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString, ColumnType::kInteger64};
  schema->names = std::move(names);
  std::vector<std::optional<std::string>> texts;
  Column numbers = *Column::Make(ColumnType::kInteger64, rows, 0, false);
  for (int64_t i = 0; i < rows; ++i) {
    texts.push_back(i % 4 == 3 ? std::optional<std::string>()
                               : std::string(static_cast<size_t>(i % 3), '"') + "\n");
    numbers.mutable_integers()[i] = i * i - 5;
  }
  return {schema, {*TextColumn(texts), numbers}};
}

const std::vector<std::vector<int64_t>>& CutsOfTen() {
  static const std::vector<std::vector<int64_t>> cuts = {{0, 10},       {0, 5, 10},
                                                         {0, 1, 2, 10}, {0, 0, 0, 4, 4, 10, 10},
                                                         {0, 10, 10},   {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  return cuts;
}

WriteOptions In(FileFormat format, std::optional<Packing> packing = std::nullopt, int64_t parts = 0) {
  WriteOptions options;
  options.format = format;
  options.packing = packing;
  options.parts = parts;
  return options;
}

constexpr FileFormat kOfMatrices[] = {FileFormat::kCsv,    FileFormat::kText, FileFormat::kMatrixMarket,
                                      FileFormat::kLibsvm, FileFormat::kNpy,  FileFormat::kBinary,
                                      FileFormat::kNpz};
constexpr FileFormat kOfFrames[] = {FileFormat::kCsv, FileFormat::kText, FileFormat::kJsonl,
                                    FileFormat::kBinary, FileFormat::kArff};

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
  EXPECT_FALSE(ranks.writes[0].UseTotals(std::vector<std::string>{"short"}).ok());
  ASSERT_TRUE(ranks.Begin().ok());
  ASSERT_TRUE(ranks.Give().ok());
  EXPECT_FALSE(ranks.writes[0].Place(ranks.rows[0], "", ranks.for_all).ok());
  EXPECT_FALSE(
      FinishJointWrite(std::vector<std::string>{"short"}, ranks.info, "x", ranks.options, *files_).ok());
}

}  // namespace
}  // namespace heddle::ops
