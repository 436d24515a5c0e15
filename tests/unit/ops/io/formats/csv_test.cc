// SPDX-License-Identifier: Apache-2.0
// csv files as other programs write them.
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using CsvTest = FormatsTest;

TEST_F(CsvTest, EmptyFieldsBetweenTabsAreDefaults) {
  Put("last_row", "1\t2\t3\n\t\t\n");
  ExpectCells(Read("last_row", {{"format", "csv"}, {"sep", "\t"}}), 2, 3, {1, 2, 3, 0, 0, 0});
  ExpectCells(Read("last_row"), 2, 3, {1, 2, 3, 0, 0, 0});
  Put("last_cells", "1\t\t\r\n\t2\t\r\n\t\t\r\n\r\n");
  ExpectCells(Read("last_cells", {{"default", -1}}), 3, 3, {1, -1, -1, -1, 2, -1, -1, -1, -1});
  Put("all", "\t\n\t\n");
  ExpectCells(Read("all", {{"format", "csv"}, {"sep", "\t"}}), 2, 2, {0, 0, 0, 0});
  Put("short", "1\t2\t3\n\t\n");
  EXPECT_EQ(
      Fault("short"),
      "cannot read 'short': line 2 has 2 fields, the lines before have 3\n"
      "every line of a csv file needs the same number of fields; set sep= if the separator is not '\t'");
}

TEST_F(CsvTest, ABlankThatWasGivenSeparatesOneByOne) {
  Put("a", "1 2 3\n4 5 \n 6 \n  \n");
  ExpectCells(Read("a", {{"format", "csv"}, {"sep", " "}}), 4, 3, {1, 2, 3, 4, 5, 0, 0, 6, 0, 0, 0, 0});
  // Blanks around a line whose other fields are enough separate nothing.
  Put("b", "1 2 \n 3 4\n");
  ExpectCells(Read("b", {{"format", "csv"}, {"sep", " "}}), 2, 2, {1, 2, 3, 4});
  ExpectCells(Read("b", {{"format", "csv"}, {"sep", " "}, {"cols", 3}}), 2, 3, {1, 2, 0, 0, 3, 4});
}

TEST_F(CsvTest, BlanksThatWereFoundSeparateInAnyNumber) {
  Put("a", "  1.0   2.0 \n 10.0\t20.5\n-1  3\n \n");
  ExpectCells(Read("a"), 3, 2, {1, 2, 10, 20.5, -1, 3});
}

TEST_F(CsvTest, BlankLinesAreNoRows) {
  Put("one", "1\n\n3\n");
  EXPECT_EQ(Fault("one"),
            "cannot read 'one': line 2 is blank\nblank lines may stand at the end of a csv file only");
  Put("named", "x\n1\n \t\n3\n");
  EXPECT_EQ(Fault("named", {{"format", "csv"}, {"header", true}}).substr(0, 39),
            "cannot read 'named': line 3 is blank\nbl");
  Put("several", "1,2\n\n3,4\n");
  EXPECT_EQ(Fault("several").substr(0, 36), "cannot read 'several': line 2 is bla");
  Put("first", "\n1\n");
  EXPECT_EQ(Fault("first", {{"format", "csv"}}).substr(0, 34), "cannot read 'first': line 1 is bla");
  Put("last", "1\n3\n\n \r\n");
  ExpectCells(Read("last"), 2, 1, {1, 3});
}

TEST_F(CsvTest, WhatIsWrittenWithEmptyZerosReadsBack) {
  WriteOptions options{.format = FileFormat::kCsv, .sparse = true};
  ASSERT_TRUE(Write(Make(3, 1, {0, 2, 0}), "one", options).ok());
  ExpectCells(Read("one"), 3, 1, {0, 2, 0});
  options.separator = "\t";
  ASSERT_TRUE(Write(Make(2, 2, {0, 2, 0, 0}), "tabs", options).ok());
  ExpectCells(Read("tabs"), 2, 2, {0, 2, 0, 0});
}

TEST_F(CsvTest, WordsOfNumbersInAnySpelling) {
  Put("a.csv", "nan,inf,-inf\nNaN,Infinity,1\nNAN,+INF,-infinity\n-NaN, -Inf ,\"Inf\"\n");
  ExpectCells(Read("a.csv"), 4, 3, {kNaN, kInf, -kInf, kNaN, kInf, 1, kNaN, kInf, -kInf, kNaN, -kInf, kInf});
  Put("b.csv", "1,infinite\n");
  EXPECT_EQ(Fault("b.csv", {{"header", false}}).substr(0, 60),
            "cannot read 'b.csv': line 1, field 2: 'infinite' is not a nu");
}

TEST_F(CsvTest, QuotedFields) {
  Put("a.csv", "\"1.5\",\" 2 \"\n\"\",\"NA\"\n");
  ExpectCells(Read("a.csv", {{"naStrings", "NA"}, {"default", 9}}), 2, 2, {1.5, 2, 9, kNaN});
  Put("r.csv", "\"\",\"V1\",\"V2\"\n\"1\",0.5,2\n\"2\",1,4\n");
  ExpectCells(Read("r.csv"), 2, 3, {1, 0.5, 2, 2, 1, 4});
  Put("half.csv", "1,\"2\n");
  EXPECT_EQ(Fault("half.csv", {{"format", "csv"}}).substr(0, 61),
            "cannot read 'half.csv': line 1: nothing closes the quote that");
  Put("separator.csv", "\"1\";\"2\"\n\"3\";\" 4\n \"\n");
  ExpectCells(Read("separator.csv"), 2, 2, {1, 2, 3, 4});
  Put("names.csv", "\"a;\nb\",\"c\"\n1,\"2\"\n");
  ExpectCells(Read("names.csv"), 1, 2, {1, 2});
  Put("blanks", "\"a b\" c\n1   \"2\"\n");
  ExpectCells(Read("blanks"), 1, 2, {1, 2});
  Put("fault.csv", "1,\"\n2\"\n3,x\n");
  EXPECT_EQ(Fault("fault.csv", {{"format", "csv"}}).substr(0, 61),
            "cannot read 'fault.csv': line 3, field 2: 'x' is not a number");
}

TEST_F(CsvTest, NamesAreFoundWhereNothingIsANumber) {
  Put("a.csv", "a,b\nNA,2\n3,4\n");
  ExpectCells(Read("a.csv", {{"naStrings", "NA"}}), 2, 2, {kNaN, 2, 3, 4});
  Put("b.csv", "a,b\n,2\n");
  ExpectCells(Read("b.csv"), 1, 2, {0, 2});
  Put("index.csv", ",a,b\n0,1,2\n");
  ExpectCells(Read("index.csv"), 1, 3, {0, 1, 2});
  Put("missing.csv", "NA,2\n3,NA\n");
  ExpectCells(Read("missing.csv", {{"naStrings", "NA"}}), 2, 2, {kNaN, 2, 3, kNaN});
  Put("all_missing.csv", "NA,?\n3,4\n");
  ExpectCells(Read("all_missing.csv", {{"naStrings", "NA\u00b7?"}}), 2, 2, {kNaN, kNaN, 3, 4});
  Put("only.csv", "a,b\n");
  EXPECT_EQ(Fault("only.csv"), "cannot read 'only.csv': it holds no data but a line of names");
}

TEST_F(CsvTest, AFirstLineThatMayBeNamesOrNumbersIsNotGuessed) {
  Put("years.csv", "id,2019,2020\n1,0.5,2\n");
  EXPECT_EQ(Fault("years.csv"),
            "cannot read 'years.csv': line 1 has a name, field 1, 'id', and a number, field 2, '2019'\n"
            "say header=TRUE if line 1 holds names, header=FALSE if it holds data\n"
            "texts that mean a missing value go into naStrings=");
  ExpectCells(Read("years.csv", {{"header", true}}), 1, 3, {1, 0.5, 2});
  Put("typo.csv", "1,2,x\n3,4,5\n");
  EXPECT_EQ(Fault("typo.csv").substr(0, 86),
            "cannot read 'typo.csv': line 1 has a name, field 3, 'x', and a number, field 1, '1'\nsa");
  Put("quoted.csv", "\"\",\"2019\",\"2020\"\n\"1\",0.5,2\n");
  EXPECT_EQ(
      Fault("quoted.csv"),
      "cannot read 'quoted.csv': line 1, field 2: \"2019\" may be a name, it has quotes that line 2 has not\n"
      "say header=TRUE if line 1 holds names, header=FALSE if it holds data");
  ExpectCells(Read("quoted.csv", {{"header", false}}), 2, 3, {0, 2019, 2020, 1, 0.5, 2});
}

// As write.table() of R writes them, and lines with a separator inside of a number.
TEST_F(CsvTest, NamesOfOtherNumberThanFieldsAreNotGuessed) {
  Put("r", "\"x\" \"y\"\n\"1\" 1 2\n\"2\" 3 4\n");
  EXPECT_EQ(Read("r").status().message(),
            "cannot read 'r': its first line has 2 names, the next one 3 fields");
  ExpectCells(Read("r", {{"header", true}, {"sep", " "}}), 2, 3, {1, 1, 2, 2, 3, 4});
  Put("s", "a,b\n1,000,2\n");
  EXPECT_FALSE(Read("s").ok());
  Put("t", "a,b\n1\n2\n");
  EXPECT_FALSE(Read("t").ok());
}

// pandas' get_dummies(...).to_csv(): truth values under names, or without names.
TEST_F(CsvTest, TruthValuesAreOnesAndZeros) {
  Put("a", "a,m\nFalse,True\nTRUE,0.5\n");
  ExpectCells(Read("a"), 2, 2, {0, 1, 1, 0.5});
  Put("b", "True,false\n\"False\",true\n");
  ExpectCells(Read("b"), 2, 2, {1, 0, 0, 1});
}

// As DuckDB and others count their parts: data_2 comes before data_10.
TEST_F(CsvTest, PartsComeInTheOrderOfTheNumbersInTheirNames) {
  std::filesystem::create_directory(directory_ + "/parts");
  for (const int part : {10, 9, 2, 1, 11})
    Put("parts/data_" + std::to_string(part), std::to_string(part) + "\n");
  Put("parts/data_002b", "2.5\n");
  ExpectCells(Read("parts", {{"format", "csv"}}), 6, 1, {1, 2, 2.5, 9, 10, 11});
}

TEST_F(CsvTest, PartsThatBeginWithTheNamesHaveNoRowsOfThem) {
  std::filesystem::create_directory(directory_ + "/parts");
  Put("parts/data_0.csv", "a,b\n1,2\n");
  Put("parts/data_1.csv", "a,b");
  Put("parts/data_2.csv", "a,b\n3,4\n");
  ExpectCells(Read("parts"), 2, 2, {1, 2, 3, 4});
  Put("parts/data_2.csv", "a,b\n3,4\n5\n");
  EXPECT_EQ(Fault("parts").substr(0, 73),
            "cannot read 'parts/data_2.csv': line 3 has 1 field, the lines before have");
}

// Whoever reads which rows: every worker tells the fault that stands first in the file.
TEST_F(CsvTest, TheFirstFaultOfTheFileIsTold) {
  std::string text = "1,1\n1,bad\n";
  for (int i = 0; i < 400'000; ++i) text += "1,1\n";
  text += "1,worse\n1\n";
  Put("a.csv", text);
  const Result<ReadOptions> options = ResolveReadOptions(Node(), "a.csv", *files_);
  ASSERT_TRUE(options.ok());
  const Result<FileSummary> summary = Summarize(*options, *files_);
  ASSERT_TRUE(summary.ok());
  ASSERT_GT(summary->chunks(), 1);
  const int64_t rows = summary->shape.rows;
  for (int64_t begin : {int64_t{0}, rows / 2, rows - 1})
    EXPECT_EQ(ReadRows(*options, *summary, begin, rows, *files_).status().message(),
              "cannot read 'a.csv': line 2, field 2: 'bad' is not a number");
  EXPECT_TRUE(ReadRows(*options, *summary, 2, rows - 2, *files_).ok());
}

}  // namespace
}  // namespace heddle::ops
