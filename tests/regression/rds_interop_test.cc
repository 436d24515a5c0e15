// SPDX-License-Identifier: Apache-2.0
// Files that R writes, read by Heddle: every cell is the one that R has. Skipped where R is absent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/process.h"
#include "tests/support/r_objects.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::ReadText;
using testing_support::RunProcess;
using testing_support::WriteText;

const char* const kBinary = HEDDLE_BINARY_DIR "/heddle";
const char* const kR = "/usr/bin/Rscript";

std::string FromHexadecimal(const std::string& digits) {
  std::string text;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return text;
}

std::vector<std::vector<std::string>> WaysToRun(const std::string& script) {
  return {{kBinary, "run", script},
          {kBinary, "sim", "--workers", "3", "--min-distributed-bytes", "0", script}};
}

// A cell that R has, by its kind and text.
bool IsSame(const nlohmann::ordered_json& found, const std::string& kind, const std::string& text) {
  if (kind == "-") return found.is_null();
  if (kind == "b") return found.is_boolean() && found.get<bool>() == (text == "TRUE");
  if (kind == "t") return found.is_string() && found.get<std::string>() == text;
  if (found.is_number_integer()) return std::to_string(found.get<int64_t>()) == text;
  return found.is_number() && found.get<double>() == std::stod(text);
}

// Without R: a matrix, and a table, each of more rows than a worker takes at once.
TEST(RdsFilesTest, AreReadInOneProcessOnWorkersAndByTheVerbsForFiles) {
  namespace r = testing_support::r;
  constexpr int kRows = 20'000;
  std::vector<double> cells;
  std::vector<int32_t> codes;
  for (int i = 0; i < 2 * kRows; ++i) cells.push_back(i);
  for (int i = 0; i < kRows; ++i) codes.push_back(i % 3 == 2 ? r::kNaInteger : i % 3 + 1);
  const testing_support::TemporaryFolder folder;
  const std::string names = r::List({r::Null(), r::Texts({"u", "v"})});
  WriteText(folder.path() + "/m.rds",
            r::Rds(r::Doubles(cells, {{"dim", r::Integers({kRows, 2})}, {"dimnames", names}})));
  WriteText(
      folder.path() + "/w.RData",
      r::Workspace(
          {{"f", r::DataFrame({{"id", r::Sequence(kRows, 1, 1)}, {"kind", r::Factor(codes, {"a", "b"})}},
                              r::CountedRows(kRows))},
           {"n", r::Integers({kRows})}}));
  WriteText(folder.path() + "/read.dml", R"(X = read("m.rds")
print(toString(colSums(X)))
F = read("w.RData", data_type="frame", dataset="f")
[E, M] = transformencode(target=F, spec="{ids: true, recode: [2]}")
print(sum(E[, 1]) + " " + sum(replace(target=E[, 2], pattern=NaN, replacement=0)))
print(as.scalar(F[20000, 2]) + " " + as.scalar(read("w.RData", dataset="n")))
)");
  for (const std::vector<std::string>& words : WaysToRun("read.dml")) {
    const Finished run = RunProcess(words, folder.path());
    EXPECT_EQ(run.code, 0) << run.errors;
    EXPECT_EQ(run.output, "199990000.000 599990000.000\n\n2.0001E8 20001.0\nb 20000.0\n") << words[1];
  }
  const Finished converted = RunProcess({kBinary, "convert", "m.rds", "m.csv"}, folder.path());
  EXPECT_EQ(converted.code, 0) << converted.errors;
  EXPECT_EQ(ReadText(folder.path() + "/m.csv").substr(0, 27), "u,v\n0.0,20000.0\n1.0,20001.0");
  const Finished inspected = RunProcess({kBinary, "inspect", "--dataset", "f", "w.RData"}, folder.path());
  EXPECT_EQ(inspected.code, 0) << inspected.errors;
  EXPECT_NE(inspected.output.find("frame of 20000 rows and 2 columns"), std::string::npos)
      << inspected.output;
  EXPECT_NE(inspected.output.find("read(\"w.RData\", dataset=\"f\", data_type=\"frame\")"), std::string::npos)
      << inspected.output;
  const Finished refused = RunProcess({kBinary, "convert", "m.csv", "back.rds"}, folder.path());
  EXPECT_EQ(refused.code, 3) << refused.errors;
  EXPECT_NE(refused.errors.find("files of format 'rds' are read, not written"), std::string::npos)
      << refused.errors;
}

class RdsInteropTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kR)) GTEST_SKIP() << "R is absent: no " << kR;
    const Finished written =
        RunProcess({kR, "--vanilla", HEDDLE_SOURCE_DIR "/tests/regression/rds_interop.R", folder_.path()},
                   folder_.path(), 300);
    ASSERT_EQ(written.code, 0) << written.errors << written.output;
  }
  // The names of the files with this ending, without it.
  std::vector<std::string> Names(const std::string& ending) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().extension() == ending) names.push_back(entry.path().stem());
    return names;
  }
  std::string FileOf(const std::string& name) const {
    const bool is_workspace = std::filesystem::exists(folder_.path() + "/" + name + ".RData");
    return name + (is_workspace ? ".RData" : ".rds");
  }
  const testing_support::TemporaryFolder folder_;
};

TEST_F(RdsInteropTest, EveryCellOfEveryTableIsTheOneOfR) {
  const std::vector<std::string> names = Names(".cells");
  ASSERT_GE(names.size(), 6u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Finished read =
        RunProcess({kBinary, "convert", FileOf(name), "back.jsonl", "--data-type", "frame"}, folder_.path());
    ASSERT_EQ(read.code, 0) << read.errors;
    std::vector<nlohmann::ordered_json> rows;
    std::istringstream back(ReadText(folder_.path() + "/back.jsonl"));
    for (std::string line; std::getline(back, line);) rows.push_back(nlohmann::ordered_json::parse(line));
    ASSERT_FALSE(rows.empty());
    std::istringstream expected(ReadText(folder_.path() + "/" + name + ".cells"));
    size_t cells = 0;
    for (std::string line; std::getline(expected, line); ++cells) {
      std::istringstream words(line);
      size_t row = 0, column = 0;
      std::string kind, digits;
      words >> row >> column >> kind >> digits;
      const std::string text = FromHexadecimal(digits);
      ASSERT_LE(row, rows.size());
      auto cell = rows[row == 0 ? 0 : row - 1].begin();
      ASSERT_LT(column, rows[0].size());
      std::advance(cell, column);
      if (row == 0)
        EXPECT_EQ(cell.key(), text);
      else
        ASSERT_TRUE(IsSame(*cell, kind, text)) << line << ": '" << text << "' and " << *cell;
    }
    EXPECT_EQ(cells, (rows.size() + 1) * rows[0].size());
  }
}

// In one process and on three workers, each of which reads its own rows.
TEST_F(RdsInteropTest, MatricesAreTheOnesOfROnWorkersToo) {
  const std::vector<std::string> names = Names(".sum");
  ASSERT_GE(names.size(), 2u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    WriteText(folder_.path() + "/sum.dml",
              fmt::format("X = read(\"{}\")\nprint(sum(X * (seq(1, nrow(X)) %*% t(seq(1, ncol(X))))))\n",
                          FileOf(name)));
    const double expected = std::stod(ReadText(folder_.path() + "/" + name + ".sum"));
    for (const std::vector<std::string>& words : WaysToRun("sum.dml")) {
      const Finished run = RunProcess(words, folder_.path());
      ASSERT_EQ(run.code, 0) << run.errors;
      EXPECT_EQ(std::stod(run.output), expected) << words[1];
    }
  }
}

}  // namespace
}  // namespace heddle
