// SPDX-License-Identifier: Apache-2.0
// Tables of Parquet and Arrow: those of pyarrow, those of Heddle. Where Heddle is built without Arrow, only
// what it says then is tested.
#include "core/environment/random.h"
#include "ops/formats/libraries/format_module.h"
#include "ops/parallel.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/formats/cells.h"
#include "tests/unit/ops/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class ArrowTest : public FormatsTest {
 protected:
  void SetUp() override {
    if (!OpenArrowModule().ok()) GTEST_SKIP() << OpenArrowModule().status().message();
    for (const char* name : {"numbers.parquet", "table.parquet", "table.feather"})
      std::filesystem::copy_file(HEDDLE_SOURCE_DIR "/tests/unit/ops/formats/data/" + std::string(name),
                                 directory_ + "/" + name);
  }
  std::string FrameText(const Result<Frame>& frame) {
    if (!frame.ok()) return frame.status().ToString();
    std::string text = frame->schema()->ToText() + "\n";
    for (int64_t i = 0; i < frame->rows(); ++i)
      for (int64_t j = 0; j < frame->columns(); ++j) {
        if (frame->IsMissing(i, j)) text += "-";
        frame->AppendText(i, j, &text);
        text += j + 1 < frame->columns() ? "|" : "\n";
      }
    return text;
  }
};

const FileFormat kKinds[] = {FileFormat::kParquet, FileFormat::kArrow};

TEST_F(ArrowTest, TablesOfPyArrowAreRead) {
  ExpectSameBits(*Read("numbers.parquet"),
                 Make(4, 3, {1.5, 1, 1, -0.0, 2, kNaN, kNaN, 3, 0, 5e-324, kNaN, 1}));
  const std::string rows[] = {"a|x|1099511627776|1|", "-|y|-|2|", "\u00e4\n|-|-1|-|", "|x|0|255|"};
  const std::string behind[] = {"1970-01-01|[1, 2]|-\n", "1970-01-02|-|-\n", "-|[]|-\n",
                                "2024-10-04|[3]|-\n"};
  const std::string halves[] = {"1.5|", "2.0|", "3.0|", "4.0|"};
  std::string parquet =
      "STRING text, STRING word, INT64 large, INT32 small, STRING day, STRING list, STRING none\n";
  std::string feather =
      "STRING text, STRING word, INT64 large, INT32 small, FP32 half, STRING day, STRING list, STRING none\n";
  for (int i = 0; i < 4; ++i) {
    parquet += rows[i] + behind[i];
    feather += rows[i] + halves[i] + behind[i];
  }
  EXPECT_EQ(FrameText(ReadFrame("table.parquet")), parquet);
  EXPECT_EQ(FrameText(ReadFrame("table.feather")), feather);
}

TEST_F(ArrowTest, MatricesSurvive) {
  SeededRandom random(6);
  for (const FileFormat format : kKinds)
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 3}, {1, 1}, {300'000, 1}, {7, 5}, {1000, 333}, {5, 2000}}) {
      SCOPED_TRACE(testing::Message() << Name(format) << " " << rows << " x " << columns);
      const Matrix matrix = RandomCells(rows, columns, 0.8, &random);
      const Status status = Write(matrix, "m", {.format = format});
      ASSERT_TRUE(status.ok()) << status.ToString();
      const Result<Matrix> back = Read("m");
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      ExpectSameBits(*back, matrix);
    }
}

TEST_F(ArrowTest, FramesSurvive) {
  for (const FileFormat format : kKinds)
    for (const int64_t rows : {0, 1, 7, 100, 300'000})
      for (const bool may_miss : {true, false}) {
        SCOPED_TRACE(testing::Message() << Name(format) << " " << rows << " " << may_miss);
        const Frame frame = NumberedFrame(rows, 3, may_miss);
        const Status status = WriteValue(frame, "f", {.format = format}, *files_);
        ASSERT_TRUE(status.ok()) << status.ToString();
        const Result<Frame> back = ReadFrame("f");
        ASSERT_TRUE(back.ok()) << back.status().ToString();
        EXPECT_TRUE(Frame::SameCells(*back, frame));
        EXPECT_EQ(*back->schema(), *frame.schema());
        const std::string bytes = Get("f");
        Arena arena(3);
        arena.Execute([&] { ASSERT_TRUE(WriteValue(frame, "f", {.format = format}, *files_).ok()); });
        EXPECT_TRUE(Get("f") == bytes);
      }
}

TEST_F(ArrowTest, WhatIsNoSuchTableIsNamed) {
  EXPECT_EQ(Fault("table.parquet"),
            "cannot read 'table.parquet': column 'text' holds texts\n"
            "say data_type=\"frame\"; transformencode makes numbers of texts");
  EXPECT_EQ(Fault("numbers.parquet", {{"cols", 2}}),
            "cannot read 'numbers.parquet': cols=2 was asked for, the file has 3");
  const std::string whole = Get("numbers.parquet");
  for (const size_t cut : {size_t{4}, whole.size() / 2, whole.size() - 1}) {
    Put("cut", whole.substr(0, cut));
    EXPECT_EQ(Fault("cut", {{"format", "parquet"}}).substr(0, 59),
              "cannot read 'cut': it is no parquet file, or it is damaged\n");
  }
  for (const FileFormat format : kKinds) {
    const Frame bad(std::make_shared<Schema>(Schema{{ColumnType::kString}, {"x"}}),
                    {*Column::OfTexts(std::vector<std::string_view>{"\xff"})});
    EXPECT_EQ(WriteValue(bad, "bad", {.format = format}, *files_).ToString(),
              fmt::format("write: row 1, column 1: the text is no UTF-8, which {} cannot hold\n"
                          "format binary holds any bytes",
                          Name(format)));
    EXPECT_FALSE(files_->Exists("bad"));
  }
}

TEST(ArrowAbsenceTest, WhatIsMissingIsNamed) {
  if (OpenArrowModule().ok()) GTEST_SKIP() << "Heddle was built with Arrow";
  const std::unique_ptr<Files> files = MakeFiles("/");
  Node node;
  node.SetAttribute("format", Scalar("parquet"));
  const std::string path = HEDDLE_SOURCE_DIR "/tests/unit/ops/formats/data/numbers.parquet";
  const Result<ReadOptions> options = ResolveReadOptions(node, path, *files);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(Summarize(*options, *files).status().ToString(),
            "cannot read '" + path +
                "': this Heddle was built without the Arrow library, which format parquet needs\n"
                "build it where find_package(Arrow) and find_package(Parquet) succeed, or export the data: "
                "pandas.read_parquet(FILE).to_csv(FILE, index=False) makes a csv file");
}

}  // namespace
}  // namespace heddle::ops
