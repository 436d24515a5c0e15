// SPDX-License-Identifier: Apache-2.0
#include "ops/io/exchange/convert_file.h"

#include <fmt/format.h>

#include "ops/io/exchange/inspect_file.h"
#include "ops/io/formats/options.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class ConvertFileTest : public FormatsTest {
 protected:
  Converted Convert(const std::string& from, const std::string& to, const ConvertOptions& options = {}) {
    Result<Converted> converted = ConvertFile(from, to, options, *files_);
    EXPECT_TRUE(converted.ok()) << converted.status().ToString();
    return converted.ok() ? *std::move(converted) : Converted();
  }
};

TEST_F(ConvertFileTest, AMatrixGoesThroughAllFormatsAndComesBack) {
  Put("a.csv", "1.5,0,-3\n0,0,1\n7,0,2\n");
  const char* before = "a.csv";
  for (const char* name :
       {"b.bin", "c.mtx", "d.ijv", "e.libsvm", "f.bin", "p.npy", "q.npz", "g.tsv", "h.csv"}) {
    const Converted converted = Convert(before, name);
    EXPECT_EQ(converted.data_type, DataType::kMatrix);
    EXPECT_EQ(converted.shape, (Shape{3, 3})) << name;
    before = name;
  }
  EXPECT_EQ(Get("g.tsv"), "1.5\t0\t-3.0\n0\t0\t1.0\n7.0\t0\t2.0\n");
  ExpectCells(Read("h.csv"), 3, 3, {1.5, 0, -3, 0, 0, 1, 7, 0, 2});
}

TEST_F(ConvertFileTest, AFrameKeepsNamesTypesAndMissingCells) {
  Put("a.csv", "id,name,ok\n1,Anna,true\n20,,false\n");
  EXPECT_EQ(Convert("a.csv", "b.bin").data_type, DataType::kFrame);
  const Result<Frame> frame = ReadFrame("b.bin");
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->schema()->ToText(), "INT64 id, STRING name, BOOLEAN ok");
  EXPECT_TRUE(frame->IsMissing(1, 1));
  EXPECT_EQ(Convert("b.bin", "c.csv").data_type, DataType::kFrame);
  EXPECT_EQ(Get("c.csv"), Get("a.csv"));
  EXPECT_EQ(Convert("c.csv", "d.tsv").data_type, DataType::kFrame);
  EXPECT_EQ(Get("d.tsv"), "id\tname\tok\n1\tAnna\ttrue\n20\t\tfalse\n");
}

// As compression= of write(): the bytes are the same. Names go, as of a matrix.
TEST_F(ConvertFileTest, ColumnGroups) {
  Matrix matrix = *Matrix::Dense(5000, 3);
  std::string text = "a,b,c\n";
  for (int64_t i = 0; i < matrix.rows(); ++i)
    for (int64_t j = 0; j < 3; ++j) {
      matrix.mutable_data()[3 * i + j] = static_cast<double>(i * (j + 3) % 7);
      text += fmt::format("{}{}", i * (j + 3) % 7, j == 2 ? '\n' : ',');
    }
  Put("a.csv", text);
  WriteOptions options = {.format = FileFormat::kBinary};
  ASSERT_TRUE(SetCompression("Groups", &options).ok());
  ASSERT_TRUE(WriteValue(Value(matrix), "expected.bin", options, *files_).ok());
  const Converted converted = Convert("a.csv", "b.bin", {.compression = "groups"});
  EXPECT_EQ(converted.data_type, DataType::kMatrix);
  EXPECT_EQ(converted.warnings.size(), 1u);
  EXPECT_EQ(Get("b.bin"), Get("expected.bin"));
  EXPECT_LT(Get("b.bin").size(), 5000u * 3);
  EXPECT_EQ(Convert("b.bin", "c.csv").data_type, DataType::kMatrix);
  EXPECT_TRUE(Matrix::SameCells(*ToDense(*Read("c.csv")), matrix));
  EXPECT_EQ(ConvertFile("a.csv", "b.csv", {.compression = "groups"}, *files_).status().message(),
            "write: compression=\"groups\" is of format=\"binary\", not of 'csv'");
  // Of other formats it says how the file is packed, whatever its name ends in.
  Convert("b.bin", "d.csv", {.compression = "gzip"});
  EXPECT_EQ(Get("d.csv").substr(0, 2), "\x1f\x8b");
}

TEST_F(ConvertFileTest, NumbersOfArffKeepTheirNames) {
  Put("a.arff", "@relation r\n@attribute x numeric\n@attribute 'a b' numeric\n@data\n1,2.5\n?,3\n");
  EXPECT_EQ(InspectFile("a.arff", {}, *files_)->facts[1].name, "a b");
  EXPECT_EQ(Convert("a.arff", "b.csv").data_type, DataType::kFrame);
  EXPECT_EQ(Get("b.csv"), "x,a b\n1.0,2.5\n,3.0\n");
  EXPECT_EQ(Convert("a.arff", "b.npy").warnings,
            std::vector<std::string>{"the names of the columns are left out: format npy has none"});
}

TEST_F(ConvertFileTest, LinesOfJsonAreFramesWithTheTypesOfTheirCells) {
  Put("a.jsonl", "{\"id\": 1, \"name\": \"Anna\"}\n{\"id\": 20, \"name\": null}\n");
  EXPECT_EQ(Convert("a.jsonl", "b.csv").data_type, DataType::kFrame);
  EXPECT_EQ(Get("b.csv"), "id,name\n1,Anna\n20,\n");
  EXPECT_EQ(Convert("b.csv", "c.jsonl.gz").data_type, DataType::kFrame);
  EXPECT_EQ(Convert("c.jsonl.gz", "d.bin").data_type, DataType::kFrame);
  const Result<Frame> frame = ReadFrame("d.bin");
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->schema()->ToText(), "INT64 id, STRING name");
  EXPECT_TRUE(frame->IsMissing(1, 1));
  // A matrix has a frame's place in a format that holds frames only.
  Put("m.csv", "1,2.5\n");
  EXPECT_EQ(Convert("m.csv", "m.jsonl").data_type, DataType::kFrame);
  EXPECT_EQ(Get("m.jsonl"), "[1.0,2.5]\n");
}

// A text with a separator is one field of csv, and only there stands in quotes.
TEST_F(ConvertFileTest, QuotesAreThoseOfCsv) {
  const std::string lines =
      "{\"the name\":\"eve, x\",\"n, m\":1}\n{\"the name\":\"\\\"a\\\" b\",\"n, m\":2}\n{\"the name\":\"he \\\"hi\\\"\",\"n, m\":3}\n";
  Put("a.jsonl", lines);
  Convert("a.jsonl", "b.csv");
  EXPECT_EQ(Get("b.csv"), "the name,\"n, m\"\n\"eve, x\",1\n\"\"\"a\"\" b\",2\n\"he \"\"hi\"\"\",3\n");
  Convert("b.csv", "c.jsonl");
  EXPECT_EQ(Get("c.jsonl"), lines);
  Convert("b.csv", "d.csv");
  EXPECT_EQ(Get("d.csv"), Get("b.csv"));
}

TEST_F(ConvertFileTest, TheFirstLineOfCsvTellsWhatSeparates) {
  ConvertOptions frame, semicolons;
  frame.data_type = semicolons.data_type = DataType::kFrame;
  semicolons.to_separator = ";";
  const auto written = [&](const std::string& text, const ConvertOptions& options) {
    Put("a.jsonl", text);
    Convert("a.jsonl", "b.csv", options);
    EXPECT_TRUE(files_->Remove("b.csv.mtd").ok());
    Convert("b.csv", "c.bin", frame);
    const Result<Frame> before = ReadFrame("a.jsonl"), after = ReadFrame("c.bin");
    EXPECT_TRUE(before.ok() && after.ok() && before->schema()->names == after->schema()->names &&
                before->rows() == after->rows());
    return Get("b.csv");
  };
  EXPECT_EQ(written("{\"a b\": 1}\n{\"a b\": 2}\n", frame), "\"a b\"\n1\n2\n");
  EXPECT_EQ(written("{\"a b\": \"1\"}\n{\"a b\": \"2\"}\n", frame), "\"a b\"\n\"1\"\n\"2\"\n");
  EXPECT_EQ(written("{\"a;b\": \"x y\"}\n", frame), "\"a;b\"\nx y\n");
  EXPECT_EQ(written("[null]\n[\"a b\"]\n[\"a b\"]\n", frame), "\n\"a b\"\na b\n");
  EXPECT_EQ(written("{\"a b\": 1, \"c;d\": 2}\n", frame), "a b,c;d\n1,2\n");
  EXPECT_EQ(written("{\"a,b\": 1, \"c\": \"x,y\"}\n", semicolons), "\"a,b\";c\n1;x,y\n");
}

TEST_F(ConvertFileTest, NamesOfNumbersAreKeptInCsvAndElseAWarning) {
  Put("a.csv", "x;y\n1;2.5\n3;4\n");
  EXPECT_EQ(Convert("a.csv", "b.csv").data_type, DataType::kFrame);
  EXPECT_EQ(Get("b.csv"), "x,y\n1,2.5\n3,4.0\n");
  const Converted matrix = Convert("a.csv", "c.bin");
  EXPECT_EQ(matrix.data_type, DataType::kMatrix);
  EXPECT_EQ(matrix.warnings,
            std::vector<std::string>({"the names of the columns are left out: a matrix has none "
                                      "(--data-type frame)"}));
  ConvertOptions frame;
  frame.data_type = DataType::kFrame;
  EXPECT_EQ(Convert("a.csv", "d.bin", frame).data_type, DataType::kFrame);
  ConvertOptions headless;
  headless.data_type = DataType::kMatrix;
  EXPECT_EQ(Convert("a.csv", "e.csv", headless).data_type, DataType::kMatrix);
  EXPECT_EQ(Get("e.csv"), "1.0,2.5\n3.0,4.0\n");
}

TEST_F(ConvertFileTest, EmptyCellsStayMissingWhereTheFormatCanSaySo) {
  Put("a.csv", "name,age,height,ok\nAnna,35,,true\nBert,,1.5,\n");
  const char* before = "a.csv";
  for (const char* name : {"b.csv", "c.bin", "d.jsonl", "e.csv"}) {
    EXPECT_EQ(Convert(before, name).warnings, std::vector<std::string>()) << name;
    before = name;
  }
  EXPECT_EQ(Get("b.csv"), Get("a.csv"));
  EXPECT_EQ(Get("e.csv"), Get("a.csv"));
  EXPECT_EQ(Get("d.jsonl"),
            "{\"name\":\"Anna\",\"age\":35,\"height\":null,\"ok\":true}\n"
            "{\"name\":\"Bert\",\"age\":null,\"height\":1.5,\"ok\":null}\n");
  const Result<Frame> frame = ReadFrame("c.bin");
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->schema()->ToText(), "STRING name, INT64 age, FP64 height, BOOLEAN ok");
  EXPECT_TRUE(frame->IsMissing(1, 1) && frame->IsMissing(0, 2) && frame->IsMissing(1, 3));
  EXPECT_FALSE(frame->IsMissing(0, 1) || frame->IsMissing(1, 2) || frame->IsMissing(0, 3));
}

TEST_F(ConvertFileTest, WhereTheFormatCannotEmptyCellsAreZeroWithAWarningOrNaN) {
  ConvertOptions nan;
  nan.empty_as_nan = true;
  const std::vector<std::string> none;
  Put("a.csv", "1,2\n3,\n,\n");
  EXPECT_EQ(Convert("a.csv", "a.npy").warnings,
            (std::vector<std::string>{"1 empty cell of 'C1' becomes 0 (--nan: NaN)",
                                      "2 empty cells of 'C2' become 0 (--nan: NaN)"}));
  ExpectCells(Read("a.npy"), 3, 2, {1, 2, 3, 0, 0, 0});
  EXPECT_EQ(Convert("a.csv", "a.npy", nan).warnings, none);
  ExpectCells(Read("a.npy"), 3, 2, {1, 2, 3, kNaN, kNaN, kNaN});
  // A frame that becomes a matrix.
  Put("b.csv", "x,y\n1,TRUE\n,FALSE\n3,\n");
  const std::string names = "the names of the columns are left out: format mm has none";
  EXPECT_EQ(Convert("b.csv", "b.mtx").warnings,
            (std::vector<std::string>{"1 empty cell of 'x' becomes 0 (--nan: NaN)",
                                      "1 empty cell of 'y' becomes 0 (--nan: NaN)", names}));
  ExpectCells(Read("b.mtx"), 3, 2, {1, 1, 0, 0, 3, 0});
  EXPECT_EQ(Convert("b.csv", "b.mtx", nan).warnings, std::vector{names});
  ExpectCells(Read("b.mtx"), 3, 2, {1, 1, kNaN, 0, 3, kNaN});
  // Files of cells leave out what is missing, and a number that is not there is 0.
  EXPECT_EQ(Convert("b.csv", "b.ijv").warnings,
            (std::vector<std::string>{"1 empty cell of 'x' becomes 0", "1 empty cell of 'y' becomes FALSE"}));
  EXPECT_EQ(Get("b.ijv"), "1 1 1\n1 2 true\n3 1 3\n");
}

// What is said about a file says what its empty cells are, too.
TEST_F(ConvertFileTest, MetadataSayWhatEmptyCellsAre) {
  Put("a.csv", "1,2\n3,\n");
  Put("a.csv.mtd", R"({"data_type": "matrix", "format": "csv", "default": 7})");
  EXPECT_EQ(Convert("a.csv", "a.npy").warnings, std::vector<std::string>());
  ExpectCells(Read("a.npy"), 2, 2, {1, 2, 3, 7});
}

TEST_F(ConvertFileTest, AFrameOfNumbersBecomesAMatrixWhereTheFormatHasNoFrames) {
  Put("a.csv", "x,y\n1,TRUE\n3,FALSE\n");
  EXPECT_EQ(Convert("a.csv", "b.mtx").data_type, DataType::kMatrix);
  ExpectCells(Read("b.mtx"), 2, 2, {1, 1, 3, 0});
  Put("t.csv", "x,y\n1,a\n");
  const Result<Converted> texts = ConvertFile("t.csv", "t.mtx", {}, *files_);
  EXPECT_EQ(texts.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(files_->Exists("t.mtx"));
}

TEST_F(ConvertFileTest, WhatFailsLeavesTheOldFile) {
  Put("out.bin", "old");
  Put("a.csv", "1,2\n3,four\n");
  ConvertOptions options;
  options.data_type = DataType::kMatrix;
  EXPECT_EQ(ConvertFile("a.csv", "out.bin", options, *files_).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(Get("out.bin"), "old");
  EXPECT_FALSE(files_->Exists("out.bin.mtd"));
}

TEST_F(ConvertFileTest, TheNameTellsTheFormatOrNobodyDoes) {
  Put("a.csv", "1,2\n");
  const Status status = ConvertFile("a.csv", "b.dat", {}, *files_).status();
  EXPECT_EQ(status.ToString(), "the name 'b.dat' does not tell the format to write; say --to FORMAT");
  EXPECT_EQ(ExitCode(status), 2);
}

}  // namespace
}  // namespace heddle::ops
