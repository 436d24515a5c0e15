// SPDX-License-Identifier: Apache-2.0
// Operators on frames whose rows lie on several ranks.
#include <gtest/gtest.h>

#include <limits>

#include "ops/cells/frame_columns.h"
#include "ops/frame/arrange.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/frame_pieces.h"

namespace heddle::ops {
namespace {

using testing::CutsOf;
using testing::ExpectRowsMatchAtAllCuts;
using testing::ExpectStagesFailAlike;
using testing::ExpectStagesMatchAtAllCuts;
using testing::Invocation;
using testing::NamedFrame;
using testing::Rows;
using testing::Text;
using testing::TextCells;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kSizes[] = {0, 1, 5, 64, 65, 200};

// A column of m x 1 by a function of its rows.
template <typename CellAt>
Column Doubles(int64_t rows, const CellAt& cell_at) {
  std::vector<double> cells;
  for (int64_t i = 0; i < rows; ++i) cells.push_back(cell_at(i));
  return *Column::OfDoubles(cells);
}
template <typename CellAt>
Column Texts(int64_t rows, const CellAt& cell_at) {
  TextCells cells;
  for (int64_t i = 0; i < rows; ++i) cells.push_back(cell_at(i));
  return *TextColumn(cells);
}
// A text in one row, another in all others.
Column OneOther(int64_t rows, int64_t row, const std::string& other, const std::string& text = "1") {
  return Texts(rows, [&](int64_t i) { return std::optional(i == row ? other : text); });
}

TEST(FrameStagesTest, ColumnsOfMatricesHaveTypesThatHoldAllCells) {
  for (const int64_t rows : kSizes) {
    Matrix x = *FilledMatrix(rows, 7, 1.0);
    for (int64_t i = 0; i < rows; ++i) {
      double* const cells = x.mutable_data() + i * 7;
      cells[1] = static_cast<double>(i);
      cells[2] = i == 3 ? 1e10 : 0.0;
      cells[3] = i == rows - 1 ? 0.5 : 7.0;
      cells[4] = i == 0 ? 0.1 : 1e15;         // Floats hold neither 0.1 nor the whole numbers behind it.
      cells[5] = i == 4 ? kNan : 16777217.0;  // One more than floats count to.
      cells[6] = i % 2 == 0 ? -0.0 : 0.0;
    }
    Invocation call("as.frame", {Value(x)});
    ExpectStagesMatchAtAllCuts(call, rows);
  }
}

TEST(FrameStagesTest, MatricesOfFramesHaveTheirNumbers) {
  for (const int64_t rows : kSizes) {
    const Frame frame = NamedFrame(
        {OneOther(rows, 2, "-3.5"),
         Texts(rows, [](int64_t i) { return i % 3 == 0 ? std::nullopt : std::optional<std::string>(""); })},
        {"a", "b"});
    Invocation call("as.matrix", {Value(frame)});
    ExpectStagesMatchAtAllCuts(call, rows);
  }
}

TEST(FrameStagesTest, TheFirstCellThatIsNoNumberIsTold) {
  for (const int64_t first : {0, 63, 64, 199}) {
    const Frame frame = NamedFrame(
        {Texts(200, [&](int64_t i) { return std::optional<std::string>(i > first ? "later" : "1"); }),
         OneOther(200, first, "first")},
        {"a", "b"});
    Invocation call("as.matrix", {Value(frame)});
    for (const int32_t ranks : {1, 2, 3, 8}) ExpectStagesFailAlike(call, 200, ranks);
    EXPECT_NE(call.Error().find("'first' in column b"), std::string::npos);
  }
}

TEST(FrameStagesTest, EveryRankKnowsNamesAndTypes) {
  for (const char* op : {"colnames", "typeof"})
    for (const int64_t rows : kSizes) {
      Invocation call(op, {Value(NumberedFrame(rows))});
      ExpectStagesMatchAtAllCuts(call, rows);
    }
}

// The type of a column depends on the order of its cells.
TEST(FrameStagesTest, SchemasAreDetectedInTheOrderOfTheRows) {
  const std::vector<std::string> cells = {"a",   "5",   "t",     "true", "1",   "12345678901",
                                          "0.5", "0.1", "1e300", "x y",  "nan", "16777217",
                                          "",    "-0",  "\"7\"", "é"};
  uint64_t state = 1;
  const auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 150; ++round) {
    const auto rows = static_cast<int64_t>(draw(9));
    std::vector<Column> columns;
    for (int j = 0; j < 8; ++j) {
      const uint64_t kinds = 1 + draw(4), from = draw(cells.size());
      columns.push_back(Texts(rows, [&](int64_t) -> std::optional<std::string> {
        if (draw(9) == 0) return std::nullopt;
        return cells[(from + draw(kinds)) % cells.size()];
      }));
    }
    columns.push_back(Doubles(rows, [&](int64_t) { return draw(3) == 0 ? 0.1 : 1e10; }));
    const std::vector<std::string> names = CountedNames(static_cast<int64_t>(columns.size()));
    Invocation call("detectSchema", {Value(NamedFrame(columns, names))});
    ExpectStagesMatchAtAllCuts(call, rows);
  }
  for (const int64_t rows : kSizes) {
    Invocation call("detectSchema", {Value(NumberedFrame(rows))});
    ExpectStagesMatchAtAllCuts(call, rows);
  }
}

Value SchemaRow(const std::vector<std::string>& types) {
  std::vector<Column> columns;
  for (const std::string& type : types)
    columns.push_back(Texts(1, [&](int64_t) { return std::optional(type); }));
  return Value(NamedFrame(columns, CountedNames(static_cast<int64_t>(types.size()))));
}

TEST(FrameStagesTest, SchemasAreApplied) {
  for (const int64_t rows : kSizes) {
    const Frame frame = NamedFrame(
        {OneOther(rows, 1, ""), OneOther(rows, 3, "7.5"), Doubles(rows, [](int64_t i) { return i; })},
        {"a", "b", "c"});
    Invocation call("applySchema", {Value(frame), SchemaRow({"INT32·n", "FP64", "STRING"})});
    ExpectStagesMatchAtAllCuts(call, rows);
  }
  // The first column that has one, however early those of other columns are.
  const Frame wrong = NamedFrame({OneOther(200, 150, "late"), OneOther(200, 0, "early")}, {"a", "b"});
  Invocation call("applySchema", {Value(wrong), SchemaRow({"INT32", "INT32"})});
  for (const int32_t ranks : {1, 2, 3, 8}) ExpectStagesFailAlike(call, 200, ranks);
  EXPECT_EQ(call.Error(), "applySchema: column a: 'late' is no INT32");
}

TEST(FrameStagesTest, CellsAreCheckedRowByRow) {
  for (const int64_t rows : kSizes) {
    const Frame frame = NumberedFrame(rows);
    Invocation types(
        "dropInvalidType",
        {Value(frame), SchemaRow({"INT32", "FP64", "BOOLEAN", "INT64", "STRING", "BOOLEAN", "INT32"})});
    ExpectRowsMatchAtAllCuts(types, rows);
    Invocation lengths("dropInvalidLength", {Value(frame), Value(Rows({{2, 3, -1, 1, 2, 4, 0}}))});
    ExpectRowsMatchAtAllCuts(lengths, rows);
    Invocation equal("compareFrames", {Value(frame), Value(NumberedFrame(rows, 0, false))},
                     {{"comparison", Scalar("<=")}});
    ExpectRowsMatchAtAllCuts(equal, rows);
    if (rows == 0) continue;
    Invocation replicated("freplicate", {Value(frame), Value(frame.Rows(0, 1))});
    ExpectRowsMatchAtAllCuts(replicated, rows);
  }
}

TEST(FrameStagesTest, FramesAreMadeInRows) {
  for (const int64_t rows : {1, 5, 64, 200}) {
    const auto make = [&](const std::string& text) {
      return Invocation("frame", {Text(text), Value(Scalar(rows)), Value(Scalar(int64_t{2}))},
                        {{"schema", Scalar("INT32·STRING")}});
    };
    for (const char* text : {"7", "1·2"}) {
      Invocation call = make(text);
      ExpectRowsMatchAtAllCuts(call, rows);
    }
    std::string cells = "0·a";
    for (int64_t i = 1; i < rows; ++i) cells += fmt::format("·{}·b{}", i, i);
    Invocation call = make(cells);
    ExpectRowsMatchAtAllCuts(call, rows);
  }
}

TEST(FrameStagesTest, TextsAreReplaced) {
  for (const int64_t rows : kSizes) {
    Invocation call("replaceTexts", {Value(NumberedFrame(rows)), Text("aaa"), Text("")});
    ExpectStagesMatchAtAllCuts(call, rows);
    Invocation numbers("replaceTexts",
                       {Value(NumberedFrame(rows)), Value(Scalar(int64_t{5})), Value(Scalar(int64_t{-1}))});
    ExpectStagesMatchAtAllCuts(numbers, rows);
  }
  Invocation call(
      "replaceTexts",
      {Value(NamedFrame({*Column::OfIntegers(std::vector<int64_t>(200, 4)), OneOther(200, 0, "4")},
                        {"a", "b"})),
       Text("4"), Text("x")});
  for (const int32_t ranks : {2, 8}) ExpectStagesFailAlike(call, 200, ranks);
}

TEST(FrameStagesTest, CellsAreAssigned) {
  for (const int64_t rows : {1, 5, 64, 200}) {
    const Value bounds[] = {Value(Scalar(int64_t{1})), Value(Scalar((rows + 1) / 2)),
                            Value(Scalar(int64_t{2})), Value(Scalar(int64_t{4}))};
    const Frame frame = NumberedFrame(rows);
    const Value part(ColumnsOf(NumberedFrame((rows + 1) / 2, 3), 1, 4));
    Invocation call("indexAssign", {Value(frame), part, bounds[0], bounds[1], bounds[2], bounds[3]});
    ExpectStagesMatchAtAllCuts(call, rows);
    Invocation columns("indexAssign", {Value(frame), Value(ColumnsOf(NumberedFrame(rows, 5), 1, 4)),
                                       std::nullopt, std::nullopt, bounds[2], bounds[3]});
    ExpectStagesMatchAtAllCuts(columns, rows);
    Invocation cell("indexAssign", {Value(frame), Text("1"), bounds[0], bounds[1], bounds[2], bounds[3]});
    ExpectStagesMatchAtAllCuts(cell, rows);
  }
  // Column "a" is the first that cannot take its cells.
  const Frame frame = NamedFrame(
      {*Column::OfIntegers(std::vector<int64_t>(200, 4)), *Column::OfIntegers(std::vector<int64_t>(200, 4))},
      {"a", "b"});
  const Frame wrong = NamedFrame({OneOther(200, 190, "late"), OneOther(200, 0, "early")}, {"a", "b"});
  Invocation call("indexAssign",
                  {Value(frame), Value(wrong), std::nullopt, std::nullopt, std::nullopt, std::nullopt});
  for (const int32_t ranks : {1, 3, 8}) ExpectStagesFailAlike(call, 200, ranks);
  EXPECT_NE(call.Error().find("'late'"), std::string::npos);
}

TEST(FrameStagesTest, ValuesAreSwappedAsInOneProcess) {
  uint64_t state = 7;
  const auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33) % below;
  };
  const std::vector<std::string> cells = {"12", "word", "3.25", "true", "words here", "1234567", "", "x"};
  for (const int64_t rows : kSizes) {
    std::vector<Column> columns;
    for (int j = 0; j < 4; ++j)
      columns.push_back(Texts(rows, [&](int64_t) -> std::optional<std::string> {
        if (draw(20) == 0) return std::nullopt;
        return cells[draw(5) == 0 ? draw(cells.size()) : static_cast<uint64_t>(j)];
      }));
    Invocation call("valueSwap", {Value(NamedFrame(columns, CountedNames(4))),
                                  SchemaRow({"INT32", "STRING", "FP64", "BOOLEAN"})});
    ExpectStagesMatchAtAllCuts(call, rows);
  }
}

TEST(FrameStagesTest, OnlyWhatIsShownBecomesText) {
  for (const int64_t rows : kSizes)
    for (const int64_t shown : {-1, 0, 3, 70, 1000}) {
      const Value limit(Scalar(int64_t{shown}));
      for (const int64_t columns : {0, 5, 9}) {
        Invocation of_frame("toString", {Value(NumberedFrame(rows)), limit, Value(Scalar(columns))});
        ExpectStagesMatchAtAllCuts(of_frame, rows);
      }
      Matrix x = testing::RandomCells(rows, 4, 3);
      for (const Matrix& form : {x, testing::Csr(x)}) {
        Invocation of_matrix("toString", {Value(form), limit, Value(Scalar(int64_t{2})), std::nullopt,
                                          Value(Scalar(shown == 70))});
        ExpectStagesMatchAtAllCuts(of_matrix, rows);
      }
    }
}

// ---- map()

Frame Words(int64_t rows) {
  return NamedFrame({Texts(rows,
                           [](int64_t i) {
                             return i % 5 == 0 ? std::nullopt : std::optional("a b" + std::to_string(i % 9));
                           }),
                     Texts(rows, [](int64_t i) { return std::optional(std::to_string(i * i)); })},
                    {"words", "numbers"});
}

Invocation Map(const Frame& frame, const std::string& expression, int64_t margin = 0) {
  return Invocation("map", {Value(frame), Text(expression), Value(Scalar(margin))});
}

TEST(FrameStagesTest, ExpressionsAreMappedWhereTheirCellsAre) {
  for (const int64_t rows : kSizes) {
    const Frame frame = Words(rows);
    Invocation cells = Map(frame, "x -> x.equals(\"16\") ? null : x.toUpperCase()");
    ExpectStagesMatchAtAllCuts(cells, rows);
    Invocation of_rows = Map(frame, "x -> new String[]{x[1], x[0]}", 1);
    ExpectStagesMatchAtAllCuts(of_rows, rows);
    Invocation pairs = Map(frame, "(x, y) -> UtilFunctions.jaccardSim(x, y)");
    ExpectStagesMatchAtAllCuts(pairs, rows);
  }
}

TEST(FrameStagesTest, ColumnsAreMappedWhole) {
  for (const int64_t rows : kSizes) {
    if (rows < 5) continue;
    const Frame frame = Words(rows);
    const Frame numbers =
        NamedFrame({frame.column(1), OneOther(rows, 3, "7"), frame.column(1)}, {"a", "b", "c"});
    Invocation columns = Map(numbers,
                             "x -> UtilFunctions.copyAsStringToArray(x, "
                             "Arrays.stream(UtilFunctions.convertStringToDoubleArray(x)).sum())",
                             2);
    ExpectStagesMatchAtAllCuts(columns, rows);
    Invocation patterns = Map(frame, "UtilFunctions.syntacticalPatternDiscovery(0.4, NA)");
    ExpectStagesMatchAtAllCuts(patterns, rows);
    Invocation series = Map(ColumnsOf(frame, 1, 2),
                            "UtilFunctions.exponentialMovingAverageImputation(5;single;2;0.5;0.7;0.1)");
    ExpectStagesMatchAtAllCuts(series, rows);
  }
}

// The first column, and its first row, whichever rank has it; rows are counted through all ranks.
TEST(FrameStagesTest, TheFirstCellWhoseExpressionFailsIsTold) {
  const Frame frame = NamedFrame({OneOther(200, 150, "late"), OneOther(200, 70, "early")}, {"a", "b"});
  Invocation cells = Map(frame, "x -> Integer.parseInt(x)");
  Invocation of_rows = Map(frame, "x -> new String[]{Integer.toString(Integer.parseInt(x[0])), x[1]}", 1);
  Invocation series = Map(frame, "UtilFunctions.exponentialMovingAverageImputation(5;single;2;0.5;0.7;0.1)");
  for (Invocation* call : {&cells, &of_rows, &series}) {
    for (const int32_t ranks : {1, 2, 3, 8}) ExpectStagesFailAlike(*call, 200, ranks);
    EXPECT_NE(call->Error().find("row 151"), std::string::npos) << call->Error();
  }
}

}  // namespace
}  // namespace heddle::ops
