// SPDX-License-Identifier: Apache-2.0
// The functions of library/ on real data. cases/NAME.dml compares them with what other implementations
// computed (references/NAME.csv) and must print NAME.expected, byte for byte, however it runs.
// UPDATE_GOLDEN=1 writes NAME.expected when all ways print the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/all_plans.h"
#include "tests/support/process.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using testing_support::Finished;

const fs::path kFolder = HEDDLE_SOURCE_DIR "/tests/library";

// Threads, instructions, fusion and workers; tests/scripts has a pairwise cover of them for the operators
// that these functions are made of. Each case runs in the first and in half of the others.
const char* const kVariants[] = {
    "run --threads 2",
    "run --threads 1 --cpu avx2 --fusion off",
    "sim --workers 2 --threads 1 --cpu avx2,auto --min-distributed-bytes 0 --fusion-seed 2",
    "run --threads 2 --fusion all",
    "sim --workers 3 --threads 2 --min-distributed-bytes 0 --fusion off",
};

std::vector<std::string> Cases() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(kFolder / "cases"))
    if (entry.path().extension() == ".dml") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class LibraryCase : public testing::TestWithParam<std::string> {};

TEST_P(LibraryCase, AgreesWithTheReferenceHoweverItRuns) {
  const fs::path path = GetParam();
  const fs::path expected_path = fs::path(path).replace_extension(".expected");
  const bool updates = std::getenv("UPDATE_GOLDEN") != nullptr;
  std::optional<std::string> expected;
  if (!updates) expected = testing_support::ReadText(expected_path);
  const size_t step = updates ? 1 : 2;
  for (const std::string& variant : testing_support::WaysOf(path.stem().string(), kVariants, step)) {
    SCOPED_TRACE(variant);
    std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle"};
    for (const std::string& word : testing_support::SplitWords(variant)) words.push_back(word);
    words.push_back(fs::relative(path, kFolder));
    const Finished finished = testing_support::RunProcess(words, kFolder);
    ASSERT_EQ(finished.code, 0) << finished.errors;
    if (!expected) expected = finished.output;
    ASSERT_EQ(finished.output, *expected);
  }
  if (updates) testing_support::WriteText(expected_path, *expected);
}

INSTANTIATE_TEST_SUITE_P(Library, LibraryCase, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return fs::path(info.param).stem().string();
                         });

}  // namespace
}  // namespace heddle
