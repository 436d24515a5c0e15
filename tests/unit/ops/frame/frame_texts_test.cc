// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "ops/base/operator.h"
#include "ops/frame/cast.h"
#include "ops/frame/cell_types.h"
#include "ops/frame/text_column.h"
#include "ops/map/syntactic_patterns.h"
#include "ops/map/text_measures.h"
#include "tests/reference/frame.h"

// The operators on texts of frames, beside their reference.
namespace heddle::ops {
namespace {

using Cells = std::vector<std::optional<std::string>>;

Frame FrameOfTexts(const std::vector<Cells>& by_columns) {
  std::vector<Column> columns;
  for (const Cells& cells : by_columns) columns.push_back(*TextColumn(cells));
  const std::shared_ptr<const Schema> schema = SchemaOfTexts(static_cast<int64_t>(columns.size()));
  return Frame(schema, std::move(columns));
}

Frame RowOfTexts(const std::vector<std::string>& texts) {
  std::vector<Cells> columns;
  for (const std::string& text : texts) columns.push_back({text});
  return FrameOfTexts(columns);
}

// Infers and runs the operator; its frame, or the message of its error.
struct Outcome {
  std::optional<Frame> frame;
  std::string error;
};
Outcome RunOn(const std::string& name, const std::vector<Value>& inputs, bool known = true,
              const std::string& attribute = "") {
  Node node;
  node.op = name;
  if (!attribute.empty())
    node.SetAttribute(name == "removeEmpty" ? "margin" : "comparison", Scalar(attribute));
  std::vector<ValueInfo> infos;
  std::vector<const Scalar*> scalars;
  std::vector<const Value*> values;
  for (size_t i = 0; i < 3 && i < static_cast<size_t>(FindOperator(name)->max_inputs); ++i) {
    const bool given = i < inputs.size();
    node.inputs.push_back(given ? static_cast<NodeId>(i) : kNoNode);
    infos.emplace_back();
    scalars.push_back(given && known && inputs[i].IsScalar() ? &inputs[i].scalar() : nullptr);
    values.push_back(given ? &inputs[i] : nullptr);
    if (!given) continue;
    const Value& value = inputs[i];
    if (value.IsScalar()) infos.back() = ValueInfo::OfScalar(value.scalar().type());
    if (value.IsFrame()) infos.back() = ValueInfo::OfFrame(value.shape().rows, value.frame().schema());
    if (value.IsMatrix()) infos.back() = ValueInfo::OfMatrix(value.shape());
  }
  const Result<ValueInfo> info = Infer({node, infos, scalars});
  if (!info.ok()) return {std::nullopt, info.status().message()};
  KernelContext context;
  const KernelCall call{
      .node = node, .phase = Phase::kWhole, .inputs = values, .input_infos = infos, .context = context};
  const Result<Value> result = CatalogKernels().Run(call);
  if (!result.ok()) return {std::nullopt, result.status().message()};
  const Frame& frame = result->frame();
  for (const auto& [found, expected] :
       {std::pair(info->shape.rows, frame.rows()), std::pair(info->shape.columns, frame.columns())})
    EXPECT_TRUE(found == kUnknown || found == expected) << name;
  return {frame, ""};
}

void ExpectSame(const Outcome& outcome, const Frame& expected) {
  ASSERT_TRUE(outcome.frame.has_value()) << outcome.error;
  ASSERT_EQ(outcome.frame->shape(), expected.shape());
  EXPECT_EQ(outcome.frame->schema()->types, expected.schema()->types);
  for (int64_t i = 0; i < expected.rows(); ++i)
    for (int64_t j = 0; j < expected.columns(); ++j)
      EXPECT_EQ(TextOfCell(*outcome.frame, i, j), TextOfCell(expected, i, j)) << i << " " << j;
}

const Frame& Mixed() {
  static const Frame mixed = FrameOfTexts({{"1", "0", "t", std::nullopt, "True"},
                                           {"1", "-7", "300", "0", "2.0"},
                                           {"1", "3000000000", "2", "", "5"},
                                           {"1.5", "2", "0.25", "1", "-3.5"},
                                           {"a", "b", "c", "d", "e"},
                                           {"1", "a text", "2", "x", ""}});
  return mixed;
}

TEST(FrameTextsTest, TypesAreTheNarrowestThatHoldAllCells) {
  ExpectSame(RunOn("detectSchema", {Mixed()}), reference::DetectSchema(Mixed()));
  ExpectSame(RunOn("detectSchema", {Mixed()}),
             RowOfTexts({"BOOLEAN·n", "INT32", "INT64·n", "FP32", "CHARACTER", "STRING"}));
}

// Whatever texts stand in a column, one or two: the types that detectSchema finds can be applied, and no
// digit of a number is lost that a double has.
TEST(FrameTextsTest, DetectedTypesHoldTheCells) {
  const std::string texts[] = {"0",
                               "1",
                               "t",
                               "F",
                               "TRUE",
                               "false",
                               "-0",
                               "+5",
                               "5.",
                               "7.00",
                               "2147483647",
                               "2147483648",
                               "-2147483649",
                               "9007199254740993",
                               "9223372036854775807",
                               "-9223372036854775808",
                               "9223372036854775808",
                               "-9223372036854775809",
                               "9223372036854775807.0",
                               "123456789012345678901234567890",
                               "0.5",
                               "0.1",
                               "16777217",
                               "16777217.0",
                               "1e10",
                               "1E19",
                               "1e-46",
                               "3.1415927",
                               "1e400",
                               "Infinity",
                               "-Infinity",
                               "inf",
                               "NaN",
                               "nan",
                               ".5",
                               "-.5e-3",
                               "1e",
                               "--1",
                               "e",
                               "1.2.3",
                               "x",
                               "a text",
                               "007"};
  for (const std::string& a : texts) {
    for (const std::string& b : texts) {
      SCOPED_TRACE(a + " " + b);
      const Frame frame = FrameOfTexts({{a, b}});
      const Outcome schema = RunOn("detectSchema", {frame});
      const Outcome applied = RunOn("applySchema", {frame, *schema.frame});
      ASSERT_TRUE(applied.frame.has_value()) << applied.error;
      const Result<Matrix> before = MatrixOf(frame), after = MatrixOf(*applied.frame);
      if (!before.ok() || !after.ok()) continue;
      for (int64_t i = 0; i < 2; ++i) {
        const double x = before->At(i, 0), y = after->At(i, 0);  // -0 is 0 as an integer
        EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << x << " " << y;
      }
    }
  }
  const auto ends = [](const std::string& text) {
    return *TextOfCell(*RunOn("applySchema", {FrameOfTexts({{text}}), RowOfTexts({"INT64"})}).frame, 0, 0);
  };
  for (const char* text : {"9223372036854775807", "-9223372036854775808", "9007199254740993"})
    EXPECT_EQ(ends(text), text);
  EXPECT_EQ(RunOn("applySchema", {FrameOfTexts({{"9223372036854775808"}}), RowOfTexts({"INT64"})}).error,
            "applySchema: column C1: '9223372036854775808' is no INT64");
}

TEST(FrameTextsTest, CellsOfOtherTypesAreDropped) {
  for (const char* type : {"INT64", "FP32", "STRING", "BOOLEAN"}) {
    const Frame schema = RowOfTexts(std::vector<std::string>(6, type));
    ExpectSame(RunOn("dropInvalidType", {Mixed(), schema}), reference::DropInvalidType(Mixed(), schema));
  }
  EXPECT_EQ(RunOn("dropInvalidType", {Mixed(), RowOfTexts({"INT64"})}).error,
            "dropInvalidType: the frame has 6 columns, argument 2 has 1");
}

TEST(FrameTextsTest, LongCellsAreDropped) {
  Matrix lengths = *Matrix::Dense(1, 6);
  for (int64_t j = 0; j < 6; ++j) lengths.mutable_data()[j] = j == 2 ? -1 : 1;
  ExpectSame(RunOn("dropInvalidLength", {Mixed(), lengths}), reference::DropInvalidLength(Mixed(), lengths));
}

// Numbers and booleans can be missing only where their type was applied with the mark.
TEST(FrameTextsTest, DroppedNumbersAreZeroWhereNoneCanBeMissing) {
  const Frame texts = FrameOfTexts({{"1.5", "2"}, {"1.5", "2"}, {"TRUE", "FALSE"}});
  Matrix lengths = *Matrix::Dense(1, 3);
  std::fill_n(lengths.mutable_data(), 3, 2);
  for (const bool may_miss : {false, true}) {
    const std::string mark = may_miss ? "·n" : "";
    const Frame frame =
        *RunOn("applySchema", {texts, RowOfTexts({"FP64" + mark, "FP32" + mark, "BOOLEAN" + mark})}).frame;
    const Frame of_types =
        *RunOn("dropInvalidType", {frame, RowOfTexts({"BOOLEAN", "STRING", "STRING"})}).frame;
    const Frame of_lengths = *RunOn("dropInvalidLength", {frame, lengths}).frame;
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(of_types.IsMissing(i, 0), may_miss);
      EXPECT_EQ(of_types.At(i, 0).AsDouble(), 0);
      EXPECT_EQ(of_types.At(i, 1).AsDouble(), i == 0 ? 1.5 : 2);
      EXPECT_EQ(of_lengths.IsMissing(i, 1), may_miss);
      EXPECT_EQ(of_lengths.At(i, 1).AsDouble(), 0);
      EXPECT_EQ(of_lengths.IsMissing(i, 2), may_miss);
      EXPECT_FALSE(of_lengths.At(i, 2).AsBoolean());
    }
  }
}

TEST(FrameTextsTest, ColumnsBecomeOfTheTypesThatARowNames) {
  const Frame schema = RowOfTexts({"BOOLEAN", "FP64", "STRING"});
  const Frame frame = FrameOfTexts({{"1", "FALSE"}, {"1.5", "2"}, {"a", "b"}});
  ExpectSame(RunOn("applySchema", {frame, schema}), reference::ApplySchema(frame, schema));
  const Frame gaps = FrameOfTexts({{"1", "", std::nullopt}});
  const Outcome filled = RunOn("applySchema", {gaps, RowOfTexts({"INT32·n"})});
  ASSERT_TRUE(filled.frame.has_value()) << filled.error;
  EXPECT_EQ(filled.frame->At(0, 0).AsInteger(), 1);
  EXPECT_TRUE(filled.frame->IsMissing(1, 0) && filled.frame->IsMissing(2, 0));
  const Outcome zeros = RunOn("applySchema", {gaps, RowOfTexts({"INT32"})});
  ASSERT_TRUE(zeros.frame.has_value()) << zeros.error;
  for (int64_t i = 1; i < 3; ++i) {
    EXPECT_FALSE(zeros.frame->IsMissing(i, 0));
    EXPECT_EQ(zeros.frame->At(i, 0).AsInteger(), 0);
  }
  EXPECT_EQ(RunOn("applySchema", {frame, RowOfTexts({"STRING", "STRING", "INT32"})}).error,
            "applySchema: column C3: 'a' is no INT32");
  EXPECT_EQ(RunOn("applySchema", {frame, RowOfTexts({"STRING", "STRING", "int"})}).error,
            "applySchema: 'int' is no type of a column");
}

TEST(FrameTextsTest, CellsChangePlacesToFitTheirTypes) {
  const Frame frame = FrameOfTexts({{"17", "word", "5555"}, {"long text", "123", "t"}});
  const Frame schema = RowOfTexts({"INT64", "STRING"});
  ExpectSame(RunOn("valueSwap", {frame, schema}), reference::ValueSwap(frame, schema));
}

TEST(FrameTextsTest, TextsFillAFrame) {
  for (const char* data : {"a", "a·b", "a·b·c·d·e·f"})
    ExpectSame(RunOn("frame", {Scalar(data), Scalar(3), Scalar(2)}), reference::FilledFrame(data, 3, 2));
  EXPECT_EQ(RunOn("frame", {Scalar("a·b·c"), Scalar(2), Scalar(2)}).error, "frame: 3 texts for 2 x 2 cells");
}

TEST(FrameTextsTest, ARowIsRepeated) {
  const Frame row = RowOfTexts({"a", "b"});
  const Frame frame = FrameOfTexts({{"1", "2", "3"}, {"4", "5", "6"}});
  ExpectSame(RunOn("freplicate", {frame, row}), reference::Replicate(frame, row));
  EXPECT_EQ(RunOn("freplicate", {frame, frame}).error, "freplicate: argument 2 must have one row, it has 3");
}

TEST(FrameTextsTest, TextsOfCellsAreReplaced) {
  const Frame texts = FrameOfTexts({{"a", std::nullopt, "b"}, {"", "a", "aa"}});
  ExpectSame(RunOn("replaceTexts", {texts, Scalar("a"), Scalar("long text")}),
             reference::ReplaceTexts(texts, "a", "long text"));
  ExpectSame(RunOn("replaceTexts", {texts, Scalar("no"), Scalar("yes")}), texts);
  // 1 is the text of an integer, not of the double 1.0; columns keep their types.
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kInteger32, ColumnType::kFloat64, ColumnType::kBoolean};
  schema->names = {"i", "d", "b"};
  const auto frame = [&](int64_t i, double d, bool b) {
    return Frame(schema, {*Column::OfIntegers(std::array{i}, ColumnType::kInteger32),
                          *Column::OfDoubles(std::array{d}), *Column::OfBooleans(std::array{b})});
  };
  const Frame typed = frame(1, 1, true);
  ExpectSame(RunOn("replaceTexts", {typed, Scalar(1), Scalar(3)}), frame(3, 1, true));
  ExpectSame(RunOn("replaceTexts", {typed, Scalar(1.0), Scalar(2.5)}), frame(1, 2.5, true));
  ExpectSame(RunOn("replaceTexts", {typed, Scalar(true), Scalar(false)}), frame(1, 1, false));
  ExpectSame(RunOn("replaceTexts", {typed, Scalar("1"), Scalar("7")}), frame(7, 1, true));
  for (const bool known : {true, false})
    EXPECT_EQ(RunOn("replaceTexts", {typed, Scalar(1), Scalar("x")}, known).error,
              "replace: in a frame an integer cannot be replaced by a text");
  EXPECT_EQ(RunOn("replaceTexts", {typed, Scalar("1"), Scalar("x")}).error,
            "replace: column i: 'x' is no INT32");
  EXPECT_EQ(RunOn("replaceTexts", {typed, Scalar(1), Scalar(int64_t{1} << 40)}).error,
            "replace: column i: '1099511627776' is no INT32");
}

TEST(FrameTextsTest, RowsOfAFrameWithoutCellsAreRemoved) {
  const Frame frame = FrameOfTexts({{"a", std::nullopt, "0", "", "b"}, {"0", "0", std::nullopt, "0", "x"}});
  ExpectSame(RunOn("removeEmpty", {frame}, true, "rows"), reference::RemoveEmptyRows(frame));
  ExpectSame(RunOn("removeEmpty", {frame}, true, "rows"), FrameOfTexts({{"a", "", "b"}, {"0", "0", "x"}}));
  Matrix select = *Matrix::Dense(1, 2);
  select.mutable_data()[0] = 0;
  select.mutable_data()[1] = 3;
  ExpectSame(RunOn("removeEmpty", {frame, select}, true, "cols"),
             FrameOfTexts({{"0", "0", std::nullopt, "0", "x"}}));
  select.mutable_data()[1] = 0;
  ExpectSame(RunOn("removeEmpty", {frame, select}, true, "cols"), FrameOfTexts({Cells(5)}));
  const Frame zeros = FrameOfTexts({{"0", std::nullopt}});
  ExpectSame(RunOn("removeEmpty", {zeros}, true, "rows"), FrameOfTexts({{std::nullopt}}));
}

TEST(FrameTextsTest, FramesAreComparedCellByCell) {
  const Frame a = FrameOfTexts({{"a", std::nullopt, "c", std::nullopt}});
  const Frame b = FrameOfTexts({{"b", "b", "c", std::nullopt}});
  for (const char* comparison : {"==", "!=", "<", "<=", ">", ">="})
    ExpectSame(RunOn("compareFrames", {a, b}, true, comparison), reference::Compare(a, b, comparison));
  EXPECT_EQ(RunOn("compareFrames", {a, RowOfTexts({"a"})}, true, "<").error,
            "<: the frames have 4x1 and 1x1 cells");
}

TEST(FrameTextsTest, MapGivesWhatTheExpressionSays) {
  const Frame frame = FrameOfTexts({{"Aa", std::nullopt, "banana"}, {"x", "", "A"}});
  for (const char* expression : {"x -> x.length()", "x -> x.toLowerCase()", "x -> x.replace(\"a\", \"b\")"}) {
    ExpectSame(RunOn("map", {frame, Scalar(expression)}), reference::Map(frame, expression));
    ExpectSame(RunOn("map", {frame, Scalar(expression)}, false), reference::Map(frame, expression));
  }
}

TEST(FrameTextsTest, MapOfRowsColumnsAndPairs) {
  const Frame frame = FrameOfTexts({{"ab", "bc", std::nullopt}, {"1", "2", "3"}});
  ExpectSame(RunOn("map", {frame, Scalar("x -> new String[]{x[1], x[0]}"), Scalar(1)}),
             FrameOfTexts({{"1", "2", "3"}, {"ab", "bc", "null"}}));
  ExpectSame(RunOn("map", {frame, Scalar("x -> new String[]{x[2], x[0], x[1]}"), Scalar(2)}),
             FrameOfTexts({{"null", "ab", "bc"}, {"3", "1", "2"}}));
  ExpectSame(
      RunOn("map", {frame, Scalar("UtilFunctions.jaccardSim")}),
      FrameOfTexts({{"0.0", "0.0", "0.0"}, {"0.3333333333333333", "0.0", "0.0"}, {"0.0", "0.0", "0.0"}}));
  EXPECT_EQ(RunOn("map", {frame, Scalar("x -> x.length()"), Scalar(3)}).error,
            "map: margin must be 0 (cells), 1 (rows) or 2 (columns), not 3");
  EXPECT_EQ(RunOn("map", {frame, Scalar("x -> x[0]"), Scalar(1)}).error,
            "map: with margin=1 the expression must give a String[], not a String");
  EXPECT_EQ(RunOn("map", {frame, Scalar("x -> new String[]{x[0]}"), Scalar(1)}).error,
            "map: row 1: the expression gives 1 texts for 2 cells");
  EXPECT_EQ(RunOn("map", {frame, Scalar("(x, y) -> x")}).error,
            "map: the expression has 2 parameters, one is needed");
}

TEST(SyntacticPatternsTest, LevelsReadEverLessExactly) {
  const char* const patterns[] = {"u1l2s1d2t1d1-1", "u+l+s+d+t+d+-+", "a+s+d+t+d+-+"};
  for (int level = 1; level <= 3; ++level) EXPECT_EQ(PatternOf("Abc 12.5-", level), patterns[level - 1]);
  EXPECT_EQ(PatternOf("12.5", 4), PatternOf("7", 4));
  EXPECT_EQ(PatternOf("a -7", 6), "a+-+d+");  // A run of minus signs has a length.
}

TEST(SyntacticPatternsTest, CellsWrittenOtherwiseAreReplaced) {
  const Frame frame = FrameOfTexts({{"ab", "cd", "ef", "gh", "?"}});
  ExpectSame(RunOn("map", {frame, Scalar("UtilFunctions.syntacticalPatternDiscovery(0.7,NA)")}),
             FrameOfTexts({{"ab", "cd", "ef", "gh", "NA"}}));
  EXPECT_EQ(RunOn("map", {frame, Scalar("UtilFunctions.syntacticalPatternDiscovery(NA)")}).error,
            "map: UtilFunctions.syntacticalPatternDiscovery needs a threshold and a text: (0.8, NA)");
}

TEST(TextMeasuresTest, AreThoseOfTheDefinition) {
  EXPECT_EQ(JaccardSimilarity(u"abc", u"abd"), 0.5);
  EXPECT_EQ(JaccardSimilarity(u"", u""), 1.0);
  EXPECT_EQ(JaccardSimilarity(u"", u"a"), 0.0);
  EXPECT_EQ(WordErrorRate(u"a b c", u"a c"), 1.0 / 3);
  EXPECT_EQ(WordErrorRate(u"", u"a"), 1.0);
  EXPECT_EQ(WordErrorRate(u" ", u"a"), 1.0);
}

}  // namespace
}  // namespace heddle::ops
