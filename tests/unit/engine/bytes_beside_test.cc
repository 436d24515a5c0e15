// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/bytes_beside.h"

#include <gtest/gtest.h>

#include "core/memory/block_pool.h"
#include "core/values/matrix.h"

namespace heddle::engine {
namespace {

constexpr int64_t kLeast = 1000;

Variable OfMatrix(int64_t rows, int64_t columns) {
  Variable variable;
  variable.value = Value(*FilledMatrix(rows, columns, 1));
  variable.info = ValueInfo::OfMatrix({rows, columns});
  return variable;
}

Graph ReadingA() {
  Graph graph;
  Node variable;
  variable.op = "variable";
  variable.SetAttribute("name", "A");
  graph.Add(std::move(variable));
  return graph;
}

int64_t InLeast(int64_t cells) { return (BlockPool::ClassBytes(cells * 8) + kLeast - 1) / kLeast * kLeast; }

TEST(BytesBesideTest, CountsWhatThePlanDoesNotReadOnce) {
  VariableTable frame;
  frame.Set("A", OfMatrix(100, 100));
  frame.Set("s", Variable::OfScalar(1.0));
  EXPECT_EQ(BytesBeside(ReadingA(), frame, nullptr, 1, kLeast), 0);
  frame.Set("small", OfMatrix(5, 5));
  EXPECT_EQ(BytesBeside(ReadingA(), frame, nullptr, 1, kLeast), 0) << "less than the least";
  frame.Set("B", OfMatrix(200, 100));
  EXPECT_GE(BytesBeside(ReadingA(), frame, nullptr, 1, kLeast), InLeast(200 * 100));
  frame.Erase("small");
  EXPECT_EQ(BytesBeside(ReadingA(), frame, nullptr, 1, kLeast), InLeast(200 * 100));
  frame.Set("alias of A", *frame.Find("A"));
  frame.Set("alias of B", *frame.Find("B"));
  EXPECT_EQ(BytesBeside(ReadingA(), frame, nullptr, 1, kLeast), InLeast(200 * 100));
  frame.Erase("alias of B");
  frame.FindMutable("B")->is_panels = true;
  EXPECT_EQ(BytesBeside(ReadingA(), frame, nullptr, 1, kLeast), 0);
  EXPECT_EQ(BytesBeside(ReadingA(), frame, nullptr, 1, 0), 0) << "nobody has a limit";
}

TEST(BytesBesideTest, CountsTheFramesOfOpenCallsAndElementsOfLists) {
  OpenFrames frames;
  for (int call = 0; call < 2; ++call) frames.push_back(std::make_unique<VariableTable>());
  VariableTable& caller = *frames[0];
  VariableTable& callee = *frames[1];
  caller.Set("X", OfMatrix(100, 100));
  callee.Set("A", *caller.Find("X"));
  EXPECT_EQ(BytesBeside(ReadingA(), callee, &frames, 1, kLeast), 0) << "an argument is the caller's variable";
  caller.Set("Y", OfMatrix(300, 100));
  EXPECT_EQ(BytesBeside(ReadingA(), callee, &frames, 1, kLeast), InLeast(300 * 100));
  auto list = std::make_shared<ListOf<Variable>>();
  ASSERT_TRUE(list->Add("", *caller.Find("Y")).ok());
  caller.Set("list", Variable::OfList(list));
  EXPECT_EQ(BytesBeside(ReadingA(), callee, &frames, 1, kLeast), InLeast(300 * 100));
  caller.Erase("Y");
  EXPECT_EQ(BytesBeside(ReadingA(), callee, &frames, 1, kLeast), InLeast(300 * 100));
}

// All ranks have the same number, whatever they hold.
TEST(BytesBesideTest, SeveralRanksGoByTypesSizesAndDistributions) {
  const auto beside = [](bool is_here) {
    VariableTable frame;
    frame.Set("A", OfMatrix(10, 10));
    Variable split = OfMatrix(300, 100);
    split.distribution = Distribution::SplitRows(300, 3);
    split.distribution.split.cuts = {0, 100, 200, 300};
    if (!is_here) split.value = Value();
    frame.Set("B", split);
    frame.Set("C", split);
    return BytesBeside(ReadingA(), frame, nullptr, 3, kLeast);
  };
  EXPECT_EQ(beside(true), beside(false));
  EXPECT_GE(beside(true), 100 * 100 * 8);
  EXPECT_LT(beside(true), 300 * 100 * 8) << "a third each, and both may be one value";
}

}  // namespace
}  // namespace heddle::engine
