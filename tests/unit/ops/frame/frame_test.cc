// SPDX-License-Identifier: Apache-2.0
#include "core/values/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "ops/cells/frame_columns.h"
#include "ops/frame/arrange.h"
#include "ops/frame/cast.h"
#include "ops/frame/convert.h"
#include "ops/frame/stack_rows.h"
#include "tests/reference/frame.h"
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

// Types are those that SystemDS gives a column of these cells, but for FP32, which keeps every cell.
TEST(FrameOfTest, TheTypeOfAColumnGrowsUntilItHoldsEveryCell) {
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
      {{0.1}, ColumnType::kFloat64},
      {{0.10000000149011612}, ColumnType::kFloat64},  // the float whose text is 0.1
      {{1e19}, ColumnType::kFloat64},
      {{0.1, 0.2, 0.3333333333333}, ColumnType::kFloat64},
      {{0x1p70}, ColumnType::kFloat64},
      {{16777217.5}, ColumnType::kFloat64},
      {{1e300}, ColumnType::kFloat64},
      {{1e-46}, ColumnType::kFloat64},
      {{16777217, 0.5}, ColumnType::kFloat64},
      {{0.5, 16777217}, ColumnType::kFloat64},
  };
  for (const auto& [cells, type] : cases) {
    const Matrix matrix = ColumnOf(cells);
    const Result<Frame> frame = FrameOf(matrix);
    ASSERT_TRUE(frame.ok());
    EXPECT_EQ(frame->schema()->types, std::vector{type}) << ::testing::PrintToString(cells);
    EXPECT_EQ(frame->schema()->names, std::vector<std::string>{"C1"});
    EXPECT_TRUE(Frame::SameCells(*frame, reference::AsFrame(matrix))) << ::testing::PrintToString(cells);
    EXPECT_TRUE(Frame::SameCells(*frame, *FrameOf(*ToSparse(matrix))));
  }
}

// Numbers of every size and length, alone and two in a column.
TEST(FrameOfTest, AsAMatrixItIsWhatItWasMadeOf) {
  const double cells[] = {
      0,        1,       -1,     0.1,      0.5,     1.0 / 3,     3.1415927, 123456.7,
      16777217, 2.5e-45, 1e-310, 0x1p31,   -0x1p31, -0x1p31 - 1, 0x1p53,    9007199254740991.0,
      0x1p63,   -0x1p63, 0x1p70, 3.402e38, 3.41e38, 1e300,       kInfinity, kNan};
  for (const double a : cells) {
    for (const double b : cells) {
      const Matrix matrix = ColumnOf({a, b});
      EXPECT_TRUE(Matrix::SameCells(*MatrixOf(*FrameOf(matrix)), matrix)) << a << " " << b;
    }
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

Column NumberColumn(double cell, ColumnType type = ColumnType::kFloat64) {
  return *Column::OfDoubles(std::array{cell}, type);
}

TEST(ConvertedTest, IntegersKeepTheWholePartWithinTheirRange) {
  using enum ColumnType;
  EXPECT_EQ(Converted(NumberColumn(-2.7), kInteger32)->integers()[0], -2);
  EXPECT_EQ(Converted(NumberColumn(-0x1p31 - 0.5), kInteger32)->integers()[0], -2147483648);
  EXPECT_EQ(Converted(NumberColumn(0x1p31), kInteger64)->integers()[0], 2147483648);
  for (const auto& [cell, type, message] :
       {std::tuple{0x1p31, kInteger32, "'2.147483648E9' is no INT32"},
        std::tuple{-0x1p31 - 1, kInteger32, "'-2.147483649E9' is no INT32"},
        std::tuple{0x1p63, kInteger64, "'9.223372036854776E18' is no INT64"},
        std::tuple{kNan, kInteger64, "'NaN' is no INT64"},
        std::tuple{0.5, kBoolean, "'0.5' is no BOOLEAN"}}) {
    const Status status = Converted(NumberColumn(cell), type).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), message);
  }
}

TEST(ConvertedTest, LargeIntegersStayWhatTheyAre) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const Column small = *Column::OfIntegers(std::array{int64_t{7}}, ColumnType::kInteger32);
  const Column large = *Column::OfIntegers(std::array{kLargest});
  EXPECT_EQ(Converted(small, ColumnType::kInteger64)->integers()[0], 7);
  EXPECT_EQ(Converted(large, ColumnType::kInteger64)->integers()[0], kLargest);
  EXPECT_EQ(Converted(large, ColumnType::kString)->TextAt(0), "9223372036854775807");
  EXPECT_EQ(Converted(large, ColumnType::kInteger32).status().message(), "'9223372036854775807' is no INT32");
}

TEST(ConvertedTest, CellsAreTextsAndTextsAreCells) {
  using enum ColumnType;
  EXPECT_EQ(Converted(NumberColumn(0.5), kString)->TextAt(0), "0.5");
  EXPECT_EQ(Converted(NumberColumn(0.1f, kFloat32), kString)->TextAt(0), "0.1");
  EXPECT_EQ(Converted(*Column::OfBooleans(std::array{true}), kString)->TextAt(0), "true");
  const auto text = [](std::string_view cell) { return *Column::OfTexts(std::array{cell}); };
  EXPECT_EQ(Converted(text("2.5"), kFloat32)->doubles()[0], 2.5);
  EXPECT_EQ(Converted(text("TRUE"), kBoolean)->booleans()[0], 1);
  EXPECT_EQ(Converted(text("é"), kCharacter)->TextAt(0), "é");
  EXPECT_EQ(Converted(text("ab"), kCharacter).status().message(), "'ab' is no CHARACTER");
  EXPECT_EQ(Converted(text("x"), kFloat64).status().message(), "'x' is no FP64");
}

// Whatever a column becomes, its missing cells are those it had.
TEST(ConvertedTest, MissingCellsStayMissing) {
  const Frame frame = NumberedFrame(30);
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const Column column = frame.column(j);
    const Column texts = *Converted(column, ColumnType::kString);
    for (int64_t i = 0; i < frame.rows(); ++i) EXPECT_EQ(texts.IsMissing(i), column.IsMissing(i)) << i;
  }
}

TEST(ArrangeTest, ColumnsKeepNamesUnlessTwoAreTheSame) {
  const Frame frame = NumberedFrame(5);
  const Frame two = ColumnsOf(frame, 1, 3);
  EXPECT_EQ(two.schema()->names, (std::vector<std::string>{"column 1", "column 2"}));
  EXPECT_TRUE(Frame::SameCells(
      SideBySide(std::array{ColumnsOf(frame, 0, 1), two, ColumnsOf(frame, 3, frame.columns())}), frame));
  EXPECT_EQ(SideBySide(std::array{two, two}).schema()->names, CountedNames(4));
}

// What two pairs of names, and three, become side by side.
TEST(ArrangeTest, CountedNamesMeetCountedNames) {
  const auto names = [](const std::vector<std::vector<std::string>>& given) {
    std::vector<Schema> schemas;
    for (const std::vector<std::string>& one : given)
      schemas.push_back({std::vector<ColumnType>(one.empty() ? 2 : one.size(), ColumnType::kFloat64), one});
    std::vector<const Schema*> pointers;
    for (const Schema& schema : schemas) pointers.push_back(&schema);
    return SideBySide(pointers).names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({{}, {"a", "b"}}), (Names{"C1", "C2", "a", "b"}));
  EXPECT_EQ(names({{}, {"C3", "C02"}}), (Names{"C1", "C2", "C3", "C02"}));
  EXPECT_EQ(names({{}, {"C3", "C2"}}), CountedNames(4));
  EXPECT_EQ(names({{"a", "C4"}, {}}), (Names{"a", "C4", "C1", "C2"}));
  EXPECT_EQ(names({{"a", "b"}, {"b"}, {"a"}}), (Names{"C1", "C2", "C3", "a"}));
  EXPECT_EQ(names({{"a", "b"}, {"b"}, {"C3"}}), CountedNames(4));
  EXPECT_EQ(names({{}, {"x"}, {"x"}}), CountedNames(4));
  EXPECT_EQ(names({{}, {"x"}, {"C3"}}), (Names{"C1", "C2", "x", "C3"}));
}

TEST(ArrangeTest, ColumnsBelowEachOtherHaveTheWidestType) {
  const Frame a = *FrameOf(Scalar(7)), b = *FrameOf(Scalar(2.5)), c = *FrameOf(Scalar("x"));
  const Frame numbers = *BelowEachOther(std::array{a, b});
  EXPECT_EQ(numbers.schema()->types[0], ColumnType::kFloat64);
  EXPECT_EQ(numbers.At(0, 0), Scalar(7.0));
  const Frame texts = *BelowEachOther(std::array{a, b, c});
  EXPECT_EQ(texts.schema()->types[0], ColumnType::kString);
  EXPECT_EQ(texts.At(1, 0), Scalar("2.5"));
}

// Replacing a part with the same part of another frame leaves all else as it was.
TEST(ArrangeTest, OnlyThePartIsReplaced) {
  const Frame old = NumberedFrame(20), other = NumberedFrame(20, 100);
  int64_t column_of_failure = 0;
  const Result<Frame> result = Replaced(old, 5, 2, ColumnsOf(other.Rows(5, 9), 2, 5), &column_of_failure);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(*result->schema(), *old.schema());
  for (int64_t j = 0; j < old.columns(); ++j) {
    const bool replaced = j >= 2 && j < 5;
    const auto one = [&](const Frame& frame) { return ColumnsOf(frame, j, j + 1); };
    EXPECT_TRUE(Frame::SameCells(one(result->Rows(0, 5)), one(old.Rows(0, 5)))) << j;
    EXPECT_TRUE(Frame::SameCells(one(result->Rows(9, 20)), one(old.Rows(9, 20)))) << j;
    EXPECT_TRUE(Frame::SameCells(one(result->Rows(5, 9)), one((replaced ? other : old).Rows(5, 9)))) << j;
  }
}

}  // namespace
}  // namespace heddle::ops
