// SPDX-License-Identifier: Apache-2.0
// Trees over threads: which nodes a part has, and when there are parts.
#include "ops/recursion/tree_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ops/recursion/batch_time.h"

namespace heddle::ops {
namespace {

struct Tree {
  std::vector<Tree> below;
};

Tree Perfect(int height) { return height == 0 ? Tree() : Tree{{Perfect(height - 1), Perfect(height - 1)}}; }
Tree Chain(int nodes) {
  Tree tree;
  for (int i = 1; i < nodes; ++i) tree = {{std::move(tree)}};
  return tree;
}
Tree Comb(int nodes) {
  Tree tree;
  for (int i = 1; i < nodes; i += 2) tree = {{Tree(), std::move(tree)}};
  return tree;
}
Tree Random(int nodes, std::mt19937* random) {
  Tree tree;
  for (int left = nodes - 1; left > 0;) {
    const int child =
        tree.below.size() == 2 ? left : 1 + static_cast<int>((*random)() % static_cast<unsigned>(left));
    tree.below.push_back(Random(child, random));
    left -= child;
  }
  return tree;
}

// Classes by the number of children.
Linearized ArraysOf(const std::vector<Tree>& forest) {
  VisitedStructure visited;
  std::vector<std::vector<int32_t>> children;
  std::map<std::pair<int32_t, int32_t>, int32_t> batches;  // by class and height
  std::vector<int32_t> heights;
  const auto visit = [&](const auto& self, const Tree& tree) -> int32_t {
    const size_t number = children.size();
    children.emplace_back();
    heights.push_back(0);
    visited.visits.push_back({.node = static_cast<int32_t>(number) + 1});
    for (const Tree& child : tree.below) {
      const int32_t of_child = self(self, child);
      children[number].push_back(of_child);
      heights[number] = std::max(heights[number], heights[static_cast<size_t>(of_child)] + 1);
    }
    const auto calls = static_cast<int32_t>(tree.below.size());
    const auto [batch, is_new] =
        batches.try_emplace({calls, heights[number]}, static_cast<int32_t>(batches.size()));
    if (is_new) visited.batches.push_back({.node_class = calls, .height = heights[number]});
    ++visited.batches[static_cast<size_t>(batch->second)].size;
    visited.visits[number].batch = batch->second;
    visited.visits[number].subtree = static_cast<int32_t>(children.size() - number);
    return static_cast<int32_t>(number);
  };
  for (const Tree& tree : forest) visited.roots.push_back(visit(visit, tree));
  int32_t most = 0;
  for (const std::vector<int32_t>& of_node : children) {
    visited.children.insert(visited.children.end(), of_node.begin(), of_node.end());
    most = std::max(most, static_cast<int32_t>(of_node.size()));
  }
  for (int32_t calls = 0; calls <= most; ++calls)
    visited.classes.push_back({.path = std::vector<bool>(static_cast<size_t>(calls), true), .calls = calls});
  return Linearize(visited);
}

// A node takes a microsecond on any number of threads: only parts are faster.
double OnlyPartsPay(int32_t, int64_t rows, int) { return static_cast<double>(rows); }

int64_t NodesOf(const TreeParts::Batches& batches) {
  return std::accumulate(batches.begin(), batches.end(), int64_t{0},
                         [](int64_t sum, const Linearized::Batch& one) { return sum + one.end - one.begin; });
}

void ExpectSound(const Linearized& arrays, const TreeParts& parts) {
  constexpr int kNowhere = -1;
  std::vector<int> part_of(arrays.nodes.size(), kNowhere);
  const auto check = [&](std::span<const Linearized::Batch> batches, int part, bool is_rest) {
    for (const Linearized::Batch& batch : batches) {
      EXPECT_TRUE(std::any_of(arrays.batches.begin(), arrays.batches.end(),
                              [&](const Linearized::Batch& whole) {
                                return whole.node_class == batch.node_class && whole.begin <= batch.begin &&
                                       batch.end <= whole.end;
                              }))
          << "of one batch";
      const Linearized::Class& node_class = arrays.classes[static_cast<size_t>(batch.node_class)];
      for (int64_t place = batch.begin; place < batch.end; ++place) {
        for (int64_t call = 0; call < node_class.calls; ++call) {
          const int32_t child = node_class.children[static_cast<size_t>(
              call * (node_class.end - node_class.begin) + place - node_class.begin)];
          const int of_child = part_of[static_cast<size_t>(child)];
          EXPECT_TRUE(is_rest ? of_child != kNowhere : of_child == part) << "children come first";
        }
      }
      for (int64_t place = batch.begin; place < batch.end; ++place) {
        EXPECT_EQ(part_of[static_cast<size_t>(place)], kNowhere) << "each node once";
        part_of[static_cast<size_t>(place)] = part;
      }
    }
  };
  for (size_t part = 0; part < parts.parts.size(); ++part)
    check(parts.parts[part], static_cast<int>(part), false);
  check(parts.RestOf(arrays), static_cast<int>(parts.parts.size()), true);
  EXPECT_EQ(std::count(part_of.begin(), part_of.end(), kNowhere), 0) << "every node";
}

TEST(TreePartsTest, EveryNodeIsSomewhereBehindItsChildren) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Tree> forest;
    for (int trees = 1 + static_cast<int>(random() % 6); trees > 0; --trees) switch (random() % 5) {
        case 0: forest.push_back(Chain(1 + static_cast<int>(random() % 80))); break;
        case 1: forest.push_back(Comb(1 + static_cast<int>(random() % 200))); break;
        case 2: forest.push_back(Perfect(static_cast<int>(random() % 6))); break;
        default: forest.push_back(Random(1 + static_cast<int>(random() % 100), &random)); break;
      }
    const Linearized arrays = ArraysOf(forest);
    for (const int threads : {1, 2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", " << threads << " threads");
      const TreeParts parts = ChooseParts(arrays, threads, OnlyPartsPay);
      EXPECT_LE(parts.parts.size(), static_cast<size_t>(threads));
      EXPECT_NE(parts.parts.size(), 1u);
      ExpectSound(arrays, parts);
    }
  }
}

TEST(TreePartsTest, TreesOfAForestAreSharedOutEvenly) {
  const Linearized arrays = ArraysOf(std::vector<Tree>(9, Perfect(5)));
  const TreeParts parts = ChooseParts(arrays, 3, OnlyPartsPay);
  ASSERT_EQ(parts.parts.size(), 3u);
  for (const TreeParts::Batches& part : parts.parts) {
    EXPECT_EQ(NodesOf(part), 3 * 63);
    EXPECT_EQ(part.size(), 6u) << "a batch of each height";
  }
  EXPECT_TRUE(parts.rest.empty());
  EXPECT_EQ(ToText(parts), "trees over 3 threads");
}

TEST(TreePartsTest, OneTreeIsCutBelowItsTop) {
  const Linearized arrays = ArraysOf({Perfect(7)});
  const TreeParts two = ChooseParts(arrays, 2, OnlyPartsPay);
  ASSERT_EQ(two.parts.size(), 2u);
  for (const TreeParts::Batches& part : two.parts) EXPECT_EQ(NodesOf(part), 127);
  EXPECT_EQ(NodesOf(two.rest), 1);
  EXPECT_EQ(ToText(two), "subtrees below a cut over 2 threads");
  const TreeParts four = ChooseParts(arrays, 4, OnlyPartsPay);
  ASSERT_EQ(four.parts.size(), 4u);
  for (const TreeParts::Batches& part : four.parts) EXPECT_EQ(NodesOf(part), 63);
  EXPECT_EQ(NodesOf(four.rest), 3);
}

TEST(TreePartsTest, AHugeTreeAmongSmallOnesIsCut) {
  std::mt19937 random(3);
  std::vector<Tree> forest(20, Perfect(2));
  forest.insert(forest.begin() + 7, Random(3000, &random));
  const Linearized arrays = ArraysOf(forest);
  const TreeParts parts = ChooseParts(arrays, 2, OnlyPartsPay);
  ASSERT_EQ(parts.parts.size(), 2u);
  EXPECT_LT(std::abs(NodesOf(parts.parts[0]) - NodesOf(parts.parts[1])), 400);
  EXPECT_LE(NodesOf(parts.rest), 64);
}

TEST(TreePartsTest, WhatHasNoTwoSidesHasNoParts) {
  EXPECT_TRUE(ChooseParts(ArraysOf({Tree()}), 2, OnlyPartsPay).parts.empty());
  EXPECT_TRUE(ChooseParts(ArraysOf({Chain(1000)}), 2, OnlyPartsPay).parts.empty());
  EXPECT_TRUE(ChooseParts(ArraysOf({Perfect(5)}), 1, OnlyPartsPay).parts.empty());
  EXPECT_TRUE(ChooseParts(Linearized(), 2, OnlyPartsPay).parts.empty());
}

// A diamond.
TEST(TreePartsTest, NodesThatAreSharedHaveNoParts) {
  VisitedStructure visited;
  visited.classes = {
      {.path = {}, .calls = 0}, {.path = {true}, .calls = 1}, {.path = {true, true}, .calls = 2}};
  visited.batches = {{.node_class = 2, .height = 2, .size = 1},
                     {.node_class = 1, .height = 1, .size = 2},
                     {.node_class = 0, .height = 0, .size = 1}};
  visited.visits = {{.node = 1, .batch = 0, .subtree = 4},
                    {.node = 2, .batch = 1, .subtree = 2},
                    {.node = 3, .batch = 2, .subtree = 1},
                    {.node = 4, .batch = 1, .subtree = 1}};
  visited.children = {1, 3, 2, 2};
  visited.roots = {0};
  visited.is_tree = false;
  const Linearized arrays = Linearize(visited);
  const TreeParts parts = ChooseParts(arrays, 2, OnlyPartsPay);
  EXPECT_TRUE(parts.parts.empty());
  EXPECT_EQ(ToText(parts), "levels");
  ExpectSound(arrays, parts);
}

TEST(TreePartsTest, TheFormIsTheFasterOne) {
  const Linearized arrays = ArraysOf(std::vector<Tree>(8, Perfect(6)));
  // Threads share out a batch as well as trees: then no tree waits for the last one.
  const auto levels_pay = [](int32_t, int64_t rows, int threads) {
    return static_cast<double>(rows) / threads;
  };
  EXPECT_TRUE(ChooseParts(arrays, 2, levels_pay).parts.empty());
  // Each batch costs what handing it over does.
  const auto handing_costs = [](int32_t, int64_t rows, int threads) {
    return static_cast<double>(rows) / threads + (threads > 1 ? kHandOverMicroseconds : 0);
  };
  EXPECT_EQ(ChooseParts(arrays, 2, handing_costs).parts.size(), 2u);
  // A batch costs the same for any number of rows, so that parts do it twice.
  const auto rows_are_free = [](int32_t, int64_t, int) { return 100.0; };
  EXPECT_TRUE(ChooseParts(arrays, 2, rows_are_free).parts.empty());
}

TEST(TreePartsTest, TheFirstPartThatFailsIsTheErrorAndAllAreRun) {
  TreeParts parts;
  parts.parts.resize(4);
  std::vector<int> runs(4, 0);
  const Status status = EachPart(parts, [&](size_t part) -> Status {
    ++runs[part];
    return part % 2 == 0 ? OkStatus() : InvalidArgument("part {}", part);
  });
  EXPECT_EQ(status.message(), "part 1");
  EXPECT_EQ(runs, std::vector<int>(4, 1));
}

TEST(BatchTimeTest, RowsGoTogetherWhileTheirValuesFitIntoTheCache) {
  EXPECT_EQ(RowsAtOnce(1000, /*row_bytes=*/1000, /*threads=*/1), 128);
  EXPECT_EQ(RowsAtOnce(1000, 1 << 16, 1), 64);
  EXPECT_EQ(RowsAtOnce(1000, 1 << 30, 1), 8) << "products are slow with fewer";
  EXPECT_EQ(RowsAtOnce(100, 1000, 2), 32) << "each thread has some";
  EXPECT_EQ(RowsAtOnce(200, 1000, 2), 50);
}

TEST(BatchTimeTest, AProductOfFewRowsTakesAsLongAsReadingItsMatrix) {
  const Shape b = {256, 768};
  EXPECT_EQ(ProductMicroseconds(1, b, 4), ProductMicroseconds(4, b, 4));
  EXPECT_EQ(ProductMicroseconds(64, b, 4), 8 * ProductMicroseconds(8, b, 4));
  EXPECT_EQ(ProductMicroseconds(64, b, 8), 2 * ProductMicroseconds(64, b, 4));
}

}  // namespace
}  // namespace heddle::ops
