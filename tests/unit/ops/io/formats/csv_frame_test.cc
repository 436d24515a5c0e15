// SPDX-License-Identifier: Apache-2.0
// Frames in csv files and in files of cells. Cells are those that SystemDS reads and writes.
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using Attributes = std::vector<std::pair<std::string, Scalar>>;

class CsvFrameTest : public FormatsTest {
 protected:
  // Schema, then rows of cells with bars between, missing ones as "?".
  std::string Text(const std::string& name, Attributes attributes = {}) {
    const Result<Frame> frame = ReadFrame(name, std::move(attributes));
    if (!frame.ok()) return frame.status().ToString();
    std::string text = frame->schema()->ToText();
    for (int64_t i = 0; i < frame->rows(); ++i) {
      text += "\n";
      for (int64_t j = 0; j < frame->columns(); ++j) {
        text += j > 0 ? "|" : "";
        if (frame->IsMissing(i, j)) text += "?";
        frame->AppendText(i, j, &text);
      }
    }
    return text;
  }
};

constexpr char kPeople[] = "name,age,w,m\nAda,36,60.5,true\n\"a,b\",7,,FALSE\n Zoë ,-3,1e3,TRUE\n,,,\n";

TEST_F(CsvFrameTest, ColumnsHaveTheTypesOfTheSchema) {
  Put("a.csv", kPeople);
  EXPECT_EQ(Text("a.csv", {{"header", true}, {"schema", "string,int,double,boolean"}}),
            "STRING name, INT64 age, FP64 w, BOOLEAN m\n"
            "Ada|36|60.5|TRUE\na,b|7|0.0|FALSE\nZoë|-3|1000.0|TRUE\n?|0|0.0|FALSE");
}

TEST_F(CsvFrameTest, WithoutASchemaTheyAreStrings) {
  Put("a.csv", kPeople);
  EXPECT_EQ(Text("a.csv", {{"header", true}}),
            "STRING name, STRING age, STRING w, STRING m\n"
            "Ada|36|60.5|true\na,b|7|?|FALSE\nZoë|-3|1e3|TRUE\n?|?|?|?");
  EXPECT_EQ(Text("a.csv").substr(0, 47), "STRING, STRING, STRING, STRING\nname|age|w|m\nAda");
}

TEST_F(CsvFrameTest, OneTypeOfASchemaIsThatOfAllColumns) {
  Put("a.csv", "1.5,7\n2,3\n");
  EXPECT_EQ(Text("a.csv", {{"schema", "double"}}), "FP64, FP64\n1.5|7.0\n2.0|3.0");
  EXPECT_EQ(Text("a.csv", {{"schema", "INT32,FP32,"}}), "INT32, FP32\n1|7.0\n2|3.0");
}

TEST_F(CsvFrameTest, QuotesAroundAFieldAreUndone) {
  Put("a.csv", "\"a \"\"b\"\" c\",2\n\"x, y\" ,\" 3 \"\n\"\"  ,4\n\"q\"r \"s\",5\n5\" pipe,6\n");
  EXPECT_EQ(Text("a.csv"), "STRING, STRING\na \"b\" c|2\nx, y| 3 \n|4\nqr \"s\"|5\n5\" pipe|6");
  // Names and numbers, too.
  Put("b.csv", "\"id\",\"a, \"\"b\"\"\",k\n\"1\",\" 2.5 \",\"true\"\n\"\",,\"\"\n");
  EXPECT_EQ(Text("b.csv", {{"header", true}, {"schema", "int,double,boolean"}}),
            "INT64 id, FP64 \"a, \\\"b\\\"\", BOOLEAN k\n1|2.5|TRUE\n0|0.0|FALSE");
}

// Two quotes inside are one character, also before a separator. SystemDS writes the code of a token behind
// the quotes around it.
TEST_F(CsvFrameTest, DoubledQuotesDoNotEndAField) {
  Put("a.csv",
      "\"\"\",zzz\",\"y\"\",\"\"yy\"\n\"\"\"\"\"\",x\n\"a,b\"\u00b74,z\n\"say \"\"hi\"\"\"\u00b75,\n");
  EXPECT_EQ(Text("a.csv"), "STRING, STRING\n\",zzz|y\",\"yy\n\"\"|x\na,b\u00b74|z\nsay \"hi\"\u00b75|?");
}

TEST_F(CsvFrameTest, LineEndsInQuotesEndNoRow) {
  Put("a.csv", "id,\"the\nnote\"\r\n1,\"see\nbelow, please\"\r\n2,\"\n\n\"\n3,\"\r\n\"\n");
  EXPECT_EQ(Text("a.csv", {{"header", true}, {"schema", "int,string"}}),
            "INT64 id, STRING \"the\\nnote\"\n1|see\nbelow, please\n2|\n\n\n3|\r\n");
  Put("b.csv", "1,\"x\ny\"\n2,\"a\n\nb\"\nz,c\n");
  EXPECT_EQ(Text("b.csv", {{"schema", "int,string"}}).substr(0, 51),
            "cannot read 'b.csv': line 6, field 1: 'z' is no INT");
  Put("c.csv", "\"x\ry\",1\n");
  EXPECT_EQ(Text("c.csv"), "STRING, STRING\nx\ry|1");
}

TEST_F(CsvFrameTest, AQuoteThatNothingClosesIsNamedByItsLine) {
  Put("a.csv", "a,b\n1,\"x\ny\"\n2,\"z\n3,w\n\n");
  const std::string fault =
      "cannot read 'a.csv': line 4: nothing closes the quote that begins here\n"
      "a field that begins with a quote ends with one; quotes inside it are doubled";
  EXPECT_EQ(Text("a.csv", {{"header", true}}), fault);
  EXPECT_EQ(Text("a.csv"), fault);
  Put("b.csv", "\"a,b\n1,2\n");
  EXPECT_EQ(Text("b.csv", {{"header", true}}).substr(0, 58),
            "cannot read 'b.csv': line 1: nothing closes the quote that");
}

TEST_F(CsvFrameTest, AnEmptyTextIsNoMissingCell) {
  Put("a.csv", "\"\",\nNA,\"NA\"\n");
  EXPECT_EQ(Text("a.csv", {{"naStrings", "NA"}}), "STRING, STRING\n|?\n?|NA");
}

// As Spark and others write folders.
TEST_F(CsvFrameTest, PartsThatBeginWithTheNamesHaveNoRowsOfThem) {
  std::filesystem::create_directory(directory_ + "/parts");
  Put("parts/part-0.csv",
      "\xEF\xBB\xBF"
      "a,\"b\nc\"\r\n1,x\r\n2,y");
  Put("parts/part-1.csv", "a,\"b\nc\"\r\n");
  Put("parts/part-2.csv", "a,\"b\nc\"\r\n3,\"z\n\"\r\n4,\r\n");
  Put("parts/part-3.csv", "5,a\n");
  const Attributes attributes = {{"header", true}, {"schema", "int,string"}};
  EXPECT_EQ(Text("parts", attributes), "INT64 a, STRING \"b\\nc\"\n1|x\n2|y\n3|z\n\n4|?\n5|a");
  // A fault is told by the file and its line.
  Put("parts/part-2.csv", "a,\"b\nc\"\r\n3,\"z\n\"\r\nx,\r\n");
  EXPECT_EQ(Text("parts", attributes).substr(0, 58),
            "cannot read 'parts/part-2.csv': line 5, field 1: 'x' is no");
  // A quote does not reach over the end of a part.
  Put("parts/part-2.csv", "3,z\n4,\"y\n");
  EXPECT_EQ(Text("parts", attributes).substr(0, 69),
            "cannot read 'parts/part-2.csv': line 2: nothing closes the quote that");
  Put("parts/part-2.csv", "b,a\n3,z\n");
  EXPECT_EQ(Text("parts", {{"header", true}}).find("\nb|a\n3|z"), size_t{31});
}

TEST_F(CsvFrameTest, NamesOfPartsAreTheSameHoweverTheyAreWritten) {
  std::filesystem::create_directory(directory_ + "/parts");
  Put("parts/0.csv", "a,b b\n1,x\n");
  Put("parts/1.csv", "a,b b\r\n2,y\r\n3,z\r\n");
  Put("parts/2.csv", "\"a\", \"b b\" \n4,\"w\"\n");
  Put("parts/3.csv", "5,v\r\n");
  Put("parts/4.csv", "a,b b\r\n");
  Put("parts/5.csv", "a,b b");
  const Attributes attributes = {{"header", true}, {"schema", "int,string"}};
  const std::string frame = "INT64 a, STRING \"b b\"\n1|x\n2|y\n3|z\n4|w\n5|v";
  EXPECT_EQ(Text("parts", attributes), frame);
  // The same where the first part has the other line ends.
  std::filesystem::rename(directory_ + "/parts/4.csv", directory_ + "/parts/.4.csv");
  Put("parts/0.csv", "a,b b\r\n1,x\r\n");
  Put("parts/1.csv", "a,b b\n2,y\n3,z\n");
  EXPECT_EQ(Text("parts", attributes), frame);
  // Cells of the second column would be read as those of the first.
  Put("parts/1.csv", "\"b b\",a\ny,2\n");
  const std::string fault =
      "cannot read 'parts/1.csv': its names are those of 'parts/0.csv' in another order\n"
      "the parts of a folder have the same columns in the same order";
  EXPECT_EQ(Text("parts", attributes), fault);
  EXPECT_EQ(Text("parts", {{"header", true}}), fault);
  EXPECT_EQ(Fault("parts"), fault);
  // Names that are numbers may be cells, too.
  std::filesystem::create_directory(directory_ + "/years");
  Put("years/0.csv", "1,2\n3,4\n");
  Put("years/1.csv", "2,1\n");
  EXPECT_EQ(Text("years", {{"header", true}}), "STRING \"1\", STRING \"2\"\n3|4\n2|1");
}

TEST_F(CsvFrameTest, BlankLinesOfOneColumnAreMissingCellsWhereRowsAreTold) {
  Put("a.csv", "a\n\nb\n\n\n");
  EXPECT_EQ(Text("a.csv", {{"rows", 5}}), "STRING\na\n?\nb\n?\n?");
  EXPECT_EQ(Text("a.csv", {{"rows", 4}}), "STRING\na\n?\nb\n?");
  EXPECT_EQ(Text("a.csv"), "STRING\na\n?\nb\n?\n?");
  Put("b.csv", "x\n\n\n");
  EXPECT_EQ(Text("b.csv", {{"header", true}, {"rows", 2}, {"schema", "double"}}), "FP64 x\n0.0\n0.0");
}

// As SystemDS writes the metadata of transformencode.
TEST_F(CsvFrameTest, LinesThatTellOfColumnsAreNoRows) {
  const std::string told = "#Meta\u00b7MV,null,null\n#Meta\u00b7ND,2,-1\n";
  Put("a.csv", told + "red\u00b71,\nblue\u00b72,x\n");
  EXPECT_EQ(Text("a.csv"), "STRING, STRING\nred\u00b71|?\nblue\u00b72|x");
  Put("b.csv", "name,n\n" + told + "a,1\nb,y\n");
  const std::string schema = "string,int";
  EXPECT_EQ(Text("b.csv", {{"header", true}}), "STRING name, STRING n\na|1\nb|y");
  EXPECT_EQ(ReadFrame("b.csv", {{"header", true}, {"schema", schema}}).status().message(),
            "cannot read 'b.csv': line 5, field 2: 'y' is no INT64");
}

// As the last row, where metadata of Heddle have it.
TEST_F(CsvFrameTest, WhatReplacesMissingCellsIsTheLastRow) {
  Put("a.csv", "#Meta\u00b7MV,null,7.5\n#Meta\u00b7ND,2,-1\nred\u00b71,\nblue\u00b72,\n");
  Put("a.csv.mtd", "{\"data_type\": \"frame\", \"format\": \"csv\", \"rows\": 2, \"cols\": 2}");
  EXPECT_EQ(Text("a.csv"), "STRING, STRING\nred\u00b71|?\nblue\u00b72|?\n?|7.5\u00b7impute");
}

TEST_F(CsvFrameTest, TextsThatMeanSoAreMissing) {
  Put("a.csv", "1;NA\n?;x\n");
  EXPECT_EQ(Text("a.csv", {{"sep", ";"}, {"naStrings", "NA\u00b7?"}, {"schema", "double,string"}}),
            "FP64, STRING\n1.0|?\n0.0|x");
}

TEST_F(CsvFrameTest, WhatIsNoCellOfItsColumnIsNamed) {
  const auto fault = [&](const std::string& text, const std::string& schema) {
    Put("f.csv", text);
    const std::string fault = Text("f.csv", {{"schema", schema}});
    return fault.substr(0, fault.find('\n'));
  };
  EXPECT_EQ(fault("1,x1\n2,3\n", "int,int"), "cannot read 'f.csv': line 1, field 2: 'x1' is no INT64");
  EXPECT_EQ(fault("1\n3000000000\n", "INT32"),
            "cannot read 'f.csv': line 2, field 1: '3000000000' is no INT32");
  EXPECT_EQ(fault("1e30\n", "INT64"), "cannot read 'f.csv': line 1, field 1: '1e30' is no INT64");
  EXPECT_EQ(fault("yes\n", "boolean"), "cannot read 'f.csv': line 1, field 1: 'yes' is no BOOLEAN");
  EXPECT_EQ(fault("ab\n", "CHARACTER"), "cannot read 'f.csv': line 1, field 1: 'ab' is no CHARACTER");
  EXPECT_EQ(fault("a,b\nc\n", "string"), "cannot read 'f.csv': line 2 has 1 field, the lines before have 2");
  EXPECT_EQ(fault("a,b\n\nb,c\n", "string"), "cannot read 'f.csv': line 2 is blank");
  EXPECT_EQ(fault("a,b\n", "string,int,int"),
            "cannot read 'f.csv': the schema has 3 types, the file has 2 columns");
  EXPECT_EQ(fault("a\n", "text"), "read: 'text' in the schema is no type of a column");
  EXPECT_EQ(fault("", "string"), "cannot read 'f.csv': it holds no data");
  EXPECT_EQ(Text("f.csv", {{"format", "libsvm"}}),
            "read: no frame can be in format 'libsvm'\n"
            "formats of frames are csv, text, binary, jsonl, arff, parquet, arrow and rds");
  Put("f.csv", "x,y\n1\n");
  EXPECT_EQ(Text("f.csv", {{"header", true}}),
            "cannot read 'f.csv': its first line has 2 names, the next one 1 fields");
}

TEST_F(CsvFrameTest, AFrameWithoutRowsHasItsColumnsWhereThatIsSaid) {
  Put("f.csv", "x,y\n");
  const Result<Frame> frame = ReadFrame("f.csv", {{"header", true}, {"rows", int64_t{0}}, {"schema", "int"}});
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->shape(), (Shape{0, 2}));
  EXPECT_EQ(frame->schema()->names, (std::vector<std::string>{"x", "y"}));
  Put("e.csv", "");
  const Result<Frame> unnamed = ReadFrame("e.csv", {{"rows", int64_t{0}}, {"cols", int64_t{3}}});
  ASSERT_TRUE(unnamed.ok()) << unnamed.status().ToString();
  EXPECT_EQ(unnamed->shape(), (Shape{0, 3}));
  EXPECT_EQ(Text("f.csv", {{"header", true}}), "cannot read 'f.csv': it holds no data but a line of names");
}

TEST_F(CsvFrameTest, OfSeveralFaultsTheFirstInTheFileIsTold) {
  std::string text;
  for (int row = 0; row < 4000; ++row) text += row == 1500 || row == 3500 ? "x\n" : "1\n";
  Put("long.csv", text);
  const Status status = ReadFrame("long.csv", {{"schema", "int"}}).status();
  EXPECT_EQ(status.message(), "cannot read 'long.csv': line 1501, field 1: 'x' is no INT64");
}

TEST_F(CsvFrameTest, LongFilesAreReadInPieces) {
  std::string text;
  for (int row = 0; row < 200'000; ++row)
    text += fmt::format("{},text {},{}\n", row, row % 97, row % 2 == 0 ? "true" : "");
  Put("long.csv", text);
  ASSERT_GT(text.size(), size_t{3} << 20);
  const Result<Frame> frame = ReadFrame("long.csv", {{"schema", "INT32,STRING,STRING"}});
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  for (const int64_t row : {0, 1, 65'000, 123'457, 199'999}) {
    EXPECT_EQ(frame->At(row, 0), Scalar(row));
    EXPECT_EQ(frame->At(row, 1), Scalar(fmt::format("text {}", row % 97)));
    EXPECT_EQ(frame->IsMissing(row, 2), row % 2 == 1);
  }
}

TEST_F(CsvFrameTest, WhatIsWrittenIsReadBack) {
  Put("a.csv", kPeople);
  const Frame people = *ReadFrame("a.csv", {{"header", true}, {"schema", "string,int,double,boolean"}});
  WriteOptions options{.format = FileFormat::kCsv, .header = true, .description = "all"};
  ASSERT_TRUE(WriteValue(people, "b.csv", options, *files_).ok());
  EXPECT_EQ(Get("b.csv"),
            "name,age,w,m\nAda,36,60.5,true\n\"a,b\",7,0.0,false\nZoë,-3,1000.0,true\n,0,0.0,false\n");
  EXPECT_EQ(
      Get("b.csv.mtd"),
      "{\n    \"data_type\": \"frame\",\n    \"schema\": \"STRING,INT64,FP64,BOOLEAN,\",\n    \"rows\": 4,\n"
      "    \"cols\": 4,\n    \"format\": \"csv\",\n    \"description\": \"all\",\n    \"header\": true,\n"
      "    \"sep\": \",\"\n}\n");
  Result<Frame> back = ReadFrame("b.csv");
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_TRUE(Frame::SameCells(*back, people));
  EXPECT_EQ(*back->schema(), *people.schema());
  EXPECT_EQ(*ReadFrame("b.csv", {{"schema", "string"}})->schema(), *people.schema());
  options.format = FileFormat::kText;
  ASSERT_TRUE(WriteValue(people, "cells", options, *files_).ok());
  EXPECT_EQ(Get("cells"),
            "1 1 Ada\n1 2 36\n1 3 60.5\n1 4 true\n2 1 a,b\n2 2 7\n3 1 Zoë\n3 2 -3\n3 3 1000.0\n3 4 true\n");
  options.format = FileFormat::kLibsvm;
  const Status status = WriteValue(people, "svm", options, *files_);
  EXPECT_EQ(status.message(), "write: a frame cannot be written in format 'libsvm'");
  EXPECT_EQ(Get("svm"), "");
}

TEST_F(CsvFrameTest, ManyPiecesAreWrittenInOrder) {
  std::vector<int64_t> numbers;
  std::string text;
  for (int64_t i = 0; i < 100'000; ++i) {
    numbers.push_back(i * 7);
    text += fmt::format("{}\n", i * 7);
  }
  const Frame frame(std::make_shared<const Schema>(Schema{{ColumnType::kInteger64}, {}}),
                    {*Column::OfIntegers(numbers)});
  ASSERT_TRUE(WriteValue(frame, "n.csv", {.format = FileFormat::kCsv}, *files_).ok());
  EXPECT_EQ(Get("n.csv"), text);
}

}  // namespace
}  // namespace heddle::ops
