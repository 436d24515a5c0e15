// SPDX-License-Identifier: Apache-2.0
// Ranks that read a file of cells together: each parses its share and sends the cells to who keeps their
// rows.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/process.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

using testing_support::TemporaryFolder;

ScriptOutcome RunOver(int ranks, const std::string& folder, const std::string& text,
                      ElementType type = ElementType::kFloat64) {
  SessionOptions options = SplitOver(ranks, 2);
  options.element_type = type;
  Stretch stretch;
  stretch.folders.assign(static_cast<size_t>(ranks), folder);
  return RunProgram(CompileOrDie(text), options, &stretch);
}

// Cells in the order of the columns, some of them twice.
std::string CellsByColumn(int rows, int columns) {
  std::string text;
  for (int j = 1; j <= columns; ++j)
    for (int i = 1; i <= rows; ++i) {
      if ((i * j) % 3 == 0) continue;
      text += fmt::format("{} {} {}\n", i, j, i / 7.0 - j);
      if ((i + j) % 50 == 0) text += fmt::format("{} {} 1e-15\n", i, j);
    }
  return text;
}

TEST(SentCellsTest, OutputsAreThoseOfOneProcess) {
  const TemporaryFolder folder;
  const std::string script =
      "X = read(\"x.ijv\", format=\"text\")\nprint(sum(X * seq(1, nrow(X))))\n"
      "print(sum(X[7,] %*% t(X[3,])))\n"
      "write(X, \"out\", format=\"csv\")\n";
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32})
    for (const int columns : {5, 200}) {
      std::ofstream(folder.path() + "/x.ijv") << CellsByColumn(600, columns);
      std::string output;
      for (const int ranks : {1, 2, 3, 5}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, " << columns << " columns");
        const ScriptOutcome outcome = RunOver(ranks, folder.path(), script, type);
        ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
        const std::string now = outcome.output + testing_support::ReadText(folder.path() + "/out");
        EXPECT_TRUE(ranks == 1 || now == output);
        output = now;
      }
    }
}

// Each of two ranks parses a half of such a file, and sends a half of that; of a file in the order of its
// rows each reads its part.
TEST(SentCellsTest, RanksReadAFileInTheOrderOfItsRowsForThemselves) {
  constexpr int kRows = 800, kColumns = 400;
  const TemporaryFolder folder;
  std::ofstream by_columns(folder.path() + "/columns.ijv"), by_rows(folder.path() + "/rows.ijv");
  for (int j = 1; j <= kColumns; ++j)
    for (int i = 1; i <= kRows; ++i) by_columns << i << ' ' << j << " 0.125\n";
  for (int i = 1; i <= kRows; ++i)
    for (int j = 1; j <= kColumns; ++j) by_rows << i << ' ' << j << " 0.125\n";
  by_columns.close();
  by_rows.close();
  const auto bytes_from_others = [&](const std::string& name) {
    const ScriptOutcome outcome =
        RunOver(2, folder.path(), "print(sum(read(\"" + name + "\", format=\"text\")))");
    EXPECT_EQ(outcome.output, "40000.0\n") << outcome.status.ToString();
    int64_t bytes = 0;
    for (const SessionStatistics& rank : outcome.statistics) bytes += rank.operators.at("read").bytes_in;
    return bytes;
  };
  const int64_t cells = int64_t{kRows} * kColumns / 2 * 16;
  EXPECT_GE(bytes_from_others("columns.ijv"), cells * 9 / 10);
  EXPECT_LE(bytes_from_others("columns.ijv"), cells * 11 / 10);
  EXPECT_LE(bytes_from_others("rows.ijv"), cells / 10);
}

// A malformed line is told alike, whoever meets it.
TEST(SentCellsTest, TheFirstMalformedLineIsTold) {
  const TemporaryFolder folder;
  const std::string cells = CellsByColumn(600, 5);
  std::ofstream(folder.path() + "/x.ijv") << cells << "1 one 2\n" << cells << "1 two 3\n";
  std::string told;
  for (const int ranks : {1, 2, 3}) {
    const ScriptOutcome outcome =
        RunOver(ranks, folder.path(), "print(sum(read(\"x.ijv\", format=\"text\")))");
    EXPECT_NE(outcome.status.message().find("'1 one 2' is not row column value"), std::string::npos)
        << outcome.status.ToString();
    EXPECT_TRUE(ranks == 1 || outcome.status.ToString() == told) << outcome.status.ToString();
    told = outcome.status.ToString();
  }
}

}  // namespace
}  // namespace heddle::engine
