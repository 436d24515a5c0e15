// SPDX-License-Identifier: Apache-2.0
// Scripts end to end. Every case of tests/scripts/cases/NAME.dml must print NAME.expected, byte for byte, however it is run:
// one or two threads, AVX2 kernels, each optional pass left out, and as worker processes with everything distributed.
// A case NAME.args holds a script of the project and its arguments instead, with paths from the project's folder.
// UPDATE_GOLDEN=1 writes NAME.expected from the plain run.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;

const char* const kVariants[] = {
    "run --threads 1",
    "run --threads 2",
    "run --threads 2 --cpu avx2",
    "run --threads 1 --disable-pass rules",
    "run --threads 1 --disable-pass share",
    "run --threads 1 --disable-pass fold-constants",
    "run --threads 1 --disable-pass remove-dead",
    "sim --workers 2 --threads 1 --min-distributed-bytes 0",
    "sim --workers 3 --threads 1 --min-distributed-bytes 0",
};

class ScriptCase : public testing::TestWithParam<std::string> {};

TEST_P(ScriptCase, PrintsTheSameBytesHoweverItRuns) {
  const std::filesystem::path path = GetParam();
  const std::string expected_path = std::filesystem::path(path).replace_extension(".expected");
  std::vector<std::string> script = {path.string()};
  if (path.extension() == ".args") {
    std::string line = testing_support::ReadText(path);
    line.resize(line.find('\n'));
    script = testing_support::SplitWords(line);
  }
  for (const char* variant : kVariants) {
    SCOPED_TRACE(variant);
    std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle"};
    for (const std::string& word : testing_support::SplitWords(variant)) words.push_back(word);
    words.insert(words.end(), script.begin(), script.end());
    const Finished finished = testing_support::RunProcess(words, HEDDLE_SOURCE_DIR);
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      testing_support::WriteText(expected_path, finished.output);
      break;
    }
    ASSERT_EQ(finished.code, 0) << finished.errors;
    ASSERT_EQ(finished.output, testing_support::ReadText(expected_path));
  }
}

std::vector<std::string> Cases() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/scripts/cases"))
    if (entry.path().extension() == ".dml" || entry.path().extension() == ".args") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Scripts, ScriptCase, testing::ValuesIn(Cases()), [](const testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().string();
});

}  // namespace
}  // namespace heddle
