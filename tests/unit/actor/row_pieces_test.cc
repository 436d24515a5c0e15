// SPDX-License-Identifier: Apache-2.0
#include "actor/row_pieces.h"

#include <gtest/gtest.h>

namespace heddle::actor {
namespace {

Matrix Numbered(int64_t rows, int64_t columns, double first) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i)
    matrix.mutable_data()[i] = (i % 3 == 0) ? 0 : first + static_cast<double>(i);
  return matrix;
}

void ExpectGathered(const std::vector<Matrix>& pieces, const Matrix& whole) {
  int64_t row = 0;
  for (const Matrix& piece : pieces) {
    for (int64_t i = 0; i < piece.rows(); ++i, ++row) {
      for (int64_t j = 0; j < piece.columns(); ++j)
        ASSERT_EQ(whole.At(row, j), piece.At(i, j)) << row << ", " << j;
    }
  }
  EXPECT_EQ(row, whole.rows());
}

Result<Value> Gather(const std::vector<Matrix>& pieces) {
  std::vector<Value> values(pieces.begin(), pieces.end());
  std::vector<const Value*> pointers;
  for (const Value& value : values) pointers.push_back(&value);
  return GatherRows(pointers);
}

TEST(RowPiecesTest, GathersDensePiecesInOrder) {
  const std::vector<Matrix> pieces = {Numbered(3, 4, 1), Numbered(0, 4, 0), Numbered(1, 4, 50),
                                      Numbered(2000, 4, 7)};
  const Result<Value> whole = Gather(pieces);
  ASSERT_TRUE(whole.ok());
  EXPECT_FALSE(whole->matrix().IsSparse());
  ExpectGathered(pieces, whole->matrix());
}

TEST(RowPiecesTest, GathersSparseViewsWhoseFirstOffsetIsNotZero) {
  const Matrix large = *ToSparse(Numbered(10, 5, 1));
  const std::vector<Matrix> pieces = {large.Rows(4, 7), large.Rows(7, 7), *ToSparse(Numbered(2, 5, 90)),
                                      large.Rows(9, 10)};
  const Result<Value> whole = Gather(pieces);
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->matrix().IsSparse());
  EXPECT_EQ(whole->matrix().row_offsets()[0], 0);
  ExpectGathered(pieces, whole->matrix());
}

TEST(RowPiecesTest, TakesTheFormatOfTheFirstPieceWithRows) {
  const std::vector<Matrix> pieces = {*ToSparse(Numbered(0, 3, 1)), Numbered(2, 3, 1),
                                      *ToSparse(Numbered(2, 3, 9))};
  const Result<Value> whole = Gather(pieces);
  ASSERT_TRUE(whole.ok());
  EXPECT_FALSE(whole->matrix().IsSparse());
  ExpectGathered(pieces, whole->matrix());
}

TEST(RowPiecesTest, ASinglePieceIsNotCopied) {
  const Matrix piece = Numbered(5, 2, 1);
  const Result<Value> whole = Gather({Numbered(0, 2, 0), piece});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->matrix().data(), piece.data());
}

TEST(RowPiecesTest, NothingButEmptyPiecesIsEmpty) {
  const Result<Value> whole = Gather({Numbered(0, 2, 0), Numbered(0, 2, 0)});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->matrix().shape(), (Shape{0, 2}));
}

TEST(RowPiecesTest, RefusesPiecesThatDoNotFit) {
  EXPECT_EQ(Gather({Numbered(1, 2, 0), Numbered(1, 3, 0)}).status().code(), StatusCode::kInternal);
  EXPECT_EQ(Gather({}).status().code(), StatusCode::kInternal);
  EXPECT_EQ(SliceRows(Value(1.0), 0, 1).status().code(), StatusCode::kInternal);
  EXPECT_EQ(SliceRows(Value(Numbered(3, 2, 0)), 2, 4).status().code(), StatusCode::kInternal);
}

TEST(RowPiecesTest, SlicesWithoutCopying) {
  const Matrix matrix = Numbered(6, 2, 3);
  const Result<Value> rows = SliceRows(Value(matrix), 2, 5);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->matrix().rows(), 3);
  EXPECT_EQ(rows->matrix().data(), matrix.data() + 4);
}

}  // namespace
}  // namespace heddle::actor
