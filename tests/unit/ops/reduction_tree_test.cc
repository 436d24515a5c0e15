// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction/reduction_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <new>

#include "aggregate_cases.h"
#include "ops/reduction/reduce_ranges.h"
#include "tests/reference/aggregate.h"

namespace heddle::ops {
namespace {

double LeafValue(int64_t leaf) {
  return std::sin(static_cast<double>(leaf) * 12.9898) * std::exp2(static_cast<double>(leaf % 40));
}

double Definition(int64_t leaves) {
  std::vector<double> values;
  for (int64_t i = 0; i < leaves; ++i) values.push_back(LeafValue(i));
  return reference::Tree(values, 0, values.size(), [](double a, double b) { return a + b; });
}

const Reduction kOne{.width = 1, .leaf_cells = 1 << 20};
bool OneLeaf(int64_t leaf, double* payload) {
  *payload = LeafValue(leaf);
  return true;
}

Matrix Together(const std::vector<Matrix>& parts) {
  int64_t rows = 0;
  for (const Matrix& part : parts) rows += part.rows();
  Matrix together = *FilledMatrix(rows, 3, 0.0);
  int64_t at = 0;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    for (int64_t i = 0; i < part->cells(); ++i) together.mutable_data()[at++] = part->data()[i];
  return together;
}

TEST(ReductionTreeTest, CoveringNodesAreAlignedAndFew) {
  using Nodes = std::vector<TreeNode>;
  EXPECT_EQ(CoveringNodes(0, 0), Nodes{});
  EXPECT_EQ(CoveringNodes(0, 8), (Nodes{{0, 3}}));
  EXPECT_EQ(CoveringNodes(3, 8), (Nodes{{3, 0}, {1, 2}}));
  EXPECT_EQ(CoveringNodes(5, 14), (Nodes{{5, 0}, {3, 1}, {2, 2}, {6, 1}}));
}

TEST(ReductionTreeTest, AnyCutGivesTheTree) {
  for (int64_t leaves : {1, 2, 3, 5, 7, 8, 31, 64, 100}) {
    const double expected = Definition(leaves);
    for (int64_t first = 0; first <= leaves; first += 1 + leaves / 13) {
      for (int64_t second = first; second <= leaves; second += 1 + leaves / 7) {
        const Matrix nodes =
            Together({*ReduceLeaves(kOne, 0, first, OneLeaf), *ReduceLeaves(kOne, first, second, OneLeaf),
                      *ReduceLeaves(kOne, second, leaves, OneLeaf)});
        EXPECT_EQ(JoinNodes(kOne, nodes)->data()[0], expected)
            << leaves << " leaves cut at " << first << " and " << second;
      }
    }
  }
}

TEST(ReductionTreeTest, ThreadsAndTaskSizesDoNotMatter) {
  const int64_t leaves = 5000;
  const double expected = Definition(leaves);
  OnOneAndTwoThreads([&] {
    for (int64_t leaf_cells : {1, 1000, 1 << 20}) {
      Reduction reduction = kOne;
      reduction.leaf_cells = leaf_cells;
      EXPECT_EQ(JoinNodes(reduction, *ReduceLeaves(reduction, 0, leaves, OneLeaf))->data()[0], expected);
    }
  });
}

TEST(ReductionTreeTest, MissingLeavesChangeNothing) {
  const int64_t leaves = 300;
  std::vector<double> values;
  for (int64_t i = 0; i < leaves; ++i) values.push_back(i % 7 == 3 || i > 280 ? LeafValue(i) : 0.0);
  const double expected = reference::Tree(values, 0, values.size(), [](double a, double b) { return a + b; });
  const auto leaf = [&](int64_t i, double* payload) {
    *payload = values[static_cast<size_t>(i)];
    return *payload != 0.0;
  };
  EXPECT_EQ(JoinNodes(kOne, *ReduceLeaves(kOne, 0, leaves, leaf))->data()[0], expected);
}

TEST(ReductionTreeTest, TilesGiveTheSamePayload) {
  const int64_t leaves = 37, rows = 5, columns = 21;
  const auto cell = [](int64_t leaf, int64_t place) { return LeafValue(leaf * 1000 + place); };
  const Reduction reduction{.width = rows * columns};
  const Matrix whole = *ReduceLeaves(reduction, 0, leaves, [&](int64_t leaf, double* payload) {
    for (int64_t i = 0; i < rows * columns; ++i) payload[i] = cell(leaf, i);
    return true;
  });
  const Matrix tiled = *ReduceTiles(reduction, 0, leaves, Tiling{rows, columns, 2, 8},
                                    [&](const Tile& tile, int64_t leaf, double* payload) {
                                      for (int64_t r = 0; r < tile.rows; ++r)
                                        for (int64_t c = 0; c < tile.columns; ++c)
                                          *payload++ = cell(leaf, (tile.row + r) * columns + tile.column + c);
                                      return true;
                                    });
  EXPECT_TRUE(Matrix::SameCells(whole, tiled));
}

TEST(ReductionTreeTest, NoLeavesGiveTheIdentity) {
  const Reduction product{.join = Join::kProduct, .width = 3};
  EXPECT_EQ(JoinNodes(product, *ReduceLeaves(product, 0, 0, {}))->data()[2], 1.0);
}

// The kernel that asks for it ends with kResourceExhausted (ops/catalog.cc).
TEST(ReductionTreeTest, ScratchThatNobodyHasIsOutOfMemory) {
  EXPECT_THROW(AlignedArray(int64_t{1} << 52), std::bad_alloc);
}

TEST(ReductionTreeTest, CancellationIsReported) {
  std::atomic<bool> cancelled = true;
  Reduction reduction = kOne;
  reduction.cancelled = &cancelled;
  EXPECT_EQ(ReduceLeaves(reduction, 0, 10, OneLeaf).status().code(), StatusCode::kCancelled);
}

// The nodes of several ranges are those of each, one range after the other.
TEST(ReductionTreeTest, RangesOfLeavesAreOneLoop) {
  const LeafFunction leaf = [](int64_t number, double* payload) {
    std::fill_n(payload, 3, 1.0 / (1.0 + static_cast<double>(number)));
    return number % 5 != 0;
  };
  const Reduction reduction{.width = 3, .leaf_cells = 1 << 16};
  for (const int64_t count : {0, 1, 7, 100}) {
    for (const int64_t first : {0, 3, 900}) {
      std::vector<double> expected;
      for (int64_t range = 0; range < 6; ++range) {
        const Matrix nodes =
            *ReduceLeaves(reduction, range * 1000 + first, range * 1000 + first + count, leaf);
        expected.insert(expected.end(), nodes.data(), nodes.data() + nodes.cells());
      }
      for (const int threads : {1, 3}) {
        Result<Matrix> all = Matrix();
        Arena(threads).Execute([&] { all = ReduceRanges(reduction, 6, 1000, first, count, leaf); });
        ASSERT_TRUE(all.ok());
        EXPECT_EQ(std::vector<double>(all->data(), all->data() + all->cells()), expected)
            << count << " " << first;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::ops
