// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/compiled_block.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

ScriptOutcome RunWith(const std::string& text, const std::string& fusion) {
  SessionOptions options;
  options.fusion = fusion;
  options.seed = 7;
  return RunScript(text, options);
}

// The script with its small blocks run directly; the same output, or the same error, with all of them as
// plans.
SessionStatistics ExpectSameAsPlans(const std::string& text) {
  const ScriptOutcome direct = RunWith(text, "cost");
  EXPECT_GT(direct.statistics[0].direct_parts, 0);
  for (const char* fusion : {"off", "all"}) {
    const ScriptOutcome plans = RunWith(text, fusion);
    EXPECT_EQ(plans.statistics[0].direct_parts, 0);
    EXPECT_EQ(direct.output, plans.output);
    EXPECT_EQ(direct.status.ToString(), plans.status.ToString());
  }
  return direct.statistics[0];
}

TEST(DirectBlocksTest, SmallBlocksNeedNoPlans) {
  const SessionStatistics statistics = ExpectSameAsPlans(
      "A = rand(rows=10, cols=10, seed=1)\nB = rand(rows=10, cols=10, seed=2)\n"
      "for (i in 1:20) {\n"
      "  C = A %*% B\n  v = rowSums(C * 0.1 + A)\n  B = abs(B - v / 100)\n  A[1, i %% 10 + 1] = max(v)\n"
      "}\nprint(toString(A %*% B))\nprint(sum(A) + \" \" + sum(B))");
  EXPECT_EQ(statistics.plans_compiled, 0);
  EXPECT_GE(statistics.direct_parts, 20);
  EXPECT_LE(statistics.direct_compiled, 5);
}

TEST(DirectBlocksTest, LargeBlocksHavePlans) {
  const ScriptOutcome outcome = RunWith(
      "X = rand(rows=1000, cols=200, seed=1)\nfor (i in 1:3) { X = X * 0.5 + 1 }\nprint(sum(X) > 0)", "cost");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_GE(outcome.statistics[0].plans_compiled, 1);
  EXPECT_GE(outcome.statistics[0].plans_reused, 2);
}

// From the second time on a block is entered with what it did before; only where the sizes that its variables
// and their values make are the same.
TEST(PlannedPartsTest, APlanServesItsOwnSizesOnly) {
  const std::string loop =
      "X = matrix(1, rows=3000, cols=100)\ns = 0\nfor (i in 1:12) {\n"
      "  k = (i %% 3 + 1) * 1000\n  s = s + sum(X[1:k,] * 2 + 1)\n"
      "  if (i == 8) { X = cbind(X, X) }\n}\nprint(s)";
  for (const char* fusion : {"cost", "off", "all"}) {
    const ScriptOutcome outcome = RunWith(loop, fusion);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    // Rounds 1 to 8 have 100 columns: 2000, 3000, 1000 rows and so on; 9 to 12 have 200.
    EXPECT_EQ(
        outcome.output,
        std::to_string(300 * (2 + 3 + 1 + 2 + 3 + 1 + 2 + 3) * 1000 + 600 * (1 + 2 + 3 + 1) * 1000) + ".0\n");
    EXPECT_GE(outcome.statistics[0].plans_reused, 5);
  }
}

// A part in which the size of a value comes to light has a plan, and so has the rest.
TEST(PlannedPartsTest, ThePartsOfACutBlockAreCompiledOneByOne) {
  const std::string loop =
      "X = matrix(seq(1, 200000), rows=2000, cols=100)\ns = 0\nfor (i in 1:9) {\n"
      "  Y = removeEmpty(target=X * (X > (i %% 2) * 100000), margin=\"rows\")\n"
      "  s = s + nrow(Y) + sum(Y * 0 + 1)\n}\nprint(s)";
  for (const char* fusion : {"cost", "off"}) {
    const ScriptOutcome outcome = RunWith(loop, fusion);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_EQ(outcome.output, std::to_string(5 * 1000 * 101 + 4 * 2000 * 101) + ".0\n");
  }
}

TEST(DirectBlocksTest, ALoopInWhichAMatrixGrowsCompilesOnce) {
  const SessionStatistics statistics = ExpectSameAsPlans(
      "X = matrix(0, rows=2, cols=3)\nv = matrix(\"1 2 3\", rows=1, cols=3)\n"
      "for (i in 1:300) { X = rbind(X, v * i) }\nprint(sum(X) + \" \" + nrow(X))\n"
      "print(toString(X[295:302, ]))");
  EXPECT_EQ(statistics.plans_compiled, 0);
  EXPECT_LE(statistics.direct_compiled, 8);
}

TEST(DirectBlocksTest, SizesThatDecideHowAProductIsOrderedCompileAnew) {
  // (A B) C or A (B C): the bits tell which.
  const SessionStatistics statistics = ExpectSameAsPlans(
      "A = rand(rows=9, cols=2, seed=1)\nB = rand(rows=2, cols=9, seed=2)\nC = rand(rows=9, cols=1, seed=3)\n"
      "for (i in 1:12) {\n"
      "  print(toString(A %*% B %*% C, decimal=17))\n  C = cbind(C, C[, 1] * i + 0.1)\n}");
  EXPECT_GE(statistics.direct_compiled, 10);
}

// Eight sizes in turn, as many as a block has parts: each compiles once.
TEST(DirectBlocksTest, SizesThatComeInTurnCompileOnceEach) {
  const SessionStatistics statistics = ExpectSameAsPlans(
      "A = rand(rows=9, cols=2, seed=1)\nB = rand(rows=2, cols=9, seed=2)\nC = rand(rows=9, cols=8, seed=3)\n"
      "s = 0\nfor (i in 1:64) {\n  s = s + sum(A %*% B %*% C[, 1:(i %% 8 + 1)])\n}\nprint(s)");
  EXPECT_GE(statistics.direct_parts, 64);
  EXPECT_GE(statistics.direct_compiled, 8);
  EXPECT_LE(statistics.direct_compiled, 12);
}

TEST(DirectBlocksTest, SizesThatCellsDecideAreFoundOnTheWay) {
  const SessionStatistics statistics = ExpectSameAsPlans(
      "X = rand(rows=40, cols=3, seed=5)\ns = 0\n"
      "for (i in 1:30) {\n"
      "  Y = removeEmpty(target=X, margin=\"rows\", select=X[, 1] > i / 40)\n"
      "  s = s + nrow(Y) * sum(colMaxs(Y))\n  Z = table(round(X[, 2] * i) + 1, round(X[, 3] * 3) + 1)\n"
      "  s = s + sum(Z %*% t(Z))\n}\nprint(s)");
  EXPECT_EQ(statistics.plans_compiled, 0);
  EXPECT_LE(statistics.direct_compiled, 40);
}

TEST(DirectBlocksTest, SparseOperandsKeepTheirFormats) {
  ExpectSameAsPlans(
      "D = diag(seq(1, 6))\nX = rand(rows=6, cols=6, seed=3)\ns = 0\n"
      "for (i in 1:10) {\n  D = D * 2 - (D > 4) * i\n  s = s + sum(D %*% X) + sum(D / (X - 0.5))\n"
      "  E = D * (1 / 0)\n}\nprint(s)\nprint(toString(E))\nprint(toString(cbind(D, matrix(1, rows=6, cols=1))))");
}

TEST(DirectBlocksTest, ColumnsThatGrowAreThereWhenTheyAreRead) {
  ExpectSameAsPlans(
      "f = function(matrix[double] A) return (double s) { s = sum(A * seq(1, nrow(A))) }\n"
      "X = matrix(1, rows=3, cols=4)\ns = 0\n"
      "for (i in 1:200) {\n"
      "  X = cbind(X, matrix(i, rows=3, cols=1))\n"
      "  if (i %% 50 == 0) { s = s + sum(X[, ncol(X) - 1]) }\n"
      "  if (i %% 70 == 0) { s = s + f(X) }\n"
      "  if (i %% 90 == 0) { Y = X; X[1, 2] = i; s = s + sum(Y) - sum(X) }\n"
      "  while (ncol(X) == 100) { X = cbind(X, matrix(0.5, rows=3, cols=2)) }\n"
      "}\nprint(s + \" \" + ncol(X))\nprint(sum(X))\nprint(toString(X[, 190:204]))");
}

TEST(DirectBlocksTest, ARowGrowsWithoutPlansHoweverLongItIs) {
  const SessionStatistics statistics = ExpectSameAsPlans(
      "x = matrix(0, rows=1, cols=0)\nwhile (ncol(x) < 40000) { x = cbind(x, matrix(ncol(x), rows=1, cols=100)) }\n"
      "print(sum(x) + \" \" + ncol(x) + \" \" + as.scalar(x[1, 39901]))");
  EXPECT_EQ(statistics.plans_compiled, 1);  // for the sum
}

TEST(DirectBlocksTest, ListsAndParallelLoopsSeeColumnsThatGrew) {
  ExpectSameAsPlans(
      "X = matrix(1, rows=2, cols=5)\nfor (i in 1:30) { X = cbind(X, matrix(i, rows=2, cols=1)) }\n"
      "l = list(X)\nfor (i in 1:3) { X = cbind(X, matrix(-i, rows=2, cols=1)); l = append(l, X) }\n"
      "R = matrix(0, rows=1, cols=4)\nparfor (k in 1:4) { R[1, k] = sum(as.matrix(l[k])) + ncol(X) }\n"
      "print(toString(R))");
}

TEST(DirectBlocksTest, ErrorsAreThoseOfPlans) {
  ExpectSameAsPlans("X = matrix(1, rows=4, cols=4)\nfor (i in 2:9) { print(i); X[i, i] = sum(X[i - 1, ]) }");
  ExpectSameAsPlans(
      "X = matrix(1, rows=4, cols=4)\nY = X\nfor (i in 1:9) { print(i); X = rbind(X, X[1, ]); "
      "if (i > 2) { print(sum(X + Y)) } }");
  ExpectSameAsPlans(
      "X = matrix(1, rows=3, cols=3)\nfor (i in 1:3) { X = X * i; assert(sum(X) < 30); print(i) }");
}

TEST(DirectBlocksTest, WhatIsAssignedOutlivesItsReaders) {
  ExpectSameAsPlans(
      "X = seq(1, 6)\nfor (i in 1:6) {\n  a = as.scalar(X[i]) + 1\n  b = 9 - a\n  Y = X * a\n  Z = Y - b\n"
      "  print(a + \" \" + b + \" \" + sum(Y) + \" \" + sum(Z))\n}");
}

TEST(DirectBlocksTest, AnUnreplacedVariableKeepsItsCells) {
  ExpectSameAsPlans(
      "X = matrix(1, rows=5, cols=5)\nY = X\nfor (i in 1:5) { X[i, 1] = 7; Z = X; X[1, i] = 9 }\n"
      "print(toString(X)); print(toString(Y)); print(toString(Z))\n"
      "A = matrix(1, rows=8, cols=2)\nB = A\nfor (i in 1:20) { C = A; A = rbind(A, A[1, ] * i); B = C }\n"
      "print(sum(A) + \" \" + sum(B) + \" \" + sum(C))");
}

}  // namespace
}  // namespace heddle::engine
