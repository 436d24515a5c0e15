// SPDX-License-Identifier: Apache-2.0
// Data frames in files of R, and files of R whose bytes were changed.
#include "core/environment/random.h"
#include "core/memory/counted_heap.h"
#include "tests/support/r_objects.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

namespace r = testing_support::r;
using Attributes = std::vector<std::pair<std::string, Scalar>>;

class RdsFrameTest : public FormatsTest {
 protected:
  Result<Frame> FrameOf(const std::string& object, Attributes attributes = {}) {
    Put("x.rds", r::Rds(object));
    return ReadFrame("x.rds", std::move(attributes));
  }
  // Its schema, and the rows with bars between cells; what is missing is "-".
  std::string TextOf(const std::string& object, Attributes attributes = {}) {
    const Result<Frame> frame = FrameOf(object, std::move(attributes));
    if (!frame.ok()) return frame.status().ToString();
    std::string text = frame->schema()->ToText();
    for (int64_t i = 0; i < frame->rows(); ++i) {
      text += "\n";
      for (int64_t j = 0; j < frame->columns(); ++j) {
        text += j > 0 ? "|" : "";
        if (frame->IsMissing(i, j))
          text += "-";
        else
          frame->AppendText(i, j, &text);
      }
    }
    return text;
  }
  Result<FileSummary> SummaryOf(const std::string& object, DataType type) {
    Put("x.rds", r::Rds(object));
    Node node;
    node.SetAttribute("data_type", Scalar(std::string(Name(type))));
    HEDDLE_ASSIGN_OR_RETURN(const ReadOptions options, ResolveReadOptions(node, "x.rds", *files_));
    return Summarize(options, *files_);
  }
};

TEST_F(RdsFrameTest, ColumnsKeepTheirNamesAndTypes) {
  const std::string frame = r::DataFrame({{"n", r::Doubles({1.5, r::kNaDouble, kNaN})},
                                          {"i", r::Integers({1, r::kNaInteger, -3})},
                                          {"l", r::Logicals({1, r::kNaInteger, 0})},
                                          {"s", r::TextVector({r::Text("a b"), r::Missing(), r::Text("")})},
                                          {"f", r::Factor({2, r::kNaInteger, 1}, {"no", "yes"})},
                                          {"w", r::WideIntegers({9007199254740993, INT64_MIN, -1})}},
                                         r::CountedRows(3));
  EXPECT_EQ(TextOf(frame),
            "FP64 n, INT32 i, BOOLEAN l, STRING s, STRING f, INT64 w\n"
            "1.5|1|TRUE|a b|yes|9007199254740993\n"
            "-|-|-|-|-|-\n"
            "NaN|-3|FALSE||no|-1");
  const std::string tibble =
      r::DataFrame({{"x", r::Sequence(2, 1, 1)}, {"y", r::Vector(24, 2, "\x07\xFF", {})}}, r::CountedRows(2),
                   {"tbl_df", "tbl", "data.frame"});
  EXPECT_EQ(TextOf(tibble), "INT32 x, INT32 y\n1|7\n2|255");
  EXPECT_EQ(TextOf(r::DataFrame({}, r::CountedRows(0))), "");
}

TEST_F(RdsFrameTest, DaysAndInstantsAreTextsOfIso8601) {
  const auto days = [](const std::vector<double>& numbers) {
    return r::Doubles(numbers, {{"class", r::Texts({"Date"})}});
  };
  const auto seconds = [](const std::vector<double>& numbers) {
    return r::Doubles(numbers,
                      {{"class", r::Texts({"POSIXct", "POSIXt"})}, {"tzone", r::Texts({"Europe/Berlin"})}});
  };
  EXPECT_EQ(TextOf(r::DataFrame({{"d", days({19753, -1, 11016.5, kInf, r::kNaDouble})},
                                 {"t", seconds({1706704496.25, -1, 951782400, 1e300, r::kNaDouble})}},
                                r::CountedRows(5))),
            "STRING d, STRING t\n"
            "2024-01-31|2024-01-31T12:34:56.25Z\n"
            "1969-12-31|1969-12-31T23:59:59Z\n"
            "2000-02-29|2000-02-29T00:00:00Z\n"
            "-|-\n"
            "-|-");
  EXPECT_EQ(TextOf(r::Integers({0, r::kNaInteger}, {{"class", r::Texts({"Date"})}})),
            "STRING\n1970-01-01\n-");
  // Rounded to a microsecond it is the next day.
  EXPECT_EQ(TextOf(seconds({86399.9999999})), "STRING\n1970-01-02T00:00:00Z");
}

TEST_F(RdsFrameTest, TextsAreUtf8WhateverTheirEncoding) {
  const std::string euro = "\x80 5", name = "Zo\xEB";
  const std::string cells = r::Text("Zo\u00eb") + r::Text(name, r::kLatin1) + r::Text(euro, r::kLatin1) +
                            r::Text("a", r::kAscii) + r::Text(name, 0);
  const std::string vector = r::Vector(16, 5, cells, {});
  Put("x.rds", r::Head("CP1252") + vector);
  const Result<Frame> frame = ReadFrame("x.rds");
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  const char* const expected[] = {"Zo\u00eb", "Zo\u00eb", "\u20ac 5", "a", "Zo\u00eb"};
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(frame->column(0).TextAt(i), expected[i]);
  EXPECT_EQ(TextOf(r::DataFrame({{"s", vector}}, r::CountedRows(5))),
            "cannot read 'x.rds': column 's', text 5: 'Zo\\xeb' is not in an encoding that the file tells\n"
            "enc2utf8(), in R where it was written, gives a vector of texts that is read");
}

// as.character() of numbers may stay numbers until somebody looks at the texts.
TEST_F(RdsFrameTest, TextsOfNumbersAreThoseOfR) {
  const auto texts = [](const std::string& numbers, int scipen) {
    return r::Alternative("deferred_string", "base", r::Dotted(numbers, r::Integers({scipen})));
  };
  EXPECT_EQ(TextOf(texts(r::Sequence(3, 9, 1), 0)), "STRING\n9\n10\n11");
  EXPECT_EQ(TextOf(texts(r::Integers({1, r::kNaInteger}), 0)), "STRING\n1\n-");
  const std::string numbers = r::Doubles({1.5, 0.1, 1e10, 1e5, 123456, 1e-5, 1.0 / 3, 1e15, -1e-300, 0,
                                          r::kNaDouble, kNaN, -kInf, 1234567890123456});
  EXPECT_EQ(TextOf(texts(numbers, 0)),
            "STRING\n1.5\n0.1\n1e+10\n1e+05\n123456\n1e-05\n0.333333333333333\n1e+15\n-1e-300\n0\n-\nNaN\n"
            "-Inf\n1234567890123456");
  EXPECT_EQ(TextOf(texts(r::Doubles({1e5, 1e-5}), 100)), "STRING\n100000\n0.00001");
}

TEST_F(RdsFrameTest, NamesOfRowsAreNoColumn) {
  const std::string named = r::DataFrame({{"x", r::Doubles({1, 2})}}, r::Texts({"first", "second"}));
  EXPECT_EQ(TextOf(named), "FP64 x\n1.0\n2.0");
  const Result<FileSummary> summary = SummaryOf(named, DataType::kFrame);
  ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  ASSERT_EQ(summary->warnings.size(), 1u);
  EXPECT_EQ(summary->warnings[0],
            "the names of the rows are left out: data.frame(name = rownames(x), x), in R, makes a column of "
            "them");
  for (const std::string& rows : {r::CountedRows(2), r::Integers({4, 7})}) {
    const Result<FileSummary> counted =
        SummaryOf(r::DataFrame({{"x", r::Doubles({1, 2})}}, rows), DataType::kFrame);
    ASSERT_TRUE(counted.ok()) << counted.status().ToString();
    EXPECT_TRUE(counted->warnings.empty());
  }
}

TEST_F(RdsFrameTest, TablesOfNumbersAreMatricesAndMatricesTables) {
  const std::string frame = r::DataFrame({{"a", r::Doubles({1.5, r::kNaDouble})},
                                          {"b", r::Integers({1, r::kNaInteger})},
                                          {"c", r::Logicals({1, 0})}},
                                         r::CountedRows(2));
  Put("x.rds", r::Rds(frame));
  ExpectCells(Read("x.rds"), 2, 3, {1.5, 1, 1, kNaN, kNaN, 0});
  const Result<FileSummary> summary = SummaryOf(frame, DataType::kMatrix);
  ASSERT_TRUE(summary.ok() && summary->table != nullptr) << summary.status().ToString();
  EXPECT_EQ(summary->table->ToText(), "FP64 a, INT32 b, BOOLEAN c");
  EXPECT_EQ(Fault("x.rds", {{"transposed", true}}),
            "cannot read 'x.rds': transposed=TRUE turns matrices, not tables\n"
            "t(read(FILE)) turns a table of numbers");
  const std::string names = r::List({r::Texts({"r1", "r2"}), r::Texts({"u", "v"})});
  const std::string matrix = r::Integers({1, 2, 3, 4}, {{"dim", r::Integers({2, 2})}, {"dimnames", names}});
  EXPECT_EQ(TextOf(matrix), "INT32 u, INT32 v\n1|3\n2|4");
  EXPECT_EQ(TextOf(r::Doubles({1, 2})), "FP64\n1.0\n2.0");
  const std::string inside = r::DataFrame(
      {{"m", matrix}, {"p", r::Doubles({5, 6, 7, 8}, r::Dim({2, 2}))}, {"x", r::Integers({9, 10})}},
      r::CountedRows(2));
  EXPECT_EQ(TextOf(inside),
            "INT32 m.u, INT32 m.v, FP64 p.1, FP64 p.2, INT32 x\n1|3|5.0|7.0|9\n2|4|6.0|8.0|10");
}

TEST_F(RdsFrameTest, ColumnsThatAreNoneAreNamed) {
  const auto fault = [&](const std::string& column) {
    return TextOf(r::DataFrame({{"x", r::Doubles({1, 2})}, {"y", column}}, r::CountedRows(2)));
  };
  EXPECT_EQ(
      fault(r::List({r::Null(), r::Null()})),
      "cannot read 'x.rds': column 'y' is a list, no vector\nleave it out, in R: x[sapply(x, is.atomic)]");
  EXPECT_EQ(fault(r::Doubles({1})), "cannot read 'x.rds': column 'y' has 1 rows, others 2");
  EXPECT_EQ(fault(r::Factor({1, 3}, {"a", "b"})),
            "cannot read 'x.rds': it is damaged: column 'y', row 2: there is no such level");
  EXPECT_EQ(fault(r::Integers({1, 2}, {{"class", r::Texts({"factor"})}})),
            "cannot read 'x.rds': it is damaged: column 'y' is a factor without levels");
  EXPECT_EQ(TextOf(r::List({r::Doubles({1})}, {{"names", r::Texts({"x", "y"})},
                                               {"class", r::Texts({"data.frame"})},
                                               {"row.names", r::CountedRows(1)}})),
            "cannot read 'x.rds': it is damaged: a data frame has other names than columns");
  EXPECT_EQ(TextOf(r::Doubles({1, 2}, r::Dim({1, 2, 1}))),
            "cannot read 'x.rds': it is an array of 3 indexes, a frame has two\n"
            "data_type=\"matrix\" reads it");
  EXPECT_EQ(fault(r::Texts({"a", "b"}, r::Dim({1, 2}))),
            "cannot read 'x.rds': column 'y' is a matrix of texts");
  EXPECT_EQ(TextOf(r::Texts({"a", "b"}, r::Dim({1, 2}))),
            "cannot read 'x.rds': it is a matrix of texts\nas.data.frame(x), in R, makes a data frame of it");
  const std::string texts =
      r::DataFrame({{"d", r::Doubles({1}, {{"class", r::Texts({"Date"})}})}}, r::CountedRows(1));
  Put("x.rds", r::Rds(texts));
  EXPECT_EQ(Fault("x.rds"),
            "cannot read 'x.rds': column 'd' holds dates, which are texts\n"
            "say data_type=\"frame\"; transformencode makes numbers of texts");
  EXPECT_EQ(TextOf(r::ColumnSparse("dgCMatrix", {1, 1}, {0, 1}, {0}, {1})),
            "cannot read 'x.rds': it is a sparse matrix, no data frame\ndata_type=\"matrix\" reads it");
  EXPECT_EQ(TextOf(r::DataFrame({{"x", r::Doubles({1})}}, r::CountedRows(1)), {{"schema", "STRING"}}),
            "cannot read 'x.rds': its columns have the types FP64, the schema says others");
}

// Whatever bytes are changed or cut off, there is a value or an error, and no more memory than what is there
// may need.
TEST_F(RdsFrameTest, DamagedFilesAreReadOrRefused) {
  const std::string names = r::List({r::Null(), r::Texts({"u", "v"})});
  const std::string frame = r::DataFrame(
      {{"n", r::Doubles({1.5, r::kNaDouble})},
       {"s", r::TextVector({r::Text("a b"), r::Missing()})},
       {"f", r::Factor({2, 1}, {"no", "yes"})},
       {"d", r::Doubles({19753, -1}, {{"class", r::Texts({"Date"})}})},
       {"c", r::Alternative("deferred_string", "base", r::Dotted(r::Sequence(2, 1, 1), r::Integers({0})))}},
      r::CountedRows(2));
  const std::string environment =
      r::Int(4) + r::Int(0) + r::Int(242) + r::PairsOf({{"dim", r::Integers({1})}}) + r::Null() + r::Null();
  const std::string inputs[] = {
      r::Rds(r::Integers({1, 2, 3, 4}, {{"dim", r::Integers({2, 2})}, {"dimnames", names}})), r::Rds(frame),
      r::Workspace({{"e", environment}, {"frame", frame}, {"x", r::Sequence(5, 1, 1)}}),
      r::Rds(r::ColumnSparse("dsCMatrix", {3, 3}, {0, 1, 2, 4}, {0, 0, 1, 2}, {1.5, 2, 3, 4}))};
  SeededRandom random(7);
  int read = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = inputs[random.Below(std::size(inputs))];
    for (uint64_t changes = 1 + random.Below(3); changes > 0; --changes) {
      const size_t at = random.Below(bytes.size());
      if (random.Below(8) == 0)
        bytes.resize(at);
      else if (random.Below(2) == 0)
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.Below(8));
      else
        bytes[at] = static_cast<char>(random.Below(256));
      if (bytes.empty()) break;
    }
    Put("x.rds", bytes);
    for (const bool is_frame : {false, true}) {
      Attributes attributes = {{"format", "rds"}, {"data_type", is_frame ? "frame" : "matrix"}};
      if (random.Below(2) == 0) attributes.emplace_back("dataset", "frame");
      Node node;
      for (auto& [key, value] : attributes) node.SetAttribute(key, value);
      const Status status = WithinMemory("a damaged file", [&]() -> Status {
        HEDDLE_ASSIGN_OR_RETURN(const ReadOptions options, ResolveReadOptions(node, "x.rds", *files_));
        HEDDLE_ASSIGN_OR_RETURN(const FileSummary summary, Summarize(options, *files_));
        if (summary.shape.Cells() > 1'000'000) return DataLoss("it says that it is large");
        return is_frame ? ReadFrameRows(options, summary, 0, summary.shape.rows, *files_).status()
                        : ReadRows(options, summary, 0, summary.shape.rows, *files_).status();
      });
      ++(status.ok() ? read : refused);
      ASSERT_NE(status.code(), StatusCode::kInternal) << status.ToString() << " in round " << round;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace heddle::ops
