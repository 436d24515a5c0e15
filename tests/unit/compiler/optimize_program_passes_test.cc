// SPDX-License-Identifier: Apache-2.0
// The passes that rewrite the control program: constants between blocks, merging, hoisting.
#include <gtest/gtest.h>

#include "compiler/explain/explain.h"
#include "compiler/optimize/pass.h"

namespace heddle::compiler {
namespace {

// What a script is after a stage, in words.
std::string After(std::string_view stage, const std::string& script) {
  Diagnostics diagnostics;
  const Result<std::string> text = Explain(script, CompileOptions(), stage, &diagnostics);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : "";
}

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr const char* kCoin = "coin = sum(rand(rows=1, cols=1))\n";  // in no pass's power to know

TEST(PropagateConstantsTest, AScalarAssignedOnceIsALiteralBehindBranchesAndInLoops) {
  const std::string text =
      After("program", std::string("n = 3\n") + kCoin +
                           "if (coin > 0.5) { print(1) }\nfor (i in 1:2) { print(n * 2) }\nprint(n + 1)");
  EXPECT_TRUE(Contains(text, "print(6)")) << text;
  EXPECT_TRUE(Contains(text, "print(4)")) << text;
  EXPECT_FALSE(Contains(text, "n = 3")) << text;
}

TEST(PropagateConstantsTest, WhatALoopOrABranchChangesStaysAVariable) {
  const std::string text =
      After("program", std::string("n = 3\nm = 3\n") + kCoin +
                           "while (n < 5) { n = n + 1 }\nif (coin > 0.5) { m = 4 }\nprint(n + m)");
  EXPECT_FALSE(Contains(text, "print(6)")) << text;
  EXPECT_FALSE(Contains(text, "print(7)")) << text;
}

TEST(PropagateConstantsTest, AFunctionSeesWhatAllItsCallsAgreeOn) {
  const std::string text =
      After("program",
            "f = function(double a, double b) return (double y) { if (a > b) { y = 1 } else { y = a } }\n"
            "x = f(1.0, 2.0)\nz = f(1.0, 3.0)\nprint(x + z)");
  EXPECT_TRUE(Contains(text, "1.0 > b")) << text;
}

TEST(PropagateConstantsTest, ValuesAreThoseOfTheRun) {
  const std::string text =
      After("program", "a = 0.1\nb = -0.0\nfor (i in 1:2) {\nprint(a * 3)\nprint(1 / b)\n}");
  EXPECT_TRUE(Contains(text, "print(0.30000000000000004)")) << text;
  EXPECT_TRUE(Contains(text, "print(-Infinity)")) << text;
}

TEST(InlineFunctionsTest, AFunctionCalledOnceOrOfFewOperatorsBecomesPartOfItsCaller) {
  const std::string once = After("program",
                                 "f = function(matrix[double] X) return (double s) {\n"
                                 "s = 0\nfor (i in 1:3) { s = s + sum(X) * i } }\n"
                                 "A = rand(rows=4, cols=4)\nprint(f(A))");
  EXPECT_FALSE(Contains(once, "\nfunction ")) << once;
  EXPECT_LT(once.find("sum("), once.find("for")) << once;  // what is in it moves, too
  const std::string twice = After("program",
                                  "f = function(matrix[double] X) return (double s) { s = sum(X ^ 2) }\n"
                                  "A = rand(rows=4, cols=4)\nprint(f(A) + f(A))");
  EXPECT_TRUE(Contains(twice, "%3 + %3")) << twice;
}

// What inlining a script has, and has not.
void ExpectInlined(const std::string& script, const std::string& has, const std::string& has_not) {
  const std::string text = After("inline-functions", script);
  EXPECT_TRUE(Contains(text, has)) << text;
  EXPECT_FALSE(Contains(text, has_not)) << text;
}

TEST(InlineFunctionsTest, AParameterThatIsAssignedSaysNothingOfTheArgument) {
  ExpectInlined(
      "f = function(matrix[double] X) return (double s) {\n"
      "X = rand(rows=2, cols=3)\ns = 0\nfor (i in 1:3) { s = s + sum(X) * i } }\n"
      "A = rand(rows=4, cols=4)\nprint(f(A))",
      "%in0.X = A\n", "A : 2x3");
}

TEST(InlineFunctionsTest, AVariableThatTakesSeveralResultsHasTheLast) {
  ExpectInlined(
      "f = function(double x) return (double y, double z) {\n"
      "y = x + 1\nz = x * 2 }\n"
      "a = sum(rand(rows=2, cols=2))\n[a, a] = f(a)\nprint(a)",
      "%1 = as.declared(%t2, type=\"double\", what=\"function 'f': result 'z'\") : double\n    print(%1)\n",
      "a = %1\n");
}

TEST(InlineFunctionsTest, AllCallsOfAFunctionNameItsVariablesAlike) {
  const std::string text = After("inline-functions",
                                 "f = function(double x) return (double y) { y = x * 2 }\n"
                                 "g = function(double x) return (double y) { y = x * 3 }\n"
                                 "a = sum(rand(rows=2, cols=2))\nprint(f(a) + f(a + 1) + g(f(a + 2)))");
  int calls = 0;
  for (size_t at = 0; (at = text.find("%in0.x =", at)) != std::string::npos; ++at) ++calls;
  EXPECT_EQ(calls, 3) << text;
  EXPECT_TRUE(Contains(text, "%in1.x =")) << text;
  EXPECT_FALSE(Contains(text, "%in2.")) << text;
}

TEST(InlineFunctionsTest, WhatWouldChangeAnErrorOrARandomNumberStaysACall) {
  const char* const kStay[] = {
      // Called twice, and more than one block.
      "f = function(double x) return (double y) { y = x\nif (x > 1) { y = 2 * x } }\nprint(f(coin) + f(2 * "
      "coin))",
      // A result, or what it is made of, that may have no value.
      "f = function(double x) return (double y) { if (x > 1) { y = x } }\nprint(f(coin))",
      "f = function(double x) return (double y) { y = 1\nif (x > 1) { z = x }\nif (x > 2) { y = z } "
      "}\nprint(f(coin))",
      // An argument that may have no value.
      "f = function(matrix[double] X) return (double y) { y = sum(X) }\nif (coin > 0.5) { A = rand(rows=2, "
      "cols=2) }\n"
      "print(f(A))",
      // Numbers of one place in the script.
      "f = function(int n) return (double y) { y = sum(rand(rows=n, cols=n)) }\nprint(f(2) - f(2))",
      // A scalar that the call may have to convert.
      "f = function(int n) return (double y) { n = n * 1.5\nif (n > 2.5) { n = 1 }\ny = n }\nprint(f(2))",
      // Recursion.
      "f = function(int n) return (double y) { y = 0\nif (n > 0) { y = f(n - 1) } }\nprint(f(2))",
  };
  for (const char* script : kStay) {
    const std::string text = After("inline-functions", std::string(kCoin) + script);
    EXPECT_TRUE(Contains(text, "= f(")) << text;
  }
}

TEST(MergeBlocksTest, NeighboursLeftByABranchBecomeOneGraph) {
  const std::string text =
      After("merge-blocks",
            "x = sum(rand(rows=2, cols=2))\nif (FALSE) { x = 5 }\ny = x * 2\nif (TRUE) { x = y }\nprint(x)");
  EXPECT_EQ(text.find("block"), text.rfind("block")) << text;
  EXPECT_TRUE(Contains(text, "x = %3")) << text;
}

TEST(MergeBlocksTest, EffectsKeepTheOrderOfTheScript) {
  CompileOptions options;
  Diagnostics diagnostics;
  const Result<Program> program = CompileScript(
      "x = sum(rand(rows=1, cols=1))\nprint(x)\nif (TRUE) { print(2 * x)\nprint(3 * x) }\nprint(4 * x)",
      options, &diagnostics);
  ASSERT_TRUE(program.ok());
  ASSERT_EQ(program->main.size(), 1u);
  const Graph& graph = program->main[0].graph;
  NodeId previous = kNoNode;
  int prints = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!graph[id].Is("print")) continue;
    ++prints;
    if (previous != kNoNode) {
      ASSERT_EQ(graph[id].after.size(), 1u) << graph.ToText();
      EXPECT_EQ(graph[id].after[0], previous);
    }
    previous = id;
  }
  EXPECT_EQ(prints, 4);
}

TEST(MergeBlocksTest, TheLastAssignmentCountsAndReadsBeforeItSeeTheOldValue) {
  const std::string text = After("merge-blocks",
                                 "x = sum(rand(rows=1, cols=1))\nif (TRUE) { y = x }\nif (TRUE) { x = 7 * y "
                                 "}\nif (TRUE) { print(x - y) }");
  EXPECT_TRUE(Contains(text, "print(%4)")) << text;
  EXPECT_TRUE(Contains(text, "%4 = %3 - %2")) << text;
}

TEST(HoistTest, AnAggregateOfWhatDoesNotChangeIsComputedOnce) {
  const std::string text =
      After("hoist", std::string("X = rand(rows=20, cols=3)\nw = rand(rows=3, cols=1)\n") + kCoin +
                         "for (i in 1:10) { s = sum(X ^ 2)\nw = w * s + t(X) %*% (X %*% w) }\nprint(sum(w))");
  const size_t loop = text.find("for i");
  EXPECT_LT(text.find("^ 2"), loop) << text;
  EXPECT_NE(text.find("t%*%", loop), std::string::npos) << text;
}

TEST(HoistTest, OutOfALoopThatMayNotRunMovesBehindItsPredicate) {
  const std::string text =
      After("hoist", std::string("X = rand(rows=20, cols=3)\n") + kCoin +
                         "while (coin > 0.5) { coin = coin - sum(t(X) %*% X) }\nprint(coin)");
  const size_t guard = text.find("  if"), product = text.find("t%*%"), loop = text.find("while");
  ASSERT_NE(guard, std::string::npos) << text;
  EXPECT_LT(guard, product) << text;
  EXPECT_LT(product, loop) << text;
  EXPECT_TRUE(Contains(text.substr(guard, product - guard), "coin > 0.5")) << text;
  EXPECT_EQ(text.find("sum(", loop), std::string::npos) << text;
}

TEST(HoistTest, APredicateThatCostsSomethingIsNotComputedOnceMore) {
  for (const char* predicate :
       {"sum(X) * coin > 0.5", "sum(rand(rows=1, cols=1)) > coin", "as.scalar(X[1, 1]) > coin"}) {
    const std::string text =
        After("hoist", std::string("X = rand(rows=20, cols=3)\nY = rand(rows=20, cols=3)\n") + kCoin +
                           "while (" + predicate + ") { X = X * sum(t(Y) %*% Y) }\nprint(sum(X))");
    EXPECT_GT(text.find("t%*%"), text.find("while")) << text;
  }
}

TEST(HoistTest, ASequenceThatIsKnownToBeginCounts) {
  const std::string script = std::string("X = rand(rows=20, cols=3)\n") + kCoin;
  const std::string runs =
      After("hoist", script + "for (i in seq(1, 9, 2)) { coin = coin * sum(X) }\nprint(coin)");
  EXPECT_LT(runs.find("sum(X)"), runs.find("for i")) << runs;
  const std::string may_run =
      After("hoist", script + "for (i in seq(1, coin, 2)) { coin = coin * sum(X) }\nprint(coin)");
  EXPECT_GT(may_run.find("sum(X)"), may_run.find("for i")) << may_run;
}

TEST(HoistTest, FunctionsOfCellsMoveWhatIsCheapStays) {
  const std::string script = std::string("X = rand(rows=20, cols=3)\nY = rand(rows=20, cols=3)\n") + kCoin;
  for (const char* heavy : {"exp(X)", "X ^ 3", "1 / (1 + exp(X))", "X * log(Y)", "1 - tanh(X) * coin2"}) {
    const std::string text = After("hoist", script + "coin2 = coin * 2\nfor (i in 1:3) { coin = max((" +
                                                heavy + ") - coin) }\nprint(coin)");
    EXPECT_TRUE(Contains(text.substr(text.find("for i")), "%hoist")) << heavy << text;
  }
  for (const char* cheap : {"X + Y", "X ^ 2", "abs(X) / 3", "t(X)", "X > Y"}) {
    const std::string text =
        After("hoist", script + "for (i in 1:3) { coin = max((" + cheap + ") - coin) }\nprint(coin)");
    EXPECT_FALSE(Contains(text, "%hoist")) << cheap << text;
  }
}

TEST(HoistTest, FunctionsThatASparseMatrixMayPickFromStay) {
  const std::string script =
      std::string("X = read(\"x.csv\")\nY = read(\"y.csv\")\nw = read(\"w.csv\")\n") + kCoin;
  for (const char* picked : {"X * exp(Y)", "X * (exp(Y) + coin)", "X / (2 - log(Y))"}) {
    const std::string text = After("hoist", script + "for (i in 1:3) { X = " + picked + " }\nprint(sum(X))");
    EXPECT_FALSE(Contains(text, "%hoist")) << picked << text;
  }
  const std::string text = After("hoist", script + "for (i in 1:3) { X = X - exp(Y) }\nprint(sum(X))");
  EXPECT_TRUE(Contains(text, "%hoist")) << text;
}

TEST(HoistTest, ALoopThatIsKnownToBeginCounts) {
  const std::string text =
      After("hoist", std::string("X = rand(rows=20, cols=3)\ni = 0\ngo = TRUE\n") + kCoin +
                         "while (go & i < 10) { i = i + 1\ngo = coin < sum(X)\n}\nprint(i)");
  EXPECT_LT(text.find("sum(X)"), text.find("while")) << text;
}

TEST(HoistTest, WhatCannotFailMovesAcrossAnEffectNothingOutOfABranch) {
  const std::string text = After("hoist", std::string("X = rand(rows=20, cols=3)\n") + kCoin +
                                              "for (i in 1:3) { print(i)\nprint(sum(X)) }\n"
                                              "for (i in 1:3) { if (coin > i) { print(min(X)) } }");
  EXPECT_LT(text.find("sum(X)"), text.find("for i")) << text;
  EXPECT_GT(text.find("min(X)"), text.find("if")) << text;
}

TEST(HoistTest, WhatMayFailStaysBehindWhatMayPrint) {
  const char* const kMayFail[] = {
      "sum(X %*% Y)",      // sizes that only the run knows
      "sum(Z)",            // a variable that may have no value
      "sum(A * (n * n))",  // whole numbers that may overflow
  };
  const std::string script =
      std::string("X = read(\"x.csv\")\nY = read(\"y.csv\")\nA = rand(rows=3, cols=3)\n") + kCoin +
      "n = as.integer(toString(coin))\nif (coin > 0.5) { Z = rand(rows=2, cols=2) }\n";
  for (const char* may_fail : kMayFail) {
    for (const char* before : {"print(i)", "if (coin > 2) { stop(\"no\") }"}) {
      const std::string text = After("hoist", script + "for (i in 1:3) {\n" + before + "\ncoin = coin * " +
                                                  may_fail + "\n}\nprint(coin)");
      EXPECT_FALSE(Contains(text, "%hoist")) << text;
    }
    const std::string text =
        After("hoist", script + "for (i in 1:3) { coin = coin * " + may_fail + " }\nprint(coin)");
    EXPECT_TRUE(Contains(text, "%hoist")) << text;
  }
}

TEST(HoistTest, AProductThatARuleMaySampleStays) {
  const std::string text = After("hoist", std::string("X = read(\"x.csv\")\nU = read(\"u.csv\")\n") + kCoin +
                                              "for (i in 1:3) { X = X * (U %*% t(U)) }\nprint(sum(X))");
  EXPECT_GT(text.find("%*%"), text.find("for i")) << text;
}

TEST(HoistTest, WhatNeedsACheapResultThatStaysIsComputedBesideIt) {
  const std::string text =
      After("hoist", std::string("X = rand(rows=3, cols=3)\nZ = X\n") + kCoin +
                         "for (i in 1:3) {\nA = X + 1\nZ = Z + A + colSums(A %*% X)\n"
                         "B = X + 2\nZ = Z + B + rowSums(B %*% X) + sum(X)\n}\nprint(sum(Z))");
  const size_t loop = text.find("for i");
  EXPECT_LT(text.find("sum(X)"), loop) << text;
  EXPECT_GT(text.find("colSums("), loop) << text;
  EXPECT_GT(text.find("rowSums("), loop) << text;
  EXPECT_GT(text.find("%*%"), loop) << text;
}

TEST(HoistTest, RandomNumbersAreNewInEveryRound) {
  const std::string text = After("hoist", "for (i in 1:3) { print(sum(rand(rows=2, cols=2))) }");
  EXPECT_GT(text.find("sum("), text.find("for i")) << text;
}

TEST(HoistTest, InnerLoopsHandOnToOuterOnes) {
  const std::string text =
      After("hoist", std::string("X = rand(rows=20, cols=3)\n") + kCoin +
                         "for (i in 1:3) { for (j in 1:3) { coin = coin + sum(X) } }\nprint(coin)");
  EXPECT_LT(text.find("sum(X)"), text.find("for i")) << text;
}

TEST(StaticPassTest, LongChainsOfCallsAreFollowedWithoutRecursion) {
  std::string script;
  for (int i = 0; i < 20000; ++i)
    script += fmt::format("f{} = function(double x) return (double y) {{ y = f{}(x) }}\n", i, i + 1);
  script += "f20000 = function(double x) return (double y) { y = x }\nprint(f0(1))";
  Diagnostics diagnostics;
  EXPECT_TRUE(CompileScript(script, CompileOptions(), &diagnostics).ok());
}

TEST(StaticPassTest, ShapesBehindDeepCallsHoldForEveryCall) {
  // f is called with two sizes, once below so many others that it has to wait its turn.
  std::string script =
      "f = function(matrix[double] X) return (double y) { y = nrow(X) }\nprint(f(matrix(1, 3, 3)))\n";
  for (int i = 0; i < 1200; ++i)
    script += fmt::format("g{} = function(matrix[double] X) return (double y) {{ y = g{}(X) }}\n", i, i + 1);
  script += "g1200 = function(matrix[double] X) return (double y) { y = f(X) }\nprint(g0(matrix(1, 5, 5)))";
  const std::string text = After("program", script);
  EXPECT_TRUE(Contains(text, "nrow(X)")) << text.substr(0, 2000);
}

TEST(StaticPassTest, AMatrixOfMoreCellsThanCanBeCountedIsAnError) {
  Diagnostics diagnostics;
  const Result<Program> program = CompileScript(
      "X = rand(rows=4611686018427387904, cols=4)\nprint(length(X))", CompileOptions(), &diagnostics);
  ASSERT_FALSE(program.ok());
  EXPECT_TRUE(Contains(program.status().message(),
                       "rand: rows must be at most 281474976710656, not 4611686018427387904"))
      << program.status().ToString();
}

// Loops of a script whose X is 9 x 4 and whose s is a number, behind the pass.
void ExpectVectorized(const std::string& loop, bool expected) {
  const std::string text = After("vectorize-loops", "X = rand(rows=9, cols=4)\nB = X\ns = 0\nz = \"\"\n" +
                                                        loop + "\nprint(sum(B) + \" \" + s + z)");
  EXPECT_EQ(!Contains(text, "for "), expected) << text;
}

TEST(VectorizeLoopsTest, RoundsThatDoNotSeeEachOther) {
  for (const char* loop :
       {"for (i in 1:9) s = s + as.scalar(X[i,2])",
        "for (i in 2:9) { B[i,1] = X[i-1,1] * 2; s = max(s, as.scalar(X[i,1])) }",
        "for (j in 1:4) { B[,j] = X[,j] - mean(X[,j]) }",
        "for (i in 1:9) { v = as.scalar(X[i,1]); B[i,2] = v; B[i,3] = B[i,2] }",
        "for (i in seq(1, 9, 1)) B[i,] = X[i,]", "for (i in 1:9) for (j in 1:4) B[i,j] = X[i,j] ^ 2",
        "parfor (i in 1:9) B[i,1] = X[i,] %*% t(X[1,])"})
    ExpectVectorized(loop, true);
}

TEST(VectorizeLoopsTest, RoundsThatDoOrMayAndThoseOfOneNumberStay) {
  for (const char* loop :
       {"for (i in 2:9) B[i,1] = B[i-1,1] + X[i,1]", "for (i in 1:8) { B[i,1] = 0; B[i+1,1] = 1 }",
        "for (i in 1:9) B[i,1] = B[1,1] + X[i,1]", "for (i in 1:9) z = z + as.scalar(X[i,1])",
        "for (i in 1:9) s = s + (as.scalar(X[i,1]) > 0.5)", "for (i in 1:9) { print(i); B[i,1] = 2 }",
        "for (i in 9:1) B[i,1] = X[i,1]", "for (i in seq(1, 9, 2)) B[i,1] = X[i,1]",
        "for (i in 1:4) s = s + as.scalar(X[i,i])", "for (i in 1:9) s = as.scalar(X[i,1]) - s",
        "for (i in 1:9) s = s + i", "for (i in 1:9) { B[i,1] = X[i,1]; X = B * 2 }",
        "for (i in 1:9) B[i,1] = rand(rows=1, cols=1)"})
    ExpectVectorized(loop, false);
}

// The variable of a loop that may not run keeps what it was, a string here.
TEST(VectorizeLoopsTest, TheVariableOfAnEmptyLoopIsNoNumber) {
  const auto after = [](const std::string& loop) {
    return After("vectorize-loops", "X = rand(rows=9, cols=4)\nz = \"\"\n" + loop +
                                        "{ print(z) }\nfor (i in 1:9) z = z + as.scalar(X[i,1])\nprint(z)");
  };
  EXPECT_TRUE(Contains(after("for (z in seq(sum(X), 1, 1))"), "for i "));
  EXPECT_FALSE(Contains(after("for (z in 1:3)"), "for i "));
}

TEST(VectorizeLoopsTest, BoundsThatAreNotKnownAreLookedAtInTheRun) {
  const std::string text =
      After("vectorize-loops", std::string(kCoin) +
                                   "X = rand(rows=9 + coin, cols=2)\ns = 0\n"
                                   "for (i in 1:nrow(X)) s = s + as.scalar(X[i,2])\nprint(s)");
  const size_t guard = text.find("_from <= "), otherwise = text.find("else"), loop = text.find("for i");
  EXPECT_TRUE(guard < otherwise && otherwise < loop && loop != std::string::npos) << text;
  EXPECT_TRUE(Contains(text.substr(guard, otherwise - guard), "sum(")) << text;
  // seq(from, to, 1) is empty where from:to counts down.
  const std::string up =
      After("vectorize-loops", std::string(kCoin) +
                                   "X = rand(rows=9 + coin, cols=2)\ns = 0\n"
                                   "for (i in seq(3, nrow(X), 1)) s = s + as.scalar(X[i,2])\nprint(s)");
  EXPECT_TRUE(Contains(up, "_from <= ")) << up;
  EXPECT_FALSE(Contains(up, "else")) << up;
}

}  // namespace
}  // namespace heddle::compiler
