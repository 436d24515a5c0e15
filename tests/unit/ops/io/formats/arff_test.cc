// SPDX-License-Identifier: Apache-2.0
// ARFF: what Weka, OpenML, liac-arff, SciPy and R's foreign write.
#include <cmath>

#include "core/environment/random.h"
#include "ops/frame/text_column.h"
#include "ops/io/formats/column_builder.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using Texts = std::vector<std::string>;
const WriteOptions kArff = {.format = FileFormat::kArff};

class ArffTest : public FormatsTest {
 protected:
  Texts CellsOf(const std::string& text) {
    Put("a.arff", text);
    return Cells(ReadFrame("a.arff"));
  }
  static double CellOf(const Matrix& matrix, int64_t row, int64_t column) {
    if (!matrix.IsSparse()) return matrix.data()[row * matrix.columns() + column];
    for (int64_t k = matrix.row_offsets()[row]; k < matrix.row_offsets()[row + 1]; ++k)
      if (matrix.column_indexes()[k] == column) return matrix.values()[k];
    return 0;
  }
  // What is wrong with these rows below three attributes.
  std::string FaultOfRows(const std::string& rows) {
    return Fault("@relation r\n@attribute a numeric\n@attribute 'b c' {x,y}\n@attribute d string\n@data\n" +
                 rows);
  }
  std::string Fault(const std::string& text) {
    Put("a.arff", text);
    const Result<Frame> frame = ReadFrame("a.arff");
    if (frame.ok()) return "it is read";
    EXPECT_EQ(ExitCode(frame.status()), 4);
    std::string what = frame.status().message();
    if (const std::string beginning = "cannot read 'a.arff': "; what.starts_with(beginning))
      what.erase(0, beginning.size());
    return what;
  }
};

TEST_F(ArffTest, RowsHaveTheTypesOfTheirAttributes) {
  Put("a.arff",
      "% Iris, and what else\n\n  @RELATION 'iris data'\r\n@relation again\n"
      "@ATTRIBUTE length REAL\n@attribute 'petal length'\tnumeric\n@attribute count integer [0,9]\n"
      "@attribute \"a \\\"name\\\"\"{Iris-setosa, 'b c',\"d\"} % three\n@attribute when date 'yyyy-MM-dd'\n"
      "@attribute note string\n% rows\n@DATA\n"
      "5.1,1e-3,7,Iris-setosa,'2001-04-03','it\\'s, \"so\"'\n"
      "\n% none\n ? , 2 ,8, 'b c' ,?,\"50 %\" % a comment\r\n"
      "-3,NaN,0,d,x,?\n\n");
  const Result<Frame> frame = ReadFrame("a.arff");
  EXPECT_EQ(Cells(frame), (Texts{"5.1", "0.001", "7", "Iris-setosa", "2001-04-03", "it's, \"so\"",  //
                                 "<missing>", "2.0", "8", "b c", "<missing>", "50 %",               //
                                 "-3.0", "NaN", "0", "d", "x", "<missing>"}));
  EXPECT_EQ(frame->schema()->types,
            (std::vector{ColumnType::kFloat64, ColumnType::kFloat64, ColumnType::kInteger64,
                         ColumnType::kString, ColumnType::kString, ColumnType::kString}));
  EXPECT_EQ(frame->schema()->names, (Texts{"length", "petal length", "count", "a \"name\"", "when", "note"}));
}

TEST_F(ArffTest, IntegersThatAreNoneAreNumbers) {
  const std::string header = "@relation r\n@attribute a integer\n@attribute b integer\n@data\n";
  EXPECT_EQ(CellsOf(header + "1,2\n2,?\n"), (Texts{"1", "2", "2", "<missing>"}));
  EXPECT_EQ(CellsOf(header + "1,2\n2.5,3\n"), (Texts{"1.0", "2", "2.5", "3"}));
  EXPECT_EQ(CellsOf(header + "9223372036854775807,?\n?,9007199254740993\n"),
            (Texts{"9223372036854775807", "<missing>", "<missing>", "9007199254740993"}));
}

// R's foreign 0.8-84 writes logical columns so.
TEST_F(ArffTest, LogicalValuesAreNumbers) {
  EXPECT_EQ(
      CellsOf("@relation r\n@attribute l numeric\n@attribute s string\n@data\nTRUE,TRUE\nFALSE,x\n?,''\n"),
      (Texts{"1.0", "TRUE", "0.0", "x", "<missing>", ""}));
  Put("a.arff", "@relation r\n@attribute l numeric\n@data\nTRUE\nFALSE\n");
  const Result<Matrix> matrix = Read("a.arff");
  ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
  EXPECT_EQ(CellOf(*matrix, 0, 0), 1);
  EXPECT_EQ(CellOf(*matrix, 1, 0), 0);
}

TEST_F(ArffTest, RowsInBracesHaveWhatIsNotZero) {
  const std::string header =
      "@relation r\n@attribute c {red,green}\n@attribute n NUMERIC\n@attribute s string\n@attribute i integer\n"
      "@data\n";
  EXPECT_EQ(CellsOf(header + "{1 5}\n{0 green, 2 'v w' , 3 7}\n{}\n{1 ?}\nred,1,x,2\n"),
            (Texts{"red", "5.0", "",    "0",         "green", "0.0", "v w", "7",   "red", "0.0",
                   "",    "0",   "red", "<missing>", "",      "0",   "red", "1.0", "x",   "2"}));
}

TEST_F(ArffTest, BlanksSeparateWhereNoCommaDoes) {
  const std::string header = "@relation r\n@attribute a string\n@attribute b numeric\n@data\n";
  EXPECT_EQ(CellsOf(header + "'x, y' 1\nz\t2\n"), (Texts{"x, y", "1.0", "z", "2.0"}));
  EXPECT_EQ(CellsOf("@relation r\n@attribute a string\n@data\na b\n'c'\n"), (Texts{"a b", "c"}));
}

TEST_F(ArffTest, BackslashesInQuotesAreUndone) {
  EXPECT_EQ(
      CellsOf("@relation r\n@attribute a string\n@data\n'a\\nb\\tc\\\\d\\'e\\\"f\\u00e9g\\101\\%'\n\\x\n"),
      (Texts{"a\nb\tc\\d'e\"f\u00e9gA%", "\\x"}));
}

TEST_F(ArffTest, NumbersAreMatrices) {
  Put("a.arff", "@relation r\n@attribute a numeric\n@attribute b integer\n@data\n1,2\n?,0\n{1 -4}\n");
  const Result<Matrix> matrix = Read("a.arff");
  ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
  EXPECT_EQ(matrix->shape(), (Shape{3, 2}));
  EXPECT_TRUE(std::isnan(CellOf(*matrix, 1, 0)));
  EXPECT_EQ(CellOf(*matrix, 0, 1), 2);
  EXPECT_EQ(CellOf(*matrix, 2, 1), -4);
  Put("a.arff", "@relation r\n@attribute a numeric\n@attribute 'b c' {x,y}\n@data\n1,x\n");
  EXPECT_EQ(Read("a.arff").status().ToString(),
            "cannot read 'a.arff' as a matrix: it is an ARFF file whose column 2, 'b c', holds texts\n"
            "data_type=\"frame\" reads it as a frame");
}

TEST_F(ArffTest, ManyRowsInBracesAreASparseMatrix) {
  SeededRandom random(7);
  constexpr int64_t kRows = 3000, kColumns = 400;
  std::string text = "@relation r\n";
  for (int64_t j = 0; j < kColumns; ++j) text += fmt::format("@attribute w{} numeric\n", j);
  text += "@data\n";
  std::vector<double> cells(kRows * kColumns);
  for (int64_t i = 0; i < kRows; ++i) {
    text += "{";
    bool any = false;
    for (int64_t j = 0; j < kColumns; ++j) {
      if (random.Next() % 50 != 0) continue;
      const auto cell = static_cast<double>(random.Next() % 9);
      cells[static_cast<size_t>(i * kColumns + j)] = cell;
      text += fmt::format("{}{} {}", std::exchange(any, true) ? "," : "", j, cell);
    }
    text += "}\n";
  }
  Put("a.arff", text);
  const Result<Matrix> matrix = Read("a.arff");
  ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
  EXPECT_TRUE(matrix->IsSparse());
  ASSERT_EQ(matrix->shape(), (Shape{kRows, kColumns}));
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j)
      ASSERT_EQ(CellOf(*matrix, i, j), cells[static_cast<size_t>(i * kColumns + j)]);
}

TEST_F(ArffTest, FaultsAreNamed) {
  EXPECT_EQ(FaultOfRows("1,x,s\n1,x\n"), "line 7: it has 2 values, there are 3 attributes");
  EXPECT_EQ(FaultOfRows("1,x,s,4\n"), "line 6: it has 4 values, there are 3 attributes");
  EXPECT_EQ(FaultOfRows("% c\n1,,s\n"), "line 7: a value is empty; ? is a missing one");
  EXPECT_EQ(FaultOfRows("1,x,\n"), "line 6: a value is missing behind the last comma");
  EXPECT_EQ(FaultOfRows("one,x,s\n"), "line 6: 'a': 'one' is no number");
  EXPECT_EQ(FaultOfRows("1,'x,s\n"), "line 6: a quote is not closed in its line");
  EXPECT_EQ(FaultOfRows("1,'x'y,s\n"), "line 6: a comma is missing behind a quote");
  EXPECT_EQ(FaultOfRows("1,x,s,{5}\n"),
            "line 6: a weight in braces stands behind the row, which Heddle does not read");
  EXPECT_EQ(FaultOfRows("{0 1}, {5}\n"),
            "line 6: a weight in braces stands behind the row, which Heddle does not read");
  EXPECT_EQ(FaultOfRows("{0 1\n"), "line 6: its brace is not closed");
  EXPECT_EQ(FaultOfRows("{0 1} 2\n"), "line 6: nothing stands behind its brace");
  EXPECT_EQ(FaultOfRows("{3 1}\n"), "line 6: index 3 is beyond the 3 attributes, which are counted from 0");
  EXPECT_EQ(FaultOfRows("{1 x, 0 1}\n"), "line 6: index 0 follows index 1");
  EXPECT_EQ(FaultOfRows("{a 1}\n"), "line 6: 'a' is no index of a column");
  EXPECT_EQ(FaultOfRows("{1}\n"), "line 6: index 1 has no value");
  EXPECT_EQ(Fault("@relation r\n@attribute a foo\n@data\n1\n"),
            "line 2: its type is none of numeric, real, integer, string, date and {...}: '@attribute a foo'");
  EXPECT_EQ(Fault("@relation r\n@attribute a relational\n@data\n1\n"),
            "line 2: Heddle does not read attributes that are relations: '@attribute a relational'");
  EXPECT_EQ(Fault("@relation r\n@attribute a {x,y\n@data\nx\n"),
            "line 2: the brace of its values is not closed in its line: '@attribute a {x,y'");
  EXPECT_EQ(Fault("@relation r\n@attribute\n@data\n1\n"),
            "line 2: an attribute has a name and a type: '@attribute'");
  EXPECT_EQ(Fault("@relation r\n@data\n1\n"), "line 2: no @attribute stands before @data: '@data'");
  EXPECT_EQ(Fault("@relation r\na,b\n"), "line 2: it is no @relation, @attribute or @data: 'a,b'");
  EXPECT_EQ(Fault("@relation r\n@attribute a numeric\n"), "it is an ARFF file without a line @data");
}

TEST_F(ArffTest, ItIsFoundBehindLongComments) {
  std::string comments = "\xEF\xBB\xBF";
  for (int i = 0; i < 5000; ++i) comments += "% a line of many\n";
  EXPECT_EQ(CellsOf(comments + "@Relation r\n@attribute a numeric\n@data\n1\n"), Texts{"1.0"});
  Put("a.csv", "@relations,b\n1,2\n");
  EXPECT_EQ(Cells(ReadFrame("a.csv", {{"header", true}})), (Texts{"1", "2"}));
}

TEST_F(ArffTest, AFileWithoutRowsHasItsColumns) {
  Put("a.arff", "@relation r\n@attribute a numeric\n@attribute b string\n@data\n");
  const Result<Frame> frame = ReadFrame("a.arff");
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->shape(), (Shape{0, 2}));
  EXPECT_EQ(frame->schema()->names, (Texts{"a", "b"}));
}

TEST_F(ArffTest, FramesSurvive) {
  const Texts texts = {"plain",
                       "",
                       "?",
                       "a b",
                       "it's",
                       "\"q\"",
                       "x,y",
                       "{z}",
                       "50%",
                       "%",
                       "\\",
                       "a\nb\r\tc",
                       std::string("\0", 1),
                       " ",
                       "1.5",
                       "\u00e9",
                       "@data",
                       "NaN"};
  const int64_t rows = static_cast<int64_t>(texts.size()) + 1;
  ColumnBuilder of_texts(ColumnType::kString);
  for (const std::string& text : texts) ASSERT_TRUE(of_texts.Add(text));
  of_texts.MissUntil(rows);
  std::vector<double> doubles;
  std::vector<int64_t> integers;
  for (int64_t i = 0; i < rows; ++i) {
    doubles.push_back(i == 2   ? std::numeric_limits<double>::infinity()
                      : i == 3 ? std::numeric_limits<double>::quiet_NaN()
                               : 0.1 * static_cast<double>(i));
    integers.push_back(i == 0 ? INT64_MIN : i);
  }
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString, ColumnType::kFloat64, ColumnType::kInteger64};
  schema->names = {"a text", "it's", "{n}"};
  const Frame frame(schema,
                    {*of_texts.Finish(rows), *Column::OfDoubles(doubles), *Column::OfIntegers(integers)});
  for (const bool has_metadata : {true, false}) {
    ASSERT_TRUE(WriteValue(frame, "f.arff", kArff, *files_).ok());
    if (!has_metadata) {
      ASSERT_TRUE(files_->Remove("f.arff.mtd").ok());
    }
    const Result<Frame> back = ReadFrame("f.arff");
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_EQ(*back->schema(), *schema);
    EXPECT_TRUE(Frame::SameCells(*back, frame));
  }
}

TEST_F(ArffTest, ColumnsOfAllTypesSurvive) {
  const Frame frame = NumberedFrame(10'000);
  ASSERT_TRUE(WriteValue(frame, "f.arff.gz", kArff, *files_).ok());
  const Result<Frame> back = ReadFrame("f.arff.gz");
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back->schema(), *frame.schema());
  EXPECT_TRUE(Frame::SameCells(*back, frame));
}

// Weka 3.9.7 takes control characters outside of quotes for blanks.
TEST_F(ArffTest, ControlCharactersAreWrittenInQuotes) {
  const std::vector<std::optional<std::string>> cells = {"\x01", "a\x1f", "\x0b", "\x7f"};
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString};
  ASSERT_TRUE(WriteValue(Frame(schema, {*TextColumn(cells)}), "f.arff", kArff, *files_).ok());
  EXPECT_TRUE(Get("f.arff").ends_with("@data\n'\x01'\n'a\x1f'\n'\x0b'\n\x7f\n")) << Get("f.arff");
}

TEST_F(ArffTest, MatricesAreWrittenAsFrames) {
  EXPECT_EQ(WriteValue(*Matrix::Dense(1, 1), "m.arff", kArff, *files_).message(),
            "write: a matrix cannot be written in format 'arff'");
}

}  // namespace
}  // namespace heddle::ops
