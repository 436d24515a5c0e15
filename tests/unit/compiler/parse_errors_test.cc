// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/parse/parser.h"
#include "compiler/parse/print_ast.h"

namespace heddle::compiler {
namespace {

// All errors, one a line: "line:column: message".
std::string Errors(const std::string& text) {
  Diagnostics diagnostics;
  Parse("test.dml", text, &diagnostics);
  std::string result;
  for (const Diagnostic* error : diagnostics.Sorted(Severity::kError)) {
    result += fmt::format("{}:{}: {}\n", error->range.begin.line, error->range.begin.column, error->message);
  }
  return result;
}

struct Case {
  const char* text;
  const char* expected;
};

class ParseErrorsTest : public testing::TestWithParam<Case> {};

TEST_P(ParseErrorsTest, HaveAPlaceAndAReason) {
  EXPECT_EQ(Errors(GetParam().text), std::string(GetParam().expected) + "\n") << GetParam().text;
}

constexpr Case kCases[] = {
    // Tokens.
    {"f = function(double pi) return (double y) { y = pi }",
     "1:21: the constant 'pi' cannot name a parameter"},
    {"x = 10L", "1:5: a number has no suffix 'L': 10L"},
    {"x = 1 +\n  9999999999999999999", "2:3: an integer must fit 64 bits: 9999999999999999999"},
    {"x = \"a\nb\\q\"", "2:2: unknown escape '\\q' in a string"},
    {"x = 'abc", "1:5: this string is not closed: no ' follows"},
    {"x = 1 /* y = 2", "1:7: this comment is not closed"},
    {"x = a.b", "1:5: a name must not contain a dot: 'a.b'"},
    {"x = 5 % 3", "1:7: '%' alone is no operator"},
    {"x = \xE2\x80\x9C"
     "a\xE2\x80\x9D",
     "1:5: unexpected character '\xE2\x80\x9C'"},
    {"_x = 1", "1:1: a name must begin with a letter: '_x'"},
    // Expressions.
    {"x = a && b", "1:7: the operator '&&' is not supported"},
    {"if (a || b) x = 1", "1:7: the operator '||' is not supported"},
    {"x = ", "1:4: expected an expression, found the end of the file"},
    {"x = (a + b", "1:11: expected ')' to close the '(' of line 1, column 5, found the end of the file"},
    {"x = (a + b\ny = 3", "1:11: expected ')' to close the '(' of line 1, column 5, found 'y' on line 2"},
    {"x = (1, 2)", "1:7: expected ')' to close the '(' of line 1, column 5, found ','"},
    {"x = f(a b)", "1:9: expected ',' or ')' in the arguments of 'f', found 'b'"},
    {"x = f(a,)", "1:9: expected another argument after ',', found ')'"},
    {"x = f(in = 1)", "1:7: the reserved word 'in' cannot name an argument"},
    {"x = f(x)[1,1,1]", "1:13: an index has at most two dimensions: 'f()'"},
    {"x = (x + 1)[1", "1:14: expected ']' in the index of a value, found the end of the file"},
    {"x = X[1,][1,]]", "1:14: expected a statement, found ']'"},
    {"x = X[:3]", "1:7: expected the lower bound of a range, found ':'"},
    {"x = X[3:]", "1:9: expected the upper bound of a range, found ']'"},
    {"x = X[1,2,3]", "1:10: an index has at most two dimensions: 'X'"},
    {"x = X[1", "1:8: expected ']' in the index of 'X', found the end of the file"},
    {"x = 1:3", "1:6: expected a statement, found ':'"},
    {"x = 1 + ifdef($p, 2)", "1:9: ifdef() cannot be part of an expression"},
    {"x = a ** b", "1:8: expected an expression, found '*'"},
    {"x = ns::v", "1:5: only functions have a namespace: 'ns::v'"},
    {"x = function", "1:13: expected '(' after 'function', found the end of the file"},
    // Statements.
    {"x = a = b", "1:7: expected a statement, found '='"},
    {"x -= 1", "1:3: expected '=' after 'x', found '-'"},
    {"x + 1", "1:3: expected '=' after 'x', found '+'"},
    {"5 = x", "1:1: expected a statement, found '5'"},
    {"f(x) = 3", "1:6: the result of a call cannot be assigned to"},
    {"pi = 3", "1:1: the constant 'pi' cannot be assigned"},
    {"[a, NaN] = f(x)", "1:5: the constant 'NaN' cannot be assigned"},
    {"$x = 3", "1:1: a command-line argument cannot be assigned: '$x'"},
    {"while = 3", "1:7: expected '(' after 'while', found '='"},
    {"int = 3", "1:1: the reserved word 'int' cannot be assigned"},
    {"[a, b] = c",
     "1:10: expected the call of a function as the right side of a multi-assignment, found 'c'"},
    {"[a, b = f(x)", "1:7: expected ',' or ']' in the variables of a multi-assignment, found '='"},
    {"[a, if] = f(x)", "1:5: the reserved word 'if' cannot name a variable"},
    {"x = ifdef(p, 3)",
     "1:11: expected a command-line argument like $x as first argument of ifdef(), found 'p'"},
    {"x = ifdef($p)", "1:13: expected ',' and a default value in ifdef(), found ')'"},
    {"if (a = 3) x = 1", "1:7: expected ')' to close the condition of 'if', found '='"},
    {"if (x[1] <-1) y = 1", "1:10: expected ')' to close the condition of 'if', found '<-'"},
    {"else x = 1", "1:1: 'else' without 'if'"},
    {"return x", "1:1: there is no return statement"},
    {"x = 1 }", "1:7: unexpected '}': no block is open here"},
    {"if (a) {\n  x = 1",
     "2:8: expected '}' to close the block of line 1, column 8, found the end of the file"},
    {"if (a)", "1:7: expected a statement, found the end of the file"},
    {"for (i in X) x = i",
     "1:11: a loop runs over from:to or seq(from, to, increment), found another expression"},
    {"for (i in seq(from=1, to=2)) x = i",
     "1:11: a loop runs over from:to or seq(from, to, increment), found another expression"},
    {"for (i = 1:3) x = i", "1:8: expected 'in' after the loop variable, found '='"},
    {"parfor (i in 1:3, chekc=0) x = i", "1:19: unknown option of a loop: 'chekc'"},
    {"source(a) as b", "1:8: expected a path in quotes in source(), found 'a'"},
    {"source(\"a\")", "1:12: expected 'as' and a namespace after source(), found the end of the file"},
    {"setwd(1)", "1:7: expected a path in quotes in setwd(), found '1'"},
    // Functions.
    {"f = function(X) return (double y) { y = 1 }", "1:14: parameter 'X' has no type"},
    {"f = function(matrix X) { x = 1 }", "1:14: the type 'matrix' needs a value type"},
    {"f = function(tensor[double] X) { x = 1 }", "1:14: unknown type 'tensor'"},
    {"f = function(float x) { x = 1 }", "1:14: unknown type 'float'"},
    {"f = function(matrix[X] x) { x = 1 }", "1:21: expected a value type in matrix[...], found 'X'"},
    {"f = function(double x, int x) { y = 1 }", "1:28: two parameters have the same name: 'x'"},
    {"f = function(double x) return (double y = 1) { y = 1 }",
     "1:41: expected ',' or ')' after result 'y', found '='"},
    {"f = function(double if) { x = 1 }", "1:21: the reserved word 'if' cannot name a parameter"},
    {"f = function(double x) return (double y)",
     "1:41: expected '{' to begin the body of function 'f', found the end of the file"},
    {"f = function() { }", "1:16: function 'f' has an empty body"},
    {"f = function() { x = 1 }\nf = function() { y = 1 }", "2:1: function 'f' is defined twice"},
    {"a::f = function() { x = 1 }", "1:1: a function is defined without a namespace: 'a::f'"},
    {"if (a) { f = function() { x = 1 } }", "1:10: function 'f' is defined inside a block"},
};
INSTANTIATE_TEST_SUITE_P(All, ParseErrorsTest, testing::ValuesIn(kCases));

TEST(ParseRecoveryTest, EveryBadStatementIsReportedOnce) {
  EXPECT_EQ(Errors("x = = 1 +* 2\n"
                   "y = f(1 2 3 4\n"
                   "z = 1\n"
                   "if (a b) {\n"
                   "  u = )\n"
                   "  v = 2\n"
                   "  w = ]; q = }\n"
                   "else { r = * }\n"
                   "s = @ ; t = #\n"),
            "1:5: expected an expression, found '='\n"
            "2:9: expected ',' or ')' in the arguments of 'f', found '2'\n"
            "4:7: expected ')' to close the condition of 'if', found 'b'\n"
            "5:7: expected an expression, found ')'\n"
            "7:7: expected an expression, found ']'\n"
            "7:14: expected an expression, found '}'\n"
            "8:12: expected an expression, found '*'\n"
            "9:5: unexpected character '@'\n"
            "9:12: expected an expression, found the end of the file\n");
}

TEST(ParseRecoveryTest, ContinuationLinesAreNoStatements) {
  EXPECT_EQ(Errors("x = f(a b,\n      c = 3,\n      d = 4)\ny = )"),
            "1:9: expected ',' or ')' in the arguments of 'f', found 'b'\n4:5: expected an expression, found "
            "')'\n");
}

TEST(ParseRecoveryTest, AMissingBraceDoesNotSpoilTheNextFunction) {
  Diagnostics diagnostics;
  const ScriptFile file = Parse("test.dml",
                                "f = function(double x) return (double y) {\n"
                                "  if (x > 1) {\n"
                                "    while (x > 2) {\n"
                                "      y = 1\n"
                                "}\n"
                                "g = function(double x) return (double y) { y = x }\n"
                                "z = )\n",
                                &diagnostics);
  ASSERT_EQ(diagnostics.errors(), 2u);
  EXPECT_EQ(diagnostics.Sorted(Severity::kError)[0]->message,
            "expected '}' to close the block of line 2, column 14, found 'g' on line 6");
  ASSERT_EQ(file.functions.size(), 1u);
  EXPECT_EQ(file.functions[0].name, "g");
}

TEST(ParseRecoveryTest, GoodStatementsBetweenBadOnesAreKept) {
  Diagnostics diagnostics;
  const ScriptFile file = Parse("test.dml", "a = 1\nb = )\nc = 3\nd = f(,)\ne = 5", &diagnostics);
  EXPECT_EQ(PrintScript(file), "(= a 1)\n(= c 3)\n(= e 5)\n");
}

TEST(ParseRecoveryTest, TheWholeTextOfAnErrorHelps) {
  Diagnostics diagnostics;
  Parse("l2svm.dml", "x = 1\n\ty = as.scaler(x) # note\n", &diagnostics);
  EXPECT_EQ(diagnostics.RenderAll(Severity::kError),
            "l2svm.dml:2:6: error: a name must not contain a dot: 'as.scaler'\n"
            "    2 | \ty = as.scaler(x) # note\n"
            "      | \t    ^~~~~~~~~\n"
            "names are letters, digits and '_'; only builtins like as.scalar have a dot\n"
            "did you mean 'as.scalar'?\n");
}

}  // namespace
}  // namespace heddle::compiler
