// SPDX-License-Identifier: Apache-2.0
// Whatever a frame or matrix holds comes back cell for cell, through every format of text and through
// `convert`, however the file is cut into chunks and its rows are shared out.
#include <cmath>

#include "core/environment/random.h"
#include "ops/base/parallel.h"
#include "ops/frame/text_column.h"
#include "ops/io/exchange/convert_file.h"
#include "ops/io/formats/options.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using Attributes = std::vector<std::pair<std::string, Scalar>>;

class RoundTripTest : public FormatsTest {
 protected:
  size_t Below(size_t end) { return random_.Below(end); }
  void Drop(const std::string& name) { ASSERT_TRUE(files_->Remove(name).ok()); }

  // Any ASCII characters, and what is read as something else where nothing tells that it is a text.
  std::string AnyText(bool zero_bytes) {
    static const std::string words[] = {"",       " ",
                                        "\n",     "\r",
                                        "\"",     "\"\"",
                                        "1",      "-2.5",
                                        "1e5",    "NaN",
                                        "true",   "FALSE",
                                        "NA",     "a,b",
                                        "a;b\tc", "x\ny",
                                        "\r\n",   " lead",
                                        "end ",   "\"q\"",
                                        "5\" ",   "Zo\u00eb",
                                        "007",    "#Meta\u00b7MV",
                                        "0x1",    "\xEF\xBB\xBFmark",
                                        "1 1 x",  "two words",
                                        "plain",  "a||b",
                                        "Inf",    ".5",
                                        "a|",     "|b",
                                        "x,",     ","};
    if (Below(2) == 0) return words[Below(std::size(words))];
    std::string text;
    const size_t length = Below(8);
    for (size_t i = 0; i < length; ++i) text += static_cast<char>(zero_bytes ? Below(128) : 1 + Below(127));
    return text;
  }

  Column AnyColumn(ColumnType type, int64_t rows, bool zero_bytes, bool may_miss) {
    if (StorageOf(type) == ColumnStorage::kTexts) {
      std::vector<std::optional<std::string>> texts;
      for (int64_t i = 0; i < rows; ++i)
        texts.push_back(may_miss && Below(5) == 0 ? std::nullopt : std::optional(AnyText(zero_bytes)));
      return *TextColumn(texts);
    }
    const bool may_miss_numbers = may_miss && numbers_may_miss_;
    Column column = *Column::Make(type, rows, 0, may_miss_numbers);
    for (int64_t i = 0; i < rows; ++i) {
      if (may_miss_numbers) column.mutable_missing()[i] = Below(5) == 0;
      switch (column.storage()) {
        case ColumnStorage::kDoubles: column.mutable_doubles()[i] = std::round(Number() * 8) / 8; break;
        case ColumnStorage::kIntegers: column.mutable_integers()[i] = static_cast<int64_t>(Number()); break;
        case ColumnStorage::kBooleans: column.mutable_booleans()[i] = Below(2) == 1; break;
        case ColumnStorage::kTexts: break;
      }
    }
    return column;
  }
  double Number() { return (static_cast<double>(Below(2000)) - 1000) / static_cast<double>(1 + Below(3)); }

  Frame AnyFrame(int64_t columns, int64_t rows, bool names, bool zero_bytes, bool may_miss) {
    Schema schema;
    std::vector<Column> made;
    for (int64_t j = 0; j < columns; ++j) {
      static constexpr ColumnType kTypes[] = {ColumnType::kString, ColumnType::kString, ColumnType::kFloat64,
                                              ColumnType::kInteger64, ColumnType::kBoolean};
      schema.types.push_back(kTypes[Below(std::size(kTypes))]);
      if (names) schema.names.push_back(AnyText(false) + "_" + std::to_string(j));
      made.push_back(AnyColumn(schema.types.back(), rows, zero_bytes, may_miss));
    }
    return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(made));
  }

  // As `workers` workers read it, each its rows.
  Result<Frame> ReadShared(const std::string& name, const Attributes& attributes, int64_t workers) {
    Node node;
    node.SetAttribute("data_type", Scalar("frame"));
    for (const auto& [key, value] : attributes) node.SetAttribute(key, value);
    HEDDLE_ASSIGN_OR_RETURN(ReadOptions options, ResolveReadOptions(node, name, *files_));
    options.chunk_bytes = 1 + static_cast<int64_t>(Below(100));
    HEDDLE_ASSIGN_OR_RETURN(const FileSummary summary, Summarize(options, *files_));
    HEDDLE_ASSIGN_OR_RETURN(Frame whole, ReadFrameRows(options, summary, 0, summary.shape.rows, *files_));
    for (int64_t w = 0; w < workers; ++w) {
      const int64_t begin = summary.shape.rows * w / workers, end = summary.shape.rows * (w + 1) / workers;
      HEDDLE_ASSIGN_OR_RETURN(const Frame rows, ReadFrameRows(options, summary, begin, end, *files_));
      EXPECT_TRUE(Frame::SameCells(whole.Rows(begin, end), rows)) << w << " of " << workers;
    }
    return whole;
  }

  void ExpectSame(const Result<Frame>& found, const Frame& expected, bool names) {
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    ASSERT_EQ(found->shape(), expected.shape());
    EXPECT_EQ(found->schema()->types, expected.schema()->types);
    for (int64_t j = 0; j < expected.columns(); ++j) {
      if (names) {
        ASSERT_EQ(found->schema()->NameOf(j), expected.schema()->NameOf(j));
      }
      for (int64_t i = 0; i < expected.rows(); ++i) {
        ASSERT_EQ(found->IsMissing(i, j), expected.IsMissing(i, j)) << i << " " << j;
        ASSERT_EQ(found->At(i, j), expected.At(i, j)) << i << " " << j;
      }
    }
  }

  SeededRandom random_{17};
  bool numbers_may_miss_ = false;  // read() has 0 in their place; convert keeps them.
};

TEST_F(RoundTripTest, FramesThroughEveryFormatOfText) {
  const std::string separators[] = {",", ";", "\t", " ", "|", "||", ",,", ", "};
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const int64_t columns = 1 + static_cast<int64_t>(Below(4)), rows = 1 + static_cast<int64_t>(Below(12));
    const bool names = Below(2) == 0;
    // A zero byte in the first name or cell would look like UTF-16.
    const Frame frame = AnyFrame(columns, rows, names, /*zero_bytes=*/names, /*may_miss=*/true);
    WriteOptions write;
    write.separator = separators[Below(std::size(separators))];
    write.header = names;
    for (const FileFormat format :
         {FileFormat::kCsv, FileFormat::kText, FileFormat::kJsonl, FileFormat::kArff, FileFormat::kBinary}) {
      SCOPED_TRACE(Name(format));
      write.format = format;
      ASSERT_TRUE(WriteValue(frame, "f", write, *files_).ok());
      SCOPED_TRACE(Get("f"));
      const bool keeps_names = names && format != FileFormat::kText;
      const auto workers = 1 + static_cast<int64_t>(Below(5));
      ExpectSame(ReadShared("f", {}, workers), frame, keeps_names);
      Drop("f.mtd");
      Attributes told = {{"format", Scalar(std::string(Name(format)))}};
      std::string schema;
      for (const ColumnType type : frame.schema()->types) schema += std::string(Name(type)) + ",";
      told.emplace_back("schema", Scalar(schema));
      if (format == FileFormat::kCsv) {
        told.emplace_back("sep", Scalar(write.separator));
        told.emplace_back("header", Scalar(names));
      }
      if (format == FileFormat::kText) {  // Files of cells do not tell sizes.
        told.emplace_back("rows", Scalar(rows));
        told.emplace_back("cols", Scalar(columns));
      }
      ExpectSame(ReadShared("f", told, workers), frame, keeps_names);
      if (HasFailure()) return;
    }
  }
}

// In a file of one column a missing cell is a line of nothing, also before all others and at the end.
TEST_F(RoundTripTest, FramesOfOneColumnOfWhichCellsAreMissing) {
  static const char* const kCells[] = {nullptr, nullptr, "", " ", "1", "NA", "a", "\n", "\r\n"};
  static const char* const kNames[] = {"", "1", "-2.5", "NA", " ", "true", "a\nb", "\n", "name"};
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    std::vector<std::optional<std::string>> cells(1 + Below(5));
    for (std::optional<std::string>& cell : cells)
      if (const char* const text = kCells[Below(round % 3 == 0 ? 2 : std::size(kCells))]; text != nullptr)
        cell = text;
    Schema schema;
    schema.types = {ColumnType::kString};
    const bool has_name = round % 2 == 0;
    if (has_name) schema.names = {kNames[Below(std::size(kNames))]};
    const Frame frame(std::make_shared<const Schema>(std::move(schema)), {*TextColumn(cells)});
    ASSERT_TRUE(WriteValue(frame, "f.csv", {.format = FileFormat::kCsv, .header = has_name}, *files_).ok());
    SCOPED_TRACE(Get("f.csv"));
    const auto workers = 1 + static_cast<int64_t>(Below(5));
    ExpectSame(ReadShared("f.csv", {}, workers), frame, has_name);
    Drop("f.csv.mtd");
    Attributes told = {{"format", Scalar("csv")}};
    if (has_name) told.emplace_back("header", Scalar(true));
    ExpectSame(ReadShared("f.csv", told, workers), frame, has_name);
    if (HasFailure()) return;
  }
}

TEST_F(RoundTripTest, MatricesWithQuotesAroundAnyField) {
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const int64_t columns = 1 + static_cast<int64_t>(Below(4)), rows = 1 + static_cast<int64_t>(Below(12));
    Matrix matrix = Make(rows, columns, std::vector<double>(static_cast<size_t>(rows * columns)));
    const bool names = Below(2) == 0;
    std::string text;
    if (names)
      for (int64_t j = 0; j < columns; ++j) text += (j > 0 ? "," : "") + std::string("\"name\n\"\",\"");
    if (names) text += "\n";
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const double number = Number();
        matrix.mutable_data()[i * columns + j] = number;
        const std::string digits = fmt::format("{}", number);
        static const char* const kForms[] = {"{}", "\"{}\"", " \" {}\" ", "\"\n{}\"", "\"{}\r\n\""};
        const char* const form = kForms[Below(Below(2) == 0 ? 1 : std::size(kForms))];
        text += (j > 0 ? "," : "") + fmt::format(fmt::runtime(form), digits);
      }
      text += Below(4) == 0 ? "\r\n" : "\n";
    }
    Put("m.csv", text);
    SCOPED_TRACE(text);
    Node node;
    node.SetAttribute("format", Scalar("csv"));
    node.SetAttribute("header", Scalar(names));
    ReadOptions options = *ResolveReadOptions(node, "m.csv", *files_);
    options.chunk_bytes = 1 + static_cast<int64_t>(Below(100));
    const Result<FileSummary> summary = Summarize(options, *files_);
    ASSERT_TRUE(summary.ok()) << summary.status().ToString();
    const auto workers = 1 + static_cast<int64_t>(Below(5));
    for (int64_t w = 0; w < workers; ++w) {
      const int64_t begin = rows * w / workers, end = rows * (w + 1) / workers;
      const Result<Matrix> part = ReadRows(options, *summary, begin, end, *files_);
      ASSERT_TRUE(part.ok()) << part.status().ToString();
      ASSERT_TRUE(Matrix::SameCells(*part, matrix.Rows(begin, end)));
    }
  }
}

// A text stays a text and a number a number, with the metadata of csv and without.
TEST_F(RoundTripTest, LinesOfJsonThroughCsv) {
  numbers_may_miss_ = true;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const int64_t columns = 1 + static_cast<int64_t>(Below(4)), rows = 1 + static_cast<int64_t>(Below(8));
    const Frame frame = AnyFrame(columns, rows, /*names=*/true, /*zero_bytes=*/false, /*may_miss=*/true);
    ASSERT_TRUE(WriteValue(frame, "a.jsonl", {.format = FileFormat::kJsonl}, *files_).ok());
    Drop("a.jsonl.mtd");
    const auto convert = [&](const char* from, const char* to, const ConvertOptions& options) {
      const Result<Converted> converted = ConvertFile(from, to, options, *files_);
      ASSERT_TRUE(converted.ok()) << converted.status().ToString();
    };
    convert("a.jsonl", "b.csv", {});
    SCOPED_TRACE(Get("b.csv"));
    convert("b.csv", "c.jsonl", {});
    EXPECT_EQ(Get("c.jsonl"), Get("a.jsonl"));
    // Without metadata only types are to be found.
    Drop("b.csv.mtd");
    ConvertOptions options;
    options.header = true;
    options.separator = ",";
    options.data_type = DataType::kFrame;
    convert("b.csv", "d.jsonl", options);
    EXPECT_EQ(Get("d.jsonl"), Get("a.jsonl"));
    for (const char* name : {"c.jsonl.mtd", "d.jsonl.mtd"}) Drop(name);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::ops
