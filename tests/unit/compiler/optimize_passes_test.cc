// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/explain.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/rules.h"

namespace heddle::compiler {
namespace {

// The graph of the first block of a script, before any pass.
Graph Built(const std::string& script) {
  CompileOptions options;
  Graph graph;
  options.observe = [&](std::string_view stage, const Program& program) {
    if (stage == "shapes") graph = program.main[0].graph;
  };
  Diagnostics diagnostics;
  const Result<Program> program = CompileScript(script, options, &diagnostics);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return graph;
}

std::string After(Result<Graph> (*pass)(Graph), const std::string& script) {
  Result<Graph> graph = pass(Built(script));
  EXPECT_TRUE(graph.ok());
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph).ToString();
  Result<Graph> clean = RemoveDeadNodes(*std::move(graph));
  return ExplainGraph(*clean);
}

TEST(PassesTest, EveryRuleFires) {
  for (const Rule& rule : Rules()) {
    SCOPED_TRACE(rule.name);
    const auto script = [](std::string_view side) {
      return fmt::format("X = rand(rows=3, cols=4, seed=1)\nr = {}\nprint(r)\nif (sum(X) > 0) print(r)",
                         side);
    };
    EXPECT_NE(ExplainGraph(Built(script(rule.before))), ExplainGraph(Built(script(rule.after))));
    EXPECT_EQ(After(ApplyRules, script(rule.before)), After(ApplyRules, script(rule.after)));
  }
}

TEST(PassesTest, RulesLeaveScalarsAlone) {
  // t() of an unknown type cannot be simplified; here X is a matrix, y is not.
  EXPECT_EQ(After(ApplyRules, "X = rand(rows=2, cols=2, seed=1)\nprint(sum(t(t(t(X)))))"),
            After(ApplyRules, "X = rand(rows=2, cols=2, seed=1)\nprint(sum(t(X)))"));
}

TEST(PassesTest, ConstantsFoldToTheValueTheRunWouldHave) {
  EXPECT_EQ(After(FoldConstants, "x = 2 ^ 3 ^ 2\nprint(\"x = \" + x)"), "print(\"x = 512.0\")\nx = 512.0\n");
  EXPECT_EQ(After(FoldConstants, "x = 7 %/% 2 + 5 %% 3\nprint(x)"), "print(5)\nx = 5\n");
  EXPECT_EQ(After(FoldConstants, "X = matrix(1, rows=3, cols=2)\nprint(nrow(X) * ncol(X))\nprint(X)"),
            After(FoldConstants, "X = matrix(1, rows=3, cols=2)\nprint(6)\nprint(X)"));
}

TEST(PassesTest, WhatFailsIsNotFolded) {
  EXPECT_NE(After(FoldConstants, "x = as.double(\"abc\")\nprint(x)").find("as.double"), std::string::npos);
}

TEST(PassesTest, TimeIsNeverSharedNorFolded) {
  const std::string text = After(ShareCommonSubexpressions, "a = time()\nb = time()\nprint(b - a)");
  EXPECT_NE(text.find("%2 = time()"), std::string::npos) << text;
}

TEST(PassesTest, EqualOperatorsBecomeOneButLiteralsStayApart) {
  const std::string shared =
      After(ShareCommonSubexpressions, "X = rand(rows=2, cols=2, seed=3)\nprint(sum(X * 2) + sum(X * 2))");
  EXPECT_EQ(shared,
            "%1 = rand(rows=2, cols=2, seed=3) : 2x2\n%2 = %1 * 2                       : 2x2\n"
            "%3 = sum(%2)                      : double\n%4 = %3 + %3                      : "
            "double\nprint(%4)\nX = %1\n");
  // 1 and 1.0 are different values, 0.0 and -0.0 as well.
  const std::string apart = After(
      ShareCommonSubexpressions,
      "X = rand(rows=2, cols=2, seed=3)\nprint(X * 1)\nprint(X * 1.0)\nprint(X / 0.0)\nprint(X / -0.0)");
  EXPECT_NE(apart.find("* 1.0"), std::string::npos) << apart;
  EXPECT_NE(apart.find("/ -0.0"), std::string::npos) << apart;
}

TEST(PassesTest, RandomMatricesWithoutSeedAreDifferent) {
  const std::string text = After(ShareCommonSubexpressions,
                                 "X = rand(rows=2, cols=2)\nY = rand(rows=2, cols=2)\nprint(sum(X - Y))");
  EXPECT_NE(text.find("%2 = rand"), std::string::npos) << text;
}

TEST(PassesTest, EffectsStayInOrderWhateverIsRemoved) {
  Graph graph = Built(
      "print(1)\nX = inv(matrix(\"1 0 0 1\", 2, 2))\nprint(2)\nY = inv(matrix(\"1 0 0 1\", 2, "
      "2))\nprint(3)\nx = as.integer(\"4\")\nprint(x)");
  Result<Graph> result = RunGraphPasses(std::move(graph), PassOptions());
  ASSERT_TRUE(result.ok());
  // Every print comes after the one before it, over whatever path.
  std::vector<NodeId> prints;
  for (NodeId id = 0; id < result->size(); ++id)
    if ((*result)[id].Is("print")) prints.push_back(id);
  ASSERT_EQ(prints.size(), 4u);
  for (size_t i = 1; i < prints.size(); ++i) {
    std::vector<NodeId> path = {prints[i]};
    bool found = false;
    while (!path.empty() && !found) {
      const NodeId id = path.back();
      path.pop_back();
      found = id == prints[i - 1];
      path.insert(path.end(), (*result)[id].after.begin(), (*result)[id].after.end());
    }
    EXPECT_TRUE(found) << "print " << i << "\n" << result->ToText();
  }
}

TEST(PassesTest, LiteralBranchesAreTaken) {
  CompileOptions options;
  options.arguments["verbose"] = "FALSE";
  Diagnostics diagnostics;
  const Result<Program> program = CompileScript(
      "if ($verbose) { print(1) } else { print(2) }\nwhile (1 > 2) print(3)\n", options, &diagnostics);
  ASSERT_TRUE(program.ok());
  ASSERT_EQ(program->main.size(), 1u);
  EXPECT_EQ(ExplainGraph(program->main[0].graph), "print(2)\n");
}

TEST(PassesTest, APassCanBeSwitchedOffByName) {
  std::vector<std::string> seen;
  CompileOptions options;
  options.disabled_passes = {"share", "rules"};
  options.observe = [&](std::string_view stage, const Program&) { seen.emplace_back(stage); };
  Diagnostics diagnostics;
  ASSERT_TRUE(CompileScript("print(1)", options, &diagnostics).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"build", "shapes", "fold-constants", "remove-dead",
                                            "simplify-branches", "remove-unread", "mark-dead"}));
}

}  // namespace
}  // namespace heddle::compiler
