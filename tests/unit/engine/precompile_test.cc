// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/precompile.h"

#include <gtest/gtest.h>

#include "core/environment/clock.h"
#include "core/programs/plan.h"
#include "ops/io/files/files.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

// The loop keeps what is before it, in it and after it in blocks of their own.
constexpr const char* kStraight =
    "n = 6\nX = rand(rows=n, cols=4)\nprint(\"start \" + nrow(X))\n"
    "Y = t(X) %*% X\nfor (i in 1:2) { Y = Y * i }\n"
    "Z = Y + 1\nprint(sum(Z) + \" \" + ncol(Z))";

struct Both {
  ScriptOutcome plain;
  ScriptOutcome ahead;
  size_t plans = 0;
};

Both RunBoth(const std::string& script, SessionOptions options, ops::Files* files = nullptr) {
  options.seed = 7;
  Both both;
  both.plain = RunScript(script, options);
  options.plans = Precompile(CompileOrDie(script), options, files);
  both.plans = options.plans.size();
  both.ahead = RunScript(script, options);
  EXPECT_TRUE(both.plain.status.ok()) << both.plain.status.ToString();
  EXPECT_TRUE(both.ahead.status.ok()) << both.ahead.status.ToString();
  EXPECT_EQ(both.ahead.output, both.plain.output);
  return both;
}

// Where small blocks have plans, too.
SessionOptions WithPlans() {
  SessionOptions options;
  options.fusion = "all";
  return options;
}

TEST(PrecompileTest, AStraightScriptNeedsNoOtherPlans) {
  const Both both = RunBoth(kStraight, WithPlans());
  EXPECT_GT(both.plain.statistics[0].plans_compiled, 1);
  EXPECT_EQ(both.ahead.statistics[0].plans_compiled, 0);
  EXPECT_EQ(both.plain.statistics[0].plans_ahead, 0);
  EXPECT_EQ(both.ahead.statistics[0].plans_ahead, static_cast<int64_t>(both.plans));
}

TEST(PrecompileTest, ResultsOfATupleAreKnownAhead) {
  const char* script =
      "X = rand(rows=300, cols=4, seed=1)\nA = t(X) %*% X\nprint(nrow(A))\n[w, V] = eigen(A)\n"
      "for (i in 1:2) { V = V * i }\n[U, S, W] = svd(X %*% V)\nprint(sum(abs(V)) + sum(S) + sum(w) + ncol(U))";
  for (const int ranks : {1, 2}) {
    const Both both = RunBoth(script, ranks == 1 ? WithPlans() : SplitOver(ranks));
    EXPECT_GT(both.plain.statistics[0].plans_compiled, 1);
    for (const SessionStatistics& rank : both.ahead.statistics) EXPECT_EQ(rank.plans_compiled, 0);
  }
}

TEST(PrecompileTest, NothingIsMadeForWhatRunsDirectly) {
  const Both both = RunBoth(kStraight, {});
  EXPECT_EQ(both.plans, 0u);
  EXPECT_EQ(both.ahead.statistics[0].plans_compiled, 0);
}

TEST(PrecompileTest, EveryRankFindsThePlansOfItsRanks) {
  const Both both = RunBoth(kStraight, SplitOver(2));
  for (const SessionStatistics& rank : both.plain.statistics) EXPECT_GT(rank.plans_compiled, 1);
  for (const SessionStatistics& rank : both.ahead.statistics) EXPECT_EQ(rank.plans_compiled, 0);
}

TEST(PrecompileTest, TheFirstRoundsOfALoopAreIncluded) {
  const char* script =
      "X = matrix(2, rows=3, cols=3)\nwhile (sum(X) < 1000) { X = X * 2 }\nfor (i in 1:3) { X = X + i }\nprint(sum(X))";
  const Both both = RunBoth(script, SplitOver(2));
  EXPECT_GE(both.plans, 3u);  // X, the condition, the body
  EXPECT_LT(both.ahead.statistics[0].plans_compiled, both.plain.statistics[0].plans_compiled);
  EXPECT_GT(both.ahead.statistics[0].plans_compiled, 0);  // what follows the loop
  EXPECT_EQ(RunBoth("X = matrix(2, rows=3, cols=3)\nfor (i in 1:9) { X = X + i }", {})
                .ahead.statistics[0]
                .plans_compiled,
            0);
}

TEST(PrecompileTest, SizesThatOnlyARunTellsEndIt) {
  const char* script =
      "A = matrix(\"1 0 2 0 3 0\", rows=6, cols=1)\nB = A\nfor (i in 1:2) { B = B * i }\n"
      "Y = removeEmpty(target=B, margin=\"rows\")\nR = matrix(7, rows=nrow(Y), cols=as.integer(sum(Y)))\nprint(sum(R))";
  const Both both = RunBoth(script, WithPlans());
  EXPECT_GE(both.plans, 2u);
  EXPECT_GT(both.ahead.statistics[0].plans_compiled, 0);
  EXPECT_LT(both.ahead.statistics[0].plans_compiled, both.plain.statistics[0].plans_compiled);
}

TEST(PrecompileTest, FilesAreLookedAtOnlyWhenGiven) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(testing::TempDir());
  ASSERT_TRUE(files->Replace("precompile_test.csv", "1,2\n3,4\n").ok());
  const char* script =
      "if (1 > 0) { print(\"a\") }\nX = read(\"precompile_test.csv\", format=\"csv\")\nprint(sum(X %*% X))";
  EXPECT_EQ(RunBoth(script, {}, nullptr).plans, 0u);
  const Both both = RunBoth(script, {}, files.get());
  EXPECT_GT(both.plans, 0u);
  EXPECT_EQ(both.ahead.statistics[0].plans_compiled, 0);
  EXPECT_TRUE(files->Remove("precompile_test.csv").ok());
}

// What the script writes has sizes that only a run tells, whatever is there before.
TEST(PrecompileTest, ReadsOfWrittenFilesEndIt) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(testing::TempDir());
  const auto put = [&] {
    ASSERT_TRUE(files->Replace("precompile_own.csv", "1,2\n3,4\n").ok());
    ASSERT_TRUE(files->Remove("precompile_own.csv.mtd").ok());
  };
  for (const char* path : {"\"precompile_own.csv\"", "\"precompile_own\" + sum(A) + \".csv\""}) {
    put();
    const std::string write = std::string("write(A, ") + path + ", format=\"csv\")\n";
    const std::string read = "X = read(\"precompile_own.csv\", format=\"csv\")\nprint(sum(X %*% t(X)))\n";
    const std::string start = "A = matrix(2, rows=3, cols=5)\n";
    const size_t without = Precompile(CompileOrDie(start + read), {}, files.get()).size();
    const Both in_block = RunBoth(start + write + read, SplitOver(2), files.get());
    EXPECT_LE(in_block.plans, without);
    EXPECT_GT(in_block.ahead.statistics[0].plans_compiled, 0);
    put();
    const Both later =
        RunBoth(start + write + "if (sum(A) > 0) { print(\"a\") }\n" + read, SplitOver(2), files.get());
    EXPECT_GT(later.ahead.statistics[0].plans_compiled, 0);
  }
  for (const char* name : {"precompile_own.csv", "precompile_own30.0.csv"}) {
    EXPECT_TRUE(files->Remove(name).ok());
    EXPECT_TRUE(files->Remove(std::string(name) + ".mtd").ok());
  }
}

TEST(PrecompileTest, AFaultIsLeftToTheSession) {
  EXPECT_TRUE(
      Precompile(CompileOrDie("stop(\"no\")\nX = matrix(1, rows=2, cols=2)\nprint(sum(X))"), {}, nullptr)
          .size() <= 1);
  const Program program = CompileOrDie(kStraight);
  SessionOptions tight;
  tight.memory_bytes = 1;
  EXPECT_TRUE(Precompile(program, tight, nullptr).empty());
}

TEST(PrecompileTest, LimitsEndIt) {
  const Program program = CompileOrDie(kStraight);
  const std::vector<std::string> all = Precompile(program, WithPlans(), nullptr);
  ASSERT_GT(all.size(), 1u);
  PrecompileLimits limits;
  limits.most_plans = 1;
  EXPECT_EQ(Precompile(program, WithPlans(), nullptr, limits),
            std::vector<std::string>(all.begin(), all.begin() + 1));
  limits = {};
  limits.most_bytes = static_cast<int64_t>(all[0].size());
  EXPECT_EQ(Precompile(program, WithPlans(), nullptr, limits).size(), 1u);
  limits = {};
  VirtualClock clock;
  limits.clock = &clock;
  limits.most_ns = -1;
  EXPECT_TRUE(Precompile(program, WithPlans(), nullptr, limits).empty());
  limits = {};
  limits.most_ranks = 0;
  EXPECT_TRUE(Precompile(program, WithPlans(), nullptr, limits).empty());
}

}  // namespace
}  // namespace heddle::engine
