// SPDX-License-Identifier: Apache-2.0
// What is written piece by piece has the bytes of what is written at once, metadata included.
#include "ops/io/formats/write/write_pieces.h"

#include <atomic>
#include <filesystem>
#include <random>
#include <set>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "ops/io/formats/write/row_writer.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

// Whoever takes the rows holds their memory alone.
Matrix AloneInMemory(const Matrix& rows) {
  Matrix dense = *Matrix::Dense(rows.rows(), rows.columns());
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (int64_t j = 0; j < rows.columns(); ++j) dense.mutable_data()[i * rows.columns() + j] = rows.At(i, j);
  return rows.IsSparse() ? *ToSparse(dense) : dense;
}

class WritePiecesTest : public FormatsTest {
 protected:
  void ExpectSameBytes(const Value& value, int64_t rows_at_once, const WriteOptions& options) {
    SCOPED_TRACE(testing::Message() << Name(options.format) << " " << value.shape().rows << "x"
                                    << value.shape().columns << " by " << rows_at_once);
    PiecedValue pieces;
    pieces.shape = value.shape();
    if (value.IsFrame()) pieces.schema = value.frame().schema();
    pieces.rows_at_once = rows_at_once;
    pieces.read = [&](int64_t begin, int64_t end) -> Result<Value> {
      if (value.IsFrame()) return Value(value.frame().Rows(begin, end));
      return Value(AloneInMemory(value.matrix().Rows(begin, end)));
    };
    const Status whole = WriteValue(value, "whole", options, *files_);
    const Status pieced = WritePieces(pieces, "pieces", options, *files_);
    ASSERT_EQ(whole.ToString(), pieced.ToString());
    EXPECT_EQ(Get("whole"), Get("pieces"));
    EXPECT_EQ(Get("whole.mtd"), Get("pieces.mtd"));
  }
};

TEST_F(WritePiecesTest, Matrices) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (const int64_t rows : {0, 1, 300})
    for (const int64_t columns : {1, 3})
      for (const bool is_sparse : {false, true}) {
        Matrix matrix = *Matrix::Dense(rows, columns);
        for (int64_t k = 0; k < rows * columns; ++k)
          matrix.mutable_data()[k] = uniform(random) < 0.3 ? uniform(random) - 0.5 : 0;
        if (rows > 3) matrix.mutable_data()[2] = kNaN;
        if (rows > 3) matrix.mutable_data()[columns] = -0.0;
        if (is_sparse) matrix = *ToSparse(matrix);
        for (const FileFormat format : {FileFormat::kText, FileFormat::kMatrixMarket, FileFormat::kCsv,
                                        FileFormat::kLibsvm, FileFormat::kBinary}) {
          WriteOptions options;
          options.format = format;
          options.header = columns == 3;
          if (format == FileFormat::kLibsvm) options.separator = " ";
          ExpectSameBytes(Value(matrix), 13, options);
        }
      }
}

// Rows of binary blocks depend on how many cells are not 0.
Matrix DenseThenZeros(int64_t rows, int64_t columns, int64_t dense_rows) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < rows * columns; ++k)
    matrix.mutable_data()[k] = k % 50 == 0 || k >= dense_rows * columns ? 0.0 : static_cast<double>(k + 1);
  matrix.mutable_data()[1] = -0.0;
  return matrix;
}

TEST_F(WritePiecesTest, MatricesWhoseZerosComeBehindTheFirstPiece) {
  constexpr int64_t kRows = 8000, kColumns = 40;
  WriteOptions options;
  options.format = FileFormat::kBinary;
  for (const int64_t dense_rows : {kRows, int64_t{7000}, int64_t{4000}, int64_t{100}, int64_t{0}})
    ExpectSameBytes(Value(DenseThenZeros(kRows, kColumns, dense_rows)), 100, options);
}

TEST_F(WritePiecesTest, AMatrixWithFewZerosIsReadOnce) {
  constexpr int64_t kRows = 8000, kColumns = 40, kAtOnce = 100;
  const Matrix matrix = DenseThenZeros(kRows, kColumns, kRows);
  std::atomic<int64_t> rows_read = 0;
  PiecedValue pieces;
  pieces.shape = {kRows, kColumns};
  pieces.rows_at_once = kAtOnce;
  pieces.read = [&](int64_t begin, int64_t end) -> Result<Value> {
    rows_read += end - begin;
    return Value(AloneInMemory(matrix.Rows(begin, end)));
  };
  WriteOptions options;
  options.format = FileFormat::kBinary;
  ASSERT_TRUE(WritePieces(pieces, "pieces", options, *files_).ok());
  EXPECT_EQ(rows_read, kRows);
}

// The head of a MatrixMarket file tells how many entries there are, in as many digits as it takes.
TEST_F(WritePiecesTest, AHeadThatGetsLongerOrShorter) {
  constexpr int64_t kRows = 20000, kColumns = 5, kAtOnce = 100;
  WriteOptions options;
  options.format = FileFormat::kMatrixMarket;
  for (const bool begins_with_zeros : {false, true}) {
    Matrix matrix = *Matrix::Dense(kRows, kColumns);
    for (int64_t k = 0; k < kRows * kColumns; ++k) {
      const bool is_first = k < kAtOnce * kColumns;
      matrix.mutable_data()[k] = is_first == begins_with_zeros ? 0 : static_cast<double>(k) / 3;
    }
    ExpectSameBytes(Value(matrix), kAtOnce, options);
  }
}

// What is packed is cut into the same pieces, and floats stay floats.
TEST_F(WritePiecesTest, PackedPiecesAndFloats) {
  constexpr int64_t kRows = 3000, kColumns = 40;
  const Matrix matrix = DenseThenZeros(kRows, kColumns, kRows / 2);
  for (const Packing packing : {Packing::kGzip, Packing::kZstd})
    for (const FileFormat format : {FileFormat::kText, FileFormat::kMatrixMarket, FileFormat::kCsv,
                                    FileFormat::kLibsvm, FileFormat::kBinary, FileFormat::kNpy}) {
      WriteOptions options;
      options.format = format;
      options.packing = packing;
      ExpectSameBytes(Value(matrix), 700, options);
    }
  const Matrix singles = *ToElementType(DenseThenZeros(40000, 20, 20000), ElementType::kFloat32);
  WriteOptions options;
  options.format = FileFormat::kBinary;
  PiecedValue pieces;
  pieces.shape = singles.shape();
  pieces.rows_at_once = 3000;
  pieces.read = [&](int64_t begin, int64_t end) { return Value(singles.Rows(begin, end)); };
  ASSERT_EQ(WriteValue(Value(singles), "whole", options, *files_).ToString(), "ok");
  ASSERT_EQ(WritePieces(pieces, "pieces", options, *files_).ToString(), "ok");
  EXPECT_TRUE(Get("whole") == Get("pieces"));
}

TEST_F(WritePiecesTest, AFolderOfFiles) {
  const Matrix matrix = DenseThenZeros(1000, 4, 1000);
  WriteOptions options;
  options.format = FileFormat::kCsv;
  options.parts = 3;
  PiecedValue pieces;
  pieces.shape = matrix.shape();
  pieces.rows_at_once = 70;
  pieces.read = [&](int64_t begin, int64_t end) { return Value(matrix.Rows(begin, end)); };
  ASSERT_EQ(WriteValue(Value(matrix), "whole", options, *files_).ToString(), "ok");
  ASSERT_EQ(WritePieces(pieces, "pieces", options, *files_).ToString(), "ok");
  for (const char* const part : {"part-00000.csv", "part-00001.csv", "part-00002.csv"}) {
    EXPECT_NE(Get(std::string("pieces/") + part), "");
    EXPECT_EQ(Get(std::string("pieces/") + part), Get(std::string("whole/") + part));
  }
}

// Without all of its rows a file does not appear, and the one that was there stays.
TEST_F(WritePiecesTest, WhatIsNotFinishedLeavesNothing) {
  Put("out.csv", "older\n");
  const Matrix matrix = DenseThenZeros(100, 4, 100);
  WriteOptions options;
  options.format = FileFormat::kCsv;
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      found.insert(entry.path().filename().string());
    return found;
  };
  {
    auto writer = RowWriter::Begin(ValueInfo::OfMatrix({200, 4}), "out.csv", options, std::nullopt, *files_);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    ASSERT_EQ((*writer)->Add(Value(matrix)).ToString(), "ok");
    EXPECT_EQ((*writer)->Finish().code(), StatusCode::kInternal);
    EXPECT_EQ((*writer)->Add(Value(DenseThenZeros(101, 4, 9))).code(), StatusCode::kInternal);
  }
  EXPECT_EQ(Get("out.csv"), "older\n");
  EXPECT_EQ(names(), (std::set<std::string>{"out.csv"}));
}

// A file that is written again from totals that were counted is right, or it is a fault of ours.
TEST_F(WritePiecesTest, TotalsThatAreWrongAreAnErrorAndNotWrittenOnceMore) {
  const Matrix matrix = DenseThenZeros(20'000, 40, 20'000);
  WriteOptions options;
  options.format = FileFormat::kBinary;
  const KnownRows none;  // Its blocks would be those of a matrix of zeros.
  auto writer = RowWriter::Begin(ValueInfo::OfMatrix(matrix.shape()), "out", options, none, *files_);
  ASSERT_TRUE(writer.ok()) << writer.status().ToString();
  ASSERT_EQ((*writer)->Add(Value(matrix)).ToString(), "ok");
  const Status status = (*writer)->Finish();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "write: the rows of 'out' are others than those that were counted");
}

// Rows of a file are read without codes by who does not know these: then a few blocks of codes are there.
TEST_F(WritePiecesTest, CellsAreReadWithoutHoldingAllCodes) {
  Matrix matrix = *Matrix::Dense(1'000'000, 2);
  for (int64_t k = 0; k < matrix.cells(); ++k)
    matrix.mutable_data()[k] = k % 2 == 0 ? static_cast<double>(k) / 7 : static_cast<double>(k / 64 % 9);
  WriteOptions by_groups = {.format = FileFormat::kBinary};
  by_groups.by_groups = true;
  ASSERT_TRUE(Write(matrix, "m", by_groups).ok());
  const ReadOptions options = *ResolveReadOptions(Node(), "m", *files_);
  const FileSummary summary = *Summarize(options, *files_);
  ASSERT_NE(summary.column_groups, "");
  BlockPool::Process().Trim();
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  budget.SetLimit(budget.used() + matrix.bytes() + (int64_t{7} << 20));  // All codes and cells: half more.
  const Result<Matrix> rows = ReadRows(options, summary, 0, matrix.rows(), *files_);
  budget.SetLimit(limit);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_TRUE(rows->IsDense());
  EXPECT_TRUE(Matrix::SameCells(*rows, matrix));
}

// What writes a file anew reads no more of it at a time than is counted for a write.
TEST_F(WritePiecesTest, AFileThatIsWrittenAgainIsReadAMegabyteAtATime) {
  constexpr int64_t kRows = 400'000, kColumns = 10;
  Matrix matrix = *Matrix::Dense(kRows, kColumns);
  for (int64_t i = 0; i < kRows * kColumns; ++i)
    matrix.mutable_data()[i] = i % 2 == 0 || i > kRows ? static_cast<double>(i + 1) : 0;
  WriteOptions options;
  options.format = FileFormat::kBinary;
  auto writer = RowWriter::Begin(ValueInfo::OfMatrix(matrix.shape()), "out", options, std::nullopt, *files_);
  ASSERT_TRUE(writer.ok()) << writer.status().ToString();
  for (int64_t begin = 0; begin < matrix.rows(); begin += 10'000)
    ASSERT_EQ((*writer)->Add(Value(matrix.Rows(begin, begin + 10'000))).ToString(), "ok");
  BlockPool::Process().Trim();
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  budget.SetLimit(budget.used() + (int64_t{8} << 20));
  const Status status = (*writer)->Finish();
  budget.SetLimit(limit);
  EXPECT_EQ(status.ToString(), "ok");
  ASSERT_EQ(WriteValue(Value(matrix), "whole", options, *files_).ToString(), "ok");
  EXPECT_TRUE(Get("whole") == Get("out"));
}

TEST_F(WritePiecesTest, Frames) {
  for (const int64_t rows : {0, 1, 50}) {
    std::vector<std::string> texts;
    std::vector<double> numbers;
    for (int64_t i = 0; i < rows; ++i) {
      texts.push_back(i % 7 == 0 ? "" : "row " + std::to_string(i));
      numbers.push_back(static_cast<double>(i) / 3);
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    for (const bool has_names : {false, true}) {
      auto schema = std::make_shared<Schema>();
      schema->types = {ColumnType::kString, ColumnType::kFloat64};
      if (has_names) schema->names = {"text", "number"};
      const Frame frame(schema, {*Column::OfTexts(views), *Column::OfDoubles(numbers)});
      for (const FileFormat format : {FileFormat::kText, FileFormat::kCsv, FileFormat::kBinary,
                                      FileFormat::kLibsvm, FileFormat::kJsonl}) {
        WriteOptions options;
        options.format = format;
        options.header = has_names;
        ExpectSameBytes(Value(frame), 13, options);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::ops
