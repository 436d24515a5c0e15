// SPDX-License-Identifier: Apache-2.0
// Scripts with compress() print what they print without it, and say what they have done.
#include <gtest/gtest.h>

#include <regex>

#include "tests/scripts/script_case.h"

namespace heddle {
namespace {

using testing_support::Finished;

Finished Heddle(std::vector<std::string> words) {
  words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
  return testing_support::RunProcess(words, testing_support::TemporaryFolder().path());
}

TEST(CompressionTest, ScriptsPrintWhatTheyPrintWithoutIt) {
  int scripts = 0;
  for (const std::string& path : ScriptCases()) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (!name.starts_with("compress_") || !name.ends_with(".dml")) continue;
    const std::string text = testing_support::ReadText(path);
    if (text.find("[C, M]") != std::string::npos) continue;
    const std::string without = std::regex_replace(text, std::regex("\\b(de)?compress\\("), "(");
    const Finished expected = Heddle({"run", "-e", without});
    EXPECT_EQ(expected.code, 0) << expected.errors;
    EXPECT_EQ(Heddle({"run", "-e", text}).output, expected.output) << name;
    EXPECT_EQ(Heddle({"run", "--compress", "auto", "-e", without}).output, expected.output) << name;
    ++scripts;
  }
  EXPECT_GE(scripts, 2);
}

constexpr const char* kScript =
    "X = floor(rand(rows=100000, cols=10, min=0, max=9, seed=1))\nC = compress(X)\nv = seq(1, 10)\n"
    "for (i in 1:3) v = v + t(C) %*% (C %*% v) / 1e9\nprint(sum(v))";

TEST(CompressionTest, StatisticsTellWhatWasStored) {
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"run"}, {"sim", "--workers", "2", "--min-distributed-bytes", "0"}}) {
    std::vector<std::string> words = verb;
    words.insert(words.end(), {"-stats", "-e", kScript});
    const Finished finished = Heddle(words);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    const std::string all = finished.output + finished.errors;
    const std::string line = "compressed in line 2 of -e: ";
    ASSERT_NE(all.find(line), std::string::npos) << all;
    const std::string rest = all.substr(all.find(line));
    EXPECT_NE(rest.substr(0, rest.find('\n')).find(" times smaller) in 0."), std::string::npos) << rest;
  }
}

TEST(CompressionTest, ExplainSaysTheSameBeforeItRuns) {
  const Finished finished = Heddle({"explain", "--level", "compression", "-e", kScript});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_NE(finished.output.find("compress() in line 2: C, 100000x10, 8.0 MB\n"), std::string::npos)
      << finished.output;
  EXPECT_NE(finished.output.find(" times smaller): 10 columns in "), std::string::npos) << finished.output;
  const Finished automatic = Heddle({"explain", "--compress", "auto", "-e", kScript});
  EXPECT_EQ(automatic.code, 0) << automatic.errors;
}

}  // namespace
}  // namespace heddle
