// SPDX-License-Identifier: Apache-2.0
// Files of several chunks, read by several threads, beside a reading of one line after the other.
#include <nmmintrin.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>

#include "core/environment/random.h"
#include "ops/base/parallel.h"
#include "ops/io/checksums/crc32c.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class LargeFilesTest : public FormatsTest {
 protected:
  // Runs check() on one thread and on four.
  static void OnThreads(const std::function<void()>& check) {
    for (const int threads : {1, 4}) {
      SCOPED_TRACE(threads);
      Arena arena(threads);
      arena.Execute(check);
    }
  }
  // A number of any size and sign, of few digits or many.
  double AnyNumber() {
    switch (random_.Below(4)) {
      case 0: return static_cast<double>(random_.Below(100)) - 50;
      case 1: return static_cast<double>(random_.Below(1'000'000)) / 1000 - 500;
      case 2: return (static_cast<double>(random_.Next()) - 0x1p63) * 0x1p-70;
      default: break;
    }
    const auto x = std::bit_cast<double>(random_.Next());
    return std::isfinite(x) ? x : 1e-310;
  }

  SeededRandom random_{11};
};

// Cells in any order, some of them several times; they are added up in the order of the file.
TEST_F(LargeFilesTest, CellsInAnyOrderAreThoseOfTheFile) {
  for (const auto& [rows, columns] : {std::pair(int64_t{60'000}, int64_t{40}), {300, 250}, {200'000, 1}}) {
    SCOPED_TRACE(columns);
    std::map<std::pair<int64_t, int64_t>, double> cells;
    std::string lines;
    constexpr int64_t kLines = 150'000;
    for (int64_t k = 0; k < kLines; ++k) {
      const auto row = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(rows)));
      const auto column = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(columns)));
      const double value = AnyNumber();
      lines += fmt::format("{} {} {}{}\n", row + 1, column + 1, value, k % 7 == 0 ? " \r" : "");
      if (value == 0) continue;
      const auto [at, is_new] = cells.emplace(std::pair(row, column), value);
      if (!is_new) at->second += value;
    }
    Matrix expected = Make(rows, columns, std::vector<double>(static_cast<size_t>(rows * columns)));
    for (const auto& [place, value] : cells)
      expected.mutable_data()[place.first * columns + place.second] = value;
    Put("cells.ijv", lines);
    Put("cells.mtx", fmt::format("%%MatrixMarket matrix coordinate real general\n% of {} lines\n{} {} {}\n",
                                 kLines, rows, columns, kLines) +
                         lines);
    OnThreads([&] {
      std::filesystem::last_write_time(directory_ + "/cells.mtx",
                                       std::filesystem::file_time_type::clock::now());
      const Result<Matrix> text = Read("cells.ijv", {{"rows", rows}, {"cols", columns}, {"format", "text"}});
      ASSERT_TRUE(text.ok()) << text.status().ToString();
      EXPECT_TRUE(Matrix::SameCells(*text, expected));
      const Result<Matrix> market = Read("cells.mtx");
      ASSERT_TRUE(market.ok()) << market.status().ToString();
      EXPECT_TRUE(Matrix::SameCells(*market, expected));
    });
  }
}

TEST_F(LargeFilesTest, ArraysOfSymmetricMatricesGoDownTheirColumns) {
  constexpr int64_t kSize = 600;
  for (const std::string symmetry : {"general", "symmetric", "skew-symmetric"}) {
    SCOPED_TRACE(symmetry);
    Matrix expected = Make(kSize, kSize, std::vector<double>(kSize * kSize));
    std::string text = fmt::format("%%MatrixMarket matrix array real {}\n{} {}\n", symmetry, kSize, kSize);
    for (int64_t j = 0; j < kSize; ++j)
      for (int64_t i = symmetry == "general" ? 0 : j + (symmetry != "symmetric"); i < kSize; ++i) {
        const double value = AnyNumber();
        text += fmt::format("{}{}\n", i % 50 == 0 ? "\n% a comment\n" : "", value);
        expected.mutable_data()[i * kSize + j] = value;
        if (symmetry != "general" && i != j)
          expected.mutable_data()[j * kSize + i] = symmetry == "symmetric" || value == 0 ? value : -value;
      }
    Put("array.mtx", text);
    OnThreads([&] {
      std::filesystem::last_write_time(directory_ + "/array.mtx",
                                       std::filesystem::file_time_type::clock::now());
      const Result<Matrix> matrix = Read("array.mtx");
      ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
      EXPECT_TRUE(Matrix::SameCells(*matrix, expected));
    });
  }
}

TEST_F(LargeFilesTest, TheFirstFaultAmongCellsIsTold) {
  std::string lines;
  for (int64_t k = 1; k <= 200'000; ++k)
    lines += k == 150'001 ? "1 2\n" : k == 190'000 ? "x\n" : fmt::format("{} {} 1.5\n", k % 9 + 1, k % 7 + 1);
  Put("cells.ijv", lines);
  OnThreads([&] {
    EXPECT_EQ(Fault("cells.ijv", {{"format", "text"}}),
              "cannot read 'cells.ijv': line 150001: '1 2' is not row column value");
  });
}

TEST_F(LargeFilesTest, AnyRowsOfALibsvmFileAreThoseOfTheWhole) {
  for (const int64_t columns : {5, 400}) {
    SCOPED_TRACE(columns);
    constexpr int64_t kRows = 40'000;
    Matrix expected =
        Make(kRows, columns + 1, std::vector<double>(static_cast<size_t>(kRows * (columns + 1))));
    std::string text;
    for (int64_t i = 0; i < kRows; ++i) {
      if (i % 100 == 0) text += "# a comment\n\n";
      double* const cells = expected.mutable_data() + i * (columns + 1);
      cells[columns] = static_cast<double>(i % 3);
      text += fmt::format("{}", i % 3);
      for (int64_t j = static_cast<int64_t>(random_.Below(20)); j < columns;
           j += 1 + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(columns) / 5 + 1))) {
        cells[j] = AnyNumber();
        text += fmt::format(" {}:{}", j + 1, cells[j]);
      }
      text += "\n";
    }
    Put("rows.libsvm", text);
    OnThreads([&] {
      Node node;
      node.SetAttribute("format", Scalar("libsvm"));
      node.SetAttribute("cols", Scalar(columns));
      const ReadOptions options = *ResolveReadOptions(node, "rows.libsvm", *files_);
      const Result<FileSummary> summary = Summarize(options, *files_);
      ASSERT_TRUE(summary.ok()) << summary.status().ToString();
      for (const auto& [begin, end] : {std::pair(int64_t{0}, kRows),
                                       {0, 1},
                                       {17, kRows - 5},
                                       {9'999, 10'003},
                                       {kRows - 1, kRows},
                                       {3, 3}}) {
        const Result<Matrix> rows = ReadRows(options, *summary, begin, end, *files_);
        ASSERT_TRUE(rows.ok()) << rows.status().ToString();
        EXPECT_TRUE(Matrix::SameCells(*rows, expected.Rows(begin, end)));
      }
    });
  }
}

// Cuts a line of fields as the documentation has it, one character after the other.
std::vector<std::string> FieldsByHand(const std::string& line, char separator) {
  std::vector<std::string> fields(1);
  bool in_quotes = false, is_begun = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == separator && !in_quotes) {
      fields.emplace_back();
      is_begun = false;
      continue;
    }
    if (c == '"' && !is_begun) {
      is_begun = in_quotes = true;
      fields.back() = '"';  // Marks what is not trimmed.
      continue;
    }
    if (c == '"' && in_quotes) {
      if (i + 1 == line.size() || line[i + 1] != '"') {
        in_quotes = false;
        continue;
      }
      ++i;
    }
    is_begun = is_begun || c != ' ';
    fields.back() += c;
  }
  for (std::string& field : fields) {
    const bool is_quoted = field.starts_with('"');
    if (is_quoted) field.erase(0, 1);
    if (!is_quoted) field.erase(0, std::min(field.find_first_not_of(' '), field.size()));
    field.erase(field.find_last_not_of(' ') + 1);
  }
  return fields;
}

TEST_F(LargeFilesTest, FieldsOfFramesAreCutWhereverTheyStand) {
  const std::vector<std::string> words = {
      "a",    "",         "word", "\"a,b\"",    " blanks ",           "\"q\"\"r,\"",
      "12.5", "Zo\u00eb", "x\"y", "  \"c;d\" ", std::string(70, 'l'), "\t"};
  for (const char separator : {',', ';'}) {
    std::vector<std::vector<std::string>> expected;
    std::string text;
    for (int64_t i = 0; i < 60'000; ++i) {
      std::string line;
      for (int64_t j = 0; j < 4; ++j)
        line += (j > 0 ? std::string(1, separator) : "") + words[random_.Below(words.size() - 1)];
      expected.push_back(FieldsByHand(line, separator));
      text += line + (i % 5 == 0 ? "\r\n" : "\n");
    }
    Put("frame.csv", text);
    OnThreads([&] {
      const Result<Frame> frame =
          ReadFrame("frame.csv", {{"sep", std::string(1, separator)}, {"naStrings", "word"}});
      ASSERT_TRUE(frame.ok()) << frame.status().ToString();
      ASSERT_EQ(frame->rows(), 60'000);
      for (int64_t i = 0; i < frame->rows(); ++i) {
        const std::vector<std::string>& fields = expected[static_cast<size_t>(i)];
        ASSERT_EQ(frame->columns(), static_cast<int64_t>(fields.size()));
        for (int64_t j = 0; j < frame->columns(); ++j) {
          const std::string& field = fields[static_cast<size_t>(j)];
          const bool missing = field.empty() || field == "word";
          ASSERT_EQ(frame->IsMissing(i, j), missing) << i << " " << j;
          ASSERT_EQ(frame->At(i, j).AsString(), missing ? "" : field) << i << " " << j;
        }
      }
    });
  }
}

// Whatever number stands in a cell is read back bit for bit, in each format.
TEST_F(LargeFilesTest, NumbersSurviveInEveryFormat) {
  for (const auto& [rows, columns] : {std::pair(int64_t{20'000}, int64_t{7}), {1, 5000}, {3000, 1}}) {
    Matrix matrix = Make(rows, columns, std::vector<double>(static_cast<size_t>(rows * columns)));
    for (int64_t i = 0; i < rows * columns; ++i)
      if (random_.Below(3) > 0) matrix.mutable_data()[i] = AnyNumber();
    matrix.mutable_data()[0] = kNaN;
    matrix.mutable_data()[rows * columns / 2] = -kInf;
    matrix.mutable_data()[rows * columns - 1] = 4.9e-324;
    for (const FileFormat format : {FileFormat::kText, FileFormat::kMatrixMarket, FileFormat::kCsv,
                                    FileFormat::kLibsvm, FileFormat::kBinary}) {
      SCOPED_TRACE(Name(format));
      OnThreads([&] {
        WriteOptions options;
        options.format = format;
        ASSERT_TRUE(Write(matrix, "file", options).ok());
        const Result<Matrix> back = Read("file");
        ASSERT_TRUE(back.ok()) << back.status().ToString();
        EXPECT_TRUE(Matrix::SameCells(*back, matrix));
      });
    }
  }
}

TEST_F(LargeFilesTest, CsvOfFewNonzerosIsReadAsCsr) {
  constexpr int64_t kRows = 30'000, kColumns = 30;
  Matrix matrix = Make(kRows, kColumns, std::vector<double>(kRows * kColumns));
  for (int64_t i = 0; i < kRows * kColumns; ++i)
    if (random_.Below(10) == 0) matrix.mutable_data()[i] = AnyNumber();
  matrix.mutable_data()[5] = kNaN;
  OnThreads([&] {
    WriteOptions options;
    options.format = FileFormat::kCsv;
    ASSERT_TRUE(Write(matrix, "few.csv", options).ok());
    const Result<Matrix> back = Read("few.csv");
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_TRUE(back->IsSparse());
    EXPECT_TRUE(Matrix::SameCells(*back, matrix));
  });
}

TEST_F(LargeFilesTest, ChecksumsOfPartsAreThoseOfTheWhole) {
  std::string bytes(50'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_.Next());
  for (const size_t size : {0, 1, 8, 12'287, 12'288, 12'289, 24'576, 50'000}) {
    const std::string_view part(bytes.data(), size);
    uint32_t expected = ~0U;
    for (const char byte : part) expected = _mm_crc32_u8(expected, static_cast<uint8_t>(byte));
    EXPECT_EQ(Crc32c(part), ~expected) << size;
    EXPECT_EQ(Crc32c(part.substr(size / 3), Crc32c(part.substr(0, size / 3))), ~expected) << size;
  }
}

}  // namespace
}  // namespace heddle::ops
