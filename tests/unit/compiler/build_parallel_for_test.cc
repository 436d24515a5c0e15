// SPDX-License-Identifier: Apache-2.0
// What a program says of its parfors.
#include <gtest/gtest.h>

#include "compiler/build/polynomial.h"
#include "compiler/compile.h"

namespace heddle::compiler {
namespace {

using Names = std::vector<std::string>;

// The first parfor of a script.
Block LoopOf(const std::string& script) {
  CompileOptions options;
  options.arguments["k"] = "3";
  Diagnostics diagnostics;
  const Result<Program> program = CompileScript(script, options, &diagnostics);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  if (!program.ok()) return Block();
  for (const Block& block : program->main)
    if (block.kind == Block::Kind::kParallelFor) return block;
  ADD_FAILURE() << "no parfor is left";
  return Block();
}

TEST(BuildParallelForTest, WhatIsTakenForGrantedIsWrittenDown) {
  const Block loop = LoopOf(
      "k = nrow(rand(rows=3, cols=1)) + sum(rand(rows=1, cols=1, min=0, max=0))\nm = k + 1\n"
      "R = matrix(0, 100, 1)\nparfor (i in 1:4) {\n  for (j in 1:m) { R[(i-1)*m+j, 1] = j + k }\n}\nprint(sum(R))");
  EXPECT_TRUE(loop.independent);
  EXPECT_EQ(loop.natural, (Names{"i", "m"}));
  EXPECT_EQ(loop.upward, Names{"j"});
  EXPECT_EQ(loop.merged, Names{"R"});
  const Block numbers = LoopOf(
      "R = matrix(0, 100, 1)\nparfor (i in 1:4) { for (j in 1:$k) { R[(i-1)*$k+j, 1] = j } }\nprint(sum(R))");
  EXPECT_TRUE(numbers.independent);
  EXPECT_EQ(numbers.upward, Names());
  EXPECT_EQ(numbers.natural, Names{"i"});
}

TEST(BuildParallelForTest, APromiseIsNotTakenForAProof) {
  const Block proven =
      LoopOf("R = matrix(0, 9, 1)\nparfor (i in 1:9, check=0) { R[i, 1] = i * sum(R[i, ]) }\nprint(sum(R))");
  EXPECT_TRUE(proven.independent);
  EXPECT_EQ(proven.in_order, "");
  EXPECT_EQ(proven.merged, Names{"R"});
  const Block unproven =
      LoopOf("R = matrix(0, 9, 1)\nparfor (i in 1:9, check=0) { R[i*i - i, 1] = i }\nprint(sum(R))");
  EXPECT_FALSE(unproven.independent);
  EXPECT_EQ(unproven.in_order,
            "iterations may depend on each other through 'R': two iterations may touch the same cells");
  EXPECT_EQ(unproven.merged, Names());
  // Cells that a loop inside writes, whatever it promises, are cells that the iteration writes.
  const Block inside = LoopOf(
      "R = matrix(0, 9, 9)\nparfor (i in 1:9) { parfor (j in 1:9, check=0) { R[i, j] = i } }\nprint(sum(R))");
  EXPECT_TRUE(inside.independent);
  EXPECT_EQ(inside.merged, Names{"R"});
  const Block unknown = LoopOf(
      "R = matrix(0, 9, 9)\nparfor (i in 1:9) { parfor (j in 1:9, check=0) { R[1, j] = i } }\nprint(sum(R))");
  EXPECT_FALSE(unknown.independent);
}

TEST(BuildParallelForTest, LoopsThatWriteFilesRunInOrder) {
  const Block loop = LoopOf(
      "f = function(double x) return (double y) { y = x\n write(x, \"y\" + x) }\n"
      "R = matrix(0, 9, 1)\nparfor (i in 1:9) { R[i, 1] = f(i) }\nprint(sum(R))");
  EXPECT_FALSE(loop.independent);
  EXPECT_EQ(loop.in_order, "they write files");
  const Block lists =
      LoopOf("parfor (i in 1:9) { l = list(i, i + 1)\n write(l, \"y\" + i) }\nprint(\"written\")");
  EXPECT_EQ(lists.in_order, "they write files");
}

TEST(PolynomialTest, WholeNumbersConstantsAndSymbols) {
  const Polynomial x = Polynomial::Symbol("x");
  EXPECT_TRUE((x * Polynomial(3) + Polynomial(-1)).IsWhole());
  EXPECT_FALSE((x * Polynomial(0.5)).IsWhole());
  EXPECT_FALSE(Polynomial(1e10).IsWhole());
  EXPECT_EQ((x - x + Polynomial(4)).AsConstant(), 4);
  EXPECT_EQ((x - x).AsConstant(), 0);
  EXPECT_EQ(x.AsConstant(), std::nullopt);
  EXPECT_EQ((x * x).AsConstant(), std::nullopt);
  std::set<std::string> names;
  (x * Polynomial::Symbol("n") + Polynomial(2)).AddSymbols(&names);
  EXPECT_EQ(names, (std::set<std::string>{"n", "x"}));
}

}  // namespace
}  // namespace heddle::compiler
