// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "compiler/editor/format_script.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/print_ast.h"

namespace heddle::compiler {
namespace {

std::string Format(const std::string& text, int32_t width = 110) {
  Diagnostics diagnostics;
  const Result<std::string> formatted = FormatScript("test.dml", text, {.width = width}, &diagnostics);
  return formatted.ok() ? *formatted : formatted.status().ToString();
}

std::string TreeOf(const std::string& text) {
  Diagnostics diagnostics;
  return PrintScript(Parse("test.dml", text, &diagnostics));
}

// The result, the same tree, and no change the second time.
void ExpectStays(const std::string& text, int32_t width, const std::string& name) {
  Diagnostics diagnostics;
  const Result<std::string> formatted = FormatScript(name, text, {.width = width}, &diagnostics);
  if (!formatted.ok()) {
    EXPECT_TRUE(diagnostics.HasErrors()) << formatted.status().ToString();
    return;
  }
  EXPECT_EQ(TreeOf(text), TreeOf(*formatted)) << name;
  EXPECT_EQ(Format(*formatted, width), *formatted) << name << " at " << width;
}

TEST(FormatTest, BlanksAroundOperatorsAndBehindCommas) {
  EXPECT_EQ(Format("x=a+b*-c%*%d^-2\ny<-x==1&!z\nA[ i , j:3 ]=f( a ,b =2,c= -1 )\nw+=1\n"),
            "x = a + b * -c %*% d^-2\ny <- x == 1 & !z\nA[i,j:3] = f(a, b=2, c=-1)\nw += 1\n");
  EXPECT_EQ(Format("[a,b]=f(x)\nz=conv2d(X,W,stride=[1,1])\ns=X[,1]+Y[1,]\nl=list(1,\"a\")\n"),
            "[a, b] = f(x)\nz = conv2d(X, W, stride=[1, 1])\ns = X[,1] + Y[1,]\nl = list(1, \"a\")\n");
}

TEST(FormatTest, FunctionsHaveBlanksAroundTheirDefaults) {
  EXPECT_EQ(
      Format(
          "f=function(matrix[ double ] X,integer k=-3,String s=\"a\")return(list[unknown] l){l=list(X)}\n"),
      "f = function(matrix[double] X, integer k = -3, String s = \"a\") return (list[unknown] l) {\n"
      "  l = list(X)\n}\n");
}

TEST(FormatTest, BlocksAreIndentedByTwo) {
  EXPECT_EQ(
      Format("if(a>1){b=1;c=2}else if (a>0) {b=2}\nelse\n{\n\n\n b=3\n\n}\nfor(i in 1:n)\nx=x+i\n"
             "while(TRUE) x=1\nparfor(i in 1:n,check=0){}\n"),
      "if (a > 1) {\n  b = 1; c = 2\n} else if (a > 0) {\n  b = 2\n} else {\n  b = 3\n}\nfor (i in 1:n)\n"
      "  x = x + i\nwhile (TRUE) x = 1\nparfor (i in 1:n, check=0) {}\n");
}

TEST(FormatTest, CommentsStayWhereTheyAre) {
  EXPECT_EQ(
      Format(
          "# head\n\n\n\nx=1# behind\nyy=22    # aligned\n  if (x>0) { # of the block\n# inside\n y=1\n  # last\n}\n"
          "z=f(a, # first\n# alone\nb /* second */ ,c)\n/* two\n   lines */\nw=1\n#end"),
      "# head\n\nx = 1         # behind\nyy = 22       # aligned\nif (x > 0) {  # of the block\n  # inside\n  y = 1\n"
      "  # last\n}\nz = f(a,  # first\n    # alone\n    b /* second */, c)\n/* two\n   lines */\nw = 1\n#end");
}

TEST(FormatTest, LongLinesBreakBehindCommasAndBeforeOperators) {
  EXPECT_EQ(Format("result = someFunction(first_argument, second_argument, third_argument)\n"
                   "print(\"a text that is rather long: \" + number + \" and more of it\")\n",
                   50),
            "result = someFunction(first_argument,\n    second_argument, third_argument)\n"
            "print(\"a text that is rather long: \" + number\n    + \" and more of it\")\n");
  EXPECT_EQ(Format("if (a_condition_of_some_length > 0) result = a_value\n", 40),
            "if (a_condition_of_some_length > 0)\n  result = a_value\n");
  EXPECT_EQ(Format("f = function(Double first, Double second) return (Double third) {\n  third = 1\n}\n", 50),
            "f = function(Double first, Double second)\n    return (Double third) {\n  third = 1\n}\n");
}

TEST(FormatTest, TheEndOfABrokenLineTakesUpTheNextOne) {
  EXPECT_EQ(
      Format("stop(name + \" must have a row for each of \" + rows + \" but has \"\n+ rows\n+ what)\n", 50),
      "stop(name + \" must have a row for each of \" + rows\n    + \" but has \" + rows\n    + what)\n");
  EXPECT_EQ(Format("result = some_function(other_function(first, second,\nthird), b,\nc)\n", 40),
            "result = some_function(other_function(first,\n    second, third), b,\n    c)\n");
  // What goes on in another bracket, behind a comment, or with the results of a function stays where it is.
  EXPECT_EQ(Format("result = f(first_argument_is_longer, g(a,\nb), c)\n", 40),
            "result = f(first_argument_is_longer,\n    g(a,\n    b), c)\n");
  EXPECT_EQ(Format("result = some_function(first_argument, second,  # why\n    third)\n", 40),
            "result = some_function(first_argument,\n    second,  # why\n    third)\n");
  EXPECT_EQ(
      Format("f = function(Double first, Double second, Double k)\n    return (Double y) {\n  y = 1\n}\n",
             40),
      "f = function(Double first,\n    Double second, Double k)\n    return (Double y) {\n  y = 1\n}\n");
}

TEST(FormatTest, LinesThatWereBrokenStayBroken) {
  EXPECT_EQ(Format("x = f(a,\nb,\n   c\n)\ny = 1 +\n2\n"), "x = f(a,\n    b,\n    c\n)\ny = 1 +\n    2\n");
}

TEST(FormatTest, LineEndsAndTheEndOfTheFileStay) {
  EXPECT_EQ(Format("x=1\r\n\r\n\r\ny=2\r\n"), "x = 1\r\n\r\ny = 2\r\n");
  EXPECT_EQ(Format("x=1\ny=2"), "x = 1\ny = 2");
  EXPECT_EQ(Format(""), "");
  EXPECT_EQ(Format("\xEF\xBB\xBFx=1\n"), "\xEF\xBB\xBFx = 1\n");
  EXPECT_EQ(Format("s=\"two\n   lines\"\n"), "s = \"two\n   lines\"\n");
}

TEST(FormatTest, WhatTheParserPassesOverStays) {
  EXPECT_EQ(
      Format("e=externalFunction(double a)return(double b) implemented in (classname=\"c\",x=\"y\")\nx=1\n"),
      "e = externalFunction(double a) return (double b) implemented in (classname=\"c\", x=\"y\")\nx = 1\n");
  EXPECT_EQ(Format("print(1).\nx=2;;\n"), "print(1).\nx = 2;;\n");
}

TEST(FormatTest, AScriptWithErrorsIsRefused) {
  EXPECT_TRUE(Format("x = (1\n").starts_with("test.dml:1:7: error: expected ')'")) << Format("x = (1\n");
}

// Every script of the repository keeps its tree and its comments, and is not changed the second time.
TEST(FormatTest, EveryScriptOfTheRepositoryKeepsItsMeaning) {
  size_t count = 0;
  const std::filesystem::path root = HEDDLE_SOURCE_DIR;
  for (const char* folder : {"library", "examples", "bench", "tests"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".dml") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      ExpectStays(text.str(), 110, entry.path().string());
      ExpectStays(text.str(), 60, entry.path().string());
      if (folder == std::string_view("examples")) {
        EXPECT_EQ(Format(text.str()), text.str()) << entry.path();
      }
      ++count;
    }
  }
  EXPECT_GT(count, 400u);
}

// Whatever stands between its tokens.
TEST(FormatTest, RandomBlanksAndCommentsKeepTheTree) {
  static constexpr std::string_view kTokens[] = {
      "f",    "=",   "function", "(",      "matrix", "[", "double", "]", "X", ",", "int",  "k",     "=", "-",
      "3",    ")",   "return",   "(",      "matrix", "[", "double", "]", "Y", ")", "{",    "Y",     "=", "X",
      "[",    "1",   ":",        "k",      ",",      "]", "%*%",    "t", "(", "X", ")",    "^",     "2", ";",
      "if",   "(",   "k",        ">",      "1",      ")", "Y",      "=", "-", "Y", "else", "if",    "(", "!",
      "TRUE", ")",   "{",        "Y",      "=",      "g", "(",      "Y", ",", "a", "=",    "1",     ")", "}",
      "else", "{",   "}",        "while",  "(",      "k", "<",      "5", ")", "k", "+=",   "1",     "[", "a",
      ",",    "b",   "]",        "=",      "g",      "(", "Y",      ")", "}", "x", "=",    "ifdef", "(", "$x",
      ",",    "1.5", ")",        "parfor", "(",      "i", "in",     "1", ":", "3", ",",    "check", "=", "0",
      ")",    "{",   "print",    "(",      "i",      ")", "}"};
  static constexpr std::string_view kGaps[] = {
      " ", "\n", "\n\n\n", "  \t ", " # note\n", "\n# note\n", " /* c */ ", "\n/* c\n d */\n", "\r\n"};
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    std::mt19937 random(seed);
    std::string text;
    for (const std::string_view token : kTokens) {
      text += token;
      text += random() % 3 != 0 ? kGaps[0] : kGaps[random() % std::size(kGaps)];
    }
    ExpectStays(text, static_cast<int32_t>(20 + random() % 100), "random");
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace heddle::compiler
