// SPDX-License-Identifier: Apache-2.0
// How products are shared out: by rows beside a copy of the right operand, on a grid, in turns, by panels.
#include <gtest/gtest.h>

#include <map>

#include "scheduler/liveness.h"
#include "scheduler/place.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

struct Sizes {
  int64_t m, k, n;
};

// The placement of A %*% B whose operands are split over all ranks, `a_is_split` or A is whole on each.
Placement PlaceProduct(const Sizes& s, const ScheduleOptions& options, bool a_is_split = true) {
  GraphUnderTest g;
  const NodeId a = g.Variable("A", MatrixOf(s.m, s.k)), b = g.Variable("B", MatrixOf(s.k, s.n));
  const NodeId product = g.Op("%*%", {a, b}, MatrixOf(s.m, s.n));
  g.Assign("C", product);
  const std::map<std::string, Distribution> live_in = {
      {"A", a_is_split ? Distribution::SplitRows(s.m, options.ranks) : Distribution::Each()},
      {"B", Distribution::SplitRows(s.k, options.ranks)}};
  const Result<std::vector<Placement>> placements = Place(g.graph, live_in, options);
  EXPECT_TRUE(placements.ok()) << placements.status().ToString();
  if (options.ranks <= 64) {
    ScheduleOptions without_limit = options;
    without_limit.memory_bytes = 0;
    const Result<Plan> plan = Schedule(g.graph, live_in, without_limit);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    if (!plan.ok()) return {};
    EXPECT_TRUE(CheckLive(*plan).ok());
    EXPECT_TRUE(plan->whole.empty());
    const Result<Plan> parsed = Plan::Parse(plan->ToText());
    EXPECT_TRUE(parsed.ok() && parsed->ToText() == plan->ToText());
  }
  return placements.ok() ? (*placements)[static_cast<size_t>(product)] : Placement();
}

size_t StagesOf(const Placement& placement) {
  return placement.staged == nullptr ? 0 : placement.staged->stages.size();
}
constexpr size_t kByRows = 0, kOnGrid = 4, kByPanels = 4, kInSteps = 11, kInTurns = 19;

TEST(PlaceProductsTest, ASmallRightOperandIsCopied) {
  EXPECT_EQ(StagesOf(PlaceProduct({1'000'000, 100, 100}, {.ranks = 4})), kByRows);
  EXPECT_EQ(StagesOf(PlaceProduct({262'144, 2'000, 2'000}, {.ranks = 8})), kByRows);
}

// Squares: beyond a few ranks a grid sends less than copies of B to all, the more the more ranks there are.
TEST(PlaceProductsTest, LargeOperandsMeetOnAGrid) {
  for (const auto& [ranks, columns] : std::map<int32_t, int32_t>{{16, 4}, {64, 8}, {256, 16}, {1024, 32}}) {
    const int64_t side = int64_t{8192} * ranks;
    const Placement placement = PlaceProduct({side, side, side}, {.ranks = ranks});
    ASSERT_NE(placement.staged, nullptr) << ranks;
    EXPECT_TRUE(placement.staged->on_grid) << ranks;
    EXPECT_EQ(placement.grid_columns, columns);
    EXPECT_TRUE(placement.result.IsSplit());
    EXPECT_EQ(placement.inputs[0], Distribution::SplitRows(side, ranks));
    EXPECT_EQ(placement.inputs[1], Distribution::SplitRows(side, ranks));
  }
}

// What a rank has no memory for is not copied, whatever it would cost.
TEST(PlaceProductsTest, MemoryLimitsWhatARankHolds) {
  const Sizes squares{16'384, 16'384, 16'384};  // 2.1 GB each; all of B and a share of the others take 3.2.
  EXPECT_EQ(StagesOf(PlaceProduct(squares, {.ranks = 4})), kByRows);
  const Placement limited = PlaceProduct(squares, {.ranks = 4, .memory_bytes = 3'150'000'000});
  EXPECT_EQ(StagesOf(limited), kInSteps);
  EXPECT_EQ(limited.grid_columns, 2);
  // Of many ranks a grid holds less than a copy, and in steps less than that.
  const Sizes larger{524'288, 524'288, 524'288};
  EXPECT_EQ(StagesOf(PlaceProduct(larger, {.ranks = 64, .memory_bytes = int64_t{1} << 40})), kOnGrid);
  EXPECT_EQ(StagesOf(PlaceProduct(larger, {.ranks = 64, .memory_bytes = int64_t{300} << 30})), kInSteps);
  EXPECT_EQ(StagesOf(PlaceProduct(larger, {.ranks = 64})), kInSteps);
}

// A short result of long chains: sums travel, operands stay where they are.
TEST(PlaceProductsTest, SumsOfASmallResultGoAround) {
  for (const bool a_is_split : {true, false}) {
    const Placement placement = PlaceProduct({600, 4'000'000, 600}, {.ranks = 8}, a_is_split);
    EXPECT_EQ(StagesOf(placement), kInTurns);
  }
}

// A small left operand does not make one rank gather the right one; the result, small too, is on the last
// rank.
TEST(PlaceProductsTest, ASmallLeftOperandLeavesTheRightOneWhereItIs) {
  const Placement panels = PlaceProduct({20, 4'000'000, 20}, {.ranks = 8}, false);
  EXPECT_EQ(StagesOf(panels), kByPanels);
  EXPECT_FALSE(panels.staged == nullptr || panels.staged->on_grid);
  EXPECT_EQ(panels.result, Distribution::One(7));
  const Placement few_columns = PlaceProduct({2, 4'000'000, 4}, {.ranks = 3}, false);
  EXPECT_TRUE(few_columns.staged != nullptr && few_columns.staged->on_grid);
  EXPECT_EQ(few_columns.grid_columns, 3);
  EXPECT_EQ(few_columns.result, Distribution::One(2));
}

// On a grid a rank exchanges with those of its row and of its column, not with all.
TEST(PlaceProductsTest, MessagesGoAlongRowsAndColumnsOfTheGrid) {
  constexpr int32_t kRanks = 64, kOthers = 7, kSteps = 8;
  constexpr int64_t kSide = 524'288;
  GraphUnderTest g;
  const NodeId a = g.Variable("A", MatrixOf(kSide, kSide)), b = g.Variable("B", MatrixOf(kSide, kSide));
  g.Assign("C", g.Op("%*%", {a, b}, MatrixOf(kSide, kSide)));
  const Distribution split = Distribution::SplitRows(kSide, kRanks);
  const Result<Plan> plan = Schedule(g.graph, {{"A", split}, {"B", split}}, {.ranks = kRanks});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  std::map<uint32_t, int> copies;
  for (const Task& task : plan->tasks)
    if (task.kind == TaskKind::kCopy) ++copies[task.id.rank()];
  // Columns of B, in each step parts of A and of B, cells of the result.
  for (const auto& [rank, count] : copies) EXPECT_EQ(count, kOthers + kSteps * 2 * kOthers + kOthers) << rank;
  EXPECT_EQ(copies.size(), size_t{kRanks});
}

}  // namespace
}  // namespace heddle::scheduler
