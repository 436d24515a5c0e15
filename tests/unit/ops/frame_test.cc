// SPDX-License-Identifier: Apache-2.0
#include "core/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "ops/frame/cast.h"
#include "ops/frame/stack_rows.h"
#include "ops/reference/frame.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Matrix ColumnOf(const std::vector<double>& cells) {
  Matrix matrix = *Matrix::Dense(static_cast<int64_t>(cells.size()), 1);
  std::copy(cells.begin(), cells.end(), matrix.mutable_data());
  return matrix;
}

Frame TextsOf(const std::vector<std::string_view>& cells) {
  return Frame(std::make_shared<const Schema>(Schema{{ColumnType::kString}, {"the name"}}),
               {*Column::OfTexts(cells)});
}

// Types are those that SystemDS gives a column of these cells.
TEST(FrameOfTest, AColumnHasTheFirstTypeThatHoldsItsCells) {
  const std::pair<std::vector<double>, ColumnType> cases[] = {
      {{0, 1, -0.0}, ColumnType::kBoolean},
      {{}, ColumnType::kBoolean},
      {{0, 2}, ColumnType::kInteger32},
      {{2147483647, -2147483648}, ColumnType::kInteger32},
      {{2147483648}, ColumnType::kInteger64},
      {{0x1p63, -1}, ColumnType::kInteger64},
      {{kNan, 1}, ColumnType::kFloat32},
      {{0, kInfinity}, ColumnType::kFloat32},
      {{2.5, 3.25, -1}, ColumnType::kFloat32},
      {{0.1}, ColumnType::kFloat32},
      {{1e19}, ColumnType::kFloat32},
      {{0.1, 0.2, 0.3333333333333}, ColumnType::kFloat64},
      {{0x1p70}, ColumnType::kFloat64},
      {{16777217.5}, ColumnType::kFloat64},
      {{1e300}, ColumnType::kFloat64},
      {{1e-46}, ColumnType::kFloat64},
      // SystemDS looks at the cells in turn and would round the first one here.
      {{16777217, 0.5}, ColumnType::kFloat64},
  };
  for (const auto& [cells, type] : cases) {
    const Matrix matrix = ColumnOf(cells);
    const Result<Frame> frame = FrameOf(matrix);
    ASSERT_TRUE(frame.ok());
    EXPECT_EQ(frame->schema()->types, std::vector{type}) << ::testing::PrintToString(cells);
    EXPECT_TRUE(frame->schema()->names.empty());
    EXPECT_TRUE(Frame::SameCells(*frame, reference::AsFrame(matrix))) << ::testing::PrintToString(cells);
    EXPECT_TRUE(Frame::SameCells(*frame, *FrameOf(*ToSparse(matrix))));
  }
}

TEST(FrameOfTest, ScalarsAreFramesOfOneCell) {
  for (const auto& [scalar, type] :
       {std::pair{Scalar(2.5), ColumnType::kFloat64}, std::pair{Scalar(7), ColumnType::kInteger64},
        std::pair{Scalar(true), ColumnType::kBoolean}, std::pair{Scalar("a b"), ColumnType::kString}}) {
    const Frame frame = *FrameOf(scalar);
    EXPECT_EQ(frame.shape(), (Shape{1, 1}));
    EXPECT_EQ(frame.schema()->types[0], type);
    EXPECT_EQ(frame.At(0, 0), scalar);
  }
}

TEST(MatrixOfTest, TextsAreReadAsNumbers) {
  const Frame frame = TextsOf({"1e3", "true", "FALSE", "7", "", "NaN", "-Infinity", "-0.5"});
  const Result<Matrix> matrix = MatrixOf(frame);
  ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(*matrix, ColumnOf({1000, 1, 0, 7, kNan, kNan, -kInfinity, -0.5})));
}

TEST(MatrixOfTest, TheFirstTextThatIsNoNumberIsNamed) {
  EXPECT_EQ(MatrixOf(TextsOf({"1", "x1", "y"})).status().message(),
            "as.matrix: 'x1' in column the name of the frame is not a number");
}

TEST(MatrixOfTest, ColumnsOfAllTypesAreNumbers) {
  const Frame all = NumberedFrame(1000);
  std::vector<Column> columns;
  Schema schema;
  for (int64_t j = 0; j < all.columns(); ++j) {
    if (all.column(j).storage() == ColumnStorage::kTexts) continue;
    columns.push_back(all.column(j));
    schema.types.push_back(columns.back().type());
  }
  const Frame frame(std::make_shared<const Schema>(schema), columns);
  EXPECT_TRUE(Matrix::SameCells(*MatrixOf(frame), reference::AsMatrix(frame)));
  EXPECT_TRUE(Matrix::SameCells(*MatrixOf(frame.Rows(100, 300)), MatrixOf(frame)->Rows(100, 300)));
}

TEST(StackRowsTest, OnePieceIsNotCopied) {
  const Frame frame = NumberedFrame(10);
  EXPECT_EQ(StackRows(std::array{frame})->column(1).doubles(), frame.column(1).doubles());
}

TEST(StackRowsTest, OtherNamesAreRefused) {
  const Frame other(std::make_shared<const Schema>(Schema{{ColumnType::kString}, {}}),
                    {*Column::OfTexts(std::vector<std::string_view>{"a"})});
  const Status status = StackRows(std::array{TextsOf({"b"}), other}).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "pieces of a frame have columns (STRING \"the name\") and (STRING)");
}

}  // namespace
}  // namespace heddle::ops
