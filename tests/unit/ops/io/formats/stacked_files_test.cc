// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/stacked_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "ops/frame/text_column.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class StackedFilesTest : public FormatsTest {
 protected:
  StackedFilesTest() { std::filesystem::create_directory(directory_ + "/folder"); }

  static Matrix Numbered(int64_t rows, int64_t columns, int64_t zeros_in) {
    Matrix matrix = *Matrix::Dense(rows, columns);
    for (int64_t k = 0; k < matrix.cells(); ++k)
      matrix.mutable_data()[k] = k % zeros_in == 0 ? static_cast<double>(k) + 0.5 : 0;
    return matrix;
  }
  // Writes the rows between cuts, each as a file of the folder.
  void PutRows(const Value& value, const std::vector<int64_t>& cuts, FileFormat format) {
    WriteOptions options;
    options.format = format;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      const std::string name = "folder/rows_" + std::to_string(i) + (i % 2 == 1 ? ".gz" : "");
      const Value rows = value.IsFrame() ? Value(value.frame().Rows(cuts[i], cuts[i + 1]))
                                         : Value(value.matrix().Rows(cuts[i], cuts[i + 1]));
      ASSERT_TRUE(WriteValue(rows, name, options, *files_).ok());
      std::filesystem::remove(directory_ + "/" + name + ".mtd");
    }
    Put("folder/_SUCCESS", "");
    Put("folder/.rows_0.crc", "c");
  }
};

TEST_F(StackedFilesTest, RowsOfFilesAreBelowEachOther) {
  for (const FileFormat format : {FileFormat::kBinary, FileFormat::kNpy})
    for (const int64_t zeros_in : {1, 5}) {
      const Matrix matrix = Numbered(30, 3, zeros_in);
      PutRows(Value(matrix), {0, 1, 12, 12, 30}, format);
      const ReadOptions options = *ResolveReadOptions(Node(), "folder", *files_);
      EXPECT_EQ(options.format, format);
      const FileSummary summary = *Summarize(options, *files_);
      EXPECT_EQ(summary.shape, matrix.shape());
      for (int64_t begin = 0; begin <= 30; ++begin)
        for (int64_t end = begin; end <= 30; end += 7) {
          const Result<Matrix> rows = ReadRows(options, summary, begin, end, *files_);
          ASSERT_TRUE(rows.ok()) << rows.status().ToString();
          EXPECT_EQ(rows->IsSparse(), summary.format == Format::kSparse);
          EXPECT_TRUE(Matrix::SameCells(*rows, matrix.Rows(begin, end))) << begin << " to " << end;
        }
    }
}

TEST_F(StackedFilesTest, FramesToo) {
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString};
  schema->names = {"text"};
  const std::vector<std::optional<std::string>> texts = {"a", std::nullopt, "", "bcd", "e"};
  const Frame frame(schema, {*TextColumn(texts)});
  PutRows(Value(frame), {0, 2, 5}, FileFormat::kBinary);
  const Result<Frame> read = ReadFrame("folder");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read->schema(), *schema);
  for (int64_t row = 0; row < 5; ++row) {
    EXPECT_EQ(read->column(0).IsMissing(row), frame.column(0).IsMissing(row));
    EXPECT_EQ(read->column(0).TextAt(row), frame.column(0).TextAt(row));
  }
}

TEST_F(StackedFilesTest, WhatIsWrongIsToldOfItsFile) {
  EXPECT_EQ(Fault("folder", {{"format", "npy"}}),
            "cannot read 'folder': it holds no data\nfiles of folders inside of it are not looked for");
  PutRows(Value(Numbered(4, 3, 1)), {0, 4}, FileFormat::kNpy);
  EXPECT_EQ(Fault("folder", {{"format", "npy"}, {"rows", 5}}),
            "cannot read 'folder': rows=5 was asked for, the file has 4");
  EXPECT_EQ(Fault("folder", {{"format", "npy"}, {"transposed", true}}),
            "cannot read 'folder': transposed= is of one array, a folder holds rows of one\n"
            "t() transposes a matrix");
  WriteOptions options;
  options.format = FileFormat::kNpy;
  ASSERT_TRUE(WriteValue(Value(Numbered(4, 2, 1)), "folder/rows_1", options, *files_).ok());
  EXPECT_EQ(Fault("folder", {{"format", "npy"}}),
            "cannot read 'folder/rows_1': it has other columns than 'folder/rows_0'\n"
            "the files of a folder are one below the other");
  Put("folder/rows_1", Get("folder/rows_0").substr(0, 100));
  EXPECT_TRUE(Fault("folder", {{"format", "npy"}}).starts_with("cannot read 'folder/rows_1': "));
}

}  // namespace
}  // namespace heddle::ops
