// SPDX-License-Identifier: Apache-2.0
// Random recursive functions: as batches they give the bytes of the interpreter, however they run; their
// derivatives are the same bytes however they run, near those of the interpreter (sums over nodes have
// another order, docs/numerics.md) and near difference quotients.
//
// HEDDLE_RECURSION_SEEDS=N runs N seeds of each; HEDDLE_RECURSION_SEED=N begins at another one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/recursion_generator.h"
#include "tests/scripts/script_case.h"
#include "tests/support/all_plans.h"

namespace heddle {
namespace {

using testing_support::Finished;

constexpr const char* kInterpreted = "run --threads 1 --disable-pass recursion";
constexpr const char* kVariants[] = {
    "run --threads 2 --fusion off",
    "run --threads 3 --fusion all --cpu avx2 --fusion-strict",
    "run --fusion-seed 5 --fusion-strict",
    "sim --workers 2 --min-distributed-bytes 0 --fusion-strict",
    "sim --workers 3 --threads 1 --min-distributed-bytes 0",
};

int64_t Setting(const char* name, int64_t usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::atoll(text);
}

// Runs a test on scripts of as many seeds as are asked for, every third in single precision.
template <typename Test>
void ForSeeds(int64_t usual, const Test& test) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/random.dml";
  const int64_t first = Setting("HEDDLE_RECURSION_SEED", 1);
  const int64_t seeds =
      Setting("HEDDLE_RECURSION_SEEDS", testing_support::RunsAllPlans() ? 20 * usual : usual);
  for (int64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with HEDDLE_RECURSION_SEED=" << seed
                                    << " HEDDLE_RECURSION_SEEDS=1");
    test(seed, path, std::string(seed % 3 == 0 ? " --precision single" : ""));
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Of these variants each script takes two; all plans take all.
std::vector<std::string> VariantsOf(int64_t seed) {
  std::vector<std::string> variants = {"run --threads 1 --fusion-strict"};
  const size_t first = static_cast<size_t>(seed) % std::size(kVariants);
  for (size_t i = 0; i < std::size(kVariants); ++i)
    if (testing_support::RunsAllPlans() || i == first) variants.emplace_back(kVariants[i]);
  return variants;
}

TEST(RandomRecursionsTest, GiveTheBytesOfTheInterpreter) {
  ForSeeds(40, [](int64_t seed, const std::string& path, const std::string& precision) {
    const std::string script = RecursionGenerator(static_cast<uint64_t>(seed)).Calls();
    SCOPED_TRACE(script);
    testing_support::WriteText(path, script);
    const Finished expected = RunCase(kInterpreted + precision, path);
    ASSERT_EQ(expected.code, 0) << expected.errors;
    for (const std::string& variant : VariantsOf(seed)) {
      const Finished finished = RunCase(variant + precision, path);
      ASSERT_EQ(finished.code, 0) << variant << precision << "\n" << finished.errors;
      ASSERT_EQ(finished.output, expected.output) << variant << precision;
    }
  });
}

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

double NumberOf(const std::string& word) { return word == "NaN" ? NAN : std::strtod(word.c_str(), nullptr); }

bool AreClose(double a, double b, double tolerance) {
  return (std::isnan(a) && std::isnan(b)) || a == b ||
         std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(a));
}

void ExpectCloseWords(const std::string& a, const std::string& b, double tolerance) {
  const std::vector<std::string> x = WordsOf(a), y = WordsOf(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_TRUE(x[i] == y[i] || AreClose(NumberOf(x[i]), NumberOf(y[i]), tolerance)) << x[i] << " " << y[i];
}

void ExpectCloseQuotients(const std::string& output) {
  const std::vector<std::string> words = WordsOf(output);
  for (size_t i = 0; i + 3 < words.size(); ++i) {
    if (words[i] != "quotient") continue;
    const double quotient = NumberOf(words[i + 2]), derivative = NumberOf(words[i + 3]);
    ASSERT_TRUE(!std::isfinite(quotient) || AreClose(quotient, derivative, 1e-4))
        << "by " << words[i + 1] << ": " << quotient << " and " << derivative;
  }
}

TEST(RandomRecursionsTest, HaveDerivativesNearDifferenceQuotients) {
  ForSeeds(25, [](int64_t seed, const std::string& path, const std::string& precision) {
    const std::string script = RecursionGenerator(static_cast<uint64_t>(seed)).Gradient();
    SCOPED_TRACE(script);
    testing_support::WriteText(path, script);
    const Finished interpreted = RunCase(kInterpreted + precision, path);
    ASSERT_EQ(interpreted.code, 0) << interpreted.errors;
    std::string first;
    for (const std::string& variant : VariantsOf(seed)) {
      const Finished finished = RunCase(variant + precision, path);
      ASSERT_EQ(finished.code, 0) << variant << precision << "\n" << finished.errors;
      if (first.empty()) first = finished.output;
      ASSERT_EQ(finished.output, first) << variant << precision;
    }
    if (!precision.empty()) return;
    ExpectCloseWords(first, interpreted.output, 1e-9);
    ExpectCloseQuotients(first);
  });
}

}  // namespace
}  // namespace heddle
