// SPDX-License-Identifier: Apache-2.0
// Recursions whose trees are shared out over threads (docs/recursion.md, section 2): results and derivatives
// of random forests have the same bytes on any number of threads and workers, and are those of the
// interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/script_case.h"

namespace heddle {
namespace {

const char* const kScript = HEDDLE_SOURCE_DIR "/tests/scripts/data/recursion_forest.dml";

testing_support::Finished Run(const std::string& options, const std::string& forest) {
  std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle"};
  for (const std::string& word : testing_support::SplitWords(options)) words.push_back(word);
  words.emplace_back(kScript);
  words.emplace_back("-nvargs");
  for (const std::string& word : testing_support::SplitWords(forest)) words.push_back(word);
  const testing_support::TemporaryFolder folder;
  testing_support::Finished finished = testing_support::RunProcess(words, folder.path());
  EXPECT_EQ(finished.code, 0) << finished.errors;
  return finished;
}

std::string OutputOf(const std::string& options, const std::string& forest) {
  return Run(options, forest).output;
}
std::string StatisticsOf(const std::string& options, const std::string& forest) {
  return Run(options + " -stats", forest).errors;
}

TEST(RecursionParts, HaveTheSameBytesOnAnyNumberOfThreadsAndWorkers) {
  // Bushes, combs, chains with branches, one huge tree, single nodes.
  const char* const kForests[] = {
      "nodes=300 reach=60 roots=0.1 seed=1", "nodes=300 reach=2 roots=0.02 seed=2",
      "nodes=300 reach=1 roots=0.05 seed=3", "nodes=400 reach=300 roots=0 seed=4",
      "nodes=400 reach=4 roots=0 seed=5",    "nodes=60 reach=10 roots=1 seed=6",
      "nodes=250 reach=20 roots=0.3 seed=7", "nodes=300 reach=100 roots=0.005 seed=8"};
  for (const char* const forest : kForests) {
    SCOPED_TRACE(forest);
    const std::string one = OutputOf("run --threads 1", forest);
    for (const char* const way : {"run --threads 2", "run --threads 3", "run --threads 7",
                                  "run --threads 2 --fusion off", "sim --workers 3 --threads 2"})
      EXPECT_EQ(OutputOf(way, forest), one) << way;
    EXPECT_EQ(OutputOf("run --threads 3 --precision single", forest),
              OutputOf("run --threads 1 --precision single", forest));
  }
}

TEST(RecursionParts, HaveTheResultsOfTheInterpreter) {
  const std::string forest = "nodes=200 reach=40 roots=0.05 seed=9";
  std::istringstream batched(OutputOf("run --threads 3", forest)),
      interpreted(OutputOf("run --disable-pass recursion", forest));
  std::string a, b;
  for (int numbers = 0; batched >> a; ++numbers) {
    ASSERT_TRUE(interpreted >> b);
    // Sums over nodes have another order (docs/numerics.md).
    EXPECT_NEAR(std::atof(a.c_str()), std::atof(b.c_str()), 1e-11 * std::fabs(std::atof(b.c_str())))
        << numbers;
  }
  EXPECT_FALSE(interpreted >> b);
}

TEST(RecursionParts, AreToldByTheStatistics) {
  const std::string many = "nodes=600 reach=60 roots=0.1 seed=1", one = "nodes=600 reach=40 roots=0 seed=5";
  const std::string of_many = StatisticsOf("run --threads 2", many);
  EXPECT_NE(of_many.find("Recursion net by trees over 2 threads: 1 time\n"), std::string::npos) << of_many;
  const std::string of_one = StatisticsOf("run --threads 2", one);
  EXPECT_NE(of_one.find("Recursion gradient of net by subtrees below a cut over 2 threads: 1 time\n"),
            std::string::npos)
      << of_one;
  const std::string alone = StatisticsOf("run --threads 1", many);
  EXPECT_NE(alone.find("Recursion net by levels: 1 time\n"), std::string::npos) << alone;
}

}  // namespace
}  // namespace heddle
