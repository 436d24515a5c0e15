// SPDX-License-Identifier: Apache-2.0
#include "ops/io/exchange/inspect_file.h"

#include <ctime>

#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using Texts = std::vector<std::string>;

class InspectFileTest : public FormatsTest {
 protected:
  FileFacts Inspect(const std::string& text, const InspectOptions& options = {}) {
    Put("f", text);
    Result<FileFacts> facts = InspectFile("f", options, *files_);
    EXPECT_TRUE(facts.ok()) << facts.status().ToString();
    return facts.ok() ? *std::move(facts) : FileFacts();
  }
};

TEST_F(InspectFileTest, ATableOfNumbersIsAMatrix) {
  const FileFacts facts = Inspect("1,2.5,\n0,-3,7\n");
  EXPECT_EQ(facts.format, FileFormat::kCsv);
  EXPECT_FALSE(facts.is_frame);
  EXPECT_FALSE(facts.header);
  EXPECT_EQ(facts.rows, 2);
  EXPECT_EQ(facts.columns, 3);
  EXPECT_EQ(facts.nonzeros, 4);
  EXPECT_EQ(facts.facts[0].kind(), "int");
  EXPECT_EQ(facts.facts[1].kind(), "double");
  EXPECT_EQ(facts.facts[1].least, -3);
  EXPECT_EQ(facts.facts[1].greatest, 2.5);
  EXPECT_EQ(facts.facts[2].missing, 1);
  EXPECT_EQ(facts.warnings, Texts());
  EXPECT_EQ(facts.how_to_read, "read(\"f\")");
  EXPECT_TRUE(facts.looked_at_all);
}

TEST_F(InspectFileTest, ATableWithTextsIsAFrameWithASchema) {
  const FileFacts facts = Inspect("id;name;ok;when\n1;Anna;TRUE;2024-01-31\n2;;FALSE;2024-02-01\n");
  EXPECT_TRUE(facts.is_frame);
  EXPECT_TRUE(facts.header);
  EXPECT_EQ(facts.separator, ";");
  EXPECT_EQ(facts.rows, 2);
  EXPECT_EQ(facts.facts[0].name, "id");
  EXPECT_EQ(facts.facts[1].missing, 1);
  EXPECT_EQ(facts.facts[3].kind(), "date");
  EXPECT_EQ(facts.first_rows,
            (std::vector<Texts>{{"1", "Anna", "TRUE", "2024-01-31"}, {"2", "", "FALSE", "2024-02-01"}}));
  EXPECT_EQ(facts.warnings, Texts({"column 4 (when) has dates, which are read as texts: '2024-01-31'"}));
  EXPECT_EQ(facts.how_to_read,
            "read(\"f\", data_type=\"frame\", format=\"csv\", header=TRUE, sep=\";\", "
            "schema=\"INT64,STRING,BOOLEAN,STRING\")");
  // What it says is so.
  const Result<Frame> frame = ReadFrame(
      "f", {{"format", "csv"}, {"header", true}, {"sep", ";"}, {"schema", "INT64,STRING,BOOLEAN,STRING"}});
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->shape(), (Shape{2, 4}));
}

TEST_F(InspectFileTest, WhatLooksWrongIsAWarning) {
  const FileFacts facts = Inspect(
      "\xEF\xBB\xBF"
      "a,b,a,d,\r\n1,x,\"3\",9007199254740993,\r\n2,4,\"5\",1,\r\n3,5,NaN,Inf,\n\n4,6\n5,caf\xE9,1,1,\n");
  EXPECT_EQ(facts.warnings,
            Texts({"it begins with a byte order mark, which is skipped",
                   "1 line has not the 5 fields of the first: line 6 has 2",
                   "blank lines between rows, the first is line 5",
                   "1 line is no UTF-8, the first is line 7: Latin-1?", "3 lines end with CR LF, 4 with LF",
                   "column 5 is empty: every line ends with a separator",
                   "column 2 (b) has 3 numbers and 2 texts: '4' in row 2, 'x' in row 1",
                   "columns 1 and 3 are both called 'a'", "column 3 (a) has 2 numbers in quotes",
                   "column 3 (a) has 1 NaN",
                   "column 4 (d) has 1 whole number that a double does not hold, which loses digits: "
                   "9007199254740993",
                   "column 4 (d) has 1 infinite number"}));
}

TEST_F(InspectFileTest, WhatReadRefusesToGuessIsAWarningToo) {
  const FileFacts facts = Inspect("name,2020\nAnna,1\nBert,2\n");
  EXPECT_EQ(facts.warnings,
            Texts({"cannot read 'f': line 1 has a name, field 1, 'name', and a number, field 2, '2020'; say "
                   "header=TRUE if line 1 holds names, header=FALSE if it holds data"}));
  EXPECT_TRUE(facts.header);
  EXPECT_EQ(facts.why_header, "guessed");
}

TEST_F(InspectFileTest, ALineAloneIsData) {
  const FileFacts facts = Inspect("1.5,Anna\n\n");
  EXPECT_FALSE(facts.header);
  EXPECT_EQ(facts.rows, 1);
  EXPECT_EQ(facts.how_to_read,
            "read(\"f\", data_type=\"frame\", format=\"csv\", header=FALSE, schema=\"FP64,STRING\")");
}

TEST_F(InspectFileTest, ABlankLineOfAFrameOfOneColumnIsAMissingCell) {
  const FileFacts facts = Inspect("a\n\nx\n\n\ny\n5\n\n", {.rows_shown = 4});
  EXPECT_EQ(facts.rows, 7);
  EXPECT_EQ(facts.facts[0].missing, 4);
  EXPECT_EQ(facts.first_rows, (std::vector<Texts>{{""}, {"x"}, {""}, {""}}));
  EXPECT_EQ(facts.warnings, Texts({"column 1 (a) has 1 number and 2 texts: '5' in row 6, 'x' in row 2"}));
  EXPECT_EQ(facts.how_to_read,
            "read(\"f\", data_type=\"frame\", format=\"csv\", header=TRUE, schema=\"STRING\")");
}

TEST_F(InspectFileTest, AFrameOfOneColumnMayHaveBlankLinesOnly) {
  Put("f.mtd", R"({"data_type": "frame", "format": "csv", "schema": "STRING"})");
  const FileFacts facts = Inspect("\n\n");
  EXPECT_EQ(facts.rows, 2);
  EXPECT_EQ(facts.columns, 1);
  EXPECT_EQ(facts.how_to_read, "read(\"f\")");
}

TEST_F(InspectFileTest, WholeNumbersUpToTheLargestAreIntegers) {
  const FileFacts facts = Inspect(
      "a,b,c,d\n9223372036854775807,9223372036854775808,-9223372036854775808,x\n"
      "+0009223372036854775807,1,-9223372036854775808,x\n");
  EXPECT_EQ(facts.facts[0].schema_type(), "INT64");
  EXPECT_EQ(facts.facts[1].schema_type(), "FP64");
  EXPECT_EQ(facts.facts[2].schema_type(), "INT64");
}

TEST_F(InspectFileTest, IntegersOfArffThatLoseDigitsAreCounted) {
  Put("f.arff", "@relation r\n@attribute a integer\n@data\n9007199254740993\n?\n");
  const Result<FileFacts> facts = InspectFile("f.arff", {}, *files_);
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ(facts->facts[0].first_inexact, "9007199254740993");
}

// Cells of numbers are no reason to take it for another format.
TEST_F(InspectFileTest, AFileNamedJsonlHasLinesOfJson) {
  Put("f.jsonl", "2 1 3\n");
  const Status status = InspectFile("f.jsonl", {}, *files_).status();
  EXPECT_EQ(ExitCode(status), 4);
  EXPECT_EQ(status.message(), "cannot read 'f.jsonl': line 1, character 1: an object begins with {");
}

TEST_F(InspectFileTest, LinesThatMayBeCellsAreATable) {
  Put("f.csv", "1 1 2\n2 2 3\n");
  const Result<FileFacts> facts = InspectFile("f.csv", {}, *files_);
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ(facts->warnings,
            Texts({"cannot read 'f.csv': its lines are cells (row column value) or rows of a table of 3 "
                   "columns; say which: format=\"text\" for cells, format=\"csv\", sep=\" \" for a table"}));
  EXPECT_FALSE(facts->is_frame);
  EXPECT_FALSE(facts->header);
  EXPECT_EQ(facts->why_header, "line 1 has numbers");
  EXPECT_EQ(facts->how_to_read, "read(\"f.csv\", header=FALSE)");
}

TEST_F(InspectFileTest, ZerosThatAreLostInFrontOfNumbersAreCounted) {
  const FileFacts facts = Inspect("zip,n,text\n01067,0,01\n-007,00.5,x\n10115,\"02\",03\n");
  EXPECT_EQ(facts.warnings[0], "column 1 (zip) has 2 numbers with zeros in front, which are lost: 01067");
  EXPECT_EQ(facts.facts[1].LostZeros(), 2);
  EXPECT_EQ(facts.facts[2].LostZeros(), 0);  // It is read as texts.
}

TEST_F(InspectFileTest, OfSeveralArraysTheFirstThatCanBeReadIsTaken) {
  PutData("arrays.npz");
  const Result<FileFacts> facts = InspectFile("arrays.npz", {}, *files_);
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ(facts->warnings[0].substr(0, 38), "cannot read 'arrays.npz': it holds 3 a");
  EXPECT_EQ(facts->how_to_read, "read(\"arrays.npz\", dataset=\"cells\")");
}

TEST_F(InspectFileTest, NamesOfArraysMayHoldWhatStandsBetweenThemInTheMessage) {
  Put("f.txt",
      "# name: a, b\n# type: matrix\n# rows: 1\n# columns: 2\n 1 2\n\n"
      "# name: b\n# type: matrix\n# rows: 1\n# columns: 1\n 3\n\n");
  const Result<FileFacts> facts = InspectFile("f.txt", {}, *files_);
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ(facts->how_to_read, "read(\"f.txt\", dataset=\"a, b\")");
}

TEST_F(InspectFileTest, NoCallIsAdvisedThatGivesSomethingElse) {
  const FileFacts facts = Inspect("1,2\n3\n");
  EXPECT_EQ(facts.how_to_read, "");
  EXPECT_EQ(facts.why_not_read, "line 2 has 1 field, the lines before have 2");
  InspectOptions options;
  options.finds_call = false;
  EXPECT_EQ(Inspect("1,2\n", options).how_to_read, "");
}

TEST_F(InspectFileTest, MetadataThatDisagreeAreAWarning) {
  Put("f.mtd",
      R"({"data_type": "matrix", "format": "csv", "rows": 3, "cols": 2, "nnz": 9, "header": false, "sep": ","})");
  const FileFacts facts = Inspect("1,2,3\n4,5,0\n");
  EXPECT_TRUE(facts.has_metadata);
  EXPECT_EQ(facts.why, "its .mtd says so");
  EXPECT_EQ(facts.warnings,
            Texts({"the .mtd says rows=3, the file has 2", "the .mtd says cols=2, the file has 3",
                   "the .mtd says nnz=9, the file has 5"}));
}

TEST_F(InspectFileTest, OtherFormats) {
  const FileFacts cells = Inspect("1 1 2.5\n3 2 -1\n");
  EXPECT_EQ(cells.format, FileFormat::kText);
  EXPECT_EQ(cells.rows, 3);
  EXPECT_EQ(cells.columns, 2);
  EXPECT_EQ(cells.nonzeros, 2);
  EXPECT_EQ(cells.facts[0].zeros, 2);
  EXPECT_EQ(cells.facts[1].least, -1);
  EXPECT_EQ(cells.facts[1].greatest, 0);
  const FileFacts market = Inspect("%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 4\n");
  EXPECT_EQ(market.format, FileFormat::kMatrixMarket);
  EXPECT_EQ(market.why, "its first line is the banner of MatrixMarket");
  EXPECT_EQ(market.first_rows, (std::vector<Texts>{{"0", "0"}, {"4", "0"}}));
  const FileFacts svm = Inspect("1 1:2 3:4\n-1 2:1\n");
  EXPECT_EQ(svm.format, FileFormat::kLibsvm);
  EXPECT_EQ(svm.columns, 4);
  EXPECT_EQ(svm.rows, 2);
}

TEST_F(InspectFileTest, WhatHoldsFramesOnlyIsAFrame) {
  const FileFacts facts = Inspect("{\"id\": 1, \"name\": \"Anna\"}\n{\"id\": 20}\n");
  EXPECT_EQ(facts.format, FileFormat::kJsonl);
  EXPECT_TRUE(facts.is_frame);
  EXPECT_EQ(facts.facts[0].kind(), "int");
  EXPECT_EQ(facts.facts[1].missing, 1);
  EXPECT_EQ(facts.how_to_read, "read(\"f\", data_type=\"frame\", schema=\"INT64,STRING\")");
}

TEST_F(InspectFileTest, OfALargeFileOnlyTheBeginningIsLookedAt) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  InspectOptions options;
  options.bytes_looked_at = 1000;
  FileFacts facts = Inspect(text, options);
  EXPECT_EQ(facts.rows, 100'000);
  EXPECT_FALSE(facts.looked_at_all);
  EXPECT_LT(facts.rows_looked_at, 1000);
  options.bytes_looked_at = INT64_MAX;
  facts = Inspect(text, options);
  EXPECT_TRUE(facts.looked_at_all);
  EXPECT_EQ(facts.rows_looked_at, 100'000);
  EXPECT_EQ(facts.facts[0].greatest, 99'999);
}

TEST_F(InspectFileTest, WhatIsNoFileOfDataIsAnError) {
  Put("empty", "");
  EXPECT_EQ(InspectFile("empty", {}, *files_).status().ToString(), "cannot inspect 'empty': it is empty");
  EXPECT_EQ(InspectFile("none", {}, *files_).status().code(), StatusCode::kNotFound);
  Put("wide", std::string("\xFF\xFE"
                          "a\0b\0",
                          6));
  EXPECT_EQ(InspectFile("wide", {}, *files_).status().code(), StatusCode::kDataLoss);
}

// A table of the lines and their names would have 1.6 billion cells.
TEST_F(InspectFileTest, LinesOfDifferentNamesAreLookedAtOnce) {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += fmt::format("{{\"name {}\": {}}}\n", i, i);
  const std::clock_t begin = std::clock();
  const FileFacts facts = Inspect(text);
  EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC);
  EXPECT_EQ(facts.columns, 40000);
  EXPECT_EQ(facts.rows, 40000);
  EXPECT_EQ(facts.rows_looked_at, facts.facts[0].cells());
  EXPECT_EQ(facts.facts[7].name, "name 7");
  EXPECT_EQ(facts.facts[7].integers, 1);
  EXPECT_EQ(facts.facts[7].missing, facts.rows_looked_at - 1);
}

TEST_F(InspectFileTest, WhatLinesOfJsonLeaveOutIsMissing) {
  const FileFacts facts = Inspect("{\"a\": 1, \"b\": \"x\"}\n{\"b\": null}\n{\"c\": true, \"a\": 2.5}\n");
  ASSERT_EQ(facts.facts.size(), 3u);
  EXPECT_EQ(facts.facts[0].missing, 1);
  EXPECT_EQ(facts.facts[0].kind(), "double");
  EXPECT_EQ(facts.facts[1].missing, 2);
  EXPECT_EQ(facts.facts[2].booleans, 1);
  EXPECT_EQ(facts.first_rows[1], (Texts{"", "", ""}));
  EXPECT_EQ(facts.first_rows[2], (Texts{"2.5", "", "true"}));
}

}  // namespace
}  // namespace heddle::ops
