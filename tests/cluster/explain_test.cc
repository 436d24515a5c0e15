// SPDX-License-Identifier: Apache-2.0
// -explain of sim: the program and the plans of so many ranks, as run shows them for one.
#include <gtest/gtest.h>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle {
namespace {

using testing_support::Finished;

constexpr const char* kScript =
    "X = rand(rows=100, cols=4, seed=1)\nwhile (sum(X) < 1000) {\n  X = X + 1\n}\nprint(sum(t(X) %*% X))";

Finished Heddle(std::vector<std::string> words) {
  words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
  for (const char* word : {"--min-distributed-bytes", "0", "--threads", "1", "--seed", "1", "-e", kScript})
    words.push_back(word);
  return testing_support::RunProcess(words, testing_support::TemporaryFolder().path());
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ExplainTest, SimWithOneWorkerShowsWhatRunShows) {
  const Finished run = Heddle({"run", "-explain"});
  const Finished sim = Heddle({"sim", "--workers", "1", "-explain"});
  EXPECT_EQ(run.code, 0) << run.errors;
  EXPECT_GE(Count(run.errors, "\nplan 0x"), 3u) << run.errors;
  EXPECT_EQ(sim.errors, run.errors);
  EXPECT_EQ(sim.output, run.output);
}

TEST(ExplainTest, SimShowsThePlansOfItsRanksOnce) {
  const Finished run = Heddle({"run", "-explain"});
  const Finished sim = Heddle({"sim", "--workers", "2", "-explain"});
  EXPECT_EQ(sim.code, 0) << sim.errors;
  EXPECT_EQ(sim.output, run.output);
  const std::string program = run.errors.substr(0, run.errors.find("plan 0x"));
  EXPECT_EQ(sim.errors.substr(0, program.size()), program);
  EXPECT_EQ(Count(sim.errors, "\nplan 0x") + 1, Count(run.errors, "\nplan 0x"))
      << "a predicate and the first block of the body are one plan on several ranks: " << sim.errors;
  EXPECT_EQ(Count(sim.errors, " ranks 2\n"), Count(sim.errors, "\nplan 0x")) << sim.errors;
  EXPECT_GE(Count(sim.errors, "\ntask 1:0:0 "), 2u) << "tasks of the second rank: " << sim.errors;
  EXPECT_EQ(Heddle({"sim", "--workers", "2"}).errors, "");
}

// Where messages take long, the other way of a choice is cheaper; the text says by which links it went.
TEST(ExplainTest, PlansGoByTheLinksThatAreGiven) {
  const auto explain = [](const std::string& links) {
    std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle",
                                      "explain",
                                      "--level",
                                      "distribution",
                                      "--workers",
                                      "4",
                                      "-e",
                                      "X = rand(rows=2000000, cols=2, seed=1)\nprint(sum(X * X))"};
    if (!links.empty()) words.insert(words.begin() + 6, {"--links", links});
    const Finished run = testing_support::RunProcess(words, testing_support::TemporaryFolder().path());
    EXPECT_EQ(run.code, 0) << run.errors;
    return run.output;
  };
  EXPECT_EQ(Count(explain(""), "links"), 0u);
  const std::string fast = explain("8,16");
  const std::string slow = explain("100000,0.5");
  EXPECT_EQ(Count(fast, "  links measured: 8 us a message, 16 GB/s\n"), 1u) << fast;
  EXPECT_EQ(Count(slow, "  links measured: 1e+05 us a message, 0.5 GB/s\n"), 1u) << slow;
  EXPECT_NE(fast.substr(fast.find("GB/s")), slow.substr(slow.find("GB/s"))) << "costs are others";
}

// What is compiled once, what anew, and why.
TEST(ExplainTest, RecompileTellsWhatIsCompiledWhenAndWhy) {
  const char* script =
      "X = matrix(0, rows=2, cols=3)\nfor (i in 1:20) { X = rbind(X, matrix(i, rows=1, cols=3)) }\n"
      "for (i in 1:2) { Y = X %*% t(X) %*% X; X = X[, 1:2] }\nprint(sum(Y))";
  const Finished run = testing_support::RunProcess(
      {HEDDLE_BINARY_DIR "/heddle", "run", "-explain", "recompile_hops", "-e", script},
      testing_support::TemporaryFolder().path());
  EXPECT_EQ(run.code, 0) << run.errors;
  EXPECT_EQ(Count(run.errors, "-e:2: compiled for X 2x3 (first entry), run directly: matrix rbind assign"),
            1u)
      << run.errors;
  EXPECT_EQ(Count(run.errors, "-e:2: "), 1u) << run.errors;
  EXPECT_EQ(Count(run.errors, "-e:3: compiled for X 22x3 (first entry), run directly:"), 1u) << run.errors;
  EXPECT_EQ(Count(run.errors, "-e:3: compiled for X 22x2 (X was 22x3), run directly:"), 1u) << run.errors;
}

}  // namespace
}  // namespace heddle
