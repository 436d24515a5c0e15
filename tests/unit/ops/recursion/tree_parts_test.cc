// SPDX-License-Identifier: Apache-2.0
// Trees over threads: which nodes a part has, and when there are parts.
#include "ops/recursion/run/tree_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ops/recursion/body/batch_time.h"
#include "ops/recursion/structure/visit_structure.h"

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

// Calls T[n, 1], T[n, 2] and T[n, 3], as far as they are not 0.
StructureProgram CallsOfRow() {
  using Code = StructureProgram::Code;
  StructureProgram program;
  program.matrices = {"T"};
  program.registers = 3;
  for (int32_t column = 1; column <= 3; ++column) {
    const auto step = static_cast<int32_t>(program.steps.size());
    program.steps.push_back({.code = Code::kConstant, .target = 1, .constant = static_cast<double>(column)});
    program.steps.push_back({.code = Code::kCell, .target = 2, .a = 0, .b = 1});
    program.steps.push_back({.code = Code::kBranch, .a = 2, .index = step + 4});
    program.steps.push_back({.code = Code::kCall, .a = 2});
  }
  program.steps.push_back({.code = Code::kEnd});
  return program;
}

// Nodes have the numbers of their rows, from 1.
Linearized ArraysOf(const std::vector<std::array<double, 3>>& rows, const std::vector<int64_t>& roots) {
  Matrix matrix = *Matrix::Dense(static_cast<int64_t>(rows.size()), 3);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), matrix.mutable_data() + 3 * i);
  const StructureProgram program = CallsOfRow();
  StructureVisitor visitor(program, {matrix}, {}, StructureVisitor::kNoLimit);
  return Linearize(**visitor.Visit(roots, "f"));
}

Linearized ArraysOf(const std::vector<Tree>& forest) {
  std::vector<std::array<double, 3>> rows;
  std::vector<int64_t> roots;
  const auto add = [&](const auto& self, const Tree& tree) -> int64_t {
    std::array<double, 3> row = {0, 0, 0};
    for (size_t i = 0; i < tree.below.size(); ++i) row[i] = static_cast<double>(self(self, tree.below[i]));
    rows.push_back(row);
    return static_cast<int64_t>(rows.size());
  };
  for (const Tree& tree : forest) roots.push_back(add(add, tree));
  return ArraysOf(rows, roots);
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
TEST(TreePartsTest, NodesThatAreSharedAreInOnePart) {
  const Linearized arrays = ArraysOf({{2, 4, 0}, {3, 0, 0}, {0, 0, 0}, {3, 0, 0}}, {1});
  const TreeParts parts = ChooseParts(arrays, 2, OnlyPartsPay);
  EXPECT_TRUE(parts.parts.empty());
  EXPECT_EQ(ToText(parts), "levels");
  ExpectSound(arrays, parts);

  // Six of them, the last of which has a node of the one before it: five components.
  std::vector<std::array<double, 3>> rows;
  std::vector<int64_t> roots;
  for (int diamond = 0; diamond < 6; ++diamond) {
    const double first = 4.0 * diamond;
    rows.insert(rows.end(), {{first + 2, first + 4, 0}, {first + 3, 0, 0}, {0, 0, 0}, {first + 3, 0, 0}});
    roots.push_back(4 * diamond + 1);
  }
  rows[20][2] = 19;
  const Linearized several = ArraysOf(rows, roots);
  EXPECT_EQ(several.components, (std::vector<int32_t>{0, 4, 8, 12, 16}));
  for (int threads = 2; threads <= 7; ++threads) {
    const TreeParts of_several = ChooseParts(several, threads, OnlyPartsPay);
    EXPECT_GE(of_several.parts.size(), 2u);
    EXPECT_TRUE(of_several.rest.empty());
    ExpectSound(several, of_several);
  }
  EXPECT_EQ(NodesOf(ChooseParts(several, 2, OnlyPartsPay).parts[0]), 12);
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
