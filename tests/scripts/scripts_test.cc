// SPDX-License-Identifier: Apache-2.0
// Scripts end to end. Every case of tests/scripts/cases/NAME.dml must print NAME.expected, byte for byte,
// however it is run: one or two threads, AVX2 kernels, each optional pass left out, in panels, and as worker
// processes with everything distributed. Each case runs in a third of these ways and each way runs a third of
// the cases, with HEDDLE_ALL_PLANS=1 all of them. UPDATE_GOLDEN=1 writes NAME.expected when all ways
// print the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "tests/scripts/script_case.h"
#include "tests/support/all_plans.h"

namespace heddle {
namespace {

using testing_support::Finished;

// A pairwise cover of fusion modes, threads, instructions and workers; passes left out with several modes.
const char* const kVariants[] = {
    "run --threads 2 --fusion-strict",
    "run --threads 2 --cpu avx2 --fusion off --disable-pass recursion",
    "run --threads 2 --cpu avx2 --fusion all --fusion-strict",
    "run --threads 1 --fusion no-redundancy --fusion-strict --panel-bytes 20k",
    "run --threads 1 --fusion-seed 1 --fusion-strict",
    "sim --workers 2 --threads 2 --cpu avx2 --min-distributed-bytes 0 --fusion-seed 2 --fusion-strict",
    "sim --workers 2 --threads 2 --cpu avx2 --min-distributed-bytes 0 --fusion no-redundancy --fusion-strict",
    "run --threads 1 --disable-pass share --fusion-seed 3",
    "run --threads 1 --disable-pass fold-constants --fusion all",
    "run --threads 1 --disable-pass inline-functions --disable-pass hoist --disable-pass remove-unread",
    "run --threads 1 --disable-pass remove-dead --fusion off",
    "sim --workers 2 --threads 1 --cpu avx2,auto --min-distributed-bytes 0 --fusion-strict",
    "sim --workers 3 --threads 1 --min-distributed-bytes 0 --fusion all --fusion-strict",
    "sim --workers 3 --threads 2 --min-distributed-bytes 0 --fusion off --panel-bytes 100k",
};

// Of every script in single precision: each value of an option occurs, with few more runs than fusion modes.
// What two options do together is the same code in both precisions.
const char* const kSingleVariants[] = {
    "run --threads 2 --fusion-strict",
    "run --threads 2 --cpu avx2 --fusion off --disable-pass recursion",
    "run --threads 1 --disable-pass share --disable-pass fold-constants --fusion all",
    "run --threads 1 --disable-pass inline-functions --disable-pass hoist --disable-pass remove-unread "
    "--disable-pass remove-dead --fusion no-redundancy",
    "sim --workers 2 --threads 2 --cpu avx2 --min-distributed-bytes 0 --fusion-seed 2 --fusion-strict",
    "sim --workers 3 --threads 1 --min-distributed-bytes 0 --fusion all --fusion-strict --panel-bytes 50k",
    "sim --workers 2 --threads 1 --cpu avx2,auto --min-distributed-bytes 0 --fusion-strict",
};

// Everything, for deploy/test --all-plans.
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
                             " --fusion-strict");
  return variants;
}

// How many of the cases share out the ways among themselves.
constexpr size_t kStep = 3;

// `updates`: what is expected is written anew, and must be what all of them print.
std::vector<std::string> Variants(const std::filesystem::path& path, bool updates) {
  if (testing_support::RunsQuickly()) return {kVariants[0], kVariants[1], kVariants[5]};
  std::vector<std::string> variants =
      testing_support::WaysOf(path.stem().string(), kVariants, updates ? 1 : kStep);
  if (!testing_support::RunsAllPlans()) return variants;
  const std::vector<std::string> all = AllVariants();
  variants.insert(variants.end(), all.begin(), all.end());
  return variants;
}

std::vector<std::string> SingleVariants(const std::filesystem::path& path) {
  if (testing_support::RunsQuickly()) return Variants(path, /*updates=*/false);
  return testing_support::WaysOf(path.stem().string(), kSingleVariants, kStep);
}

class ScriptCase : public testing::TestWithParam<std::string> {};

TEST_P(ScriptCase, PrintsTheSameBytesHoweverItRuns) {
  const std::filesystem::path path = GetParam();
  const std::string expected_path = std::filesystem::path(path).replace_extension(".expected");
  // What all ways print, when it is written anew.
  const bool updates = std::getenv("UPDATE_GOLDEN") != nullptr;
  std::optional<std::string> expected;
  if (!updates) expected = testing_support::ReadText(expected_path);
  for (const std::string& variant : Variants(path, updates)) {
    SCOPED_TRACE(variant);
    const Finished finished = RunCase(variant, path);
    ASSERT_EQ(finished.code, 0) << finished.errors;
    if (!expected) expected = finished.output;
    ASSERT_EQ(finished.output, *expected);
  }
  if (updates) testing_support::WriteText(expected_path, *expected);
}

// Cells of floats have bytes of their own: the first run is what the others must print.
TEST_P(ScriptCase, PrintsTheSameBytesInSinglePrecision) {
  std::optional<std::string> expected;
  for (const std::string& variant : SingleVariants(GetParam())) {
    SCOPED_TRACE(variant);
    const Finished finished = RunCase(variant + " --precision single", GetParam());
    ASSERT_EQ(finished.code, 0) << finished.errors;
    if (!expected) expected = finished.output;
    ASSERT_EQ(finished.output, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Scripts, ScriptCase, testing::ValuesIn(ScriptCases()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return std::filesystem::path(info.param).stem().string();
                         });

// What variants differ in. Every two values of two of these must meet in one of them.
const std::map<std::string, std::vector<std::string>> kOptions = {
    {"verb", {"run", "sim"}},
    {"--fusion", {"off", "all", "no-redundancy", "cost", "seed"}},
    {"--cpu", {"avx2", "auto"}},
    {"--threads", {"1", "2"}},
};

// "--fusion off" and the like. Where ranks differ in their instructions, both occur.
std::set<std::string> SettingsOf(const std::string& variant) {
  std::map<std::string, std::string> values = {{"--fusion", "cost"}, {"--cpu", "auto"}};
  const std::vector<std::string> words = testing_support::SplitWords(variant);
  values["verb"] = words[0];
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "--fusion-seed")
      values["--fusion"] = "seed";
    else if (kOptions.contains(words[i]))
      values[words[i]] = words[i + 1];
  }
  std::set<std::string> settings;
  for (const auto& [option, value] : values) {
    std::istringstream of_ranks(value);
    for (std::string one; std::getline(of_ranks, one, ',');) settings.insert(option + " " + one);
  }
  return settings;
}

TEST(VariantsTest, EveryTwoValuesOfTwoOptionsMeet) {
  std::vector<std::set<std::string>> variants;
  for (const char* variant : kVariants) variants.push_back(SettingsOf(variant));
  int pairs = 0;
  for (auto one = kOptions.begin(); one != kOptions.end(); ++one) {
    for (auto other = std::next(one); other != kOptions.end(); ++other) {
      for (const std::string& value : one->second) {
        for (const std::string& other_value : other->second) {
          const std::string a = one->first + " " + value, b = other->first + " " + other_value;
          const auto has_both = [&](const std::set<std::string>& settings) {
            return settings.contains(a) && settings.contains(b);
          };
          EXPECT_TRUE(std::any_of(variants.begin(), variants.end(), has_both))
              << "no variant has " << a << " and " << b;
          ++pairs;
        }
      }
    }
  }
  EXPECT_EQ(pairs, 3 * 5 * 2 + 3 * 2 * 2);
}

TEST(VariantsTest, EveryValueAndEveryPassOccursInSinglePrecision) {
  std::set<std::string> settings, passes, passes_of_all;
  for (const char* variant : kSingleVariants) settings.merge(SettingsOf(variant));
  for (const auto& [option, values] : kOptions)
    for (const std::string& value : values)
      EXPECT_TRUE(settings.contains(option + " " + value)) << option << " " << value;
  const auto add_passes = [](const std::string& variant, std::set<std::string>* passes) {
    const std::vector<std::string> words = testing_support::SplitWords(variant);
    for (size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "--disable-pass") passes->insert(words[i + 1]);
  };
  for (const char* variant : kVariants) add_passes(variant, &passes_of_all);
  for (const char* variant : kSingleVariants) add_passes(variant, &passes);
  EXPECT_EQ(passes, passes_of_all);
}

}  // namespace
}  // namespace heddle
