// SPDX-License-Identifier: Apache-2.0
#include "core/values/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/memory/block_pool.h"
#include "core/programs/graph.h"
#include "core/values/value.h"

namespace heddle {
namespace {

using Texts = std::vector<std::string_view>;

Column WithMissing(Column column, std::initializer_list<int64_t> rows) {
  Column marked = *Column::Make(column.type(), column.rows(), column.text_bytes(), /*may_miss=*/true);
  std::copy_n(column.offsets(), column.rows() + 1, marked.mutable_offsets());
  std::copy_n(column.texts(), column.text_bytes(), marked.mutable_texts());
  for (const int64_t row : rows) marked.mutable_missing()[row] = 1;
  return marked;
}

// name (STRING), age (INT64), weight (FP64), ratio (FP32), member (BOOLEAN); the name of row 2 is missing.
Frame People() {
  auto schema = std::make_shared<const Schema>(
      Schema{{ColumnType::kString, ColumnType::kInteger64, ColumnType::kFloat64, ColumnType::kFloat32,
              ColumnType::kBoolean},
             {"name", "age", "weight", "ratio", "member"}});
  return Frame(std::move(schema),
               {WithMissing(*Column::OfTexts(Texts{"Ada", "Émile", "", "Zoë"}), {2}),
                *Column::OfIntegers(std::array<int64_t, 4>{36, 62, -1, 1'000'000'000'000}),
                *Column::OfDoubles(std::array<double, 4>{60.5, 1e7, std::nan(""), -0.0}),
                *Column::OfDoubles(std::array<double, 4>{0.1F, 2.5F, 7, 1e10F}, ColumnType::kFloat32),
                *Column::OfBooleans(std::array<bool, 4>{true, false, true, false})});
}

std::string TextOf(const Frame& frame, int64_t row) {
  std::string text;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    if (j > 0) text += "|";
    text += frame.IsMissing(row, j) ? "?" : "";
    frame.AppendText(row, j, &text);
  }
  return text;
}

TEST(FrameTest, CellsHaveTheTypeAndTheTextOfTheirColumn) {
  const Frame people = People();
  EXPECT_EQ(people.shape(), (Shape{4, 5}));
  EXPECT_EQ(TextOf(people, 0), "Ada|36|60.5|0.1|TRUE");
  EXPECT_EQ(TextOf(people, 1), "Émile|62|1.0E7|2.5|FALSE");
  EXPECT_EQ(TextOf(people, 2), "?|-1|NaN|7.0|TRUE");
  EXPECT_EQ(TextOf(people, 3), "Zoë|1000000000000|-0.0|1.0E10|FALSE");
  EXPECT_EQ(people.At(0, 0), Scalar("Ada"));
  EXPECT_EQ(people.At(1, 1), Scalar(62));
  EXPECT_EQ(people.At(0, 2), Scalar(60.5));
  EXPECT_EQ(people.At(0, 3), Scalar(static_cast<double>(0.1F)));
  EXPECT_EQ(people.At(3, 4), Scalar(false));
  EXPECT_EQ(people.At(2, 0), Scalar(""));
  EXPECT_TRUE(people.IsMissing(2, 0));
  EXPECT_FALSE(people.IsMissing(2, 1));
}

TEST(FrameTest, ColumnsWithoutNamesAreCounted) {
  const Schema unnamed{{ColumnType::kString, ColumnType::kBoolean}, {}};
  EXPECT_EQ(unnamed.NameOf(0), "C1");
  EXPECT_EQ(unnamed.NameOf(1), "C2");
  EXPECT_EQ(unnamed.ToText(), "STRING, BOOLEAN");
  EXPECT_EQ(People().schema()->ToText(), "STRING name, INT64 age, FP64 weight, FP32 ratio, BOOLEAN member");
}

TEST(FrameTest, EveryTypeOfColumnHasANameThatParsesBack) {
  for (int i = 0; i < kColumnTypes; ++i) {
    const auto type = static_cast<ColumnType>(i);
    EXPECT_EQ(ParseColumnType(Name(type)), type);
    EXPECT_NE(ValueTypeOf(type), ValueType::kUnknown);
  }
  EXPECT_EQ(ParseColumnType("string"), std::nullopt);
}

TEST(FrameTest, RowsAreViewsThatShareMemory) {
  const Frame people = People();
  const Frame middle = people.Rows(1, 3);
  EXPECT_EQ(middle.shape(), (Shape{2, 5}));
  EXPECT_EQ(TextOf(middle, 0), TextOf(people, 1));
  EXPECT_EQ(TextOf(middle, 1), TextOf(people, 2));
  EXPECT_EQ(middle.column(2).doubles(), people.column(2).doubles() + 1);
  EXPECT_EQ(middle.column(0).offsets()[0], 3) << "the first offset of a view is that of its row";
  EXPECT_EQ(middle.column(0).text_bytes(), 6);
  const Frame last = middle.Rows(1, 2);
  EXPECT_TRUE(last.IsMissing(0, 0));
  EXPECT_TRUE(Frame::SameCells(last, people.Rows(2, 3)));
  EXPECT_EQ(people.Rows(4, 4).rows(), 0);
  EXPECT_EQ(people.Rows(4, 4).columns(), 5);
}

TEST(FrameTest, BytesAreThoseOfItsRows) {
  const Frame people = People();
  // Offsets, texts, marks; integers; doubles twice; truth values.
  EXPECT_EQ(people.bytes(), (5 * 8 + 13 + 4) + 4 * 8 + 2 * 4 * 8 + 4);
  EXPECT_EQ(people.Rows(1, 3).bytes(), (3 * 8 + 6 + 2) + 2 * 8 + 2 * 2 * 8 + 2);
  EXPECT_EQ(FixedBytes(*people.schema(), 4), 5 * 8 + 3 * 4 * 8 + 4);
  EXPECT_EQ(FixedBytes(*people.schema(), INT64_MAX), INT64_MAX);
  EXPECT_EQ(KnownBytes(ValueInfo::OfFrame(4, people.schema())), 140);
  EXPECT_EQ(KnownBytes(ValueInfo::OfFrame(kUnknown, people.schema())), 0);
  EXPECT_EQ(KnownBytes(ValueInfo::OfFrame(4, nullptr)), 0);
}

TEST(FrameTest, MemoryIsCountedByThePoolAndGivenBack) {
  const int64_t before = BlockPool::Process().Statistics().in_use_bytes;
  {
    const Frame people = People();
    const Frame copy = people.Rows(1, 2);
    EXPECT_GE(BlockPool::Process().Statistics().in_use_bytes, before + people.bytes());
  }
  EXPECT_EQ(BlockPool::Process().Statistics().in_use_bytes, before);
}

TEST(FrameTest, AColumnThatCannotBeIsRefused) {
  const Result<Column> column = Column::Make(ColumnType::kFloat64, INT64_MAX / 4, 0, false);
  EXPECT_EQ(column.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(column.status().message().find("a column of 2305843009213693951 rows does not fit"),
            std::string::npos)
      << column.status().message();
}

TEST(FrameTest, CellsCompareByTypeMissingAndBytes) {
  const auto frame = [](Column column) {
    auto schema = std::make_shared<const Schema>(Schema{{column.type()}, {}});
    return Frame(std::move(schema), {std::move(column)});
  };
  const auto doubles = [&](double a, double b) {
    return frame(*Column::OfDoubles(std::array<double, 2>{a, b}));
  };
  const auto texts = [&](std::string_view a, std::string_view b) {
    return frame(*Column::OfTexts(Texts{a, b}));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(Frame::SameCells(doubles(1, nan), doubles(1, -nan)));
  EXPECT_FALSE(Frame::SameCells(doubles(0.0, 1), doubles(-0.0, 1)));
  EXPECT_TRUE(Frame::SameCells(texts("a", "bc"), texts("a", "bc")));
  EXPECT_FALSE(Frame::SameCells(texts("a", "bc"), texts("ab", "c")));
  EXPECT_FALSE(Frame::SameCells(texts("a", ""), frame(WithMissing(*Column::OfTexts(Texts{"a", ""}), {1}))));
  EXPECT_FALSE(Frame::SameCells(doubles(1, 2), doubles(1, 2).Rows(0, 1)));
  EXPECT_FALSE(
      Frame::SameCells(frame(*Column::OfIntegers(std::array<int64_t, 1>{1})), doubles(1, 1).Rows(0, 1)));
  EXPECT_TRUE(Frame::SameCells(Frame(), Frame()));
}

TEST(ValueTest, EveryKindHasASizeAndAShape) {
  EXPECT_EQ(Value(2.5).kind(), Value::Kind::kScalar);
  EXPECT_EQ(Value(2.5).shape(), (Shape{0, 0}));
  EXPECT_EQ(Value(2.5).bytes(), 8);
  EXPECT_EQ(Value(Scalar("four")).bytes(), 4);
  const Value matrix(*FilledMatrix(2, 3, 1));
  EXPECT_EQ(matrix.kind(), Value::Kind::kMatrix);
  EXPECT_EQ(matrix.shape(), (Shape{2, 3}));
  EXPECT_EQ(matrix.bytes(), 48);
  const Value frame(People());
  EXPECT_EQ(frame.kind(), Value::Kind::kFrame);
  EXPECT_EQ(frame.shape(), (Shape{4, 5}));
  EXPECT_EQ(frame.bytes(), People().bytes());
}

TEST(ValueInfoTest, SchemasAreComparedByTheirColumns) {
  const auto info = [](std::vector<ColumnType> types, std::vector<std::string> names) {
    return ValueInfo::OfFrame(3, std::make_shared<const Schema>(Schema{std::move(types), std::move(names)}));
  };
  const ValueInfo a = info({ColumnType::kString}, {"x"});
  EXPECT_EQ(a, info({ColumnType::kString}, {"x"}));
  EXPECT_NE(a, info({ColumnType::kString}, {"y"}));
  EXPECT_NE(a, info({ColumnType::kBoolean}, {"x"}));
  EXPECT_NE(a, a.WithoutSize());
  EXPECT_TRUE(a.IsSized());
  EXPECT_TRUE(a.IsTabular());
  EXPECT_FALSE(a.WithoutSize().IsSized());
  EXPECT_EQ(a.WithoutSize(), ValueInfo::OfDeclared(DataType::kFrame, ValueType::kUnknown));
  EXPECT_EQ(ValueInfo::OfFrame(3, nullptr).shape, (Shape{3, kUnknown}));
  EXPECT_FALSE(ValueInfo::OfFrame(3, nullptr).IsSized());
}

}  // namespace
}  // namespace heddle
