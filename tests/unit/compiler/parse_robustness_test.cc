// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "compiler/parse/parser.h"
#include "compiler/parse/print_ast.h"

namespace heddle::compiler {
namespace {

constexpr char kScript[] = R"(# exercises every construct
source("lib/a.dml") as lib; setwd("d")
f = function(matrix[double] X, int k = -3, String s = "a\tb") return (matrix[double] Y, list[unknown] l) {
  Y = X[1:k, ] %*% t(X) ^ 2 /* comment
  over lines */
  l = list(a=1, b="two")
  l["a"] = 3
}
e = externalFunction(double a) return (double b) implemented in (classname="c", x="y")
x = ifdef($x, 1.5e-3)
y = X
[A, B[1,]] = lib::f(X, k=$2);
while (!x == 3 & y < -x | TRUE) {
  if (x >= 2) x = x %% 2 else if (y != 'q') { x += 1; } else { stop("x" + x) }
  for (i in seq(1, 10, 2)) Z[i, ] = as.scalar(X[i, i]) %/% 3
  parfor (j in 1:ncol(X), check=0, par=$p, mode=LOCAL) { print(j) }
}
z = conv2d(X, W, input_shape=[1, n, 2], stride=[1, 1])
)";

// Parses, and walks over all of the result.
size_t ParseAndPrint(const std::string& text) {
  Diagnostics diagnostics;
  const ScriptFile file = Parse("test.dml", text, &diagnostics);
  PrintScript(file);
  diagnostics.RenderAll(Severity::kError);
  return diagnostics.errors();
}

std::string Repeat(std::string_view text, size_t count) {
  std::string result;
  result.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

TEST(ParseRobustnessTest, TheScriptItselfIsCorrect) { EXPECT_EQ(ParseAndPrint(kScript), 0u); }

TEST(ParseRobustnessTest, SurvivesEveryTruncation) {
  const std::string script = kScript;
  for (size_t length = 0; length < script.size(); length += 3) ParseAndPrint(script.substr(0, length));
  for (size_t begin = 0; begin < script.size(); begin += 3) ParseAndPrint(script.substr(begin));
}

TEST(ParseRobustnessTest, SurvivesMutations) {
  static constexpr std::string_view kPieces[] = {
      "(",    ")",   "[",     "]",  "{",      "}",        "=",       "<-",   ",",    ";",           ":", "if",
      "else", "for", "$",     "\"", "'",      "\\",       "/*",      "*/",   "#",    "\n",          "%", "::",
      "1e",   ".",   "ifdef", "in", "return", "function", "[a] = f", "\xFF", "\xC3", "\xE2\x80\x9C"};
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
    std::string script = kScript;
    for (size_t edits = 1 + below(8); edits > 0; --edits) {
      const size_t at = below(script.size());
      switch (below(5)) {
        case 0: script.erase(at, 1 + below(10)); break;
        case 1: script.insert(at, kPieces[below(std::size(kPieces))]); break;
        case 2: script[at] = static_cast<char>(below(256)); break;
        case 3: script.insert(at, script.substr(below(script.size()), below(60))); break;
        default: script.replace(at, 1 + below(3), kPieces[below(std::size(kPieces))]); break;
      }
      if (script.empty()) script = "x";
    }
    ParseAndPrint(script);
  }
}

TEST(ParseRobustnessTest, SurvivesRandomBytes) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    std::mt19937 random(seed);
    std::string script(1 + random() % 400, '\0');
    for (char& c : script) c = static_cast<char>(random() % 256);
    ParseAndPrint(script);
  }
}

TEST(ParseRobustnessTest, DeepNestingIsAnError) {
  constexpr size_t kMany = 10000;
  for (const std::string_view piece :
       {"(", "[", "{", "-", "!", "2^", "f(", "X[", "X[1,", "(1+", "if (a) ", "if (a) {\n", "while (a) {",
        "for (i in 1:2) ", "if (a) x = 1 else ", "f(stride=[", "f = function() {"}) {
    EXPECT_GE(ParseAndPrint("x = " + Repeat(piece, kMany)), 1u) << piece;
    EXPECT_GE(ParseAndPrint(Repeat(piece, kMany)), 1u) << piece;
  }
  Diagnostics diagnostics;
  Parse("test.dml", "y = 1\nx = " + Repeat("(", 600) + "1" + Repeat(")", 600) + "\nz = )", &diagnostics);
  ASSERT_EQ(diagnostics.errors(), 1u);
  EXPECT_EQ(diagnostics.Sorted(Severity::kError)[0]->message, "nested too deeply: more than 500 levels");
  EXPECT_EQ(diagnostics.Sorted(Severity::kError)[0]->range.begin.line, 2);
}

TEST(ParseRobustnessTest, ModerateNestingIsFine) {
  EXPECT_EQ(ParseAndPrint("x = " + Repeat("(", 490) + "1" + Repeat(")", 490)), 0u);
  EXPECT_EQ(ParseAndPrint(Repeat("if (a) {", 490) + "x = 1" + Repeat("}", 490)), 0u);
  EXPECT_EQ(ParseAndPrint("x = 1" + Repeat(" + 1", 1990)), 0u);
}

TEST(ParseRobustnessTest, LongChainsAreAnError) {
  EXPECT_EQ(ParseAndPrint("x = 1" + Repeat(" + 1", 30000)), 1u);
  EXPECT_EQ(ParseAndPrint("x = f(1" + Repeat(", 1", 30000) + ")"), 0u);
}

TEST(ParseRobustnessTest, HugeTokensAndManyErrorsCostLittle) {
  EXPECT_EQ(ParseAndPrint("x = " + Repeat("9", 300000)), 1u);
  EXPECT_EQ(ParseAndPrint("x = 0." + Repeat("9", 300000)), 0u);
  EXPECT_EQ(ParseAndPrint("x = \"" + Repeat("a\n", 150000) + "\""), 0u);
  EXPECT_EQ(ParseAndPrint(Repeat("a", 300000)), 1u);
  EXPECT_GE(ParseAndPrint(Repeat("x = )\n", 30000)), 20u);
  EXPECT_GE(ParseAndPrint(Repeat("\\\"\n", 30000)), 1u);
  EXPECT_GE(ParseAndPrint(Repeat("x = y[a\n", 30000)), 1u);
  EXPECT_GE(ParseAndPrint(Repeat("[(", 30000) + Repeat("])", 30000)), 1u);
  EXPECT_GE(ParseAndPrint(std::string(300000, '\0')), 1u);
}

}  // namespace
}  // namespace heddle::compiler
