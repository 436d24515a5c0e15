// SPDX-License-Identifier: Apache-2.0
// Structures as arrays: visits, heights, classes, circles.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "ops/recursion/linearize.h"
#include "ops/recursion/structure_program.h"

namespace heddle::ops {
namespace {

using Code = StructureProgram::Code;

// if (T[n, 1] != 0) call; if (T[n, 2] != 0) call; gives T[n, 3].
StructureProgram TwoChildren() {
  StructureProgram program;
  program.matrices = {"T"};
  program.registers = 8;
  program.steps = {{.code = Code::kConstant, .target = 1, .constant = 1},
                   {.code = Code::kConstant, .target = 2, .constant = 2},
                   {.code = Code::kConstant, .target = 3, .constant = 3},
                   {.code = Code::kCell, .target = 4, .a = 0, .b = 1},
                   {.code = Code::kCell, .target = 5, .a = 0, .b = 2},
                   {.code = Code::kCell, .target = 6, .a = 0, .b = 3},
                   {.code = Code::kBranch, .a = 4, .index = 8},
                   {.code = Code::kCall, .a = 4},
                   {.code = Code::kBranch, .a = 5, .index = 10},
                   {.code = Code::kCall, .a = 5},
                   {.code = Code::kGive, .a = 6},
                   {.code = Code::kEnd}};
  return program;
}

Matrix Rows(const std::vector<std::array<double, 3>>& rows) {
  Matrix matrix = *Matrix::Dense(static_cast<int64_t>(rows.size()), 3);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), matrix.mutable_data() + 3 * i);
  return matrix;
}

Result<Linearized> Arrays(const Matrix& matrix, const std::vector<int64_t>& roots) {
  Result<std::optional<VisitedStructure>> visited =
      VisitStructure(TwoChildren(), {&matrix, 1}, {}, roots, 100);
  HEDDLE_RETURN_IF_ERROR(visited.status());
  if (!*visited) return Internal("only the interpreter can tell");
  return Linearize(**std::move(visited), "f");
}

// Every node once, every child before its parent, everything where the arrays say it is.
void ExpectSound(const Matrix& matrix, const Linearized& arrays) {
  std::map<int64_t, int64_t> place_of;
  for (size_t place = 0; place < arrays.nodes.size(); ++place)
    EXPECT_TRUE(place_of.emplace(arrays.nodes[place], place).second);
  std::vector<bool> is_done(arrays.nodes.size(), false);
  for (const Linearized::Batch& batch : arrays.batches) {
    const Linearized::Class& node_class = arrays.classes[static_cast<size_t>(batch.node_class)];
    const int64_t size = node_class.end - node_class.begin;
    for (int64_t place = batch.begin; place < batch.end; ++place) {
      const int64_t node = arrays.nodes[static_cast<size_t>(place)];
      std::vector<int64_t> children;
      for (int64_t column = 0; column < 2; ++column)
        if (matrix.At(node - 1, column) != 0)
          children.push_back(static_cast<int64_t>(matrix.At(node - 1, column)));
      ASSERT_EQ(static_cast<size_t>(node_class.calls), children.size());
      for (size_t c = 0; c < children.size(); ++c) {
        const int32_t child =
            node_class
                .children[c * static_cast<size_t>(size) + static_cast<size_t>(place - node_class.begin)];
        EXPECT_EQ(child, place_of.at(children[c]));
        EXPECT_TRUE(is_done[static_cast<size_t>(child)]);
      }
      EXPECT_EQ(node_class.numbers[static_cast<size_t>(place - node_class.begin)], matrix.At(node - 1, 2));
    }
    for (int64_t place = batch.begin; place < batch.end; ++place) is_done[static_cast<size_t>(place)] = true;
  }
  EXPECT_TRUE(std::all_of(is_done.begin(), is_done.end(), [](bool done) { return done; }));
}

TEST(LinearizeTest, ChildrenComeBeforeTheirParentsInEveryGraph) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const int count = 1 + static_cast<int>(random() % 60);
    std::vector<std::array<double, 3>> rows;
    for (int i = 0; i < count; ++i)
      rows.push_back({static_cast<double>(random() % static_cast<unsigned>(i + 1)),
                      static_cast<double>(random() % static_cast<unsigned>(i + 1)),
                      static_cast<double>(100 + i)});
    const Matrix matrix = Rows(rows);
    const Result<Linearized> arrays = Arrays(matrix, {count, 1 + static_cast<int64_t>(random()) % count});
    ASSERT_TRUE(arrays.ok()) << arrays.status().ToString();
    ExpectSound(matrix, *arrays);
    EXPECT_EQ(arrays->nodes[static_cast<size_t>(arrays->roots[0])], count);
  }
}

TEST(LinearizeTest, AChainOfAMillionNodesNeedsNoStack) {
  constexpr int kNodes = 1'000'000;
  Matrix matrix = *Matrix::Dense(kNodes, 3);
  for (int i = 0; i < kNodes; ++i) {
    matrix.mutable_data()[3 * i] = i;
    matrix.mutable_data()[3 * i + 1] = 0;
    matrix.mutable_data()[3 * i + 2] = 1;
  }
  const Result<Linearized> arrays = Arrays(matrix, {kNodes});
  ASSERT_TRUE(arrays.ok());
  EXPECT_EQ(arrays->levels, kNodes);
  EXPECT_EQ(arrays->batches.size(), static_cast<size_t>(kNodes));
}

TEST(LinearizeTest, NodesThatAreNotReachedAreNotThere) {
  const Matrix matrix = Rows({{0, 0, 1}, {0, 0, 2}, {1, 0, 3}});
  const Result<Linearized> arrays = Arrays(matrix, {3});
  ASSERT_TRUE(arrays.ok());
  EXPECT_EQ(arrays->nodes, (std::vector<int64_t>{3, 1}));
}

TEST(LinearizeTest, ACircleIsNamed) {
  const Matrix matrix = Rows({{2, 0, 1}, {3, 0, 1}, {4, 0, 1}, {2, 5, 1}, {0, 0, 1}});
  const Result<Linearized> arrays = Arrays(matrix, {1});
  ASSERT_FALSE(arrays.ok());
  EXPECT_EQ(arrays.status().message(),
            "function 'f': the calls never end: nodes 2 -> 3 -> 4 -> 2 are children of each other");
}

TEST(LinearizeTest, AChildThatIsNoRowIsAnError) {
  const Matrix matrix = Rows({{2, 0, 1}, {7, 0, 1}});
  const Result<Linearized> arrays = Arrays(matrix, {1});
  ASSERT_FALSE(arrays.ok());
  EXPECT_EQ(arrays.status().message(), "node 7 reads [7,1] of 'T', which is 2 x 3");
}

TEST(StructureProgramTest, WhatIsNoNodeIsForTheInterpreter) {
  for (const double child : {-1.0, 1.5, 1e18, std::numeric_limits<double>::quiet_NaN()}) {
    const Matrix matrix = Rows({{child, 0, 1}});
    const std::vector<int64_t> roots = {1};
    const Result<std::optional<VisitedStructure>> visited =
        VisitStructure(TwoChildren(), {&matrix, 1}, {}, roots, 100);
    ASSERT_TRUE(visited.ok());
    EXPECT_FALSE(visited->has_value()) << child;
  }
}

TEST(StructureProgramTest, MoreDecisionsThanAllowedAreForTheInterpreter) {
  const Matrix matrix = Rows({{0, 0, 1}});
  const std::vector<int64_t> roots = {1};
  EXPECT_FALSE((*VisitStructure(TwoChildren(), {&matrix, 1}, {}, roots, 1)).has_value());
  EXPECT_TRUE((*VisitStructure(TwoChildren(), {&matrix, 1}, {}, roots, 2)).has_value());
}

}  // namespace
}  // namespace heddle::ops
