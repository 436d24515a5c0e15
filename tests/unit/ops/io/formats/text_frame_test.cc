// SPDX-License-Identifier: Apache-2.0
// Frames in format text: a line for each cell.
#include "tests/support/frames.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class TextFrameTest : public FormatsTest {
 protected:
  // Its types, then its cells row by row; "-" is missing.
  std::string Text(const std::string& name, std::vector<std::pair<std::string, Scalar>> attributes = {}) {
    const Result<Frame> frame = ReadFrame(name, std::move(attributes));
    if (!frame.ok()) return frame.status().ToString();
    std::string text = frame->schema()->ToText() + ":";
    for (int64_t i = 0; i < frame->rows(); ++i) {
      text += i > 0 ? " / " : " ";
      for (int64_t j = 0; j < frame->columns(); ++j) {
        if (j > 0) text += '|';
        frame->IsMissing(i, j) ? void(text += '-') : frame->AppendText(i, j, &text);
      }
    }
    return text;
  }
};

TEST_F(TextFrameTest, CellsComeInAnyOrderAndOthersAreMissing) {
  Put("f", "2 2 x\n1 1 foo bar\n\n3 2  two\r\n1 2 old and longer\n1 2 new\n2 1 \n");
  EXPECT_EQ(Text("f", {{"format", "text"}}), "STRING, STRING: foo bar|new / |x / -| two");
  EXPECT_EQ(Text("f", {{"format", "text"}, {"rows", 4}, {"cols", 3}}),
            "STRING, STRING, STRING: foo bar|new|- / |x|- / -| two|- / -|-|-");
  EXPECT_EQ(Text("f", {{"format", "text"}, {"naStrings", "x"}}), "STRING, STRING: foo bar|new / |- / -| two");
}

TEST_F(TextFrameTest, TypesAreThoseOfTheSchema) {
  Put("f", "1 1 a\n1 2 1.5\n1 3 2.9\n2 4 TRUE\n2 2 NaN\n3 1 b\n");
  EXPECT_EQ(Text("f", {{"format", "text"}, {"schema", "string,double,int,boolean"}}),
            "STRING, FP64, INT64, BOOLEAN: a|1.5|2|FALSE / -|NaN|0|TRUE / b|0.0|0|FALSE");
  Put("n", "1 1 1\n2 2 2\n");
  EXPECT_EQ(Text("n", {{"format", "text"}, {"schema", "double"}}), "FP64, FP64: 1.0|0.0 / 0.0|2.0");
}

TEST_F(TextFrameTest, FoundWhereEveryLineIsACell) {
  Put("f", "1 1 foo bar\n2 2 x\n");
  EXPECT_EQ(Text("f"), "STRING, STRING: foo bar|- / -|x");
  EXPECT_EQ(Text("f", {{"rows", 3}, {"cols", 2}}), "STRING, STRING: foo bar|- / -|x / -|-");
  // A table says so, or does not look like cells.
  EXPECT_EQ(Text("f", {{"sep", ","}}), "STRING: 1 1 foo bar / 2 2 x");
  Put("t", "1 1,foo\n2 x,bar\n");
  EXPECT_EQ(Text("t"), "STRING, STRING: 1 1|foo / 2 x|bar");
}

TEST_F(TextFrameTest, WhatIsWrittenIsReadBackByItsMetadata) {
  for (const int64_t rows : {1, 20, 5000}) {
    const Frame frame = NumberedFrame(rows);
    ASSERT_TRUE(WriteValue(frame, "f", {}, *files_).ok());
    const Result<Frame> back = ReadFrame("f");
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_EQ(back->schema()->types, frame.schema()->types);
    // Only texts can be missing in a file.
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < frame.columns(); ++j) {
        ASSERT_EQ(back->At(i, j), frame.At(i, j)) << i << " " << j;
        const bool texts = StorageOf(frame.schema()->types[static_cast<size_t>(j)]) == ColumnStorage::kTexts;
        ASSERT_EQ(back->IsMissing(i, j), texts && frame.IsMissing(i, j)) << i << " " << j;
      }
  }
}

TEST_F(TextFrameTest, FaultsAreNamed) {
  const auto fault = [&](const std::string& text,
                         std::vector<std::pair<std::string, Scalar>> attributes = {}) {
    Put("f", text);
    attributes.emplace_back("format", "text");
    return Text("f", std::move(attributes));
  };
  EXPECT_EQ(fault("1 1 a\n1,2\n"),
            "cannot read 'f': line 2: '1,2' is not row column text\nif it is a table, say format=\"csv\"");
  EXPECT_EQ(fault("1 1 a\n1 0 b\n"), "cannot read 'f': line 2: cell (1, 0) is outside of the ?x? frame");
  EXPECT_EQ(fault("1 1 a\n3 1 b\n", {{"rows", 2}, {"cols", 2}}),
            "cannot read 'f': line 2: cell (3, 1) is outside of the 2x2 frame");
  EXPECT_EQ(fault("1 1 a\n", {{"cols", 2}, {"schema", "int,int,int"}}),
            "cannot read 'f': the schema has 3 types, the file has 2 columns");
  EXPECT_EQ(fault("", {}),
            "cannot read 'f': it holds no cells and its size is not known\ngive rows= and cols=");
  EXPECT_EQ(fault("5 1 1\n6 1 x y\n7 1 z\n", {{"schema", "int"}}),
            "cannot read 'f': line 2: 'x y' is no INT64\n"
            "schema= says the types of the columns; STRING takes any text");
}

}  // namespace
}  // namespace heddle::ops
