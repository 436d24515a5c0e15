// SPDX-License-Identifier: Apache-2.0
// Values that no statement names are not computed, whatever passes run.
#include <gtest/gtest.h>

#include "compiler/explain/explain.h"

namespace heddle::compiler {
namespace {

// X is 3 x 3, c a number that only the run knows.
constexpr const char* kBefore = "X = rand(rows=3, cols=3, seed=1)\nc = as.integer(sum(X)) - 9\n";

std::string After(std::string_view stage, const std::string& script) {
  Diagnostics diagnostics;
  const Result<std::string> text = Explain(script, CompileOptions(), stage, &diagnostics);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : "";
}

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(DropUnreadTest, WhatNoStatementNamesGoesThoughItMayFail) {
  for (
      const char* script :
      {"b = X[,c]", "b = solve(X, X[,1])", "b = table(X[,1], X[,2])", "b = as.double(toString(X))",
       "X[c,1] = 3", "[a, b] = lu(X)", "[a, b] = eigen(X)\nprint(nrow(b) + ncol(a))",
       "b = X[,c]\nb = 1\nprint(b)", "b = X[,c]\nd = b * 2\ne = sum(d)",
       "if (c > 0) { b = X[,c] } else { b = X[c,] }", "for (i in 1:3) { b = X[,c + i] }",
       "i = 0\nwhile (i < 3) { b = X[,c]\ni = i + 1 }", "b = X[,c]\nprint(nrow(b))",
       "b = X[,c]\nif (c > 0) { b = 2 } else { b = 3 }\nprint(b)",
       "f = function(matrix[double] A, int k) return (matrix[double] y) { y = A[,k] }\nb = f(X, c)",
       "f = function(matrix[double] A, int k) return (matrix[double] y) { y = A\nif (k > 0) { y = A[,k] } }\n"
       "f(X, c)\nb = f(X, c)"}) {
    const std::string text = After("drop-unread", std::string(kBefore) + script);
    // A function that nobody calls any more is printed all the same.
    for (const char* gone :
         {"index(X", "index(%", "indexAssign", "solve", "eigen", "lu", "table", "as.double"})
      EXPECT_FALSE(Contains(text, gone)) << text;
    EXPECT_FALSE(Contains(text, "call ")) << text;
  }
}

TEST(DropUnreadTest, AFunctionDoesNotComputeResultsThatNoCallReads) {
  const std::string text = After(
      "drop-unread", std::string(kBefore) +
                         "f = function(matrix[double] A, int k) return (double s, matrix[double] y) {\n"
                         "s = sum(A)\nif (k > 5) { s = 1 }\ny = A[,k] }\n[s, y] = f(X, c)\n[t, z] = f(X, 2 "
                         "* c)\nprint(s + t)");
  EXPECT_FALSE(Contains(text, "index(")) << text;
  EXPECT_TRUE(Contains(text, "call [%t1] = f(")) << text;
}

TEST(DropUnreadTest, WhatIsNamedSomewhereStays) {
  for (const char* script :
       {"b = X[,c]\nprint(sum(b))", "b = X[,c]\nif (c > 100) { print(sum(b)) }",
        "b = X[,c]\nfor (i in 1:3) { if (i > 5) { print(sum(b)) } }", "b = X[1:c,]\nprint(nrow(b))",
        "b = X[,c]\nwrite(b, \"b.csv\")", "print(FALSE & as.scalar(X[c,1]) > 0)",
        "if (as.scalar(X[c,1]) > 0) { b = 1 }", "for (i in 1:as.scalar(X[c,1])) { b = 1 }",
        "s = 0\nfor (i in 1:3) { s = s + as.scalar(X[c,1]) }\nprint(s)"}) {
    const std::string text = After("drop-unread", std::string(kBefore) + script);
    EXPECT_TRUE(Contains(text, "index(")) << text;
  }
}

TEST(DropUnreadTest, WhatActsStaysWithAllItNeeds) {
  const std::string text =
      After("drop-unread",
            std::string(kBefore) +
                "f = function(matrix[double] A, int k) return (double s) { s = sum(A[,k])\nprint(k) }\n"
                "g = function(matrix[double] A, int k) return (double s) { s = f(A, k) }\n"
                "h = function(int k) return (int s) { s = k\nif (k > 7) { stop(\"large\") } }\n"
                "b = g(X, c)\nd = h(c)\nX2 = read(\"missing.csv\")");
  EXPECT_TRUE(Contains(text, "print(")) << text;
  EXPECT_TRUE(Contains(text, "stop(")) << text;
  EXPECT_TRUE(Contains(text, "missing.csv")) << text;
  EXPECT_FALSE(Contains(text, "index(")) << text;  // Of the result of f, which g gives to nobody.
}

TEST(DropUnreadTest, EachCallComputesWhatItReads) {
  const std::string text = After("drop-unread", std::string(kBefore) +
                                                    "f = function(matrix[double] A, int k) return (double s, "
                                                    "double t) {\ns = sum(A)\nt = 0\n"
                                                    "for (i in 1:k) { t = t + as.scalar(A[k,1]) } }\n"
                                                    "[a, b] = f(X, c)\n[d, e] = f(X, c)\nprint(a + b + d)");
  EXPECT_TRUE(Contains(text, "call [%t1, %t2] = f(")) << text;
  EXPECT_TRUE(Contains(text, "call [%t3] = f%1(")) << text;
}

}  // namespace
}  // namespace heddle::compiler
