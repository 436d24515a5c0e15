// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/speculation.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

// The first loop of a script.
const Block& LoopOf(const Program& program) {
  for (const Block& block : program.main)
    if (block.kind == Block::Kind::kWhile) return block;
  ADD_FAILURE() << "no loop";
  return program.main.front();
}

bool MayRunAhead(const std::string& loop) {
  const Program program =
      CompileOrDie("X = rand(rows=300, cols=3, seed=1)\nn = 1\n" + loop + "\nprint(sum(X))");
  return SpeculationOf(LoopOf(program)).has_value();
}

TEST(SpeculationTest, OnlyWhatHasNoEffectAndCannotFailRunsAhead) {
  EXPECT_TRUE(MayRunAhead("while (sum(X) > 1) { X = X * 0.5 }"));
  EXPECT_TRUE(MayRunAhead("while (sum(X) > 1) { X = X * 0.5\n n = n + sum(X) }"));
  EXPECT_FALSE(MayRunAhead("while (sum(X) > 1) { X = X * 0.5\n print(n) }"));
  EXPECT_FALSE(MayRunAhead("while (sum(X) > 1) { write(X, \"X.csv\")\n X = X * 0.5 }"));
  EXPECT_FALSE(MayRunAhead("while (sum(X) > 1) { X = solve(t(X) %*% X, t(X)) }")) << "it may fail";
  EXPECT_FALSE(MayRunAhead("while (sum(X) > 1) { X[1, 1] = 0 }")) << "it writes over what is there";
  EXPECT_FALSE(MayRunAhead("while (sum(X) > n) { n = n * 2 }")) << "it takes no time";
  EXPECT_FALSE(MayRunAhead("while (sum(X) > 1) { if (sum(X) > 5) { X = X * 0.5 } }"))
      << "no block begins the body";
}

TEST(SpeculationTest, GraphsAreJoinedSideBySideAndParted) {
  const Program program =
      CompileOrDie("X = rand(rows=9, cols=3, seed=1)\nwhile (sum(X) > 1) { X = X * 0.5 }");
  const Block& loop = LoopOf(program);
  const Speculation speculation = *SpeculationOf(loop);
  ASSERT_EQ(speculation.assigned.size(), 1u);
  EXPECT_EQ(speculation.assigned[0].first, "X");
  const auto [predicate, body] = Parted(speculation.graph, speculation.boundary);
  EXPECT_EQ(predicate.ToText(), loop.graph.ToText());
  EXPECT_EQ(body.nodes.size(), loop.body.front().graph.nodes.size());
  EXPECT_EQ(Joined(predicate, body).ToText(), speculation.graph.ToText());
}

// What all ranks print is what one prints, however often the predicate was false.
void ExpectSameAsOnOneRank(const std::string& script) {
  const ScriptOutcome expected = RunScript(script);
  ASSERT_TRUE(expected.status.ok()) << expected.status.ToString();
  for (const int ranks : {2, 3, 5, 8}) {
    const ScriptOutcome outcome = RunScript(script, SplitOver(ranks));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_EQ(outcome.output, expected.output) << ranks << " ranks";
  }
}

TEST(SpeculationTest, AFalsePredicateLeavesNoTrace) {
  ExpectSameAsOnOneRank(
      "X = rand(rows=300, cols=3, seed=1)\nn = 0\n"
      "for (limit in 1:6) {\n"
      "  while (sum(X) > limit * 60) {\n    X = X * 0.9\n    n = n + sum(X)\n  }\n"
      "  print(limit + \" \" + n + \" \" + sum(X))\n"
      "  X = X * 2\n}\n"
      "while (sum(X) < 0) { X = X + 1 }\nprint(toString(colSums(X), decimal=16))");
}

TEST(SpeculationTest, VariablesOfTheBodyAreReadBeforeTheyAreAssigned) {
  ExpectSameAsOnOneRank(
      "X = rand(rows=300, cols=3, seed=1)\nY = X * 2\n"
      "while (sum(X) < 20000) {\n  Z = X\n  X = Y + 0.25\n  Y = Z + X\n}\n"
      "print(sum(X) + \" \" + sum(Y) + \" \" + sum(Z))");
}

TEST(SpeculationTest, RandomNumbersAreThoseOfRoundsThatAreRun) {
  ExpectSameAsOnOneRank(
      "X = matrix(1, rows=300, cols=3)\n"
      "while (sum(X) > 1) { X = X - rand(rows=300, cols=3) }\nprint(sum(X))\n"
      "for (i in 1:3) { X = X + i\n while (sum(X) > 5) { X = X - rand(rows=300, cols=3) } }\n"
      "print(sum(X) + \" \" + sum(rand(rows=30, cols=3)))");
}

TEST(SpeculationTest, SizesOfTheBodyMayChange) {
  ExpectSameAsOnOneRank(
      "X = rand(rows=300, cols=3, seed=1)\n"
      "while (sum(X) < 5000) { X = rbind(X, X * 1.5) }\nprint(nrow(X) + \" \" + sum(X))");
}

TEST(SpeculationTest, AnErrorOfABodyThatIsNotEnteredIsNone) {
  const ScriptOutcome outcome = RunScript(
      "X = rand(rows=300, cols=3, seed=1)\nY = rand(rows=4, cols=4, seed=1)\nn = 0\n"
      "while (sum(X) < n) { X = X %*% Y }\nprint(sum(X) > 0)\n"
      "while (sum(X) > n) { X = X %*% Y }",
      SplitOver(2));
  EXPECT_EQ(outcome.output, "TRUE\n");
  EXPECT_EQ(outcome.status.position().line, 6) << outcome.status.ToString();
}

TEST(SpeculationTest, ARoundTakesOnePlan) {
  const auto plans = [](int rounds) {
    const ScriptOutcome outcome =
        RunScript("X = matrix(1, rows=300, cols=3)\nwhile (sum(X) < " + std::to_string(900 * (rounds + 1)) +
                      ") { X = X + 1 }\nprint(sum(X))",
                  SplitOver(3));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    const SessionStatistics& statistics = outcome.statistics.front();
    return statistics.plans_compiled + statistics.plans_reused;
  };
  EXPECT_EQ(plans(20) - plans(10), 10);
}

TEST(SpeculationTest, AMuchLargerBodyWaitsForThePredicate) {
  Plan plan;
  plan.ranks = 2;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Task task;
    task.id = TaskId::Make(rank, 0, 0);
    task.cost_ns = 50'000;
    plan.tasks.push_back(task);
  }
  EXPECT_TRUE(IsWorthwhile(plan));
  plan.tasks[1].cost_ns = 200'000;
  EXPECT_FALSE(IsWorthwhile(plan));
  plan.tasks[1].cost_ns = kUnboundedCost;
  EXPECT_FALSE(IsWorthwhile(plan));
}

}  // namespace
}  // namespace heddle::engine
