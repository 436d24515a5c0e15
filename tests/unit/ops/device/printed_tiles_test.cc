// SPDX-License-Identifier: Apache-2.0
// How much of a work-group works, as far as the printed code tells; no device is needed.
#include <gtest/gtest.h>

#include <string>

#include "core/programs/fused_operator.h"
#include "ops/device/print/print_tiles.h"

namespace heddle::ops {
namespace {

// An operator on the rows of a matrix X, `result` rows x columns large.
PrintedTiles Printed(const std::string& op, const Shape& x, const Shape& result, TileLimits limits = {}) {
  const auto matrix = [](const Shape& shape) {
    return fmt::format("matrix double {}x{} dense\n", shape.rows, shape.columns);
  };
  const std::string text =
      fmt::format("row driver=0 roots=(%1)\n%0 = variable() name=\"0\" : {}%1 = {}(%0) : {}", matrix(x), op,
                  matrix(result));
  const Result<FusedOperator> fused = FusedOperator::Parse(text);
  EXPECT_TRUE(fused.ok()) << fused.status().ToString();
  if (!fused.ok()) return {};
  const Result<TileProgram> program = Lower(*fused);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  if (!program.ok()) return {};
  Result<PrintedTiles> printed = PrintTiles(*program, limits);
  EXPECT_TRUE(printed.ok()) << printed.status().ToString();
  return printed.ok() ? *std::move(printed) : PrintedTiles();
}

bool Has(const PrintedTiles& printed, const std::string& text) {
  return printed.passes.at(0).source.find(text) != std::string::npos;
}

// The sum of a column of a leaf has eight chains where there are few columns.
TEST(PrintedTilesTest, LeavesOfFewChainsShareAWorkGroup) {
  constexpr int64_t kHeight = 8192;  // Rows of a leaf.
  struct Case {
    int64_t columns, together;
  };
  for (const Case& c : {Case{1, 7}, Case{3, 5}, Case{8, 2}, Case{9, 7}, Case{60, 2}, Case{100, 1}}) {
    const PrintedTiles printed = Printed("colSums", {16'000'000, c.columns}, {1, c.columns});
    const int64_t chains = c.columns <= 8 ? 8 * c.columns : c.columns;
    EXPECT_EQ(printed.passes.at(0).task_rows, c.together * kHeight) << c.columns;
    EXPECT_TRUE(Has(printed, fmt::format("from < {}; from += 128", c.together * chains))) << c.columns;
    EXPECT_FALSE(Has(printed, "barrier(")) << c.columns;
  }
  // Not where that would leave parts of the device without any.
  EXPECT_EQ(Printed("colSums", {2'000'000, 3}, {1, 3}).passes.at(0).task_rows, kHeight);
  const PrintedTiles small = Printed("colSums", {2'000'000, 3}, {1, 3}, {.busy_tasks = 16});
  EXPECT_EQ(small.passes.at(0).task_rows, 5 * kHeight);
}

// A work-item has a row with its eight lanes; tiles have rows for all of them.
TEST(PrintedTilesTest, ShortRowsBelongToOneWorkItemEach) {
  for (const int64_t columns : {1, 3, 16, 17}) {
    const PrintedTiles printed = Printed("rowSums", {100'000, columns}, {100'000, 1});
    const bool is_packed = columns <= 16;
    EXPECT_EQ(printed.passes.at(0).task_rows >= 2 * printed.group_size, is_packed) << columns;
    EXPECT_EQ(Has(printed, "from < n; from += 128"), is_packed) << columns;
    EXPECT_EQ(Has(printed, "lane = item % 8"), !is_packed) << columns;
  }
}

// Rows longer than a column chunk are split at their chunks; few of them in smaller tiles.
TEST(PrintedTilesTest, ChunksOfLongRowsAreTasks) {
  const PrintedTiles few = Printed("rowSums", {3, 1'000'000}, {3, 1});
  ASSERT_EQ(few.passes.size(), 2u);  // Chunks, and what joins them.
  EXPECT_EQ(few.passes[0].row_tasks, 16);
  EXPECT_EQ(few.passes[0].task_rows, 1);
  EXPECT_EQ(few.passes[1].row_tasks, 1);
  EXPECT_EQ(Printed("rowSums", {3000, 1'000'000}, {3000, 1}).passes.at(0).task_rows, 16);
}

// Work-items add to the places that columns of entries name, of which others have made zeros. Tests on POCL
// find no such barrier missing; tests/oclgrind does.
TEST(PrintedTilesTest, LeavesAreZerosBeforeEntriesAreAdded) {
  for (const int64_t columns : {1, 3, 12}) {
    const std::string text = fmt::format(
        "row driver=0 roots=(%2)\n%0 = variable() name=\"0\" : matrix double 70x300 sparse\n"
        "%1 = variable() name=\"1\" : matrix double 70x{0} dense\n"
        "%2 = t%*%(%0, %1) : matrix double 300x{0} dense",
        columns);
    const Result<FusedOperator> fused = FusedOperator::Parse(text);
    ASSERT_TRUE(fused.ok()) << fused.status().ToString();
    const Result<TileProgram> program = Lower(*fused);
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    const Result<PrintedTiles> printed = PrintTiles(*program, {});
    ASSERT_TRUE(printed.ok()) << printed.status().ToString();
    const std::string& source = printed->passes.at(0).source;
    const size_t zeros = source.find("sum0[p] = 0.0;");
    const size_t first = source.find("offsets0[row + i]", zeros), barrier = source.find("barrier(", zeros);
    ASSERT_NE(first, std::string::npos) << source;
    EXPECT_LT(barrier, first) << source;
  }
}

}  // namespace
}  // namespace heddle::ops
