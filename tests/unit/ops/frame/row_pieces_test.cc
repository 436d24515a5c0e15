// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/row_pieces.h"

#include <gtest/gtest.h>

#include "tests/support/frames.h"

namespace heddle::ops {
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
  return JoinRows(pointers);
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

TEST(RowPiecesTest, CutsAndGathersFrames) {
  const Value whole(NumberedFrame(5000));
  std::vector<Value> pieces;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 17}, {17, 17}, {17, 4000}, {4000, 5000}}) {
    Result<Value> piece = SliceRows(whole, begin, end);
    ASSERT_TRUE(piece.ok());
    EXPECT_TRUE(Frame::SameCells(piece->frame(), NumberedFrame(end - begin, begin)));
    pieces.push_back(*std::move(piece));
  }
  std::vector<const Value*> pointers;
  for (const Value& piece : pieces) pointers.push_back(&piece);
  const Result<Value> gathered = JoinRows(pointers);
  ASSERT_TRUE(gathered.ok()) << gathered.status().ToString();
  EXPECT_TRUE(Frame::SameCells(gathered->frame(), whole.frame()));
  EXPECT_EQ(gathered->frame().schema(), whole.frame().schema()) << "schemas are shared";
  // One piece with rows is not copied.
  const Result<Value> one = JoinRows(std::vector<const Value*>{&pieces[1], &pieces[2]});
  EXPECT_EQ(one->frame().column(1).doubles(), pieces[2].frame().column(1).doubles());
  // A piece that can miss cells and one that cannot.
  const Value without(NumberedFrame(3, 0, /*may_miss=*/false));
  const Result<Value> mixed = JoinRows(std::vector<const Value*>{&without, &pieces[0]});
  ASSERT_TRUE(mixed.ok());
  EXPECT_TRUE(Frame::SameCells(mixed->frame().Rows(3, 20), pieces[0].frame()));
  EXPECT_FALSE(mixed->frame().IsMissing(0, 0));
}

TEST(RowPiecesTest, PiecesOfDifferentKindsOrColumnsAreRefused) {
  const Value frame(NumberedFrame(3));
  const Value matrix(Numbered(3, kColumnTypes, 1));
  const Value scalar(1.0);
  EXPECT_EQ(JoinRows(std::vector<const Value*>{&frame, &matrix}).status().message(),
            "join: pieces of different kinds, or none");
  EXPECT_EQ(JoinRows(std::vector<const Value*>{&scalar}).status().message(), "join: a scalar has no rows");
  EXPECT_EQ(SliceRows(scalar, 0, 0).status().code(), StatusCode::kInternal);
  EXPECT_EQ(SliceRows(frame, 1, 4).status().code(), StatusCode::kInternal);
  const Value other(Frame(std::make_shared<const Schema>(Schema{{ColumnType::kString}, {}}),
                          {*Column::OfTexts(std::vector<std::string_view>{"a"})}));
  EXPECT_EQ(JoinRows(std::vector<const Value*>{&frame, &other}).status().code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace heddle::ops
