// SPDX-License-Identifier: Apache-2.0
// `heddle repl` that reads from a pipe: no prompts, all statements, the exit code of the first error.
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::RunProcess;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

class ReplPipeTest : public testing::Test {
 protected:
  Finished Enter(const std::string& text, std::vector<std::string> options = {}) {
    std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle", "repl", "--threads", "1"};
    words.insert(words.end(), options.begin(), options.end());
    return RunProcess(words, folder_.path(), 60, text);
  }
  TemporaryFolder folder_;
};

TEST_F(ReplPipeTest, VariablesOfAllKindsLiveOn) {
  const Finished done = Enter(
      "x = 5\nX = matrix(\"1 2 3 4\", rows=2, cols=2)\nl = list(a=X, b=\"text\")\ns = \"say\"\n"
      "F = as.frame(X)\nx + 1\nX\nas.scalar(l[\"b\"])\ns\nnrow(F)\nX[1,1] = 9\nX[1,]\nl[\"a\"]\n"
      "exists(\"X\")\nexists(\"Y\")\n");
  EXPECT_EQ(done.output,
            "6\n1.000 2.000\n3.000 4.000\ntext\nsay\n2\n9.000 2.000\n"
            "List containing:\n[\nMatrix:\n1.000 2.000\n3.000 4.000\n]\nTRUE\nFALSE\n");
  EXPECT_EQ(done.errors, "");
  EXPECT_EQ(done.code, 0);
}

TEST_F(ReplPipeTest, StatementsOfSeveralLinesAreOne) {
  const Finished done = Enter(
      "x = 1 +\n  2\nif (x == 3) {\n  y = 10\n}\nelse {\n  y = 20\n}\ny\nt = \"two\nlines\"\nt\n/* a comment\n"
      "of two lines */ y + 1\nfor (i in 1:2)\n  print(i)\nA = matrix(1,\n\n  rows=1, cols=1)\nsum(A)\n"
      "a = 1; b = 2; a + b; a\n");
  EXPECT_EQ(done.output, "10\ntwo\nlines\n11\n1\n2\n1.0\n3\n1\n");
  EXPECT_EQ(done.errors, "");
}

TEST_F(ReplPipeTest, WhatIsDefinedHoldsUntilItIsDefinedAnew) {
  WriteText(folder_.path() + "/lib/one.dml", "g = function(double a) return (double b) { b = a + 1 }\n");
  WriteText(folder_.path() + "/lib/two.dml", "g = function(double a) return (double b) { b = a + 2 }\n");
  const Finished done = Enter(
      "f = function(double a) return (double b) { b = h(a) * 2 }\n"
      "h = function(double a) return (double b) { b = a + 1 }\nf(1)\n"
      "h = function(double a) return (double b) { b = a + 10 }\nf(1)\n"
      "source(\"lib/one.dml\") as ns\nns::g(1)\nsource(\"lib/two.dml\") as ns\nns::g(1)\n"
      "setwd(\"lib\")\nsource(\"one.dml\") as other\nother::g(5)\nsource(\"none.dml\") as no\nns::g(2)\n");
  EXPECT_EQ(done.output, "4.0\n22.0\n2.0\n3.0\n6.0\n4.0\n");
  EXPECT_EQ(done.errors,
            "input:1:48: warning: undefined function 'h'\n"
            "    1 | f = function(double a) return (double b) { b = h(a) * 2 }\n"
            "      |                                                ^\n"
            "input:13:1: error: cannot source 'none.dml': no such file\n"
            "   13 | source(\"none.dml\") as no\n"
            "      | ^~~~~~~~~~~~~~~~~~~~~~~~\n"
            "tried lib/none.dml\ntried lib/scripts/none.dml\n");
  EXPECT_EQ(done.code, 3);
}

// Of a statement when it runs, of a function when it is defined, and each once.
TEST_F(ReplPipeTest, WhatIsSurelyWrongIsAWarning) {
  const Finished done = Enter(
      "x = 5; y = x %/% 0\nf = function(double a) return (double b) { b = a; if (a == NaN) b = 1 }\nf(2)\n"
      "for (i in 1:1, check=0) print(i)\n");
  EXPECT_EQ(done.output, "2.0\n1\n");
  EXPECT_EQ(done.errors,
            "input:1:12: warning: a whole division by 0 gives no finite number\n"
            "    1 | x = 5; y = x %/% 0\n"
            "      |            ^~~~~~~\n"
            "input:2:55: warning: a comparison with NaN is never TRUE\n"
            "    2 | f = function(double a) return (double b) { b = a; if (a == NaN) b = 1 }\n"
            "      |                                                       ^~~~~~~~\n"
            "isNaN(x) tells where x is NaN\n"
            "input:4:16: warning: the options of a 'for' have no effect\n"
            "    4 | for (i in 1:1, check=0) print(i)\n"
            "      |                ^~~~~\n");
}

TEST_F(ReplPipeTest, AnErrorLeavesVariablesAsTheyWereAndTheFirstOneDecidesTheExitCode) {
  const Finished done = Enter(
      "X = matrix(1, rows=2, cols=2)\nfor (i in 1:3) { X[i,1] = 5 }\nX\n"
      "g = function(matrix[double] A) return (double b) { b = as.scalar(A[3,1]) }\ng(X)\nY = read(\"none\")\n"
      "exists(\"Y\")\nx = 1; stop(\"here\"); x = 2\nx\n");
  EXPECT_EQ(done.output, "1.000 1.000\n1.000 1.000\nFALSE\n1\n");
  EXPECT_EQ(done.errors.substr(0, 19), "input:2:18: warning") << done.errors;
  EXPECT_NE(done.errors.find("\ninput:2:18: error"), std::string::npos) << done.errors;
  EXPECT_NE(done.errors.find("input:4:66: error:"), std::string::npos) << done.errors;
  EXPECT_NE(done.errors.find("called at input:5:1"), std::string::npos) << done.errors;
  EXPECT_NE(done.errors.find("input:8:8: error: here"), std::string::npos) << done.errors;
  EXPECT_EQ(done.code, 1);
}

TEST_F(ReplPipeTest, LargeValuesShowTheirHeadAndSize) {
  const Finished done = Enter("X = matrix(1, rows=21, cols=13)\nX\nX[20,12]\n");
  std::string head;
  for (int row = 0; row < 10; ++row) {
    for (int column = 0; column < 10; ++column) head += column == 0 ? "1.000" : " 1.000";
    head += "\n";
  }
  EXPECT_EQ(done.output, head + "(matrix 21x13: its head)\n1.000\n");
}

TEST_F(ReplPipeTest, Commands) {
  WriteText(folder_.path() + "/a.dml", "z = 4\nz * 2\nk = function(double a) return (double b) { b = a }\n");
  const Finished done = Enter(
      ":load a.dml\nX = rand(rows=10, cols=3, seed=1)\n:type X %*% t(X)\n:type sum(X)\n:type k(2)\n:type z\n"
      ":vars\n:explain y = z + 1\n:time z = 5\nz\n:reset\n:vars\nz\n:quit\nprint(\"never\")\n");
  const size_t time = done.output.find(" s\n");
  ASSERT_NE(time, std::string::npos) << done.output;
  EXPECT_EQ(done.output.substr(0, done.output.find("program")),
            "8\nmatrix 10x10\ndouble\ndouble\ninteger 4\nX  matrix 10x3\nz  integer 4\n"
            "k = function(double a) return (double b)\n");
  EXPECT_NE(done.output.find("y = 5"), std::string::npos) << done.output;
  EXPECT_EQ(done.output.substr(time), " s\n5\n");
  EXPECT_NE(done.errors.find("error: undefined variable 'z'"), std::string::npos) << done.errors;
  EXPECT_EQ(done.code, 3);
}

TEST_F(ReplPipeTest, AnErrorInALoadedScriptSaysWhichLineItIs) {
  WriteText(folder_.path() + "/a.dml", "x = 1\nstop(\"here\")\n");
  EXPECT_EQ(Enter("y = 2\n:load a.dml\nx + y\n").errors,
            "input:3:1: error: here\nline 1 of 'a.dml' is line 2 of the session\n");
  EXPECT_EQ(Enter("", {"a.dml"}).errors, "input:2:1: error: here\n");
}

TEST_F(ReplPipeTest, HelpTellsOfFunctions) {
  const Finished done = Enter(":help lmPredictStats\n:help rowSums\n:help lmm\n");
  EXPECT_NE(done.output.find("lmPredictStats: prints and returns"), std::string::npos) << done.output;
  EXPECT_NE(done.output.find("\n  R = lmPredictStats(yhat, ytest, lm)\n"), std::string::npos) << done.output;
  EXPECT_NE(done.output.find("rowSums("), std::string::npos) << done.output;
  EXPECT_EQ(
      done.errors,
      "heddle: error: there is no function 'lmm' of the language or of the library; did you mean 'lm'?\n");
}

TEST_F(ReplPipeTest, CommandsThatAreNone) {
  const Finished done = Enter(":varz\n:type\n:quit now\n:load none.dml\n:type x = 1\n");
  EXPECT_EQ(done.errors,
            "heddle: error: unknown command ':varz'; did you mean :vars?\n:help lists the commands\n"
            "heddle: error: :type needs something: :type EXPR\n"
            "heddle: error: :quit takes nothing behind it, not 'now'\n"
            "heddle: error: cannot read script 'none.dml': no such file\n"
            "heddle: error: :type takes one expression\n");
  EXPECT_EQ(done.code, 2);
}

TEST_F(ReplPipeTest, AnEndInsideOfAStatementSaysWhatIsMissing) {
  const Finished done = Enter("x = (1 +\n");
  EXPECT_EQ(done.errors,
            "input:1:9: error: expected an expression, found the end of the file\n"
            "    1 | x = (1 +\n"
            "      |         ^\n");
  EXPECT_EQ(done.code, 3);
}

TEST_F(ReplPipeTest, OptionsAreThoseOfRun) {
  WriteText(folder_.path() + "/lib/twice.dml",
            "s_twice = function(double a) return (double b) { b = a * 2 }\n");
  const Finished done = Enter("twice($n)\nX = rand(rows=3, cols=1)\nsum(X) == sum(rand(rows=3, cols=1))\n",
                              {"--library", "lib", "--seed", "7", "-nvargs", "n=21"});
  EXPECT_EQ(done.output, "42.0\nFALSE\n");
  const Finished memory =
      Enter("X = rand(rows=10000, cols=10000)\nsum(inv(X))\n1 + 1\n", {"--memory", "100M"});
  EXPECT_EQ(memory.code, 5) << memory.errors;
  EXPECT_TRUE(memory.output.ends_with("2\n")) << memory.output;
}

}  // namespace
}  // namespace heddle
