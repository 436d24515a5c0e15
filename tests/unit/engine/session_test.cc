// SPDX-License-Identifier: Apache-2.0
#include "engine/session/session.h"

#include <gtest/gtest.h>

#include "engine/control/local_run.h"
#include "engine/variables/random_seeds.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

std::string OutputOf(const std::string& text) {
  const ScriptOutcome outcome = RunScript(text);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  return outcome.output;
}

TEST(SessionTest, ScalarsAreEvaluatedInPlace) {
  const ScriptOutcome outcome = RunScript("x = 3\nfor (i in 1:10) { x = x + i }\nprint(x)");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.output, "58\n");
  EXPECT_EQ(outcome.statistics[0].plans_compiled, 0);
  EXPECT_GE(outcome.statistics[0].scalar_blocks, 10);
}

TEST(SessionTest, ALoopWithStableSizesCompilesOnce) {
  SessionOptions options;
  options.fusion = "all";
  const ScriptOutcome outcome =
      RunScript("X = matrix(1, rows=10, cols=4)\nfor (i in 1:50) { X = X + i }\nprint(sum(X))", options);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.output, "51040.0\n");
  EXPECT_LE(outcome.statistics[0].plans_compiled, 4);
  EXPECT_GE(outcome.statistics[0].plans_reused, 49);
}

// A product of this size takes tens of milliseconds on any processor of today.
TEST(SessionTest, TimeStandsInTheOrderOfTheScript) {
  const char* script =
      "X = rand(rows=1500, cols=1500, seed=1)\nt0 = time()\ns = sum((X %*% X) ^ 2)\nt1 = time()\n"
      "r = sum((X %*% X) ^ 3)\nif (t1 - t0 > 1e6) { print(\"computed between\") }\n"
      "print((s > 0) + \" \" + (r > 0) + \" \" + (time() - t1 > 1e6))";
  for (const int ranks : {1, 2}) {
    const ScriptOutcome outcome = RunScript(script, ranks == 1 ? SessionOptions() : SplitOver(ranks));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_EQ(outcome.output, "computed between\nTRUE TRUE TRUE\n");
  }
}

TEST(SessionTest, LoopsCountLikeDml) {
  EXPECT_EQ(OutputOf("s = \"\"\nfor (i in 1:0) { s = s + i + \",\" }\nprint(s)"), "1,0,\n");
  EXPECT_EQ(OutputOf("s = \"\"\nfor (i in seq(1, 10, 4)) { s = s + i + \",\" }\nprint(s)"), "1,5,9,\n");
  EXPECT_EQ(OutputOf("s = \"none\"\nfor (i in seq(1, 10, -1)) { s = s + i }\nprint(s)"), "none\n");
  EXPECT_EQ(OutputOf("s = \"\"\nfor (i in seq(5, 1, -2)) { s = s + i; i = 100 }\nprint(s + i)"), "531100\n");
}

TEST(SessionTest, BranchesAndWhileLoopsFollowTheirPredicates) {
  EXPECT_EQ(OutputOf("n = 0\nwhile (n * n < 50) { n = n + 1 }\nif (n == 8) { print(\"eight\") } else { "
                     "print(\"other\") }"),
            "eight\n");
  EXPECT_EQ(OutputOf("X = matrix(2, rows=3, cols=3)\nwhile (sum(X) < 1000) { X = X * 2 }\nprint(sum(X))"),
            "1152.0\n");
}

TEST(SessionTest, FunctionsHaveTheirOwnVariables) {
  EXPECT_EQ(
      OutputOf(
          "f = function(double a, integer b) return (double r, integer c) { r = a * b; c = b + 1; x = 99 }\n"
          "x = 1\n[p, q] = f(2.5, 4)\nprint(p + \" \" + q + \" \" + x)"),
      "10.0 5 1\n");
}

TEST(SessionTest, RecursionWorksAndEndsInAnErrorWhenItDoesNot) {
  EXPECT_EQ(OutputOf("fib = function(integer n) return (integer r) { if (n < 2) { r = n } else {\n"
                     "  a = fib(n - 1)\n  b = fib(n - 2)\n  r = a + b } }\nx = fib(12)\nprint(x)"),
            "144\n");
  SessionOptions options;
  options.max_call_depth = 100;
  const ScriptOutcome outcome =
      RunScript("f = function(integer n) return (integer r) { r = f(n + 1) }\nx = f(1)\nprint(x)", options);
  EXPECT_EQ(outcome.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(outcome.status.message(), "function 'f': calls are nested more than 100 deep");
  EXPECT_TRUE(outcome.status.position().IsKnown());
}

TEST(SessionTest, AVariableThatNothingAssignedIsNamedWithItsPlace) {
  const ScriptOutcome outcome = RunScript(
      "print(\"before\")\nif (sum(matrix(1, rows=2, cols=2)) > 9) { y = 1 }\nprint(\"middle\")\nprint(y + "
      "1)");
  EXPECT_EQ(outcome.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(outcome.status.message().find("'y'"), std::string::npos) << outcome.status.ToString();
  EXPECT_EQ(outcome.status.position().line, 4);
  EXPECT_EQ(outcome.output, "before\nmiddle\n");
}

TEST(SessionTest, SizesThatOnlyARunTellsCutTheBlock) {
  EXPECT_EQ(OutputOf("X = matrix(\"1 0 2 0 3 0\", rows=6, cols=1)\nprint(\"start\")\nY = "
                     "removeEmpty(target=X, margin=\"rows\")\n"
                     "Z = Y %*% t(Y)\nn = nrow(Z)\nR = matrix(7, rows=n, cols=as.integer(sum(Y)))\nprint(n + "
                     "\" \" + ncol(R) + \" \" + sum(Z))"),
            "start\n3 6 36.0\n");
}

TEST(SessionTest, WhatPrecedesAFaultActsFirst) {
  const ScriptOutcome outcome = RunScript(
      "n = as.integer(sum(matrix(1, rows=3, cols=1)))\nprint(\"seen\")\n"
      "A = matrix(1, rows=n, cols=2)\nB = A %*% A\nprint(\"not seen \" + sum(B))");
  EXPECT_EQ(outcome.status.code(), StatusCode::kFailedPrecondition) << outcome.status.ToString();
  EXPECT_EQ(outcome.status.position().line, 4);
  EXPECT_EQ(outcome.output, "seen\n");
}

TEST(SessionTest, StopEndsTheScriptWithItsText) {
  const ScriptOutcome outcome = RunScript("x = 2\nif (x > 1) { stop(\"too large: \" + x) }\nprint(\"no\")");
  EXPECT_EQ(outcome.status.code(), StatusCode::kAborted);
  EXPECT_NE(outcome.status.message().find("too large: 2"), std::string::npos);
  EXPECT_EQ(outcome.output, "");
}

TEST(SessionTest, UnseededRandomNumbersFollowTheSeedOfTheJob) {
  const std::string script =
      "for (i in 1:2) { print(sum(rand(rows=4, cols=4))) }\nprint(sum(rand(rows=4, cols=4, seed=-1)))";
  SessionOptions options;
  options.seed = 1;
  const ScriptOutcome first = RunScript(script, options);
  ASSERT_TRUE(first.status.ok()) << first.status.ToString();
  EXPECT_EQ(RunScript(script, options).output, first.output);
  options.seed = 2;
  EXPECT_NE(RunScript(script, options).output, first.output);
  const size_t line = first.output.find('\n');
  EXPECT_NE(first.output.substr(0, line), first.output.substr(line + 1, line));  // each round draws anew
}

TEST(SessionTest, ACancelledSessionEndsWithTheCause) {
  Cancellation cancellation;
  cancellation.Request(Cancelled("by the test"));
  RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  surroundings.print = [](std::string_view) {};
  surroundings.cancellation = &cancellation;
  const RunOutcome outcome = RunLocally(CompileOrDie("while (1 == 1) { x = 1 }"), {}, surroundings);
  EXPECT_EQ(outcome.status.code(), StatusCode::kCancelled);
  EXPECT_EQ(outcome.status.message(), "by the test");
}

// Bytes must not depend on how many ranks there are (design promise 1).
TEST(SessionTest, AnyNumberOfRanksGivesTheSameBytes) {
  const std::string scripts[] = {
      // a regression by conjugate gradients
      "X = rand(rows=2000, cols=7, seed=3)\ny = X %*% rand(rows=7, cols=1, seed=4)\n"
      "w = matrix(0, rows=7, cols=1)\nr = -(t(X) %*% y)\np = -r\nn2 = sum(r * r)\ni = 0\n"
      "while (i < 7 & n2 > 1e-20) {\n  q = t(X) %*% (X %*% p)\n  a = n2 / sum(p * q)\n  w = w + a * p\n  r = "
      "r + a * q\n"
      "  o = n2\n  n2 = sum(r * r)\n  p = -r + (n2 / o) * p\n  i = i + 1\n}\nprint(toString(w, "
      "decimal=15))\nprint(n2)",
      // row, column and full aggregates, broadcasting
      "X = rand(rows=1500, cols=13, min=-1, max=1, seed=9)\nC = X - "
      "colMeans(X)\nprint(toString(colSums(C^2), decimal=17))\n"
      "print(sum(rowSums(C) * rowMaxs(X)))\nprint(var(X))\nprint(sum(t(C) %*% C))",
      // sizes that a run tells
      "X = rand(rows=1000, cols=3, seed=5)\nY = removeEmpty(target=X * (X[,1] > 0.5), "
      "margin=\"rows\")\nprint(nrow(Y) + \" \" + sum(Y))",
  };
  for (const std::string& script : scripts) {
    const ScriptOutcome one = RunScript(script);
    ASSERT_TRUE(one.status.ok()) << one.status.ToString();
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(ranks);
      const ScriptOutcome many = RunScript(script, SplitOver(ranks, 2));
      ASSERT_TRUE(many.status.ok()) << many.status.ToString();
      EXPECT_EQ(many.output, one.output);
      for (const SessionStatistics& rank : many.statistics) EXPECT_GT(rank.rows_held, 0) << rank.rank;
    }
  }
}

TEST(SessionTest, AFaultOnManyRanksIsReportedOnce) {
  const ScriptOutcome outcome = RunScript(
      "X = rand(rows=1000, cols=4, seed=1)\nprint(\"a\")\nif (sum(X) > 0) { stop(\"enough\") }\nprint(\"b\")",
      SplitOver(3));
  EXPECT_EQ(outcome.status.code(), StatusCode::kAborted) << outcome.status.ToString();
  EXPECT_EQ(outcome.output, "a\n");
}

TEST(RandomSeedsTest, EachDrawIsAFunctionOfSeedStreamAndCount) {
  int64_t a = 0, b = 0, c = 0;
  RandomSeeds first(7);
  EXPECT_FALSE(first.Draw("x", &a));
  ASSERT_TRUE(first.Draw("%seed3", &a));
  ASSERT_TRUE(first.Draw("%seed3", &b));
  EXPECT_NE(a, b);
  RandomSeeds again(7);
  ASSERT_TRUE(again.Draw("%seed3", &c));
  EXPECT_EQ(a, c);
  RandomSeeds other(8);
  ASSERT_TRUE(other.Draw("%seed3", &c));
  EXPECT_NE(a, c);
  EXPECT_GE(a, 0);
}

// 30 MB in the 10 ms of the slower worker, which ran two operators of that label.
TEST(StatisticsTest, FusedOperatorsAreThoseOfAllWorkers) {
  SessionStatistics one, two;
  one.ranks = two.ranks = 2;
  two.rank = 1;
  one.fused = {{"cell sum a.dml:3:7", 2, 4'000'000, 10'000'000},
               {"row t%*% a.dml:9:1", 1, 7'000'000, 70'000'000}};
  two.fused = {{"cell sum a.dml:3:7", 2, 6'000'000, 15'000'000, true},
               {"cell sum a.dml:3:7", 1, 4'000'000, 5'000'000}};
  one.code_compiled = two.code_compiled = 3;
  const std::string text = ToText({one, two});
  EXPECT_NE(text.find("Fused operators: 6 regions compiled, 0 from disk,"), std::string::npos) << text;
  EXPECT_NE(text.find("Of 2 workers: calls and MB of all, time of the one that took the longest\n"),
            std::string::npos)
      << text;
  const size_t sum = text.find(fmt::format("{:<48}{:>8}{:>14}{:>14}{:>14}  interpreted\n",
                                           "cell sum a.dml:3:7", 5, "10.000", "30.000", "3.00"));
  const size_t product = text.find(
      fmt::format("{:<48}{:>8}{:>14}{:>14}{:>14}\n", "row t%*% a.dml:9:1", 1, "7.000", "70.000", "10.00"));
  ASSERT_NE(sum, std::string::npos) << text;
  EXPECT_LT(sum, product) << text;
  EXPECT_EQ(ToText({one}).find("workers: calls"), std::string::npos);
}

}  // namespace
}  // namespace heddle::engine
