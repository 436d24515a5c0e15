// SPDX-License-Identifier: Apache-2.0
// What is written piece by piece has the bytes of what is written at once, metadata included.
#include "ops/io/formats/write/write_pieces.h"

#include <atomic>
#include <random>

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
  EXPECT_EQ(rows_read, kRows + kAtOnce);  // The first piece tells what the others are like.
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
