// SPDX-License-Identifier: Apache-2.0
// csv files between Heddle and other programs, in both directions: texts of any character, line ends, quotes,
// blanks, numbers that are texts. A program that this machine has not is skipped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/environment/random.h"
#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::ReadText;
using testing_support::RunProcess;
using testing_support::WriteText;

const char* const kBinary = HEDDLE_BINARY_DIR "/heddle";
constexpr int kRows = 200;
constexpr int kAbsent = 77;

struct Tool {
  const char* name;
  bool tells_missing;      // A missing text from an empty one.
  const char* no_letters;  // Characters that it does not keep.
  const char* name_of_a_column = "a \"name\", of\ntwo lines";
};

// Python may be another than the system's: HEDDLE_PYTHON.
std::string Python() {
  const char* const python = getenv("HEDDLE_PYTHON");
  return python == nullptr ? "/usr/bin/python3" : python;
}

std::vector<std::string> CommandOf(const Tool& tool, const std::string& source) {
  const std::string folder = HEDDLE_SOURCE_DIR "/tests/regression/";
  std::vector<std::string> words = {"/usr/bin/Rscript", "--vanilla", folder + "csv_interop.R"};
  if (std::string_view(tool.name) != "R") words = {Python(), folder + "csv_interop.py", tool.name};
  for (const std::string& word : {source, std::string("dump"), std::string("theirs")}) words.push_back(word);
  return words;
}

std::string FromHexadecimal(const std::string& digits) {
  std::string text;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return text;
}

class CsvInteropTest : public testing::TestWithParam<Tool> {
 protected:
  std::string AnyText() {
    static const std::string words[] = {"",      " ",    "\n",       "\"",     "\"\"", "1",     "007",
                                        "1e5",   "true", "NA",       "a,b",    "x\ny", " lead", "end ",
                                        "\"q\"", "5\"",  "Zo\u00eb", "a;b\tc", "NaN"};
    std::string text;
    if (random_.Below(2) == 0) {
      text = words[random_.Below(std::size(words))];
    } else {
      for (size_t length = random_.Below(8); length > 0; --length)
        text += static_cast<char>(1 + random_.Below(127));
    }
    for (const char c : std::string(GetParam().no_letters)) std::erase(text, c);
    return text;
  }

  nlohmann::ordered_json AnyTextOrNone() {
    if (random_.Below(5) == 0) return nullptr;
    return AnyText();
  }

  // Without blanks around it, if it is a text.
  static nlohmann::ordered_json Trimmed(const nlohmann::ordered_json& cell) {
    if (!cell.is_string()) return cell;
    std::string text = cell.get<std::string>();
    constexpr char kBlanks[] = " \t\r\f\v";
    text.erase(0, std::min(text.find_first_not_of(kBlanks), text.size()));
    text.erase(text.find_last_not_of(kBlanks) + 1);
    return text;
  }

  SeededRandom random_{5};
};

TEST_P(CsvInteropTest, CellsAreTheSameOnBothSides) {
  const Tool& tool = GetParam();
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/";
  std::vector<nlohmann::ordered_json> rows;
  std::string lines;
  for (int i = 0; i < kRows; ++i) {
    rows.push_back({{"text", AnyTextOrNone()},
                    {"i", static_cast<int>(random_.Below(1000)) - 500},
                    {tool.name_of_a_column, AnyTextOrNone()},
                    {"d", static_cast<double>(random_.Below(1000)) / 8 + 0.125},
                    {"007", AnyTextOrNone()}});
    lines += rows.back().dump() + "\n";
  }
  WriteText(path + "ours.jsonl", lines);
  const Finished written = RunProcess({kBinary, "convert", "ours.jsonl", "ours.csv"}, folder.path());
  ASSERT_EQ(written.code, 0) << written.errors;

  const std::vector<std::string> command = CommandOf(tool, "ours.csv");
  if (!std::filesystem::exists(command[0])) GTEST_SKIP() << tool.name << " is absent: no " << command[0];
  const Finished theirs = RunProcess(command, folder.path(), 300);
  if (theirs.code == kAbsent) GTEST_SKIP() << tool.name << " is absent: " << theirs.output;
  ASSERT_EQ(theirs.code, 0) << theirs.errors << theirs.output;

  // They read what we write.
  std::istringstream dump(ReadText(path + "dump"));
  int cells = 0, row = 0, column = 0;
  for (std::string line; std::getline(dump, line); ++cells) {
    std::istringstream words(line);
    std::string digits;
    words >> row >> column >> digits;
    const nlohmann::ordered_json& object = rows[row == 0 ? 0 : static_cast<size_t>(row) - 1];
    auto at = object.begin();
    std::advance(at, column);
    const std::string found = FromHexadecimal(digits == "-" ? "" : digits);
    if (row == 0) {
      EXPECT_EQ(found, at.key());
    } else if (at->is_number()) {
      EXPECT_EQ(std::stod(found), at->get<double>());
    } else {
      if (tool.tells_missing) {
        EXPECT_EQ(digits == "-", at->is_null()) << line;
      }
      ASSERT_EQ(found, at->is_null() ? "" : at->get<std::string>()) << row << " " << column;
    }
  }
  EXPECT_EQ(cells, (kRows + 1) * 5);

  // We read what they write.
  int files = 0;
  for (; std::filesystem::exists(fmt::format("{}theirs{}.csv", path, files)); ++files) {
    SCOPED_TRACE(files);
    const Finished read =
        RunProcess({kBinary, "convert", fmt::format("theirs{}.csv", files), "back.jsonl", "--schema",
                    "string,int,string,double,string", "--header", "TRUE", "--sep", ","},
                   folder.path());
    ASSERT_EQ(read.code, 0) << read.errors;
    std::istringstream back(ReadText(path + "back.jsonl"));
    std::string line;
    for (const nlohmann::ordered_json& expected : rows) {
      ASSERT_TRUE(std::getline(back, line));
      const auto found = nlohmann::ordered_json::parse(line);
      ASSERT_EQ(found.size(), expected.size());
      for (auto a = found.begin(), b = expected.begin(); a != found.end(); ++a, ++b) {
        ASSERT_EQ(a.key(), b.key());
        // Few write missing cells and empty texts differently in all their styles, or quote a text for its
        // blanks, which we trim then.
        const nlohmann::ordered_json trimmed = Trimmed(*b);
        const bool are_empty = (a->is_null() || *a == "") && (b->is_null() || trimmed == "");
        ASSERT_TRUE(*a == *b || *a == trimmed || are_empty) << line << "\n" << expected;
      }
    }
    EXPECT_FALSE(std::getline(back, line));
  }
  EXPECT_GT(files, 0);
}

// R reads a carriage return as the end of a line also within quotes, and pandas one that stands alone. Polars
// leaves doubled quotes in names as they are.
INSTANTIATE_TEST_SUITE_P(Tools, CsvInteropTest,
                         testing::Values(Tool{"csv", false, ""}, Tool{"pandas", false, "\r"},
                                         Tool{"polars", true, "", "a name, of\ntwo lines"},
                                         Tool{"R", false, "\r"}),
                         [](const auto& tool) { return std::string(tool.param.name); });

}  // namespace
}  // namespace heddle
