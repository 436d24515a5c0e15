// SPDX-License-Identifier: Apache-2.0
// The tree over leaves on a device has the bytes of the processor's. On machines without an OpenCL device
// (Debian: pocl-opencl-icd) these tests are skipped.
#include "ops/device/operators/join_leaves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "first_device.h"
#include "tests/unit/ops/fused/body_builder.h"

namespace heddle::ops::testing {
namespace {

class JoinLeavesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = FirstDevice();
    if (device_ == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    queue_ = *device_->MakeQueue();
  }

  std::shared_ptr<DeviceMemory> There(const std::vector<double>& numbers) {
    const auto bytes = static_cast<int64_t>(numbers.size() * sizeof(double));
    std::shared_ptr<DeviceMemory> memory = *device_->Allocate(bytes);
    EXPECT_TRUE(queue_->Write(numbers.data(), bytes, *memory, 0).ok());
    EXPECT_TRUE(queue_->Finish().ok());
    return memory;
  }
  std::vector<double> Here(const DeviceMemory& memory, int64_t first, int64_t count) {
    std::vector<double> numbers(static_cast<size_t>(count));
    EXPECT_TRUE(queue_->Read(memory, first * 8, count * 8, numbers.data()).ok());
    EXPECT_TRUE(queue_->Finish().ok());
    return numbers;
  }

  static bool AreSame(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  }

  // Leaves of `width` numbers; of moments a leaf counts `of_leaf` ones, the last two fewer.
  void ExpectSame(Join join, int64_t width, int64_t leaves, int64_t first_leaf) {
    SCOPED_TRACE(fmt::format("join {}, width {}, {} leaves from {} on", static_cast<int>(join), width, leaves,
                             first_leaf));
    constexpr int64_t kOfLeaf = 7;
    const int64_t of_all = leaves * kOfLeaf - 2;
    const Matrix cells = Cells(leaves, width, 3, /*special=*/join != Join::kMoments && leaves > 40);
    std::vector<double> payloads(cells.data(), cells.data() + cells.cells());
    for (int64_t leaf = 0; leaf < leaves && join == Join::kMoments; ++leaf)
      payloads[static_cast<size_t>(leaf * width)] = leaf + 1 < leaves ? kOfLeaf : kOfLeaf - 2;
    const Result<Matrix> expected =
        ReduceLeaves({.join = join, .width = width}, first_leaf, first_leaf + leaves,
                     [&](int64_t leaf, double* payload) {
                       std::memcpy(payload, payloads.data() + (leaf - first_leaf) * width,
                                   static_cast<size_t>(width) * sizeof(double));
                       return true;
                     });
    ASSERT_TRUE(expected.ok());
    DeviceCommands commands(*device_, *queue_, nullptr);
    const DevicePayloads joined = {
        .memory = There(payloads), .width = width, .join = join, .of_leaf = kOfLeaf, .of_all = of_all};
    for (int64_t i = 0; i < expected->rows(); ++i) {
      const double* const row = expected->data() + i * expected->columns();
      const TreeNode node = {static_cast<int64_t>(row[0]), static_cast<int>(row[1])};
      const int64_t begin = node.FirstLeaf() - first_leaf;
      ASSERT_TRUE(JoinLeaves(commands, joined, begin, begin + (int64_t{1} << node.level)).ok());
      const std::vector<double> payload = Here(*joined.memory, begin * width, width);
      for (int64_t p = 0; p < width; ++p)
        ASSERT_TRUE(AreSame(row[2 + p], payload[static_cast<size_t>(p)]))
            << "place " << p << " of node " << node.index << ", " << node.level << ": "
            << payload[static_cast<size_t>(p)] << " there, not " << row[2 + p];
    }
    // All of them: a right part is smaller than a left one.
    const Result<RootPayload> root = JoinNodes({.join = join, .width = width}, *expected);
    ASSERT_TRUE(root.ok());
    DevicePayloads again = joined;
    again.memory = There(payloads);
    if (first_leaf != 0) return;
    ASSERT_TRUE(JoinLeaves(commands, again, 0, leaves).ok());
    const std::vector<double> payload = Here(*again.memory, 0, width);
    for (int64_t p = 0; p < width; ++p)
      ASSERT_TRUE(AreSame((*root)[p], payload[static_cast<size_t>(p)])) << "place " << p << " of all";
  }

  ComputeDevice* device_ = nullptr;
  std::unique_ptr<DeviceQueue> queue_;
};

// Around the 32 payloads that a work-item joins in one launch.
TEST_F(JoinLeavesTest, NodesAndRootsOfEveryJoin) {
  for (const Join join : {Join::kSum, Join::kProduct, Join::kMinimum, Join::kMaximum, Join::kMoments})
    for (const int64_t leaves : {1, 2, 3, 31, 32, 33, 64, 100, 1024, 1025, 2500})
      for (const int64_t first_leaf : {0, 5}) {
        ExpectSame(join, join == Join::kMoments ? 7 : 8, leaves, first_leaf);
        if (HasFailure()) return;
      }
  ExpectSame(Join::kMoments, 3, 77, 0);
  ExpectSame(Join::kSum, 1000, 37, 0);
}

TEST_F(JoinLeavesTest, ARootInMemoryOfItsOwn) {
  for (const int64_t leaves : {2, 40}) {
    const Matrix cells = Cells(leaves, 5, 1);
    const DevicePayloads payloads = {
        .memory = There({cells.data(), cells.data() + cells.cells()}), .width = 5};
    const std::shared_ptr<DeviceMemory> root = There(std::vector<double>(5, 0.0));
    DeviceCommands commands(*device_, *queue_, nullptr);
    ASSERT_TRUE(JoinLeaves(commands, payloads, 0, leaves, root).ok());
    EXPECT_EQ(Here(*root, 0, 5), Here(*payloads.memory, 0, 5));
  }
}

// Cells of a result, and the flag that a number near the end of doubles sets.
TEST_F(JoinLeavesTest, CellsOfARoot) {
  struct Case {
    const char* what;
    FinishedCells cells;
    std::vector<double> payload, expected;
    bool is_flagged;
  };
  using Kind = FinishedCells::Kind;
  const std::vector<double> lanes = {1, 2, 4, 8, 16, 32, 64, 128};
  const std::vector<double> large = {0x1p970, 0, 0, 0, -0x1p970, 0, 0, 0};
  const FinishedCells symmetric = {
      .rows = 2, .columns = 2, .row_step = 2, .column_step = 1, .is_symmetric = true};
  for (const Case& one : {
           Case{"a row", {.columns = 3, .first = 1, .column_step = 1}, {9, 1, -0.0, 3}, {1, -0.0, 3}, false},
           Case{"a product", {.kind = Kind::kProduct, .columns = 2, .column_step = 1}, {-0.0, 5}, {0.0, 5},
                false},
           Case{"a mean", {.kind = Kind::kMean, .lane_step = 1, .count = 2}, lanes, {127.5}, false},
           Case{"the largest lane", {.lane_step = 1, .join = Join::kMaximum}, lanes, {128}, false},
           Case{"a variance", {.kind = Kind::kVariance, .first = 2, .count = 5}, {5, 1, 8}, {2}, false},
           Case{"of one", {.kind = Kind::kDeviation, .first = 2, .count = 1}, {1, 7, 0}, {0}, false},
           Case{"a deviation", {.kind = Kind::kDeviation, .first = 2, .count = 5}, {5, 1, 16}, {2}, false},
           Case{"a symmetric matrix", symmetric, {1, 2, 0, 4}, {1, 2, 2, 4}, false},
           Case{"by columns",
                {.rows = 2, .columns = 2, .row_step = 1, .column_step = 3},
                {1, 2, 0, 3, 4, 0},
                {1, 3, 2, 4},
                false},
           Case{"a large one", {.columns = 2, .column_step = 1}, {1, -0x1p960}, {1, -0x1p960}, true},
           Case{"large lanes", {.lane_step = 1}, large, {0}, true},
           Case{"an infinite one", {}, {HUGE_VAL}, {HUGE_VAL}, true},
       }) {
    SCOPED_TRACE(one.what);
    DeviceCommands commands(*device_, *queue_, nullptr);
    const std::shared_ptr<DeviceMemory> out = There(std::vector<double>(one.expected.size(), 77.0));
    const std::shared_ptr<DeviceMemory> flags = There({0.0});
    ASSERT_TRUE(FinishCells(commands, one.cells, There(one.payload), out, flags).ok());
    const std::vector<double> cells = Here(*out, 0, static_cast<int64_t>(one.expected.size()));
    for (size_t c = 0; c < cells.size(); ++c) EXPECT_TRUE(AreSame(one.expected[c], cells[c])) << cells[c];
    int32_t flag = 0;
    ASSERT_TRUE(queue_->Read(*flags, 0, 4, &flag).ok());
    ASSERT_TRUE(queue_->Finish().ok());
    EXPECT_EQ(flag != 0, one.is_flagged);
  }
}

}  // namespace
}  // namespace heddle::ops::testing
