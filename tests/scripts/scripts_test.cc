// SPDX-License-Identifier: Apache-2.0
// Scripts end to end. Every case of tests/scripts/cases/NAME.dml must print NAME.expected, byte for byte,
// however it is run: one or two threads, AVX2 kernels, each optional pass left out, and as worker processes
// with everything distributed. A case NAME.args holds a script of the project and its arguments instead, with
// paths from the project's folder. UPDATE_GOLDEN=1 writes NAME.expected from the plain run.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;

// A pairwise cover of fusion modes, threads, instructions and workers; passes left out with several modes.
const char* const kVariants[] = {
    "run --threads 2 --fusion-strict",
    "run --threads 2 --cpu avx2 --fusion off",
    "run --threads 2 --cpu avx2 --fusion all --fusion-strict",
    "run --threads 1 --fusion no-redundancy --fusion-strict",
    "run --threads 1 --fusion-seed 1 --fusion-strict",
    "sim --workers 2 --threads 2 --cpu avx2 --min-distributed-bytes 0 --fusion-seed 2 --fusion-strict",
    "sim --workers 2 --threads 2 --cpu avx2 --min-distributed-bytes 0 --fusion no-redundancy --fusion-strict",
    "run --threads 1 --disable-pass share --fusion-seed 3",
    "run --threads 1 --disable-pass fold-constants --fusion all",
    "run --threads 1 --disable-pass inline-functions --disable-pass hoist --disable-pass remove-unread",
    "run --threads 1 --disable-pass remove-dead --fusion off",
    "sim --workers 2 --threads 1 --cpu avx2,auto --min-distributed-bytes 0 --fusion-strict",
    "sim --workers 3 --threads 1 --min-distributed-bytes 0 --fusion all --fusion-strict",
    "sim --workers 3 --threads 2 --min-distributed-bytes 0 --fusion off",
};

// The same for cells of floats, which have bytes of their own: the first run is what the others must print.
const char* const kSingleVariants[] = {
    "run --threads 1 --precision single --fusion off",
    "run --threads 2 --precision single --fusion-strict",
    "run --threads 2 --precision single --cpu avx2 --fusion all --fusion-strict",
    "run --threads 1 --precision single --fusion-seed 1 --fusion-strict",
    "sim --workers 3 --threads 1 --precision single --min-distributed-bytes 0 --fusion no-redundancy --fusion-strict",
};

// Everything: HEDDLE_ALL_PLANS=1 (deploy/test --all-plans).
std::vector<std::string> AllVariants() {
  std::vector<std::string> modes;
  for (const char* mode : {"off", "all", "no-redundancy", "cost"})
    modes.push_back(std::string("--fusion ") + mode);
  for (int seed = 1; seed <= 20; ++seed) modes.push_back("--fusion-seed " + std::to_string(seed));
  std::vector<std::string> cpus = {"avx2"};
  if (__builtin_cpu_supports("avx512f")) cpus.insert(cpus.end(), {"avx512", "avx2,avx512"});
  std::vector<std::string> variants;
  for (const std::string& mode : modes)
    for (const std::string& cpu : cpus)
      for (const char* threads : {"1", "2"})
        for (const char* verb : {"run", "sim --workers 3 --min-distributed-bytes 0"})
          variants.push_back(std::string(verb) + " --threads " + threads + " --cpu " + cpu + " " + mode +
                             " --fusion-strict -stats");
  return variants;
}

std::vector<std::string> Variants() {
  const char* all = std::getenv("HEDDLE_ALL_PLANS");
  if (all != nullptr && *all == '1') return AllVariants();
  return {std::begin(kVariants), std::end(kVariants)};
}

// The fused operators of a run, from the table that -stats prints: what tells two plans apart.
std::string FusedOperators(const std::string& statistics) {
  const size_t begin = statistics.find("Fused operator ");
  if (begin == std::string::npos) return "";
  std::set<std::string> labels;
  std::istringstream lines(statistics.substr(statistics.find('\n', begin) + 1));
  for (std::string line; std::getline(lines, line) && line.size() > 24;)
    labels.insert(line.substr(0, line.find("  ")));
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : "; ") + label;
  return text;
}

class ScriptCase : public testing::TestWithParam<std::string> {};

// The words after the options: the script of a case and its arguments.
std::vector<std::string> ScriptOf(const std::filesystem::path& path) {
  if (path.extension() != ".args") return {path.string()};
  std::string line = testing_support::ReadText(path);
  line.resize(line.find('\n'));
  return testing_support::SplitWords(line);
}

Finished RunVariant(const std::string& variant, const std::vector<std::string>& script) {
  std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle"};
  for (const std::string& word : testing_support::SplitWords(variant)) words.push_back(word);
  words.insert(words.end(), script.begin(), script.end());
  return testing_support::RunProcess(words, HEDDLE_SOURCE_DIR);
}

TEST_P(ScriptCase, PrintsTheSameBytesHoweverItRuns) {
  const std::filesystem::path path = GetParam();
  const std::string expected_path = std::filesystem::path(path).replace_extension(".expected");
  const std::vector<std::string> script = ScriptOf(path);
  std::set<std::string> plans;
  for (const std::string& variant : Variants()) {
    SCOPED_TRACE(variant);
    const Finished finished = RunVariant(variant, script);
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      testing_support::WriteText(expected_path, finished.output);
      break;
    }
    ASSERT_EQ(finished.code, 0) << finished.errors;
    ASSERT_EQ(finished.output, testing_support::ReadText(expected_path));
    if (variant.ends_with("-stats")) plans.insert(FusedOperators(finished.errors));
  }
  if (plans.empty()) return;
  std::printf("%zu distinct sets of fused operators\n", plans.size());
  for (const std::string& plan : plans) std::printf("  %s\n", plan.c_str());
}

TEST_P(ScriptCase, PrintsTheSameBytesInSinglePrecision) {
  const std::vector<std::string> script = ScriptOf(GetParam());
  std::string expected;
  for (const std::string variant : kSingleVariants) {
    SCOPED_TRACE(variant);
    const Finished finished = RunVariant(variant, script);
    ASSERT_EQ(finished.code, 0) << finished.errors;
    if (variant == kSingleVariants[0]) expected = finished.output;
    ASSERT_EQ(finished.output, expected);
  }
}

std::vector<std::string> Cases() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/scripts/cases"))
    if (entry.path().extension() == ".dml" || entry.path().extension() == ".args")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Scripts, ScriptCase, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return std::filesystem::path(info.param).stem().string();
                         });

}  // namespace
}  // namespace heddle
