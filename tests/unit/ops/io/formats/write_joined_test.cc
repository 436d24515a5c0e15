// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write_joined.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ops/frame/text_column.h"
#include "ops/io/files/joined_parts.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class WriteJoinedTest : public FormatsTest {
 protected:
  std::string BytesOf(const std::string& name) { return files_->Exists(name) ? Get(name) : "no file"; }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  static Value RowsOf(const Value& whole, int64_t begin, int64_t end) {
    return whole.IsFrame() ? Value(whole.frame().Rows(begin, end)) : Value(whole.matrix().Rows(begin, end));
  }
  static ValueInfo InfoOf(const Value& whole) {
    return whole.IsFrame() ? ValueInfo::OfFrame(whole.shape().rows, whole.frame().schema())
                           : ValueInfo::OfMatrix(whole.shape());
  }
  // As ranks with these cuts of the rows would.
  Status WriteTogether(const Value& whole, const std::vector<int64_t>& cuts, const std::string& name,
                       const WriteOptions& options) {
    std::vector<std::string> kept;
    for (size_t rank = 0; rank + 1 < cuts.size(); ++rank) {
      HEDDLE_ASSIGN_OR_RETURN(kept.emplace_back(),
                              KeepRows(RowsOf(whole, cuts[rank], cuts[rank + 1]), cuts[rank], InfoOf(whole),
                                       name, options, *files_));
    }
    return FinishJoined(kept, InfoOf(whole), name, options, *files_);
  }
  void ExpectSameFile(const Value& whole, const std::vector<int64_t>& cuts, const WriteOptions& options) {
    ASSERT_TRUE(CanWriteJoined(InfoOf(whole), "together", options, *files_));
    const Status one = WriteValue(whole, "alone", options, *files_);
    const Status all = WriteTogether(whole, cuts, "together", options);
    ASSERT_EQ(all.ToString(), one.ToString());
    if (!one.ok()) return;
    EXPECT_EQ(BytesOf("together"), BytesOf("alone"));
    EXPECT_EQ(BytesOf("together.mtd"), BytesOf("alone.mtd"));
    for (const std::string& name : Names()) EXPECT_NE(name[0], '.') << name;
  }
};

// Rows of zeros, of few cells and of many, and numbers of any length.
Matrix SomeCells(int64_t rows, int64_t columns) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      matrix.mutable_data()[i * columns + j] =
          i % 3 == 0 || (i + j) % 4 == 0 ? 0 : static_cast<double>(i) / 7 - j;
  return matrix;
}

const std::vector<std::vector<int64_t>>& CutsOfTen() {
  static const std::vector<std::vector<int64_t>> cuts = {{0, 10},       {0, 5, 10},
                                                         {0, 1, 2, 10}, {0, 0, 0, 4, 4, 10, 10},
                                                         {0, 10, 10},   {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  return cuts;
}

TEST_F(WriteJoinedTest, MatricesHaveTheBytesOfOneWriter) {
  const Matrix dense = SomeCells(10, 4);
  for (const FileFormat format : {FileFormat::kCsv, FileFormat::kText, FileFormat::kMatrixMarket,
                                  FileFormat::kLibsvm, FileFormat::kNpy})
    for (const bool sparse : {false, true}) {
      WriteOptions options;
      options.format = format;
      options.header = options.sparse = sparse;
      for (const std::vector<int64_t>& cuts : CutsOfTen()) {
        SCOPED_TRACE(testing::Message() << Name(format) << " in " << cuts.size() - 1);
        ExpectSameFile(Value(sparse ? *ToSparse(dense) : dense), cuts, options);
      }
      ExpectSameFile(Value(*FilledMatrix(10, 2, 0)), {0, 4, 10}, options);
    }
}

TEST_F(WriteJoinedTest, FramesHaveTheBytesOfOneWriter) {
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString, ColumnType::kInteger64};
  schema->names = {"a text", "n,m"};
  std::vector<std::optional<std::string>> texts;
  Column numbers = *Column::Make(ColumnType::kInteger64, 10, 0, false);
  for (int64_t i = 0; i < 10; ++i) {
    texts.push_back(i % 4 == 3 ? std::optional<std::string>()
                               : std::string(static_cast<size_t>(i % 3), '"') + "\n");
    numbers.mutable_integers()[i] = i * i - 5;
  }
  const Frame frame(schema, {*TextColumn(texts), numbers});
  for (const FileFormat format : {FileFormat::kCsv, FileFormat::kText, FileFormat::kJsonl})
    for (const std::vector<int64_t>& cuts : CutsOfTen())
      for (const bool header : {false, true}) {
        SCOPED_TRACE(testing::Message() << Name(format) << " in " << cuts.size() - 1);
        WriteOptions options;
        options.format = format;
        options.header = header;
        ExpectSameFile(Value(frame), cuts, options);
      }
}

TEST_F(WriteJoinedTest, SomeAreWrittenByOneRank) {
  WriteOptions options;
  const ValueInfo matrix = ValueInfo::OfMatrix({10, 1});
  const auto schema = std::make_shared<Schema>(Schema{{ColumnType::kString}, {}});
  const ValueInfo column = ValueInfo::OfFrame(10, schema);
  options.format = FileFormat::kCsv;
  EXPECT_TRUE(CanWriteJoined(matrix, "x.csv", options, *files_));
  EXPECT_FALSE(CanWriteJoined(matrix, "x.csv.gz", options, *files_));  // packed
  EXPECT_FALSE(CanWriteJoined(column, "x.csv", options, *files_));     // its first text may need quotes
  options.header = true;
  EXPECT_TRUE(CanWriteJoined(column, "x.csv", options, *files_));
  options.format = FileFormat::kBinary;
  EXPECT_FALSE(CanWriteJoined(matrix, "x", options, *files_));  // blocks end where they end
}

TEST_F(WriteJoinedTest, UntilAllIsThereTheOldFileStays) {
  WriteOptions options;
  options.format = FileFormat::kCsv;
  const Value value(SomeCells(10, 4));
  ASSERT_TRUE(WriteValue(value, "x", options, *files_).ok());
  const std::string old = BytesOf("x");
  const Value other(SomeCells(20, 3));
  const std::string first = *KeepRows(RowsOf(other, 0, 10), 0, InfoOf(other), "x", options, *files_);
  EXPECT_EQ(BytesOf("x"), old);
  EXPECT_EQ(Names().size(), 3U);  // The file, its metadata, a hidden part.
  // A rank that sees another folder: its part is not here.
  std::string elsewhere = first;
  elsewhere[elsewhere.find(".part.heddle") - 1] ^= 1;
  const Status failed = FinishJoined({first, elsewhere}, InfoOf(other), "x", options, *files_);
  EXPECT_EQ(failed.ToString(),
            "cannot write 'x': worker 0 does not see what another worker has written of it\n"
            "every worker must see the same files of a job");
  EXPECT_EQ(BytesOf("x"), old);
  // A job that ends leaves nothing.
  ASSERT_TRUE(KeepRows(RowsOf(other, 0, 10), 0, InfoOf(other), "x", options, *files_).ok());
  files_ = MakeFiles(directory_);
  EXPECT_EQ(Names(), (std::vector<std::string>{"x", "x.mtd"}));
  EXPECT_EQ(BytesOf("x"), old);
}

TEST_F(WriteJoinedTest, APartThatBecameShorterIsNamed) {
  WriteOptions options;
  options.format = FileFormat::kCsv;
  const Value value(SomeCells(10, 4));
  const std::string kept = *KeepRows(value, 0, InfoOf(value), "x", options, *files_);
  ASSERT_EQ(Names().size(), 1U);
  std::filesystem::resize_file(directory_ + "/" + Names()[0], 5);
  EXPECT_EQ(FinishJoined({kept}, InfoOf(value), "x", options, *files_).message(),
            "cannot write 'x': another worker's part of it became shorter");
  EXPECT_FALSE(FinishJoined({"short"}, InfoOf(value), "x", options, *files_).ok());
  EXPECT_EQ(BytesOf("x"), "no file");
}

}  // namespace
}  // namespace heddle::ops
