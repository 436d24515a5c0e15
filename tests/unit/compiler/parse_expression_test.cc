// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/parse/parser.h"
#include "compiler/parse/print_ast.h"

namespace heddle::compiler {
namespace {

// "x = {text}" parsed; the value as an s-expression, or the first error.
std::string Parsed(const std::string& text) {
  Diagnostics diagnostics;
  const ScriptFile file = Parse("test.dml", "x = " + text, &diagnostics);
  if (diagnostics.HasErrors()) return "error: " + diagnostics.Sorted(Severity::kError)[0]->message;
  if (file.statements.size() != 1) return "not one statement";
  return PrintExpression(*file.statements[0].value);
}

struct Case {
  const char* text;
  const char* expected;
};

void Check(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(Parsed(c.text), c.expected) << c.text;
}

TEST(ParseExpressionTest, PowerIsRightAssociativeAndAboveSigns) {
  Check({{"2^3^2", "(^ 2 (^ 3 2))"},
         {"-2^2", "(- (^ 2 2))"},
         {"2^-1", "(^ 2 -1)"},
         {"a^-b^c", "(^ a (- (^ b c)))"},
         {"a^-b*c", "(* (^ a (- b)) c)"},
         {"a^b %*% c", "(%*% (^ a b) c)"}});
}

TEST(ParseExpressionTest, SignsBindTighterThanMatrixProducts) {
  Check({{"-A %*% B", "(%*% (- A) B)"},
         {"A %*% -B", "(%*% A (- B))"},
         {"-a*b", "(* (- a) b)"},
         {"a - -b", "(- a (- b))"},
         {"+a", "(+ a)"},
         {"- + -a", "(- (+ (- a)))"}});
}

TEST(ParseExpressionTest, ASignAndANumberAreOneLiteral) {
  Check({{"-5", "-5"},
         {"--5", "5"},
         {"+5", "5"},
         {"-1.5", "-1.5"},
         {"-0.0", "-0.0"},
         {"a-5", "(- a 5)"},
         {"a - -5", "(- a -5)"},
         {"-5 %*% A", "(%*% -5 A)"},
         {"-TRUE", "(- TRUE)"},
         {"-\"a\"", "(- \"a\")"}});
}

TEST(ParseExpressionTest, ProductsHaveThreeLevels) {
  Check({{"a * B %*% C", "(* a (%*% B C))"},
         {"a %*% b %*% c", "(%*% (%*% a b) c)"},
         {"a * b %% c", "(* a (%% b c))"},
         {"a / b %/% c", "(/ a (%/% b c))"},
         {"a %% b %/% c", "(%/% (%% a b) c)"},
         {"a %% b %*% c", "(%% a (%*% b c))"},
         {"a / b * c", "(* (/ a b) c)"},
         {"a * b / c", "(/ (* a b) c)"}});
}

TEST(ParseExpressionTest, SumsComparisonsAndLogicFollow) {
  Check({{"a + b * c", "(+ a (* b c))"},
         {"a - b + c", "(+ (- a b) c)"},
         {"a < b + c", "(< a (+ b c))"},
         {"a < b < c", "(< (< a b) c)"},
         {"a == b != c", "(!= (== a b) c)"},
         {"a <= b & c >= d", "(& (<= a b) (>= c d))"},
         {"a | b & c", "(| a (& b c))"},
         {"a & b | c & d", "(| (& a b) (& c d))"},
         {"a | b | c", "(| (| a b) c)"}});
}

TEST(ParseExpressionTest, NotIsBelowComparisons) {
  Check({{"!a == b", "(! (== a b))"},
         {"!a & b", "(& (! a) b)"},
         {"!!a", "(! (! a))"},
         {"a * !b + c", "(* a (! (+ b c)))"},
         {"a & !b < c | d", "(| (& a (! (< b c))) d)"}});
}

TEST(ParseExpressionTest, ParenthesesGroup) {
  Check({{"(a + b) * c", "(* (+ a b) c)"},
         {"((a))", "a"},
         {"-(5)", "-5"},
         {"(-2)^2", "(^ -2 2)"},
         {"(2^3)^2", "(^ (^ 2 3) 2)"}});
}

TEST(ParseExpressionTest, NewlinesDoNotSeparate) {
  Check({{"a\n+ b", "(+ a b)"}, {"a\n\n-\n# comment\nb", "(- a b)"}, {"f\n(\na\n)", "(call f a)"}});
}

TEST(ParseExpressionTest, IndexesHaveSixForms) {
  Check({{"X[,]", "(index X _ _)"},
         {"X[i,]", "(index X i _)"},
         {"X[,j]", "(index X _ j)"},
         {"X[i]", "(index X i)"},
         {"X[a:b, 1:n-1]", "(index X (: a b) (: 1 (- n 1)))"},
         {"l[\"k\"]", "(index l \"k\")"},
         {"l[2:3]", "(index l (: 2 3))"},
         {"(X)[1,]", "(index X 1 _)"},
         {"X[1,][,2]", "(index (index X 1 _) _ 2)"},
         {"f(X)[1:2, 3]", "(index (call f X) (: 1 2) 3)"},
         {"-(X + Y)[i,]^2", "(- (^ (index (+ X Y) i _) 2))"},
         {"l[\"a\"][1]", "(index (index l \"a\") 1)"},
         {"X[]", "(index X _)"},
         {"X[Y[1,2], nrow(X)]", "(index X (index Y 1 2) (call nrow X))"},
         {"X\n[1,]", "(index X 1 _)"}});
}

TEST(ParseExpressionTest, CallsHavePositionalAndNamedArguments) {
  Check({{"f()", "(call f)"},
         {"f(a, b + 1)", "(call f a (+ b 1))"},
         {"f(a, rows=2, cols=n)", "(call f a (rows= 2) (cols= n))"},
         {"f(a == b)", "(call f (== a b))"},
         {"order(target=X, index.return=TRUE)", "(call order (target= X) (index.return= TRUE))"},
         {"ns::f(1)", "(call ns::f 1)"},
         {"as.scalar(X[1,1])", "(call as.scalar (index X 1 1))"},
         {"f(g(h(1)))", "(call f (call g (call h 1)))"},
         {"max(max, 1)", "(call max max 1)"}});
}

TEST(ParseExpressionTest, SemicolonsMayFollowACall) {
  Check({{"f(1); + 2", "(+ (call f 1) 2)"}, {"g(f(1);;, 2)", "(call g (call f 1) 2)"}});
}

TEST(ParseExpressionTest, PrimariesAreNamesLiteralsAndArguments) {
  Check({{"pi", "pi"},
         {"$X", "$X"},
         {"$1 + $name", "(+ $1 $name)"},
         {"\"a\" + 'b'", "(+ \"a\" \"b\")"},
         {"1e-3", "0.001"}});
}

TEST(ParseExpressionTest, ListsStandWhereverAnExpressionStands) {
  Check({{"conv2d(X, W, input_shape=[n,1,2*k,4], stride=[1,1])",
          "(call conv2d X W (input_shape= (list n 1 (* 2 k) 4)) (stride= (list 1 1)))"},
         {"f(pool_size=[1], padding=[0], filter_shape=[2])",
          "(call f (pool_size= (list 1)) (padding= (list 0)) (filter_shape= (list 2)))"},
         {"[\"NA\", \"?\"]", "(list \"NA\" \"?\")"},
         {"frame([\"a\", \"b\"], rows=1, cols=2)", "(call frame (list \"a\" \"b\") (rows= 1) (cols= 2))"},
         {"f([1, [2]])", "(call f (list 1 (list 2)))"},
         {"f([])", "error: expected an expression, found ']'"}});
}

TEST(ParseExpressionTest, RangesCoverTheExpression) {
  Diagnostics diagnostics;
  const ScriptFile file = Parse("test.dml", "x = (a + b) * f(X[1,],\n  2) ;", &diagnostics);
  ASSERT_EQ(file.statements.size(), 1u);
  EXPECT_EQ(file.statements[0].range, (SourceRange{{1, 1}, {2, 5}}));
  const Expression& product = *file.statements[0].value;
  EXPECT_EQ(product.range, (SourceRange{{1, 5}, {2, 5}}));
  EXPECT_EQ(product.name_range, (SourceRange{{1, 13}, {1, 14}}));
  EXPECT_EQ(product.operands[0]->range, (SourceRange{{1, 5}, {1, 12}}));
  EXPECT_EQ(product.operands[0]->name_range, (SourceRange{{1, 8}, {1, 9}}));
  EXPECT_EQ(product.operands[1]->range, (SourceRange{{1, 15}, {2, 5}}));
  EXPECT_EQ(product.operands[1]->name_range, (SourceRange{{1, 15}, {1, 16}}));
  const Expression& indexed = *product.operands[1]->arguments[0].value;
  EXPECT_EQ(indexed.range, (SourceRange{{1, 17}, {1, 22}}));
  EXPECT_EQ(indexed.index->range, (SourceRange{{1, 18}, {1, 22}}));
  EXPECT_EQ(product.height, 4);
}

}  // namespace
}  // namespace heddle::compiler
