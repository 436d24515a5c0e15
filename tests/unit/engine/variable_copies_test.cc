// SPDX-License-Identifier: Apache-2.0
// In loops plans leave what they have moved of variables that stay as they are, and the next rounds find it.
#include "engine/variables/variable_copies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

int64_t SentBytes(const ScriptOutcome& outcome) {
  int64_t bytes = 0;
  for (const SessionStatistics& rank : outcome.statistics) bytes += rank.bytes_sent;
  return bytes;
}

// What the ranks send in each round of the loops of a script beyond the third, in bytes; its output is that
// of one rank.
int64_t SentInARound(const std::string& script, const SessionOptions& options) {
  constexpr int kFew = 4, kMany = 24;
  int64_t sent[2] = {};
  for (const int rounds : {kFew, kMany}) {
    const std::string text = fmt::format("rounds = {}\n{}", rounds, script);
    const ScriptOutcome one = RunScript(text), several = RunScript(text, options);
    EXPECT_TRUE(one.status.ok()) << one.status.ToString();
    EXPECT_EQ(several.status.ToString(), one.status.ToString());
    EXPECT_EQ(several.output, one.output);
    sent[rounds == kMany] = SentBytes(several);
  }
  return (sent[1] - sent[0]) / (kMany - kFew);
}

// V is 2000 x 12, which is 192,000 bytes; each rank has some of its rows, and all are read in each round.
constexpr const char* kGathered =
    "X = rand(rows=3000, cols=2000, sparsity=0.01, seed=1)\nV = rand(rows=2000, cols=12, seed=2)\n"
    "W = V * 2\ns = 0\n"
    "for (i in 1:rounds) {{\n  Y = X %*% {0}\n  s = s + sum(Y * i)\n  {1}\n}}\nprint(s)";

TEST(VariableCopiesTest, WhatALoopDoesNotChangeIsMovedOnce) {
  EXPECT_LT(SentInARound(fmt::format(kGathered, "W", ""), SplitOver(4)), 5'000);
  // What it changes travels in each round.
  EXPECT_GT(SentInARound(fmt::format(kGathered, "W", "W = W + 1"), SplitOver(4)), 300'000);
}

TEST(VariableCopiesTest, ACopyGoesWithItsValue) {
  // W changes in every third round only, in a branch, from a copy of which is known nothing.
  EXPECT_LT(SentInARound(fmt::format(kGathered, "W", "if (i %% 3 == 0) { W = V * i }"), SplitOver(3)),
            250'000);
  EXPECT_LT(SentInARound(fmt::format(kGathered, "W", "if (i == 2) { W[3:9,] = V[1:7,] }"), SplitOver(3)),
            5'000);
}

TEST(VariableCopiesTest, LoopsInLoopsFindTheCopiesOfTheOuterOne) {
  const std::string script =
      "X = rand(rows=3000, cols=2000, sparsity=0.01, seed=1)\nV = rand(rows=2000, cols=12, seed=2) * 2\n"
      "s = 0\nfor (i in 1:rounds) {\n  j = 0\n"
      "  while (j < 3) {\n    s = s + sum((X %*% V) * i)\n    j = j + 1\n  }\n"
      "  for (k in 1:2) { s = s - sum(X %*% V) / k }\n}\nprint(s)";
  EXPECT_LT(SentInARound(script, SplitOver(4)), 20'000);
}

// A budget that the copies would take an eighth of holds none.
TEST(VariableCopiesTest, CopiesStayWithinAPartOfTheMemory) {
  SessionOptions options = SplitOver(4);
  options.memory_bytes = 8 * 190'000;
  EXPECT_GT(SentInARound(fmt::format(kGathered, "W", ""), options), 300'000);
  options.memory_bytes = 8 * 400'000;
  EXPECT_LT(SentInARound(fmt::format(kGathered, "W", ""), options), 5'000);
}

// t(P) %*% U of columns of X: after the first rounds X is there by columns, too, and the sums stay.
TEST(VariableCopiesTest, AFactorizationSendsScalarsAndTheFactorsOnce) {
  const std::string script =
      "X = rand(rows=2000, cols=2000, min=1, max=5, sparsity=0.05, seed=1)\n"
      "U = rand(rows=2000, cols=20, seed=2) * 2\nS = rand(rows=2000, cols=20, seed=3)\ni = 0\nr = 1\n"
      "while (i < rounds & r > 0) {\n  H = t((X != 0) * (U %*% t(S))) %*% U + 0.1 * S\n"
      "  a = sum(S * H)\n  S = S + H / a\n  r = sum(S ^ 2)\n  i = i + 1\n}\nprint(r)";
  EXPECT_LT(SentInARound(script, SplitOver(4)), 20'000);
}

TEST(VariableCopiesTest, CopiesAreThereAfterCallsAndInThem) {
  const std::string script =
      "f = function(matrix[double] X, matrix[double] W, integer n) return (double s) {\n  s = 0\n"
      "  for (k in 1:n) { s = s + sum((X %*% W) / k) }\n}\n"
      "X = rand(rows=3000, cols=2000, sparsity=0.01, seed=1)\nV = rand(rows=2000, cols=12, seed=2)\n"
      "s = f(X, V * 2, rounds)\nprint(s)";
  EXPECT_LT(SentInARound(script, SplitOver(4)), 5'000);
}

// Iterations that run at once change variables cell by cell, which have copies when the loop begins.
TEST(VariableCopiesTest, ParforsBeginWithoutCopies) {
  const std::string script =
      "X = rand(rows=300, cols=200, seed=1)\nW = rand(rows=200, cols=12, seed=2) * 2\ns = 0\n"
      "for (i in 1:rounds) {\n  s = s + sum(X %*% W)\n"
      "  parfor (j in 1:12) { W[, j] = W[, j] / j + i }\n  s = s + sum(X %*% W)\n}\nprint(s)";
  for (const int ranks : {2, 3}) SentInARound(script, SplitOver(ranks));
}

TEST(VariableCopiesTest, WhatIsReadAgainIsKept) {
  const Program program = CompileOrDie(
      "X = rand(rows=30, cols=20, seed=1)\nW = rand(rows=20, cols=1, seed=2)\nV = W\nfor (i in 1:9) {\n"
      "  if (i > 3) { print(\"\") }\n  Y = X %*% W\n  if (i > 4) { print(\"\") }\n  V = t(X) %*% Y\n"
      "  if (i > 5) { print(\"\") }\n  W = W + V\n}\nprint(sum(W))");
  const Block* loop = nullptr;
  for (const Block& block : program.main)
    if (block.kind == Block::Kind::kFor) loop = &block;
  ASSERT_NE(loop, nullptr);
  std::set<std::string> kept, lasting;
  for (const Block& block : loop->body) {
    Graph graph = block.graph;
    for (Node& node : graph.nodes) node.info = ValueInfo::OfMatrix({30, 20});
    const LoopReuse reuse = ReuseOf(graph, {.loop = loop, .block = &block});
    kept.insert(reuse.kept.begin(), reuse.kept.end());
    lasting.insert(reuse.lasting.begin(), reuse.lasting.end());
    const LoopReuse outside = ReuseOf(graph, {.loop = nullptr, .block = &block});
    EXPECT_TRUE(outside.kept.empty() && outside.lasting.empty());
  }
  EXPECT_TRUE(lasting.contains("X"));
  EXPECT_TRUE(kept.contains("X") && kept.contains("W"));  // W is read again at the end of a round.
  EXPECT_FALSE(lasting.contains("W") || kept.contains("Y") || kept.contains("V"));
}

}  // namespace
}  // namespace heddle::engine
