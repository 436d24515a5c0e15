// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/compile.h"

namespace heddle::compiler {
namespace {

// "line:column message -> suggestion" of every error of a script.
std::vector<std::string> ErrorsOf(const std::string& script, Severity severity = Severity::kError) {
  CompileOptions options;
  options.arguments["reg"] = "1";
  Diagnostics diagnostics;
  const Result<Program> program = CompileScript(script, options, &diagnostics);
  EXPECT_EQ(program.ok(), !diagnostics.HasErrors());
  std::vector<std::string> errors;
  for (const Diagnostic* diagnostic : diagnostics.Sorted(severity)) {
    errors.push_back(fmt::format("{}:{} {}", diagnostic->range.begin.line, diagnostic->range.begin.column,
                                 diagnostic->message));
    if (!diagnostic->suggestion.empty()) errors.back() += " -> " + diagnostic->suggestion;
  }
  return errors;
}

struct Case {
  const char* script;
  std::vector<std::string> errors;
};

// Everything that is known to be wrong before a script runs, with its exact words and place.
const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"print(x)", {"1:7 undefined variable 'x'"}},
      {"A = matrix(1,3,1); B = table(A, outputEmptyBlocks=TRUE)",
       {"1:24 table() takes two matrices at least"}},
      {"x = 1; print(y + xx)", {"1:14 undefined variable 'y'", "1:18 undefined variable 'xx'"}},
      {"X = matrix(1,2,2); print(sum(Xs)); total = 1; print(totl)",
       {"1:30 undefined variable 'Xs'", "1:53 undefined variable 'totl' -> total"}},
      {"y = fooo(1)", {"1:5 undefined function 'fooo'"}},
      {"f = function(double a, double b=2) return (double c) { c = a*b }; x = f(1,2,3)",
       {"1:71 f() takes 2 arguments, got 3"}},
      {"f = function(double a, double b=2) return (double c) { c = a*b }; x = f(b=3)",
       {"1:71 the argument 'a' of f() is missing"}},
      {"f = function(double a, double beta=2) return (double c) { c = a*beta }; x = f(a=1, bta=3)",
       {"1:84 f() has no parameter 'bta' -> beta"}},
      {"f = function(double a) return (double c) { c = a }; x = f(1, a=3)",
       {"1:62 the argument 'a' of f() is given twice"}},
      {"f = function(double a, double b) return (double c) { c = a }; x = f(b=1, 3)",
       {"1:69 the argument 'b' of f() is given twice"}},
      {"f = function(double a, double b) return (double c) { c = a }; x = f(b=1, a=2, 3)",
       {"1:67 f() takes 2 arguments, got 3"}},
      {"f = function(double a, double b) return (double c) { c = a }; x = f(1, 2, b=3)",
       {"1:75 the argument 'b' of f() is given twice"}},
      {"f = function(double a, double b) return (double c) { c = a }; x = f(1, a=3)",
       {"1:72 the argument 'a' of f() is given twice"}},
      {"f = function(double a) return (double c) { c = a }; [x,y] = f(1)",
       {"1:61 f() returns 1 result, 2 variables are assigned"}},
      {"f = function(double a) { print(a) } x = 3; x = f(1); print(x)", {"1:60 undefined variable 'x'"}},
      {"f = function(double a) { print(a) } [x, y] = f(1); print(y)", {"1:58 undefined variable 'y'"}},
      {"f = function(double a) { print(a) } X = matrix(1, 2, 2); X[1, 1] = f(1)",
       {"1:68 f() returns no result"}},
      {"f = function(double a) { print(a) } x = 1 + f(1)", {"1:45 f() returns no result"}},
      {"f = function(double a) return (double c) { c = a }; g = function(double a = f(1)) return (double c) "
       "{ c = a }; x = g()",
       {"1:77 a DML function cannot be called in the default of a parameter: 'f'"}},
      {"x = sum(matrix(1,2,2))[1,1]", {"1:5 what stands before [...] is a scalar and cannot be indexed"}},
      {"f = function(double a) return (double c) { c = a }; X = matrix(1,2,2); x = f(X)",
       {"1:78 the argument 'a' of f() must be a scalar, not a matrix"}},
      {"x = ns::f(1)", {"1:5 undefined namespace 'ns'"}},
      {"A = matrix(1,2,3); B = matrix(1,2,3); C = A %*% B",
       {"1:45 %*%: inner dimensions differ: 2x3 and 2x3"}},
      {"A = matrix(1,2,3); B = matrix(1,3,2); C = A + B",
       {"1:45 +: shapes 2x3 and 3x2 do not match; on the right of 2x3 there may be 2x3, 2x1, 1x3 or a "
        "scalar"}},
      {"A = matrix(1,2,3); x = A[3,1]", {"1:24 index [3,1] is out of range for a 2x3 matrix"}},
      {"A = matrix(1,2,3); x = A[0,1]", {"1:24 index [0,1] is out of range for a 2x3 matrix"}},
      {"A = matrix(1,2,3); A[1,4] = 5", {"1:20 index [1,4] is out of range for a 2x3 matrix"}},
      {"A = matrix(1,2,3); A[1:2,1] = matrix(1,3,1)",
       {"1:20 index [1:2,1] is 2x1 but the assigned matrix is 3x1"}},
      {"A[1,1] = 3", {"1:1 undefined variable 'A'"}},
      {"x = 3; x[1,1] = 3", {"1:8 'x' is a scalar and has no cells to assign"}},
      {"x = 3; y = x[1,1]", {"1:12 'x' is a scalar and cannot be indexed"}},
      {"A = matrix(1,2,3); if (A) print(\"a\")",
       {"1:24 the predicate of 'if' must be a scalar, not a matrix"}},
      {"A = matrix(1,2,3); while (A) print(\"a\")",
       {"1:27 the predicate of 'while' must be a scalar, not a matrix"}},
      {"if (\"a\") print(\"a\")", {"1:5 the predicate of 'if' is a string"}},
      {"x = 1; if (x > 2) { y = 1 } else { y = matrix(1,2,2) } print(y)",
       {"1:36 'y' is a scalar on one way and a matrix on another"}},
      {"x = 1; while (x < 5) { x = matrix(1,2,2) }",
       {"1:24 'x' is a scalar before the loop and a matrix in it"}},
      {"x = $rge; y = $reg", {"1:5 the script's argument $rge is not given -> reg"}},
      {"x = $1", {"1:5 the script's argument $1 is not given"}},
      {"sum(matrix(1,2,2))", {"1:1 the result of sum() is not used"}},
      {"x = print(\"a\")", {"1:5 print() has no result and cannot be part of an expression"}},
      {"X = federated(1,2)", {"1:5 federated() is part of DML but Heddle does not run it yet"}},
      {"X = max_pool(matrix(1,1,4), input_shape=[1,1,2,2], pool_size=[2,2], stride=[1,1], padding=0)",
       {"1:91 the argument 'padding' of max_pool() must be a list of 2 numbers, written [a, b, ...]"}},
      {"X = max_pool(matrix(1,1,4), input_shape=[1,1,2], pool_size=[2,2], stride=[1,1], padding=[0,0])",
       {"1:41 the argument 'input_shape' of max_pool() must be a list of 4 numbers, not of 3"}},
      {"X = max_pool(matrix(1,1,4), input_shape=[1,1,2,2], stride=[1,1], padding=[0,0])",
       {"1:5 the argument 'pool_size' of max_pool() is missing"}},
      {"X = max_pool(matrix(1,1,4), input_shape=[1,1,2,2], pool_size=[2,3], stride=[1,1], padding=[0,0])",
       {"1:5 max_pool: a window of 3 columns does not fit into images of 2 with their padding"}},
      {"x = xdummy1(matrix(1,2,2))", {"1:5 xdummy1() is a function of the library, which has no such file"}},
      {"x = sum(1,2)", {"1:5 sum() takes 1 argument, got 2"}},
      {"x = sqrt()", {"1:5 sqrt() takes 1 argument, got 0"}},
      {"x = rand(rows=2, colz=2)", {"1:18 rand() has no parameter 'colz' -> cols"}},
      {"x = rand(2, 2)", {"1:10 rand() takes named arguments only"}},
      {"x = matrix(1, rows=2)", {"1:5 the argument 'cols' of matrix() is missing"}},
      {"x = matrix(1, 2, 2, TRUE, 5)", {"1:5 matrix() takes at most 4 arguments, got 5"}},
      {"x = order(target=matrix(1,2,2), bye=1)", {"1:33 order() has no parameter 'bye' -> by"}},
      {"x = outer(matrix(1,2,1), matrix(1,1,2), \"hi\")",
       {"1:41 the third argument of outer() must be an operator in quotes, for example \"*\""}},
      {"x = read(\"a.csv\", fromat=\"csv\")", {"1:19 read() has no parameter 'fromat' -> format"}},
      {"x = read(format=\"csv\")", {"1:5 the argument 'path' of read() is missing"}},
      {"x = read(matrix(1,2,2))", {"1:10 the path of read() must be a string"}},
      {"x = read(\"a.csv\", data_type=\"tensor\")",
       {"1:29 reading a tensor is part of DML but Heddle does not run it yet"}},
      {"write(1, \"a\", fmt=\"csv\")", {"1:15 write() has no parameter 'fmt'"}},
      {"write(1)", {"1:1 write() takes a variable and a path, got 1 positional argument"}},
      {"print()", {"1:1 print() takes at least 1 argument, got 0"}},
      {"print(1, 2)", {"1:7 the first of several arguments of print() must be a string literal, the format"}},
      {"print(\"%d\", matrix(1,2,2))", {"1:13 print() formats scalars only, not a matrix"}},
      {"stop(1,2)", {"1:1 stop() takes 0 to 1 arguments, got 2"}},
      {"x = \"a\" * 2", {"1:9 *: strings are not numbers; use as.double"}},
      {"x = \"a\" - \"b\"", {"1:9 -: strings are not numbers; use as.double"}},
      {"x = matrix(1,2,2) + \"a\"", {"1:19 +: a string cannot be combined with a matrix"}},
      {"x = as.scalar(matrix(1,2,2))", {"1:5 as.scalar: the matrix must be 1x1: 2x2"}},
      {"x = cbind(matrix(1,2,2), matrix(1,3,2))", {"1:5 cbind: numbers of rows differ: 2x2 and 3x2"}},
      {"x = solve(matrix(1,2,3), matrix(1,2,1))", {"1:5 solve: the matrix has more columns than rows: 2x3"}},
      {"R = matrix(0,3,1); parfor (i in 1:3) { R[1,1] = i }",
       {"1:40 iterations of the parfor depend on each other through 'R'"}},
      {"R = matrix(0,3,1); parfor (i in 1:3) { R[i,1] = R[i+1,1] }",
       {"1:40 iterations of the parfor depend on each other through 'R'"}},
      {"R = matrix(0,3,1); parfor (i in 1:3) { R = R + i }",
       {"1:40 iterations of the parfor depend on each other through 'R'"}},
      {"s = 0; parfor (i in 1:3) { s = s + i }",
       {"1:28 iterations of the parfor depend on each other through 's'"}},
      {"s = 0; parfor (i in 1:3, check=2) { t = s }",
       {"1:32 the option 'check' of a parfor is 0 or 1, not 2"}},
      {"parfor (i in 1:3, mode=LOCL) { t = 1 }",
       {"1:24 the option 'mode' of a parfor is LOCAL, REMOTE_SPARK, REMOTE_SPARK_DP or UNSPECIFIED, not LOCL "
        "-> LOCAL"}},
      {"parfor (i in 1:3, par=0, tasksize=few) { t = 1 }",
       {"1:23 the option 'par' of a parfor is a whole number from 1, not 0",
        "1:35 the option 'tasksize' of a parfor is a whole number from 1, not few"}},
      {"parfor (i in 1:3, par=$reg, mode=$m) { t = 1 }", {"1:34 the script's argument $m is not given"}},
      {"for (i in matrix(1,2,2):3) print(i)",
       {"1:11 the first value of a loop must be a scalar, not a matrix"}},
      {"X = matrix(1,2,2); y = X[X, 1]", {"1:26 an index must be a scalar, not a matrix"}},
      {"f = function(list[unknown] l) return (double c) { c = 1 }; x = f(1)",
       {"1:66 the argument 'l' of f() must be a list, not a scalar"}},
      {"x = true", {"1:5 undefined variable 'true' -> TRUE"}},
      {"x = sum(3)", {"1:5 sum: needs a matrix, got a scalar"}},
      {"[a, b] = federated(matrix(1,2,2))",
       {"1:10 federated() is part of DML but Heddle does not run it yet"}},
      {"[a, b] = lstm(matrix(1,2,2))", {"1:10 lstm() takes 6 arguments, got 1"}},
      {"[a, b, c] = eigen(matrix(1,2,2))", {"1:13 eigen() returns 2 results, 3 variables are assigned"}},
      {"a = eigen(matrix(1,2,2))", {"1:5 eigen() returns 2 results"}},
      {"a = sum(svd(matrix(1,2,2)))", {"1:9 svd() returns 3 results"}},
      {"lu(matrix(1,2,2))", {"1:1 the result of lu() is not used"}},
      {"[a, b] = eigen(matrix(1,2,3))", {"1:10 eigen: needs a square matrix, got 2x3"}},
      {"[a, b] = eigen(3)", {"1:10 eigen: argument 1 must be a matrix, not a scalar"}},
      {"[a, b] = eigen(matrix(1,2,2), 3)", {"1:10 eigen() takes 1 argument, got 2"}},
      {"A = matrix(1,2,2); [a, A[1,1]] = eigen(A)",
       {"1:24 index [1,1] is 1x1 but the assigned matrix is 2x2"}},
      {"[a, b] = sum(matrix(1,2,2))", {"1:10 sum() returns one result, 2 variables are assigned"}},
      {"x = rand(rows=2, cols=2, pdf=3+sum(matrix(1,1,1)))",
       {"1:30 the argument 'pdf' of rand() must be known when the script is compiled"}},
      {"f = function(matrix[double] A) return (matrix[double] B) { B = A %*% A } x = f(matrix(1, 2, 3))",
       {"1:66 %*%: inner dimensions differ: 2x3 and 2x3"}},
      {"x = nrow(3)", {"1:5 nrow: the argument must be a matrix, not a scalar"}},
      {"x = t(3) %*% matrix(1,2,2)", {"1:10 %*%: the left operand must be a matrix, got a scalar"}},
  };
  return cases;
}

TEST(BuildErrorsTest, EveryStaticErrorHasItsMessageAndPlace) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.script);
    EXPECT_EQ(ErrorsOf(c.script), c.errors);
  }
}

TEST(BuildErrorsTest, AllErrorsOfAScriptAreFoundTogether) {
  EXPECT_EQ(ErrorsOf("x = undefined1\n"
                     "A = matrix(1, 2, 3)\n"
                     "B = A %*% A\n"
                     "y = nosuch(A)\n"
                     "f = function(double a) return (double b) {\n"
                     "  b = a + c\n"
                     "}\n"),
            (std::vector<std::string>{"1:5 undefined variable 'undefined1'",
                                      "3:7 %*%: inner dimensions differ: 2x3 and 2x3",
                                      "4:5 undefined function 'nosuch'", "6:11 undefined variable 'c'"}));
}

TEST(BuildErrorsTest, WrongSizesThatMayNeverBeReachedAreWarnings) {
  const std::string bad = "A = matrix(1, 2, 3)\nB = A %*% A\n";
  for (const std::string& script :
       {"x = sum(rand(rows=2, cols=2))\nif (x > 1) {\n" + bad + "}\n", "for (i in 1:3) {\n" + bad + "}\n",
        "x = sum(rand(rows=2, cols=2))\nif (x > 1) stop(\"no\")\n" + bad,
        "f = function(double x) return (double y) {\n if (x > 0.5) stop(\"no\")\n y = x\n}\nz = "
        "f(sum(rand(rows=1, cols=1)))\n" +
            bad}) {
    SCOPED_TRACE(script);
    EXPECT_EQ(ErrorsOf(script), std::vector<std::string>());
    EXPECT_EQ(ErrorsOf(script, Severity::kWarning).size(), 1u);
  }
  EXPECT_EQ(ErrorsOf(bad).size(), 1u);
}

TEST(BuildErrorsTest, SizesFlowThroughCallsAndLoops) {
  // The loop keeps the size of w, the function returns that of its argument.
  EXPECT_EQ(ErrorsOf("f = function(matrix[double] X) return (matrix[double] w) {\n"
                     "  w = matrix(0, rows=ncol(X), cols=1)\n"
                     "  for (i in 1:3) { w = w + t(X) %*% (X %*% w) }\n"
                     "}\n"
                     "w = f(rand(rows=20, cols=5))\n"
                     "y = w + matrix(1, 4, 1)\n"),
            (std::vector<std::string>{"6:7 +: shapes 5x1 and 4x1 do not match; on the right of 5x1 there may "
                                      "be 5x1, a row vector or a scalar"}));
  // A size that changes from round to round is unknown: no error.
  EXPECT_EQ(ErrorsOf("X = matrix(1, 2, 2)\nfor (i in 1:3) { X = rbind(X, X) }\ny = X + matrix(1, 7, 2)\n"),
            std::vector<std::string>());
}

TEST(BuildErrorsTest, PartsOfDmlThatAreMissingDoNoHarmInFunctionsThatAreNeverCalled) {
  const std::string function =
      "f = function(matrix[double] x) return (double c) { c = sum(federated(x)) + sum(sql(x)) }\n";
  EXPECT_EQ(ErrorsOf(function + "print(1)"), std::vector<std::string>());
  EXPECT_EQ(ErrorsOf(function + "x = f(matrix(1, 2, 2))").size(), 2u);
}

TEST(BuildErrorsTest, OneWayOfManyDefinesAVariableWellEnough) {
  EXPECT_EQ(ErrorsOf("x = sum(rand(rows=2, cols=2))\nif (x > 1) y = 3\nprint(y)"),
            std::vector<std::string>());
  EXPECT_EQ(ErrorsOf("while (FALSE) { y = 3 }\nprint(y)"), std::vector<std::string>());
}

TEST(BuildErrorsTest, IndependentIterationsAreAccepted) {
  for (
      const char* script : {
          "R = matrix(0, 3, 1); parfor (i in 1:3) { R[i, 1] = i }",
          "R = matrix(0, 3, 4); parfor (i in 1:4) { R[, i] = matrix(i, 3, 1) }",
          "R = matrix(0, 3, 4); parfor (i in 1:3) { R[i, 1] = 1; R[i, 2] = R[i, 1] }",
          "R = matrix(0, 30, 4); k = 10; parfor (i in 1:3) { R[(i-1)*k+1 : i*k, ] = matrix(i, k, 4) }",
          "R = matrix(0, 30, 4); parfor (i in 1:3) { b = (i-1)*10+1; e = min(i*10, nrow(R)); R[b:e, ] = "
          "matrix(i, 10, 4) }",
          "R = matrix(0, 6, 1); m = 2; parfor (i in 1:3) { for (j in 1:m) { R[(i-1)*m+j, 1] = j } }",
          "R = matrix(0, 3, 3); parfor (i in 1:3) { parfor (j in 1:3) { R[i, j] = i*j } }",
          "R = matrix(0, 3, 1); parfor (i in 1:3) { R[4-i, 1] = i }",
          "s = 0; parfor (i in 1:3) { s += i }",
          "S = matrix(0, 2, 2); parfor (i in 1:3) { S += matrix(i, 2, 2) }",
          "R = matrix(0, 3, 1); parfor (i in 1:3) { t1 = i * 2; R[i, 1] = t1 }; t1 = 7; print(t1)",
          "R = matrix(0, 3, 1); parfor (i in 1:3) { t = i; R[i, 1] = t }; parfor (i in 1:3) { t = 2; R[i, 1] = t }",
          "j = 9; R = matrix(0, 3, 2); parfor (i in 1:3) { for (j in 1:2) { R[i, j] = j } }; print(j)",
          "i = 9; R = matrix(0, 3, 1); parfor (i in 1:3) { R[i, 1] = i }; print(i)",
          "R = matrix(0, 3, 1); parfor (i in 1:3) { s = 0; for (j in 1:i) { s = s + j }; R[i, 1] = s }",
          "x = 1; R = matrix(0, 3, 1); parfor (i in 1:3, check=0) { x = i; R[i, 1] = x }",
          "R = matrix(0, 3, 1); parfor (i in 1:3, check=0) { R[1, 1] = i }",
          "R = matrix(0, 3, 1); n = 0; parfor (i in 1:3) { R[i, 1] = nrow(R) }",
          "X = matrix(1, 3, 3); R = matrix(0, 3, 1); parfor (i in 1:3) { R[i, 1] = sum(X[, i]) }",
          // cells in other columns, in other places of the whole loop, between each other
          "R = matrix(0, 3, 2); parfor (i in 2:3) { R[i, 1] = R[i - 1, 2] }",
          "R = matrix(0, 20, 1); parfor (i in 1:10) { R[i, 1] = i; R[i+10, 1] = i }",
          "R = matrix(0, 20, 20); parfor (i in 1:19) { R[i+1.0, 1] = i; R[1, i+1] = i }",
          "R = matrix(0, 20, 1); parfor (i in 1:5) { R[4*i, 1] = i; R[2*i+1, 1] = i }",
          "R = matrix(0, 20, 1); parfor (i in 6:2) { R[i, 1] = R[2*i + 7, 1] }",
          // blocks of rows, some at a time
          "R = matrix(0, 20, 1); parfor (i in seq(1, 20, 4)) { R[i:(i+3), 1] = matrix(i, 4, 1) }",
          "R = matrix(0, 20, 1); s = 4; parfor (i in seq(1, 20, s)) { R[i:(i+s-1), 1] = matrix(i, s, 1) }",
          "R = matrix(0, 20, 1); parfor (i in seq(20, 1, -4)) { R[(i-3):i, 1] = matrix(i, 4, 1) }",
          "R = matrix(0, 12, 1); parfor (i in 1:4) { for (j in 3:1) { R[3*(i-1)+j, 1] = j }; for (j in seq(3, 1, -1)) { x = j } }",
          "R = matrix(0, 9, 1); parfor (i in 1:9, mode=LOCAL, par=4, opt=None, log=debug, tasksize=2, profile=1, "
          "taskpartitioner=FACTORING, datapartitioner=LOCAL, resultmerge=LOCAL_MEM, check=1) { R[i, 1] = i }",
      }) {
    SCOPED_TRACE(script);
    EXPECT_EQ(ErrorsOf(script), std::vector<std::string>());
  }
}

TEST(BuildErrorsTest, DependentIterationsAreRefused) {
  for (
      const char* script : {
          "R = matrix(0, 9, 1); parfor (i in 1:3) { R[i*i, 1] = i }",
          "R = matrix(0, 9, 1); k = 2; parfor (i in 1:3) { R[i : i+k, 1] = matrix(i, 3, 1) }",
          "R = matrix(0, 3, 1); parfor (i in 1:3) { R[i, 1] = sum(R) }",
          "R = matrix(0, 3, 2); parfor (i in 1:3) { R[i, 1] = R[i - 1, 1] }",
          "R = matrix(0, 20, 1); parfor (i in 1:10) { R[i, 1] = i; R[i+9, 1] = i }",
          "R = matrix(0, 20, 1); parfor (i in seq(1, 20, 4)) { R[i:(i+4), 1] = matrix(i, 5, 1) }",
          "R = matrix(0, 20, 1); parfor (i in 1:8) { R[0.5 * i + 1, 1] = i }",
          "R = matrix(0, 20, 1); parfor (i in 1:4) { for (j in 1:3) { R[3*(i-1)+j, 1] = j }; for (j in 1:4) { x = j } }",
          "R = matrix(0, 20, 1); parfor (i in 1:4) { for (j in 4:1) { R[3*(i-1)+j, 1] = j } }",
          "R = matrix(0, 20, 1); parfor (i in 1:4) { for (j in 1:3) { R[3*(i-1)+j, 1] = j; j = 7 } }",
          "R = matrix(0, 20, 1); parfor (i in 1:4) { i = 3; R[i, 1] = 2 }",
          "s = 0; parfor (i in 1:3) { s += i; x = s }",
          "s = 0; parfor (i in 1:3) { if (i > 1) { s = i }; x = s }",
          "s = 0; parfor (i in 1:3) { s = i }; print(s)",
          "s = 0; parfor (i in 1:3) { s = 5 }",
          "s = \"a\"; parfor (i in 1:3) { s = \"b\" }",
          "s = TRUE; parfor (i in 1:3) { if (i > 1) { s = FALSE } }",
          "s = 0; R = matrix(0, 3, 1); parfor (i in 1:3) { s = i * 2; R[i, 1] = s }",
          "s = 0; R = matrix(0, 3, 1); parfor (i in 1:3) { for (j in 1:2) { s = j }; R[i, 1] = s }",
          "if (sum(rand(rows=2, cols=2)) > 9) { s = 0 }; parfor (i in 1:3) { s = i }",
          "R = matrix(0, 3, 3); parfor (i in 1:3) { s = 0; parfor (j in 1:3) { s = i * j; R[i, j] = s } }",
          "f = function(int a) return (int b) { b = a }; s = 0; parfor (i in 1:3) { s = f(i) }",
          "f = function(int a) return (int b, int c) { b = a; c = a }; s = 0; parfor (i in 1:3) { [t, s] = f(i) }",
          "f = function(int n) return (int s) { s = 0; parfor (i in 1:n) { s = i } }; print(f(3))",
          "s = 0; parfor (i in 1:3) { s += i; s = 1 }",
          "j = 1; parfor (i in 1:3) { x = j; for (j in 1:2) { y = j } }",
          "R = matrix(0, 6, 1); k = 1; parfor (i in 1:3) { k = k + 1; R[k, 1] = i }",
          "R = matrix(0, 3, 3); parfor (i in 1:3) { for (j in 1:3) { R[j, 1] = i } }",
      }) {
    SCOPED_TRACE(script);
    ASSERT_FALSE(ErrorsOf(script).empty());
    EXPECT_NE(ErrorsOf(script)[0].find("depend on each other"), std::string::npos) << ErrorsOf(script)[0];
  }
}

}  // namespace
}  // namespace heddle::compiler
