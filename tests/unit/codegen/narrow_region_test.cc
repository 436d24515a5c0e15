// SPDX-License-Identifier: Apache-2.0
// Regions made for a number of columns give the bits of literal loops, whether generated or interpreted.
#include <gtest/gtest.h>

#include "compiler/codegen/codegen.h"
#include "tests/unit/codegen/region_case.h"

namespace heddle::codegen {
namespace {

using ops::Region;
using ops::RegionOutput;
using ops::Sink;
using ops::simd::Fold;

void ExpectSameBitsAtRows(const Region& region, const std::vector<int64_t>& row_counts, uint32_t seed) {
  std::vector<CaseShape> shapes;
  for (const int64_t rows : row_counts)
    for (const bool stream : {false, true}) shapes.push_back({rows, region.columns, 0, stream});
  ExpectSameBits(region, shapes, seed);
}

Region Parse(const std::string& text) {
  const Result<Region> region = Region::Parse(text);
  EXPECT_TRUE(region.ok()) << region.status().ToString();
  return region.ok() ? *region : Region();
}

// Ends of rows of every length; guard pages follow inputs and outputs.
TEST(NarrowRegionTest, EveryNumberOfColumns) {
  for (int columns = 1; columns <= 64; ++columns) {
    if (columns > 34 && columns % 7 != 0 && columns != 64) continue;
    const Region region =
        Parse(fmt::format("region 2 columns {}\n%0 = cells 0\n%1 = cells 1\n%2 = Multiply %0 %1\nfold-rows "
                          "add %2\nfold-columns add %2\nstore %2\n",
                          columns));
    ExpectSameBitsAtRows(region, {0, 1, 3, 4, 5, 8, 13}, static_cast<uint32_t>(columns));
  }
}

// What is behind the last column makes no NaN, infinity or zero of its own (LLVM 19 drops the mask behind
// 0 / 0).
TEST(NarrowRegionTest, LanesBehindTheLastColumnDoNotCount) {
  for (int columns = 1; columns <= 11; ++columns) {
    for (const char* const op : {"Divide", "Modulus", "IntegerDivide"}) {
      const std::string head =
          fmt::format("region 2 columns {}\n%0 = cells 0\n%1 = cells 1\n%2 = {} %0 %1\n", columns, op);
      for (const char* const fold : {"add", "multiply", "minimum", "maximum"}) {
        if (std::string(op) != "Divide" && std::string(fold) != "add") continue;
        ExpectSameBitsAtRows(Parse(head + fmt::format("fold-rows {} %2\n", fold)), {1, 4, 9},
                             static_cast<uint32_t>(columns));
        ExpectSameBitsAtRows(Parse(head + fmt::format("fold-rows {0} %2\nfold-columns {0} %2\n", fold)), {6},
                             static_cast<uint32_t>(columns));
      }
    }
  }
}

TEST(NarrowRegionTest, EveryFoldWithEveryAccess) {
  for (const char* const fold : {"add", "multiply", "minimum", "maximum"}) {
    for (const int columns : {2, 6, 10}) {
      const std::string head = fmt::format(
          "region 4 columns {}\n%0 = cells 0\n%1 = row 1\n%2 = column 2\n%3 = scalar 3\n%4 = Subtract %0 "
          "%1\n%5 = Multiply %4 %2\n"
          "%6 = Add %5 %3\n",
          columns);
      const std::string means = std::string(fold) == "add" ? "fold-rows add %5 mean\n" : "";
      ExpectSameBitsAtRows(
          Parse(head + fmt::format("fold-rows {0} %6\nfold-rows {0} %1\nfold-columns {0} %6\n", fold) +
                means),
          {1, 4, 23}, 5);
      ExpectSameBitsAtRows(Parse(head + fmt::format("fold-columns {0} %6\n", fold)), {1, 2, 9}, 6);
      ExpectSameBitsAtRows(Parse(head + fmt::format("fold-rows {0} %3\n", fold)), {5}, 7);
    }
  }
}

// Four rows at a time, and the rows that are left; several outputs.
TEST(NarrowRegionTest, StoresOfRepeatedVectors) {
  for (int columns = 1; columns <= 20; ++columns) {
    const std::string head = fmt::format(
        "region 4 columns {}\n%0 = cells 0\n%1 = row 1\n%2 = column 2\n%3 = scalar 3\n%4 = Multiply %1 "
        "%3\n%5 = Divide %0 %4\n"
        "%6 = Add %5 %2\n",
        columns);
    for (const char* const outputs :
         {"store %6\n", "store %5\nstore %6\n", "store %4\n", "store %2\nstore %3\n"})
      ExpectSameBitsAtRows(Parse(head + outputs), {0, 1, 7, 8, 9, 16, 37}, static_cast<uint32_t>(columns));
  }
}

// Operators of all kinds, heavy ones and those that call kernels too.
TEST(NarrowRegionTest, RandomRegions) {
  std::mt19937 random(77);
  for (int round = 0; round < 25; ++round) {
    Region region = RandomRegion(random, 2 + static_cast<int>(random() % 9), false);
    region.columns = 1 + static_cast<int>(random() % 9);
    if (round % 2 == 0)
      for (RegionOutput& output : region.outputs) output = {.node = output.node};  // Only stores.
    if (!Verify(region).ok()) continue;  // An input that is read by cells and by rows.
    ASSERT_NO_FATAL_FAILURE(ExpectSameBitsAtRows(region, {1, 4, 7, 12}, static_cast<uint32_t>(round)));
  }
}

// Rows are in registers: the code has no masked store, and streams whole groups of row sums.
TEST(NarrowRegionTest, CodeIsUnrolled) {
  const Region region =
      Parse("region 2 columns 10\n%0 = cells 0\n%1 = cells 1\n%2 = Multiply %0 %1\nfold-rows add %2\n");
  for (const ops::Cpu cpu : {ops::Cpu::kAvx2, ops::Cpu::kAvx512}) {
    const Result<std::string> text = ExplainRegion(region, CodeText::kAssembly, cpu);
    ASSERT_TRUE(text.ok()) << text.status().ToString();
    EXPECT_EQ(text->find("vmaskmov"), std::string::npos);
    EXPECT_EQ(text->find("zmm"), std::string::npos);
    EXPECT_NE(text->find("vmovnt"), std::string::npos);
    EXPECT_EQ(text->find("vfm"), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle::codegen
