// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/parse/parser.h"
#include "compiler/parse/print_ast.h"

namespace heddle::compiler {
namespace {

std::string Parsed(const std::string& text) {
  Diagnostics diagnostics;
  const ScriptFile file = Parse("test.dml", text, &diagnostics);
  return PrintScript(file) + diagnostics.RenderAll(Severity::kError);
}

TEST(ParseStatementTest, StatementsNeedNoSeparator) {
  EXPECT_EQ(Parsed("x = 1 y <- x + 2; z=3;;;w += y"), "(= x 1)\n(= y (+ x 2))\n(= z 3)\n(+= w y)\n");
  EXPECT_EQ(Parsed(""), "");
  EXPECT_EQ(Parsed("# only a comment"), "");
}

TEST(ParseStatementTest, AMultiAssignmentEndsTheExpressionBeforeIt) {
  EXPECT_EQ(Parsed("x = y\n[a,b] = f(z)"), "(= x y)\n(= (a b) (call f z))\n");
  EXPECT_EQ(Parsed("x = y [a] <- f(z)"), "(= x y)\n(= (a) (call f z))\n");
  EXPECT_EQ(Parsed("x = g(y)\n[a,b] = f(z)"), "(= x (call g y))\n(= (a b) (call f z))\n");
  EXPECT_EQ(Parsed("x = 1 + y\n[A[1,], b[i]] = f(z)"),
            "(= x (+ 1 y))\n(= ((index A 1 _) (index b i)) (call f z))\n");
  EXPECT_EQ(Parsed("x = y\n[a,b]\nz = 1"), "(= x (index y a b))\n(= z 1)\n");
  EXPECT_EQ(Parsed("x = y[a,b] == c"), "(= x (== (index y a b) c))\n");
}

TEST(ParseStatementTest, TargetsMayBeIndexed) {
  EXPECT_EQ(Parsed("X[1:n, j] = 3 X[i,] += Y l[\"a\"] = 1"),
            "(= (index X (: 1 n) j) 3)\n(+= (index X i _) Y)\n(= (index l \"a\") 1)\n");
}

TEST(ParseStatementTest, IfdefIsAnAssignment) {
  EXPECT_EQ(Parsed("x = ifdef($p, 1 + 2) y = ifdef($1, \"\")"), "(ifdef x $p (+ 1 2))\n(ifdef y $1 \"\")\n");
}

TEST(ParseStatementTest, CallsAreStatements) {
  EXPECT_EQ(Parsed("print(\"a\"); ns::f(X, k=1)"), "(call print \"a\")\n(call ns::f X (k= 1))\n");
}

TEST(ParseStatementTest, ElseBelongsToTheNearestIf) {
  EXPECT_EQ(Parsed("if (a) if (b) x = 1 else x = 2"), "(if a\n  (if b\n    (= x 1)\n  else\n    (= x 2)))\n");
  EXPECT_EQ(Parsed("if (a) { if (b) x = 1; } else x = 2"),
            "(if a\n  (if b\n    (= x 1))\nelse\n  (= x 2))\n");
  EXPECT_EQ(Parsed("if (a) {} else if (b) { y = 1 } else { y = 2; z = 3 }"),
            "(if a\nelse\n  (if b\n    (= y 1)\n  else\n    (= y 2)\n    (= z 3)))\n");
  EXPECT_EQ(Parsed("if (a) x = 1;\nelse x = 2"), "(if a\n  (= x 1)\nelse\n  (= x 2))\n");
}

TEST(ParseStatementTest, LoopsRunOverRangesAndSequences) {
  EXPECT_EQ(Parsed("while (i < 3) i = i + 1"), "(while (< i 3)\n  (= i (+ i 1)))\n");
  EXPECT_EQ(Parsed("for (i in 1:n+1) { x = i }"), "(for i (: 1 (+ n 1))\n  (= x i))\n");
  EXPECT_EQ(Parsed("for (i in nrow(X):1) print(i)"), "(for i (: (call nrow X) 1)\n  (call print i))\n");
  EXPECT_EQ(Parsed("for (i in seq(1, n)) x = i"), "(for i (seq 1 n)\n  (= x i))\n");
  EXPECT_EQ(Parsed("for (i in seq(n, 1, -2)) x = i"), "(for i (seq n 1 -2)\n  (= x i))\n");
}

TEST(ParseStatementTest, OptionsOfAParforAreRawText) {
  EXPECT_EQ(
      Parsed("parfor (i in 1:n, check = 0, par=$p, mode=REMOTE_SPARK, log=\"debug\", tasksize=2 * 3) x = i"),
      "(parfor i (: 1 n) (check= 0) (par= $p) (mode= REMOTE_SPARK) (log= \"debug\") (tasksize= 2 * 3)\n  (= "
      "x i))\n");
}

TEST(ParseStatementTest, FunctionsHaveTypesDefaultsAndResults) {
  EXPECT_EQ(
      Parsed(
          "f = function(matrix[double] X, Frame[unknown] F, list[unknown] l, scalar[Double] s, int k = -1,\n"
          "             Boolean b = TRUE, String t = \"a\", unknown u)\n"
          "    return (Matrix[Double] Y, integer n) { Y = X; n = k }; x = 1"),
      "(function f ((matrix[double] X) (frame[unknown] F) (list[unknown] l) (scalar[double] s) "
      "(scalar[integer] k -1) "
      "(scalar[boolean] b TRUE) (scalar[string] t \"a\") (scalar[unknown] u)) ((matrix[double] Y) "
      "(scalar[integer] n))\n"
      "  (= Y X)\n  (= n k))\n(= x 1)\n");
  EXPECT_EQ(Parsed("f <- function() { print(1) }"), "(function f () ()\n  (call print 1))\n");
  EXPECT_EQ(Parsed("f = function() return () { print(1) }"), "(function f () ()\n  (call print 1))\n");
}

TEST(ParseStatementTest, AFunctionMayFollowItsUse) {
  EXPECT_EQ(Parsed("x = f(1)\nf = function(double a) return (double b) { b = a }\ny = f(2)"),
            "(function f ((scalar[double] a)) ((scalar[double] b))\n  (= b a))\n(= x (call f 1))\n(= y (call "
            "f 2))\n");
}

TEST(ParseStatementTest, ExternalFunctionsAreIgnored) {
  EXPECT_EQ(Parsed("e = externalFunction(matrix[double] A) return (matrix[double] B)\n"
                   "    implemented in (classname=\"x.Y\", exectype=\"mem\"); x = 1"),
            "(= x 1)\n");
}

TEST(ParseStatementTest, SourcesAreCollectedWithTheirDirectory) {
  Diagnostics diagnostics;
  const ScriptFile file = Parse("test.dml",
                                "source(\"a.dml\") as a; setwd(\"d\")\nsource(\"b.dml\") as b setwd('../e') "
                                "if (x) { source(\"/c.dml\") as c }",
                                &diagnostics);
  EXPECT_FALSE(diagnostics.HasErrors());
  ASSERT_EQ(file.imports.size(), 3u);
  EXPECT_EQ(file.imports[0].path, "a.dml");
  EXPECT_EQ(file.imports[0].directory, "");
  EXPECT_EQ(file.imports[0].name_space, "a");
  EXPECT_EQ(file.imports[0].range, (SourceRange{{1, 1}, {1, 21}}));
  EXPECT_EQ(file.imports[1].directory, "d");
  EXPECT_EQ(file.imports[2].path, "/c.dml");
  EXPECT_EQ(file.imports[2].directory, "e");
}

TEST(ParseStatementTest, ReadsAnSvm) {
  const char* kScript = R"(
# L2-regularised support vector machine, trained by conjugate gradients with a line search.
X = read($X)
Y = read($Y)
lambda = ifdef($reg, 1.0)
max_iterations = ifdef($maxiter, 100)
columns = ncol(X)
w = matrix(0, rows=columns, cols=1)
Xw = matrix(0, rows=nrow(X), cols=1)
g_old = t(X) %*% Y
s = g_old
iter = 0
continue = TRUE
while (continue & iter < max_iterations) {
  step = 0.0
  Xd = X %*% s
  wd = lambda * sum(w * s); dd = lambda * sum(s * s)
  inner = TRUE
  while (inner) {
    out = 1 - Y * (Xw + step * Xd)
    sv = (out > 0)
    out = out * sv
    g = wd + step * dd - sum(out * Y * Xd)
    h = dd + sum(Xd * sv * Xd)
    step = step - g / h
    inner = g * g / h >= 1e-8
  }
  w = w + step * s
  Xw = Xw + step * Xd
  g_new = t(X) %*% (out * Y) - lambda * w
  if (step * sum(s * g_old) < 1e-12 * sum(g_new ^ 2)) continue = FALSE
  else { be = sum(g_new * g_new) / sum(g_old ^ 2); s = be * s + g_new }
  g_old = g_new
  iter = iter + 1
}
write(w, $model, format="csv")
)";
  Diagnostics diagnostics;
  const ScriptFile file = Parse("l2svm.dml", kScript, &diagnostics);
  EXPECT_EQ(diagnostics.RenderAll(Severity::kError), "");
  ASSERT_EQ(file.statements.size(), 13u);
  const std::vector<Statement>& body = file.statements[11].body;
  ASSERT_EQ(body.size(), 12u);
  EXPECT_EQ(PrintExpression(*body[5].body[0].value), "(- 1 (* Y (+ Xw (* step Xd))))");
  EXPECT_EQ(PrintExpression(*body[8].value), "(- (%*% (call t X) (* out Y)) (* lambda w))");
  EXPECT_EQ(body[9].otherwise.size(), 2u);
}

TEST(ParseStatementTest, ReadsKMeans) {
  const char* kScript = R"(
[C, labels] = kmeans(read($1), 3)
print("cost " + sum(C) + "\n")
assign = function(matrix[double] X, matrix[double] C) return (matrix[double] P, double cost) {
  D = -2 * (X %*% t(C)) + t(rowSums(C ^ 2))
  minD = rowMins(D)
  P = (D <= minD)
  P = P / rowSums(P)
  cost = sum(rowSums(X ^ 2) + minD)
}
kmeans = function(matrix[double] X, integer k, integer runs = 2, double eps = 1e-6)
  return (matrix[double] C, matrix[double] labels)
{
  best = Inf
  C = matrix(0, k, ncol(X)); labels = matrix(0, nrow(X), 1)
  for (run in 1:runs, check=0) {
    centroids = X[1:k,] * run
    old = Inf
    [P, cost] = assign(X, centroids)
    while (abs(old - cost) > eps * cost) {
      old = cost
      centroids = (t(P) %*% X) / t(colSums(P))
      [P, cost] = assign(X, centroids)
    }
    if (cost < best) {
      best = cost
      C[,] = centroids
      labels = rowIndexMax(P)
    } else if (run == runs & best == Inf)
      stop("no run converged")
  }
}
)";
  Diagnostics diagnostics;
  const ScriptFile file = Parse("kmeans.dml", kScript, &diagnostics);
  EXPECT_EQ(diagnostics.RenderAll(Severity::kError), "");
  ASSERT_EQ(file.functions.size(), 2u);
  ASSERT_EQ(file.statements.size(), 2u);
  EXPECT_EQ(PrintExpression(*file.functions[0].body[0].value),
            "(+ (* -2 (%*% X (call t C))) (call t (call rowSums (^ C 2))))");
  const Statement& loop = file.functions[1].body[3];
  ASSERT_EQ(loop.body.size(), 5u);
  EXPECT_EQ(PrintStatements(loop.body[3].body),
            "(= old cost)\n(= centroids (/ (%*% (call t P) X) (call t (call colSums P))))\n"
            "(= (P cost) (call assign X centroids))\n");
}

}  // namespace
}  // namespace heddle::compiler
