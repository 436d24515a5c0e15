// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/shared_look.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/operator.h"
#include "ops/io/formats/share_rows.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using Attributes = std::vector<std::pair<std::string, Scalar>>;

// A file, how it is read, and whether something is wrong with it, which only a look at the whole can tell.
struct Sample {
  std::string name;
  std::string bytes;
  Attributes attributes = {};
  bool is_faulty = false;
};

const Scalar kCsv("csv"), kFrame("frame"), kYes(true);

std::vector<Sample> Samples() {
  return {
      {"csv", "1,2\n3,4\n5,6\n7,8\n"},
      {"csv_without_last_newline", "1,2\n3,4\n5,66"},
      {"csv_crlf", "1,2\r\n3,4\r\n\r\n"},
      {"csv_blank_end", "1,2\n3,4\n\n \n\n"},
      {"csv_one_line", "1,2,3,4,5,6,7,8,9,10,11,12,13,14"},
      {"csv_long_line", "1,2\n33333333333333333333333333333,4\n5,6\n"},
      {"csv_mark",
       "\xef\xbb\xbf"
       "1,2\n3,4\n"},
      {"csv_quotes", "\"1\",2\n3,\"4\n\"\n\"5\",\"6\"\n", {{"format", kCsv}}},
      {"csv_header", "a,\"b\nc\"\n1,2\n3,4\n", {{"format", kCsv}, {"header", kYes}}},
      {"csv_blank_separator", "1 2\n3 4\n \t\n", {{"format", kCsv}, {"sep", Scalar(" ")}}},
      {"csv_blank_line", "1,2\n\n3,4\n", {{"format", kCsv}}},  // The fault is in its rows, not in its size.
      {"csv_open_quote", "1,2\n\"3,4\n5,6\n", {{"format", kCsv}}, true},
      {"csv_empty", "", {{"format", kCsv}}, true},
      {"csv_names_alone", "a,b\n", {{"format", kCsv}, {"header", kYes}}, true},
      {"frame", "x,y\n\"a\nb\",1\n\"c\"\"\n\",2\n,\"\"\n", {{"data_type", kFrame}, {"header", kYes}}},
      {"frame_one_column", "a\n\n\"b\n\"\n\n\n", {{"data_type", kFrame}}},
      {"libsvm", "1 1:2 3:4\n# nothing\n\n0 2:1 # some\n1\n", {{"format", Scalar("libsvm")}}},
      {"libsvm_zero", "1 0:2 3:4\n0 2:1\n", {{"format", Scalar("libsvm")}}},
      {"libsvm_twice", "1 1:2\n0 2:1 2:3\n", {{"format", Scalar("libsvm")}}, true},
      {"cells", "1 1 2\n3 2 4.5\n% no\n2 7 -1\n3 1 0\n", {{"format", Scalar("text")}}},
      {"cells_twice", "5 1 2\n3 2 4.5\n5 1 0.5\n1 1 1\n5 1 1e-17\n", {{"format", Scalar("text")}}},
      {"cells_none", "0 0 0\n", {{"format", Scalar("text")}, {"rows", Scalar(3)}, {"cols", Scalar(2)}}},
      {"cells_malformed", "1 1 2\n3 x 4.5\n2 2 2\n", {{"format", Scalar("text")}}, true},
      {"mm", "%%MatrixMarket matrix coordinate real general\n% no\n6 5 3\n6 1 2\n1 5 3\n4 4 4\n"},
      {"mm_symmetric", "%%MatrixMarket matrix coordinate real symmetric\n5 5 3\n5 1 2\n4 2 3\n3 3 4\n"},
      {"mm_fewer", "%%MatrixMarket matrix coordinate real general\n6 5 4\n6 1 2\n1 5 3\n", {}, true},
      {"mm_array", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", {}, true},
      {"jsonl", "{\"a\": 1}\n{\"b\": \"x\", \"a\": 2}\n{\"c\": null}\n", {{"data_type", kFrame}}},
      {"jsonl_arrays", "[1, 2]\n[3, \"4\"]\n[5, 6]\n", {{"data_type", kFrame}, {"format", Scalar("jsonl")}}},
      {"jsonl_lengths", "[1, 2]\n[3, 4]\n[5]\n", {{"data_type", kFrame}, {"format", Scalar("jsonl")}}, true},
      {"jsonl_malformed",
       "{\"a\": 1}\n{\"a\" 2}\n",
       {{"data_type", kFrame}, {"format", Scalar("jsonl")}},
       true},
  };
}

class SharedLookTest : public FormatsTest {
 protected:
  Result<ReadOptions> Options(const Sample& sample, const std::string& name, int64_t chunk_bytes) {
    Node node;
    for (const auto& [key, value] : sample.attributes) node.SetAttribute(key, value);
    HEDDLE_ASSIGN_OR_RETURN(ReadOptions options, ResolveReadOptions(node, name, *files_));
    options.chunk_bytes = chunk_bytes;
    return options;
  }

  // What so many ranks make of a file together.
  void LookTogether(const ReadOptions& options, int64_t ranks) {
    std::vector<std::string> shares;
    for (int64_t rank = 0; rank < ranks; ++rank)
      shares.push_back(LookAtShare(options, {rank, ranks}, *files_));
    AddSummary(options, shares, *files_);
  }

  void ExpectSameSummary(const FileSummary& alone, const FileSummary& together) {
    EXPECT_EQ(together.shape, alone.shape);
    EXPECT_EQ(together.format, alone.format);
    EXPECT_EQ(together.stored, alone.stored);
    EXPECT_EQ(together.first_index, alone.first_index);
    EXPECT_EQ(together.chunk_offsets, alone.chunk_offsets);
    EXPECT_EQ(together.chunk_rows, alone.chunk_rows);
    EXPECT_EQ(together.chunk_lines, alone.chunk_lines);
    EXPECT_EQ(together.chunk_stored, alone.chunk_stored);
    ASSERT_EQ(together.chunk_row_ranges.size(), alone.chunk_row_ranges.size());
    EXPECT_EQ(together.text_bytes, alone.text_bytes);
    ASSERT_EQ(together.schema == nullptr, alone.schema == nullptr);
    if (alone.schema == nullptr) return;
    EXPECT_EQ(together.schema->ToText(), alone.schema->ToText());
  }

  // Every range of rows of the file that was looked at together is that of the whole of the other one.
  void ExpectSameRows(const ReadOptions& alone, const ReadOptions& together, const FileSummary& summary) {
    const int64_t rows = summary.shape.rows;
    if (alone.data_type == DataType::kFrame) {
      const Result<Frame> whole = ReadFrameRows(alone, summary, 0, rows, *files_);
      ASSERT_TRUE(whole.ok()) << whole.status().ToString();
      for (int64_t begin = 0; begin <= rows; ++begin)
        for (int64_t end = begin; end <= rows; ++end) {
          const Result<Frame> part = ReadFrameRows(together, summary, begin, end, *files_);
          ASSERT_TRUE(part.ok()) << part.status().ToString();
          EXPECT_TRUE(Frame::SameCells(whole->Rows(begin, end), *part)) << begin << " to " << end;
        }
      return;
    }
    const Result<Matrix> whole = ReadRows(alone, summary, 0, rows, *files_);
    for (int64_t begin = 0; begin <= rows; ++begin)
      for (int64_t end = begin; end <= rows; ++end) {
        const Result<Matrix> part = ReadRows(together, summary, begin, end, *files_);
        if (!whole.ok()) continue;  // Rows before the fault are read.
        ASSERT_TRUE(part.ok()) << part.status().ToString();
        EXPECT_TRUE(Matrix::SameCells(whole->Rows(begin, end), *part)) << begin << " to " << end;
      }
  }
};

// Whoever looks at which chunks, and however long they are: one answer, and every range of rows by it.
TEST_F(SharedLookTest, SharesGiveTheSummaryOfOneLook) {
  int number = 0;
  for (const Sample& sample : Samples()) {
    SCOPED_TRACE(sample.name);
    for (const int64_t chunk_bytes : {1, 3, 8, 1 << 20}) {
      for (const int64_t ranks : {1, 2, 3, 5, 40}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, chunks of " << chunk_bytes);
        // Names of their own: what is known of a file is kept by name and time.
        ++number;
        const std::string one = fmt::format("one{}", number), all = fmt::format("all{}", number);
        Put(one, sample.bytes);
        Put(all, sample.bytes);
        const Result<ReadOptions> alone = Options(sample, one, chunk_bytes);
        const Result<ReadOptions> together = Options(sample, all, chunk_bytes);
        ASSERT_TRUE(alone.ok()) << alone.status().ToString();
        EXPECT_TRUE(CanShareLook(*together));
        const Result<FileSummary> expected = Summarize(*alone, *files_);
        EXPECT_FALSE(IsSummarized(*together, *files_));
        LookTogether(*together, ranks);
        EXPECT_EQ(IsSummarized(*together, *files_), !sample.is_faulty);
        const Result<FileSummary> found = Summarize(*together, *files_);
        ASSERT_EQ(found.ok(), expected.ok()) << found.status().ToString() << expected.status().ToString();
        if (!found.ok()) {
          std::string message = found.status().message();
          for (size_t at; (at = message.find(all)) != std::string::npos;)
            message.replace(at, all.size(), one);
          EXPECT_EQ(message, expected.status().message());
          continue;
        }
        ExpectSameSummary(*expected, *found);
        ExpectSameRows(*alone, *together, *found);
      }
    }
  }
}

// The parts of a folder begin chunks, and those behind the first lose their line of names.
TEST_F(SharedLookTest, PartsOfAFolderAreSharedToo) {
  for (const std::string folder : {"one", "all"}) {
    std::filesystem::create_directory(directory_ + "/" + folder);
    Put(folder + "/part_1.csv", "a,b\n1,2\n3,\"4\n\"");
    Put(folder + "/part_2.csv", "a,b\n5,6\n");
    Put(folder + "/part_10.csv", "a,b\n7,8\n9,10\n");
  }
  const Sample sample{.name = "", .bytes = "", .attributes = {{"format", kCsv}, {"header", kYes}}};
  const ReadOptions alone = *Options(sample, "one", 4), together = *Options(sample, "all", 4);
  const Result<FileSummary> expected = Summarize(alone, *files_);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  EXPECT_EQ(expected->shape, (Shape{5, 2}));
  LookTogether(together, 3);
  ASSERT_TRUE(IsSummarized(together, *files_));
  const FileSummary found = *Summarize(together, *files_);
  ExpectSameSummary(*expected, found);
  ExpectSameRows(alone, together, found);
}

// A chunk of cells that has none in the rows of a rank is not read: its bytes may be anything by then.
TEST_F(SharedLookTest, CellsInOrderAreReadByTheirRows) {
  std::string cells;
  for (int row = 1; row <= 100; ++row) cells += fmt::format("{} 1 {}\n", row, row);
  Put("cells", cells);
  const Sample sample{.name = "", .bytes = "", .attributes = {{"format", Scalar("text")}}};
  const ReadOptions options = *Options(sample, "cells", 50);
  const FileSummary summary = *Summarize(options, *files_);
  ASSERT_GT(summary.chunk_row_ranges.size(), 10U);
  std::fstream file(directory_ + "/cells", std::ios::in | std::ios::out | std::ios::binary);
  file << "nothing";
  file.close();
  const Result<Matrix> rows = ReadRows(options, summary, 50, 60, *files_);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->data<double>()[0], 51);
  EXPECT_FALSE(ReadRows(options, summary, 0, 10, *files_).ok());
}

// A file that changes between the looks of two ranks is nobody's answer.
TEST_F(SharedLookTest, SharesOfDifferentSizesAreNoSummary) {
  Put("table", "1,2\n3,4\n");
  const Sample sample{.name = "", .bytes = "", .attributes = {{"format", kCsv}}};
  const ReadOptions options = *Options(sample, "table", 4);
  const std::string share = LookAtShare(options, {0, 2}, *files_);
  EXPECT_FALSE(share.empty());
  AddSummary(options, {share, ""}, *files_);
  EXPECT_FALSE(IsSummarized(options, *files_));
  AddSummary(options, {share, share.substr(1)}, *files_);
  EXPECT_FALSE(IsSummarized(options, *files_));
}

// However small a share is as a value, each rank has its own.
TEST_F(SharedLookTest, EveryRankLooksAtItsShare) {
  const Operator* const look = FindOperator("lookAtFile");
  ASSERT_NE(look, nullptr);
  Node node;
  node.op = "lookAtFile";
  EXPECT_EQ(RowRuleOf(node, {}), RowRule::kReduce);
  EXPECT_TRUE(look->files);
}

TEST(ShareRowsTest, BytesOfAllSharesArriveInTheirOrder) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  const std::vector<std::string> shares = {"", all_bytes + all_bytes, "x", std::string(180, '\xff'),
                                           std::string(181, 'y')};
  std::vector<Matrix> pieces;
  int64_t rows = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    pieces.push_back(*ShareAsRows(static_cast<int64_t>(i), shares[i]));
    rows += pieces.back().rows();
  }
  Matrix whole = *Matrix::Dense(rows, pieces[0].columns());
  int64_t row = rows;  // Rows may come in any order.
  for (const Matrix& piece : pieces)
    for (int64_t i = 0; i < piece.rows(); ++i)
      std::copy_n(piece.data<double>() + i * piece.columns(), piece.columns(),
                  whole.mutable_data() + --row * whole.columns());
  EXPECT_EQ(*SharesInRows(whole), shares);
  EXPECT_FALSE(SharesInRows(whole.Rows(1, rows)).ok());
}

}  // namespace
}  // namespace heddle::ops
