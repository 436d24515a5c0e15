// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/explain/explain.h"
#include "compiler/optimize/pass.h"

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

std::string After(Result<Graph> (*pass)(Graph, const PassOptions&), const std::string& script) {
  Result<Graph> graph = pass(Built(script), PassOptions());
  EXPECT_TRUE(graph.ok());
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph).ToString();
  Result<Graph> clean = RemoveDeadNodes(*std::move(graph), PassOptions());
  return ExplainGraph(*clean);
}

TEST(PassesTest, RulesApplyInsideEachOther) {
  EXPECT_EQ(After(ApplyExactRules, "X = rand(rows=2, cols=2, seed=1)\nprint(sum(t(t(t(X)))))"),
            After(ApplyExactRules, "X = rand(rows=2, cols=2, seed=1)\nprint(sum(t(X)))"));
}

TEST(PassesTest, ARuleLeavesWhatOthersReadInside) {
  const std::string text = After(ApplyOrderRules,
                                 "A = rand(rows=9, cols=4, seed=1)\nB = rand(rows=4, cols=9, seed=2)\n"
                                 "P = A %*% B\nprint(sum(P))\nprint(max(P))");
  EXPECT_NE(text.find("sum(%3)"), std::string::npos) << text;
}

TEST(PassesTest, CallsOfSeveralResultsAreShared) {
  const std::string text = After(ShareCommonSubexpressions,
                                 "A = rand(rows=3, cols=3, seed=1)\n[P, L, U] = lu(A)\n[Q, M, V] = lu(A)\n"
                                 "print(sum(L) + sum(M))");
  EXPECT_NE(text.find("[%2, %3, %4] = lu(%1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("lu(", text.find("lu(") + 1), std::string::npos) << text;
  EXPECT_NE(text.find("%6 = %5 + %5"), std::string::npos) << text;
}

TEST(PassesTest, ARuleCanBeSwitchedOffByName) {
  PassOptions options;
  options.disabled = {"sum-of-transpose"};
  const Graph graph = Built("X = rand(rows=2, cols=2, seed=1)\nprint(sum(t(X)))");
  EXPECT_NE(ExplainGraph(*ApplyOrderRules(graph, options)).find("t(%1)"), std::string::npos);
  EXPECT_EQ(ExplainGraph(*ApplyOrderRules(graph, PassOptions())).find("t(%1)"), std::string::npos);
}

TEST(PassesTest, TransposesGoThroughCellsThatMeetScalarsOnly) {
  const std::string script = "X = rand(rows=9, cols=4, seed=1)\nY = rand(rows=4, cols=9, seed=2)\n";
  EXPECT_EQ(After(ApplyExactRules, script + "print(sum(t(exp(t(X)) * 2 - 1)))").find("= t("),
            std::string::npos);
  EXPECT_NE(After(ApplyExactRules, script + "print(sum(t(exp(t(X)) * Y)))").find("= t("), std::string::npos);
  EXPECT_NE(After(ApplyExactRules, script + "E = exp(t(X))\nprint(sum(t(E)) + max(E))").find("= t("),
            std::string::npos);
}

TEST(PassesTest, AMatrixOfOneValueThatMayNotFitIsLeftToTheRun) {
  for (const char* result : {"X %*% matrix(1, n, 1)", "matrix(1, 1, n) %*% X", "t(X) %*% matrix(1, n, 1)",
                             "X * matrix(2, n, 1)", "X + X[, 1] %*% matrix(1, 1, n)"}) {
    const auto has_fill = [&](const std::string& count) {
      Result<Graph> graph = ApplyExactRules(
          Built("X = rand(rows=4, cols=4, seed=1)\nn = " + count + "\nprint(sum(" + result + "))"),
          PassOptions());
      EXPECT_TRUE(graph.ok());
      graph = ApplyOrderRules(*std::move(graph), PassOptions());
      EXPECT_TRUE(graph.ok());
      return ExplainGraph(*graph).find("matrix(") != std::string::npos;
    };
    EXPECT_FALSE(has_fill("4")) << result;
    EXPECT_TRUE(has_fill("as.integer(sum(X))")) << result;
  }
}

TEST(PassesTest, TheIdentityDisappears) {
  const std::string script = "X = rand(rows=9, cols=4, seed=1)\n";
  for (const char* product : {"diag(matrix(1, 9, 1)) %*% X", "X %*% diag(matrix(1, 4, 1))"}) {
    Result<Graph> graph = Built(script + "print(toString(" + product + "))");
    for (int entry = 0; entry < 2 && graph.ok(); ++entry)  // of the compiler and of the block
      graph = RunGraphPasses(*std::move(graph), PassOptions());
    ASSERT_TRUE(graph.ok());
    EXPECT_NE(ExplainGraph(*graph).find("toString(%1)"), std::string::npos) << ExplainGraph(*graph);
  }
}

TEST(PassesTest, AProductWithAnEmptyCellIsNotAScale) {
  // Infinity times the absent cell of a narrow right operand is NaN, times an absent cell of s * Y nothing.
  const std::string text =
      After(ApplyExactRules,
            "x = rand(rows=1, cols=1, seed=1)\nY = rand(rows=1, cols=5, sparsity=0.1, seed=2)\n"
            "print(toString(x %*% Y))");
  EXPECT_NE(text.find("%*%"), std::string::npos) << text;
}

TEST(PassesTest, ASparseDriverSamplesItsProductWhereFormatsAreKnown) {
  const std::string script =
      "X = rand(rows=300, cols=200, sparsity=0.01, seed=1)\nU = rand(rows=300, cols=5, seed=2)\n"
      "V = rand(rows=200, cols=5, seed=3)\n";
  EXPECT_NE(After(ApplyOrderRules, script + "print(sum(X * log(U %*% t(V) + 1e-15)))")
                .find("sampledProduct(%1, %2, %3)"),
            std::string::npos);
  EXPECT_NE(After(ApplyOrderRules, script + "Z = ((X != 0) * (U %*% t(V))) %*% V\nprint(sum(Z))")
                .find("sampledProduct"),
            std::string::npos);
  EXPECT_NE(
      After(ApplyOrderRules, script + "print(sum((X != 0) * (X - U %*% t(V))^2))").find("sampledProduct"),
      std::string::npos);
  // 0 / 0 is NaN, so a quotient has all cells.
  EXPECT_EQ(After(ApplyOrderRules, script + "print(sum(X / (U %*% t(V))))").find("sampledProduct"),
            std::string::npos);
  // In a product what has no entry adds nothing, NaN or not.
  for (const std::string product :
       {"(X / (U %*% t(V))) %*% V", "t(U) %*% (X / (U %*% t(V) + 1e-15))", "t(X / (U %*% t(V))^2) %*% U",
        "V2 %*% (X / (U %*% t(V)))", "(X / (t(U2) %*% t(V))) %*% V"})
    EXPECT_NE(
        After(ApplyOrderRules,
              script + "U2 = rand(rows=5, cols=300, seed=4)\nV2 = rand(rows=5, cols=300, seed=5)\nZ = " +
                  product + "\nprint(Z[1, 1])")
            .find("sampledProduct(%1, "),
        std::string::npos)
        << product;
  // A dense driver picks every cell.
  EXPECT_EQ(After(ApplyOrderRules, script + "D = X + 1\nprint(sum(D * (U %*% t(V))))").find("sampledProduct"),
            std::string::npos);
}

TEST(PassesTest, AFewCellsOfAProductAreAProductOfAFewRowsAndColumns) {
  const std::string script =
      "A = rand(rows=300, cols=20, seed=1)\nB = rand(rows=20, cols=200, seed=2)\nP = A %*% B\n";
  const std::string cell = After(ApplyOrderRules, script + "x = P[7, 3:5]\nP = 0");
  EXPECT_NE(cell.find("index(%1, 7, 7)"), std::string::npos) << cell;
  EXPECT_NE(cell.find("index(%2, _, _, 3, 5)"), std::string::npos) << cell;
  EXPECT_EQ(cell.find("%1 %*% %2"), std::string::npos) << cell;
  const auto product_stays = [&](const std::string& rest) {
    return After(ApplyOrderRules, script + rest).find("%1 %*% %2") != std::string::npos;
  };
  EXPECT_FALSE(product_stays("x = P[, 1]\nP = 0"));
  EXPECT_TRUE(product_stays("x = P[, 1:150]\nP = 0")) << "most of it";
  EXPECT_TRUE(product_stays("x = P[1, ]")) << "needed anyway";
  EXPECT_TRUE(product_stays("n = sum(A)\nx = P[n, ]\nP = 0")) << "a bound that may be wrong";
  EXPECT_TRUE(product_stays("v = B[, 1]\nQ = A %*% v\nx = Q[7, ]\nQ = 0\ny = P"))
      << "who picks rows needs the whole matrix: A has more cells";
  // The order of effects leads through what was picked, and goes on without it.
  const Graph ordered =
      *ApplyOrderRules(Built(script + "print(\"a\")\nx = P[7, 3]\nP = 0\nprint(\"b\")"), PassOptions());
  std::vector<NodeId> prints;
  for (NodeId id = 0; id < ordered.size(); ++id)
    if (ordered[id].Is("print")) prints.push_back(id);
  ASSERT_EQ(prints.size(), 2u);
  EXPECT_EQ(ordered[prints[1]].after, std::vector<NodeId>{prints[0]});
}

TEST(PassesTest, ProductsGoThroughTheSmallestMatrices) {
  const std::string text = After(OrderProducts,
                                 "X = rand(rows=1000, cols=50, seed=1)\nv = rand(rows=50, cols=1, seed=2)\n"
                                 "print(sum(t(X) %*% X %*% v))");
  EXPECT_NE(text.find("%3 = %1 %*% %2"), std::string::npos) << text;
  EXPECT_NE(text.find("t%*%(%1, %3)"), std::string::npos) << text;
}

// Entries times entries are few, but each takes as long as eight cells of a row.
TEST(PassesTest, ProductsOfTwoSparseFactorsAreNotSought) {
  const std::string text =
      After(OrderProducts,
            "X = rand(rows=100000, cols=1000, sparsity=0.01, seed=1)\nU = rand(rows=1000, cols=20, seed=2)\n"
            "P = t(X) %*% (X %*% U)\nprint(P[1,1])");
  EXPECT_NE(text.find("%3 = %1 %*% %2"), std::string::npos) << text;
  EXPECT_NE(text.find("t%*%(%1, %3)"), std::string::npos) << text;
}

TEST(PassesTest, AProductThatCannotBeIsLeftToTheRun) {
  CompileOptions options;
  Diagnostics diagnostics;
  const std::string script =
      "A = rand(rows=3, cols=4)\nif (sum(A) > 0) { print(sum(A %*% matrix(1, 5, 6) %*% matrix(1, 6, 1) + 1)) "
      "}";
  EXPECT_TRUE(CompileScript(script, options, &diagnostics).ok());
}

TEST(PassesTest, ConstantsFoldToTheValueTheRunWouldHave) {
  EXPECT_EQ(After(FoldConstants, "x = 2 ^ 3 ^ 2\nprint(\"x = \" + x)"), "print(\"x = 512.0\")\nx = 512.0\n");
  EXPECT_EQ(After(FoldConstants, "x = 7 %/% 2 + 5 %% 3\nprint(x)"), "print(5)\nx = 5\n");
  EXPECT_EQ(After(FoldConstants, "X = matrix(1, rows=3, cols=2)\nprint(nrow(X) * ncol(X))\nprint(X)"),
            After(FoldConstants, "X = matrix(1, rows=3, cols=2)\nprint(6)\nprint(X)"));
}

TEST(PassesTest, OneOperandMaySettleAndAndOr) {
  const std::string coin = "x = sum(rand(rows=1, cols=1, seed=1)) > 0.5\n";
  for (const char* settled : {"FALSE & x", "x & FALSE", "0 & x"})
    EXPECT_NE(After(FoldConstants, coin + "print(" + settled + ")").find("print(FALSE)"), std::string::npos)
        << settled;
  for (const char* settled : {"TRUE | x", "x | TRUE", "x | 2.5"})
    EXPECT_NE(After(FoldConstants, coin + "print(" + settled + ")").find("print(TRUE)"), std::string::npos)
        << settled;
  for (const char* open : {"TRUE & x", "x & TRUE", "FALSE | x", "x | 0"}) {
    const std::string text = After(FoldConstants, coin + "print(" + open + ")");
    EXPECT_EQ(text.find("print(FALSE)"), std::string::npos) << text;
    EXPECT_EQ(text.find("print(TRUE)"), std::string::npos) << text;
  }
}

TEST(PassesTest, WhatMayFailRunsThoughItsValueIsSettled) {
  const std::string text = After(
      FoldConstants, "s = toString(sum(rand(rows=1, cols=1, seed=1)))\nprint(FALSE & as.double(s) > 0)");
  EXPECT_NE(text.find("print(FALSE)"), std::string::npos) << text;
  EXPECT_NE(text.find("as.double("), std::string::npos) << text;
}

TEST(PassesTest, AnOperandThatMayBeAStringSettlesNothing) {
  Diagnostics diagnostics;
  const Result<std::string> text =
      Explain("x = \"a\"\nwhile (sum(rand(rows=1, cols=1)) > 0.5) { x = 1 }\nprint(FALSE & x)",
              CompileOptions(), "program", &diagnostics);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_EQ(text->find("print(FALSE)"), std::string::npos) << *text;
}

TEST(PassesTest, ASettledPredicateTakesItsBranch) {
  Diagnostics diagnostics;
  const Result<std::string> text = Explain(
      "x = sum(rand(rows=1, cols=1))\nverbose = FALSE\nif (verbose & x > 0.5) { print(1) } else { print(2) }",
      CompileOptions(), "program", &diagnostics);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_EQ(text->find("if"), std::string::npos) << *text;
  EXPECT_NE(text->find("print(2)"), std::string::npos) << *text;
}

TEST(PassesTest, WhatFailsIsNotFolded) {
  EXPECT_NE(After(FoldConstants, "x = as.double(\"abc\")\nprint(x)").find("as.double"), std::string::npos);
}

TEST(PassesTest, TimeIsNeverSharedNorFolded) {
  const std::string text = After(ShareCommonSubexpressions, "a = time()\nb = time()\nprint(b - a)");
  EXPECT_NE(text.find("%1 = time()"), std::string::npos) << text;
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
  EXPECT_EQ(seen, (std::vector<std::string>{"build", "shapes", "drop-unread", "read-through-storage",
                                            "inline-functions", "propagate-constants", "fold-constants",
                                            "simplify-branches", "vectorize-loops", "hoist", "merge-blocks",
                                            "cell-operands", "sequences", "order-rules", "order-products",
                                            "remove-dead", "remove-unread", "compress-where-made", "split-sums",
                                            "mark-dead"}));
}

}  // namespace
}  // namespace heddle::compiler
