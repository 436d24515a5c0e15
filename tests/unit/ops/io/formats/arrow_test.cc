// SPDX-License-Identifier: Apache-2.0
// Tables of Parquet and Arrow: those of pyarrow, those of Heddle. Where Heddle is built without Arrow, only
// what it says then is tested.
#include "core/environment/random.h"
#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"
#include "ops/base/parallel.h"
#include "ops/io/exchange/convert_file.h"
#include "ops/io/exchange/inspect_file.h"
#include "ops/io/formats/libraries/arrow_open.h"
#include "ops/io/formats/libraries/format_module.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/io/formats/cells.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

constexpr char kTables[] = HEDDLE_SOURCE_DIR "/tests/unit/ops/io/formats/data/tables";

class ArrowTest : public FormatsTest {
 protected:
  void SetUp() override {
    if (!OpenArrowModule().ok()) GTEST_SKIP() << OpenArrowModule().status().message();
    for (const auto& file : std::filesystem::directory_iterator(kTables))
      std::filesystem::copy_file(file.path(), directory_ + "/" + file.path().filename().string());
  }
  // What convert() makes of a file, and what it says about it.
  std::string Converted(const std::string& from, const std::string& to, const ConvertOptions& options = {}) {
    const auto converted = ConvertFile(from, to, options, *files_);
    if (!converted.ok()) return converted.status().ToString();
    std::string text;
    for (const std::string& warning : converted->warnings) text += "warning: " + warning + "\n";
    return text + (to.ends_with("csv") ? Get(to) : "");
  }
  std::vector<std::string> Warnings(const std::string& name) {
    const Result<FileFacts> facts = InspectFile(name, {}, *files_);
    EXPECT_TRUE(facts.ok()) << facts.status().ToString();
    return facts.ok() ? facts->warnings : std::vector<std::string>();
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
      "STRING text, STRING word, INT64 large, INT32 small, STRING day, STRING list, FP64 none\n";
  std::string feather =
      "STRING text, STRING word, INT64 large, INT32 small, FP32 half, STRING day, STRING list, FP64 none\n";
  for (int i = 0; i < 4; ++i) {
    parquet += rows[i] + behind[i];
    feather += rows[i] + halves[i] + behind[i];
  }
  EXPECT_EQ(FrameText(ReadFrame("table.parquet")), parquet);
  EXPECT_EQ(FrameText(ReadFrame("table.feather")), feather);
}

TEST_F(ArrowTest, AnIndexOfPandasIsLeftOutAndTold) {
  ExpectCells(Read("pandas_rows.parquet"), 3, 2, {1.5, 1, 2, 2, 4, 4});
  EXPECT_EQ(FrameText(ReadFrame("pandas_rows.parquet")), "FP64 x, INT64 n\n1.5|1\n2.0|2\n4.0|4\n");
  ExpectCells(Read("pandas_index.feather"), 4, 1, {1.5, 2, 3, 4});
  const std::string rows =
      "the index of pandas is left out, column '__index_level_0__'; reset_index() before the file is written "
      "keeps it";
  const std::string index =
      "the index of pandas is left out, columns 'k', 'n'; reset_index() before the file is written keeps it";
  EXPECT_EQ(Warnings("pandas_rows.parquet"), std::vector{rows});
  EXPECT_EQ(Warnings("pandas_index.feather"), std::vector{index});
  EXPECT_EQ(Converted("pandas_rows.parquet", "rows.csv"),
            "warning: " + rows + "\nx,n\n1.5,1\n2.0,2\n4.0,4\n");
}

TEST_F(ArrowTest, NumbersOfAllKindsAreNumbers) {
  const double n = kNaN;
  ExpectCells(Read("numbers.feather"), 4, 10,
              {0.1,  7,  12345678901234567890.12, 500, 12.34, 1.5, 1, 7, n, 0,  //
               18,   n,  12345678901234567890.12, 500, 12.34, 2,   n, 7, n, 1,  //
               n,    -9, 12345678901234567890.12, 500, 12.34, n,   0, n, n, n,  //
               -0.3, 0,  12345678901234567890.12, 500, 12.34, 1.5, 1, 9, n, 1});
  EXPECT_EQ(
      FrameText(ReadFrame("numbers.feather")),
      "FP64 d, INT64 whole, FP64 long, FP64 hundreds, FP64 small, FP64 entries, BOOLEAN flags, INT64 runs, "
      "FP64 none, BOOLEAN bytes\n"
      "0.1|7|1.2345678901234567E19|500.0|12.34|1.5|TRUE|7|-|FALSE\n"
      "18.0|-|1.2345678901234567E19|500.0|12.34|2.0|-|7|-|TRUE\n"
      "-|-9|1.2345678901234567E19|500.0|12.34|-|FALSE|-|-|-\n"
      "-0.3|0|1.2345678901234567E19|500.0|12.34|1.5|TRUE|9|-|TRUE\n");
  EXPECT_EQ(FrameText(ReadFrame("texts.feather")),
            "STRING runs, STRING id, STRING sums\n"
            "a|00010203-0405-0607-0809-0a0b0c0d0e0f|[0.5, null]\n"
            "a|-|[]\n"
            "-|00000000-0000-0000-0000-000000000000|-\n");
}

TEST_F(ArrowTest, TablesOfPolarsAndDuckDbAreRead) {
  EXPECT_EQ(FrameText(ReadFrame("polars.arrow")),
            "STRING t, STRING c, FP64 d\nx|u|0.5\n-|v|-\na text of more than twelve|u|2.0\n");
  EXPECT_EQ(FrameText(ReadFrame("duckdb.parquet")),
            "FP64 d, FP64 h, STRING e, STRING i, FP64 n, STRING u\n"
            "0.1|5.0|a|0M2d0ns|-|00112233-4455-6677-8899-aabbccddeeff\n");
}

TEST_F(ArrowTest, IntegersThatDoNotFitAreNamed) {
  ExpectCells(Read("large.parquet"), 2, 2, {1, 0x1p53, 0x1p64, 0x1p60});
  EXPECT_EQ(
      ReadFrame("large.parquet").status().ToString(),
      "cannot read 'large.parquet': column 'u' holds 18446744073709551615, which is larger than an INT64 "
      "can be: a matrix has it, as the nearest double");
  EXPECT_EQ(Warnings("large.parquet").front(),
            "column 1 (u) has 1 whole number that a double does not hold, which loses digits: "
            "1.8446744073709552E19");
  EXPECT_EQ(Fault("wide.arrow"),
            "cannot read 'wide.arrow': it has integers of more than 64 bits, which Arrow does not read\n"
            "cast them where the file is written, to 64 bits or to decimals");
  // Digits that are lost are counted, where a frame can tell.
  const Frame table(std::make_shared<Schema>(Schema{{ColumnType::kInteger64}, {"x"}}),
                    {*Column::OfIntegers(std::vector<int64_t>{(int64_t{1} << 53) + 1, int64_t{1} << 60, 3})});
  ASSERT_TRUE(WriteValue(table, "x.parquet", {.format = FileFormat::kParquet}, *files_).ok());
  EXPECT_EQ(Warnings("x.parquet"),
            std::vector<std::string>{"column 1 (x) has 1 whole number that a double does "
                                     "not hold, which loses digits: 9007199254740993"});
  EXPECT_EQ(Converted("x.parquet", "x.csv"), "x\n9007199254740993\n1152921504606846976\n3\n");
  EXPECT_EQ(
      Converted("large.parquet", "large.npy"),
      "warning: the names of the columns are left out: format npy has none\n"
      "warning: whole numbers beyond 2^53 are the nearest doubles in a matrix; heddle inspect counts those "
      "that lose digits\n");
}

TEST_F(ArrowTest, TablesKeepTheirNamesWhenTheyAreConverted) {
  Put("a.csv", "b,\"a,x\"\n1,2.5\n,3\n");
  for (const char* name : {"a.parquet", "a.feather"}) {
    EXPECT_EQ(Converted("a.csv", name), "");
    EXPECT_EQ(Converted(name, "b.csv"), "b,\"a,x\"\n1,2.5\n,3.0\n");
    EXPECT_EQ(InspectFile(name, {}, *files_)->facts[1].name, "a,x");
    EXPECT_EQ(Converted(name, "b.npy"),
              "warning: the names of the columns are left out: format npy has none\n");
  }
  // A matrix of Heddle has no names.
  ASSERT_TRUE(Write(Make(1, 2, {1, 2}), "m.parquet", {.format = FileFormat::kParquet}).ok());
  EXPECT_EQ(Converted("m.parquet", "m.csv"), "1.0,2.0\n");
}

TEST_F(ArrowTest, TextsThatLookLikeNumbersAreTextsToInspect) {
  const Frame table(std::make_shared<Schema>(Schema{{ColumnType::kString}, {"zip"}}),
                    {*Column::OfTexts(std::vector<std::string_view>{"01234", ""})});
  ASSERT_TRUE(WriteValue(table, "zip.parquet", {.format = FileFormat::kParquet}, *files_).ok());
  const Result<FileFacts> facts = InspectFile("zip.parquet", {}, *files_);
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ(facts->facts[0].kind(), "text");
  EXPECT_EQ(facts->facts[0].texts, 2);
}

// As Spark and DuckDB write them.
TEST_F(ArrowTest, AFolderIsTheTablesOfItsFiles) {
  std::filesystem::create_directory(directory_ + "/parts");
  for (const FileFormat format : kKinds) {
    ASSERT_TRUE(Write(Make(2, 2, {1, 2, 3, 4}), "parts/data_2", {.format = format}).ok());
    ASSERT_TRUE(Write(Make(0, 2, {}), "parts/data_3", {.format = format}).ok());
    ASSERT_TRUE(Write(Make(1, 2, {5, 6}), "parts/data_10", {.format = format}).ok());
    for (const char* name : {"data_2", "data_3", "data_10"})
      std::filesystem::remove(directory_ + "/parts/" + name + ".mtd");
    Put("parts/_SUCCESS", "");
    ExpectCells(Read("parts"), 3, 2, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(FrameText(ReadFrame("parts")), "FP64, FP64\n1.0|2.0\n3.0|4.0\n5.0|6.0\n");
  }
  ASSERT_TRUE(Write(Make(1, 1, {5}), "parts/data_10", {.format = FileFormat::kArrow}).ok());
  std::filesystem::remove(directory_ + "/parts/data_10.mtd");
  EXPECT_EQ(Fault("parts"),
            "cannot read 'parts/data_10': it has other columns than 'parts/data_2'\n"
            "they are FP64 C1, and there FP64 C1, FP64 C2");
  std::filesystem::create_directories(directory_ + "/folders/k=1");
  EXPECT_EQ(Fault("folders", {{"format", Scalar("parquet")}}),
            "cannot read 'folders': it holds no data\nfiles of folders inside of it are not looked for");
  Put("parts/data_3", "1,2\n");
  EXPECT_EQ(Fault("parts"),
            "cannot read 'parts/data_3': it is no arrow file, or it is damaged\n"
            "it does not begin with the mark of such files");
}

// So that a file in many small batches costs as much for each of them as one in few.
TEST_F(ArrowTest, OnlyTheTableOfContentsIsReadAgain) {
  for (const ArrowKind kind : {ArrowKind::kParquet, ArrowKind::kArrow}) {
    std::string bytes;
    const ArrowSource source{.schema = {{ColumnType::kFloat64, ColumnType::kInteger64}, {"a", "b"}},
                             .rows = 3000,
                             .rows_of_group = 3,
                             .cells = [](int64_t column, int64_t begin, int64_t end) {
                               ModuleColumn cells;
                               for (int64_t i = begin; i < end; ++i) {
                                 if (column == 0) cells.doubles.push_back(static_cast<double>(i));
                                 if (column == 1) cells.integers.push_back(-i);
                               }
                               return cells;
                             }};
    const auto keep = [&](std::string_view piece) {
      bytes += piece;
      return OkStatus();
    };
    ASSERT_TRUE((*OpenArrowModule())->write(kind, source, keep).ok());
    int64_t read = 0;  // bytes
    const ModuleInput input{.path = "batches",
                            .size = static_cast<int64_t>(bytes.size()),
                            .read = [&](int64_t begin, int64_t count, char* out) {
                              read += count;
                              bytes.copy(out, static_cast<size_t>(count), static_cast<size_t>(begin));
                              return OkStatus();
                            }};
    const auto first = (*OpenArrowModule())->open(kind, input, {});
    ASSERT_TRUE(first.ok()) << first.status().ToString();
    ASSERT_EQ((*first)->begins().size(), 1001);
    const int64_t read_first = read;
    read = 0;
    const auto again = (*OpenArrowModule())->open(kind, input, (*first)->begins());
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_LT(read, kind == ArrowKind::kArrow ? read_first / 2 : input.size);
    // All groups cost the file once.
    read = 0;
    int64_t rows = 0;
    for (size_t g = 0; g < 1000; ++g) {
      const Status status =
          (*again)->Read(g, /*as_doubles=*/true, [&](size_t column, const ModuleColumn& cells) {
            EXPECT_EQ(cells.doubles[1], (column == 0 ? 1.0 : -1.0) * static_cast<double>(3 * g + 1));
            rows += column == 0 ? static_cast<int64_t>(cells.doubles.size()) : 0;
            return OkStatus();
          });
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    EXPECT_EQ(rows, 3000);
    EXPECT_LT(read, 2 * input.size);
  }
}

TEST_F(ArrowTest, AGroupThatMemoryDoesNotHoldIsRefused) {
  if (!HeapIsCounted()) GTEST_SKIP() << "the heap is not counted here";
  // A few bytes in the file.
  const ArrowSource source{
      .schema = {{ColumnType::kFloat64}, {"a"}},
      .rows = int64_t{1} << 20,
      .rows_of_group = int64_t{1} << 20,
      .cells = [](int64_t, int64_t begin, int64_t end) {
        return ModuleColumn{.doubles = std::vector<double>(static_cast<size_t>(end - begin), 1.5)};
      }};
  std::string bytes;
  const auto keep = [&](std::string_view piece) {
    bytes += piece;
    return OkStatus();
  };
  ASSERT_TRUE((*OpenArrowModule())->write(ArrowKind::kParquet, source, keep).ok());
  Put("large.parquet", bytes);
  Node node;
  const Result<ReadOptions> options = ResolveReadOptions(node, "large.parquet", *files_);
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  const Result<FileSummary> summary = Summarize(*options, *files_);
  ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  const std::vector<char> other(2 * MemoryBudget::kHeapAllowance, 'x');  // a small heap has no limit
  BlockPool::Process().Trim();  // what earlier tests have left would make room
  budget.SetLimit(budget.used() + (int64_t{4} << 20));
  const Result<Matrix> row = ReadRows(*options, *summary, 0, 1, *files_);
  budget.SetLimit(limit);
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(ExitCode(row.status()), 5);
  const std::string fault = row.status().ToString();
  EXPECT_TRUE(fault.starts_with("out of memory: working memory of ")) << fault;
  EXPECT_TRUE(fault.ends_with("its groups of rows are very large")) << fault;
}

// Whatever a damaged file says, it is an error or a table.
TEST_F(ArrowTest, DamagedFilesAreErrors) {
  SeededRandom random(54);
  for (const auto& file : std::filesystem::directory_iterator(kTables)) {
    const std::string name = file.path().filename().string();
    const std::string whole = Get(name);
    for (int i = 0; i < 30; ++i) {
      std::string damaged = whole;
      const auto at = static_cast<size_t>(random.Next() % (whole.size() - 4));
      damaged.replace(at, i % 3 == 0 ? 4 : 1, i % 3 == 0 ? "\xff\xff\xff\x7f" : i % 3 == 1 ? "\xff" : "\x01");
      Put("damaged", damaged);
      const auto format = Scalar(name.ends_with("parquet") ? "parquet" : "arrow");
      const Result<Matrix> matrix = Read("damaged", {{"format", format}});
      const Result<Frame> frame = ReadFrame("damaged", {{"format", format}});
      for (const Status& status : {matrix.status(), frame.status()})
        EXPECT_TRUE(status.ok() || ExitCode(status) == 4 || ExitCode(status) == 5) << status.ToString();
    }
  }
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

TEST(ArrowAbsenceTest, TheVersionThatIsMissingIsNamed) {
  EXPECT_EQ(ArrowIsMissing(
                "read", "'x'", "parquet",
                Unavailable("libarrow.so.2600: cannot open shared object file: No such file or directory"))
                .ToString(),
            "cannot read 'x': the Arrow library, which format parquet needs, is not there\n"
            "install pyarrow 26 beside Heddle: pip install 'pyarrow==26.*'\n"
            "libarrow.so.2600: cannot open shared object file: No such file or directory");
}

TEST(ArrowAbsenceTest, WhatIsMissingIsNamed) {
  if (OpenArrowModule().ok()) GTEST_SKIP() << "Heddle was built with Arrow";
  const std::unique_ptr<Files> files = MakeFiles("/");
  Node node;
  node.SetAttribute("format", Scalar("parquet"));
  const std::string path = HEDDLE_SOURCE_DIR "/tests/unit/ops/io/formats/data/tables/numbers.parquet";
  const Result<ReadOptions> options = ResolveReadOptions(node, path, *files);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(Summarize(*options, *files).status().ToString(),
            "cannot read '" + path +
                "': this Heddle was built without the Arrow library, which format parquet needs\n"
                "build it with the libraries of pyarrow (cmake -DHEDDLE_PYARROW=FOLDER) or where "
                "find_package(Arrow) succeeds, or export the data: "
                "pandas.read_parquet(FILE).to_csv(FILE, index=False) makes a csv file");
}

}  // namespace
}  // namespace heddle::ops
