// SPDX-License-Identifier: Apache-2.0
// Frames with a JSON object or array in each line.
#include <nlohmann/json.hpp>

#include "core/environment/random.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/json_line.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

const WriteOptions kJsonl = {.format = FileFormat::kJsonl};

class JsonlTest : public FormatsTest {
 protected:
  std::string FrameFault(const std::string& text,
                         std::vector<std::pair<std::string, Scalar>> attributes = {}) {
    Put("a.jsonl", text);
    const Result<Frame> frame = ReadFrame("a.jsonl", std::move(attributes));
    if (frame.ok()) return "it is read";
    EXPECT_EQ(ExitCode(frame.status()), 4);
    return frame.status().ToString();
  }
  void ExpectSurvives(const Frame& frame) {
    ASSERT_TRUE(WriteValue(frame, "f.jsonl", kJsonl, *files_).ok());
    const Result<Frame> back = ReadFrame("f.jsonl");
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_TRUE(Frame::SameCells(*back, frame));
    EXPECT_EQ(*back->schema(), *frame.schema());
  }
};

using Texts = std::vector<std::string>;

TEST_F(JsonlTest, ObjectsHaveTheNamesOfTheColumns) {
  Put("a.jsonl",
      "{\"name\": \"x\", \"n\": 1.50, \"ok\": true}\r\n"
      " { \"ok\":false , \"name\":null,\"extra\":{\"a\": [1, \"}\"]} } \n"
      "{}\n\n \n");
  const Result<Frame> frame = ReadFrame("a.jsonl");
  EXPECT_EQ(Cells(frame), (Texts{"x", "1.50", "true", "<missing>", "<missing>", "<missing>", "false",
                                 "{\"a\": [1, \"}\"]}", "<missing>", "<missing>", "<missing>", "<missing>"}));
  EXPECT_EQ(frame->schema()->ToText(), "STRING name, STRING n, STRING ok, STRING extra");
  const Result<Frame> typed = ReadFrame("a.jsonl", {{"schema", "string,double,boolean,string"}});
  EXPECT_EQ(Cells(typed), (Texts{"x", "1.5", "TRUE", "<missing>", "<missing>", "<missing>", "FALSE",
                                 "{\"a\": [1, \"}\"]}", "<missing>", "<missing>", "<missing>", "<missing>"}));
  EXPECT_EQ(typed->At(1, 1).AsDouble(), 0);
}

TEST_F(JsonlTest, ArraysHaveColumnsByPlace) {
  Put("a.jsonl", "[1, \"a\", null]\n[2.5, \"b\", \"c\"]\n");
  const Result<Frame> frame = ReadFrame("a.jsonl", {{"schema", "double,string,string"}});
  EXPECT_EQ(Cells(frame), (Texts{"1.0", "a", "<missing>", "2.5", "b", "c"}));
  EXPECT_TRUE(frame->schema()->names.empty());
}

TEST_F(JsonlTest, EscapesAndNumbersThatJsonHasNot) {
  Put("a.jsonl",
      "{\"a\\u0022\\\\b\":\"\\\"\\/\\b\\f\\n\\r\\t\\u00e4\\u4E2D\\ud83d\\ude00\",\"x\":NaN}\n"
      "{\"a\\\"\\\\b\":\"\xc3\xa4\\u0000\",\"x\":-Infinity}\n{\"x\":\"Infinity\"}\n");
  const Result<Frame> frame = ReadFrame("a.jsonl", {{"schema", "string,double"}});
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->schema()->names[0], "a\"\\b");
  EXPECT_EQ(frame->At(0, 0).AsString(), "\"/\b\f\n\r\t\u00e4\u4e2d\U0001f600");
  EXPECT_EQ(frame->At(1, 0).AsString(), std::string("\u00e4\0", 3));
  EXPECT_TRUE(std::isnan(frame->At(0, 1).AsDouble()));
  EXPECT_EQ(frame->At(1, 1).AsDouble(), -kInf);
  EXPECT_EQ(frame->At(2, 1).AsDouble(), kInf);
}

TEST_F(JsonlTest, FramesSurvive) {
  for (const int64_t rows : {1, 7, 100, 50'000})
    for (const bool may_miss : {true, false}) {
      SCOPED_TRACE(testing::Message() << rows << " " << may_miss);
      ExpectSurvives(NumberedFrame(rows, 3, may_miss));
    }
  const std::vector<std::string_view> texts = {"",
                                               " ",
                                               "a,b",
                                               "\"quoted\"",
                                               "line\nend",
                                               "a\r\nb",
                                               "\t",
                                               "\u00e4\u4e2d\U0001f600",
                                               "null",
                                               "true",
                                               "{}",
                                               "1.50",
                                               "\x01\x1f\x7f",
                                               std::string_view("zero\0byte", 9)};
  const std::vector<double> numbers = {1,   -0.0, kNaN, kInf, -kInf,   5e-324,    1e300,
                                       0.1, 1e-5, 1e7,  -7,   1.0 / 3, 0x1p-1022, 123456789.125};
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString, ColumnType::kFloat64};
  for (const std::vector<std::string>& names :
       {Texts{"with \"all\",\nof\tthat \u00e4", ""}, Texts{"C2", "C1"}, Texts{}}) {
    schema = std::make_shared<Schema>(*schema);
    schema->names = names;
    ExpectSurvives(Frame(schema, {*Column::OfTexts(texts), *Column::OfDoubles(numbers)}));
    // Every line is JSON that any reader takes.
    const std::string text = Get("f.jsonl");
    size_t lines = 0;
    for (size_t at = 0; at < text.size(); ++lines) {
      const size_t end = text.find('\n', at);
      EXPECT_TRUE(nlohmann::json::accept(text.substr(at, end - at))) << text.substr(at, end - at);
      at = end + 1;
    }
    EXPECT_EQ(lines, texts.size());
  }
}

TEST_F(JsonlTest, TheSameBytesForAnyThreads) {
  const Frame frame = NumberedFrame(30'000);
  ASSERT_TRUE(WriteValue(frame, "f.jsonl", kJsonl, *files_).ok());
  const std::string bytes = Get("f.jsonl");
  for (const int threads : {1, 3}) {
    Arena arena(threads);
    arena.Execute([&] {
      ASSERT_TRUE(WriteValue(frame, "f.jsonl", kJsonl, *files_).ok());
      EXPECT_TRUE(Get("f.jsonl") == bytes);
      EXPECT_TRUE(Frame::SameCells(*ReadFrame("f.jsonl"), frame));
    });
  }
}

TEST_F(JsonlTest, NamesThatComeLateAreColumns) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += i == 150'000 ? "{\"late\":1}\n" : "{\"early\":2}\n";
  Put("a.jsonl", text);
  const Result<Frame> frame = ReadFrame("a.jsonl", {{"schema", "int"}});
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->schema()->ToText(), "INT64 early, INT64 late");
  EXPECT_TRUE(frame->IsMissing(150'000, 0));
  EXPECT_EQ(frame->At(150'000, 1).AsDouble(), 1);
  EXPECT_TRUE(frame->IsMissing(199'999, 1));
}

TEST_F(JsonlTest, FoundByNameAndByContent) {
  Put("a.ndjson", "[1]\n");
  EXPECT_EQ(Cells(ReadFrame("a.ndjson")), Texts{"1"});
  Put("a", "{\"x\":1}\n{\"x\":2}\n");
  EXPECT_EQ(Cells(ReadFrame("a")), (Texts{"1", "2"}));
  EXPECT_EQ(Read("a").status().ToString(),
            "read: no matrix can be in format 'jsonl'\n"
            "it holds frames: say data_type=\"frame\", as.matrix() makes a matrix of one");
  Put("b", "{x},1\n{y},2\n");
  EXPECT_EQ(Cells(ReadFrame("b")), (Texts{"{x}", "1", "{y}", "2"}));
}

TEST_F(JsonlTest, FaultsAreNamedWithTheirPlace) {
  const auto fault = [&](const std::string& line, int place, const std::string& what) {
    EXPECT_EQ(FrameFault("{\"a\":1}\n" + line + "\n"),
              fmt::format("cannot read 'a.jsonl': line 2, character {}: {}\n"
                          "every line of a jsonl file is a JSON object, or every line is an array",
                          place, what));
  };
  fault("{\"a\":1", 7, "its end is missing");
  fault("{\"a\":1 \"b\":2}", 8, "a comma is missing");
  fault("{\"a\" 1}", 6, "a colon is missing");
  fault("{a:1}", 2, "a name in quotes is missing");
  fault("{\"a\":}", 6, "a value is missing");
  fault("{\"a\":01}", 6, "this is no value");
  fault("{\"a\":+1}", 6, "this is no value");
  fault("{\"a\":1.}", 6, "this is no value");
  fault("{\"a\":yes}", 6, "this is no value");
  fault("{\"a\":\"x}", 9, "the end of a text is missing");
  fault("{\"a\":\"\\x\"}", 7, "this is no escape");
  fault("{\"a\":\"\\u12g4\"}", 7, "\\u needs four hexadecimal digits");
  fault("{\"a\":\"\\ud800\"}", 7, "half of a character of UTF-16 stands alone");
  fault("{\"a\":\"\\ud800\\u0041\"}", 7, "half of a character of UTF-16 stands alone");
  fault("{\"a\":\"\t\"}", 7, "a control character in a text needs an escape");
  fault("{\"a\":[1,", 6, "the end of this value is missing");
  fault("{\"a\":[1,}", 6, "what is inside of this value is no JSON");
  fault("{\"a\":[1,]}", 6, "what is inside of this value is no JSON");
  fault("{\"a\":1},", 8, "more follows its end");
  fault("{\"a\":1,}", 8, "a name in quotes is missing");
  fault("5", 1, "an object begins with {");
  fault("[5]", 1, "an object begins with {");
  EXPECT_EQ(FrameFault("[1,2]\n{\"a\":1}\n"),
            "cannot read 'a.jsonl': line 2, character 1: an array begins with [, as in line 1\n"
            "every line of a jsonl file is a JSON object, or every line is an array");
  EXPECT_EQ(FrameFault("{\"a\":1}\n\n{\"a\":1}\n"),
            "cannot read 'a.jsonl': line 2 is blank\nblank lines may stand at the end of a jsonl file only");
  EXPECT_EQ(FrameFault("{\"a\":1,\"b\":2,\"a\":3}\n"),
            "cannot read 'a.jsonl': line 1 has the name 'a' twice");
  EXPECT_EQ(FrameFault("[1,2]\n[3]\n"), "cannot read 'a.jsonl': line 2 has 1 value, the lines before have 2");
  EXPECT_EQ(FrameFault(""), "cannot read 'a.jsonl': it holds no data");
  EXPECT_EQ(FrameFault("{}\n[]\n"),
            "cannot read 'a.jsonl': line 2, character 1: an object begins with {\n"
            "every line of a jsonl file is a JSON object, or every line is an array");
  EXPECT_EQ(FrameFault("{}\n"), "cannot read 'a.jsonl': its lines have no values");
  EXPECT_EQ(FrameFault("{\"a\":1}\n{\"a\":\"x\"}\n", {{"schema", "double"}}),
            "cannot read 'a.jsonl': line 2, 'a': 'x' is no FP64\n"
            "schema= says the types of the columns; STRING takes any value");
  EXPECT_EQ(FrameFault("{\"a\":1}\n", {{"schema", "double,int"}}),
            "cannot read 'a.jsonl': the schema has 2 types, the file has 1 columns");
  EXPECT_EQ(FrameFault("{\"a\":1}\n", {{"rows", 5}}),
            "cannot read 'a.jsonl': rows=5 was asked for, the file has 1");
}

TEST_F(JsonlTest, WhatJsonCannotHoldIsNotWritten) {
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString, ColumnType::kString};
  const Column column = *Column::OfTexts(std::vector<std::string_view>{"a", "\xff"});
  Put("f.jsonl", "old");
  EXPECT_EQ(
      WriteValue(Frame(schema, {column, column}), "f.jsonl", kJsonl, *files_).ToString(),
      "write: row 2, column 1: the text is no UTF-8, which jsonl cannot hold\nformat binary holds any bytes");
  EXPECT_EQ(Get("f.jsonl"), "old");
  const Column plain = *Column::OfTexts(std::vector<std::string_view>{"a"});
  schema = std::make_shared<Schema>(*schema);
  schema->names = {"x", "x"};
  EXPECT_EQ(WriteValue(Frame(schema, {plain, plain}), "f.jsonl", kJsonl, *files_).ToString(),
            "write: two columns have the name 'x', in jsonl each name comes once");
  schema = std::make_shared<Schema>(*schema);
  schema->names = {"x", "\xff"};
  EXPECT_EQ(
      WriteValue(Frame(schema, {plain, plain}), "f.jsonl", kJsonl, *files_).ToString(),
      "write: the name of column 2 is no UTF-8, which jsonl cannot hold\nformat binary holds any bytes");
  EXPECT_EQ(Write(Make(1, 1, {1}), "f.jsonl", kJsonl).ToString(),
            "write: a matrix cannot be written in format 'jsonl'\n"
            "formats of matrices are csv, text, mm, libsvm, binary, npy, npz, hdf5, parquet and arrow");
}

// Whatever the bytes, a line is taken or named; nothing is read beyond it.
TEST(JsonLineTest, AnyBytesAreTakenOrNamed) {
  SeededRandom random(11);
  constexpr std::string_view kPieces[] = {"{",   "}",    "[",    "]",   ",", ":",   "\"", "a\"",  "\\",
                                          "\\u", "00e4", "null", "1.5", "-", "NaN", " ",  "\x80", "\"a\":1"};
  for (int n = 0; n < 20'000; ++n) {
    std::string line = random.Next() % 2 == 0 ? "{" : "[";
    for (uint64_t k = random.Next() % 12; k > 0; --k) line += kPieces[random.Next() % std::size(kPieces)];
    JsonLine json(line);
    json.Begin();
    std::string_view name;
    JsonValue value;
    int values = 0;
    while (json.Next(&name, &value)) ++values;
    EXPECT_LE(values, 20);
    EXPECT_LE(json.place(), static_cast<int64_t>(line.size()) + 1);
    // What Python takes besides is no part of what this compares.
    if (line.find("NaN") == std::string::npos && line.find('\x80') == std::string::npos) {
      EXPECT_EQ(json.fault().empty(), nlohmann::json::accept(line)) << line;
    }
  }
}

}  // namespace
}  // namespace heddle::ops
