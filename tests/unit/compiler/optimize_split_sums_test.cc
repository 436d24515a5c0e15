// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/optimize/split_sums.h"

namespace heddle::compiler {
namespace {

// The first parfor of a script.
Block LoopOf(const std::string& script) {
  Diagnostics diagnostics;
  const Result<Program> program = CompileScript(script, {}, &diagnostics);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  if (program.ok())
    for (const Block& block : program->main)
      if (block.kind == Block::Kind::kParallelFor) return block;
  ADD_FAILURE() << "no parfor is left";
  return Block();
}

std::vector<std::string> OperatorsOf(const Graph& graph) {
  std::vector<std::string> operators;
  for (const Node& node : graph.nodes) operators.push_back(node.op);
  std::sort(operators.begin(), operators.end());
  return operators;
}

TEST(SplitSumsTest, WhatDependsOnASumIsABlockOfItsOwn) {
  const Block loop =
      LoopOf("d = 1\nparfor (i in 1:3) { v = rand(rows=3, cols=3, seed=i)\n d += sum(v %*% v) }\nprint(d)");
  EXPECT_EQ(loop.sums, std::vector<std::string>{"d"});
  ASSERT_EQ(loop.body.size(), 2u);
  EXPECT_NE(loop.body[0].id, loop.body[1].id);
  EXPECT_FALSE(TouchesSums(loop.body[0].graph, loop.sums));
  EXPECT_TRUE(TouchesSums(loop.body[1].graph, loop.sums));
  EXPECT_TRUE(OnlyAdds(loop.body[1].graph, loop.sums));
  EXPECT_EQ(OperatorsOf(loop.body[1].graph),
            (std::vector<std::string>{"+", "assign", "variable", "variable"}));
  // What only adds stays as it is.
  const SplitGraph again = SplitGraphAtSums(loop.body[1].graph, loop.sums);
  EXPECT_TRUE(again.first.nodes.empty());
  EXPECT_EQ(again.adding.ToText(), loop.body[1].graph.ToText());
}

TEST(SplitSumsTest, WhatCanBeSeenStaysBehindWhatMayFailBeforeIt) {
  const Block loop = LoopOf(
      "S = matrix(1, rows=2, cols=2)\nparfor (i in 1:3) { v = rand(rows=2, cols=i, seed=i)\n S += v\n print(i) }\n"
      "print(sum(S))");
  ASSERT_EQ(loop.body.size(), 2u);
  EXPECT_FALSE(OnlyAdds(loop.body[1].graph, loop.sums));
  const std::vector<std::string> adding = OperatorsOf(loop.body[1].graph);
  EXPECT_NE(std::find(adding.begin(), adding.end(), "print"), adding.end());
}

TEST(SplitSumsTest, LoopsThatRunInOrderStayWhole) {
  const Block loop = LoopOf(
      "d = 1\nR = matrix(0, rows=9, cols=1)\nparfor (i in 1:3, check=0) { d += sum(rand(rows=3, cols=3, seed=i))\n"
      "  R[i * i, 1] = i }\nprint(d + sum(R))");
  EXPECT_FALSE(loop.independent);
  EXPECT_EQ(loop.body.size(), 1u);
}

}  // namespace
}  // namespace heddle::compiler
