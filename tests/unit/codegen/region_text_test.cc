// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/codegen/region_case.h"

namespace heddle::codegen {
namespace {

using ops::Region;

TEST(RegionTextTest, ReadsLikeThis) {
  const char* const text =
      "region 2\n"
      "%0 = cells 0 prefetch\n"
      "%1 = row 1\n"
      "%2 = literal -0x1.8p+1\n"
      "%3 = Multiply %0 %1 skips-a drops-negative-zero\n"
      "%4 = Exponential %3\n"
      "%5 = select %0 %4 %2\n"
      "store %5\n"
      "fold-rows maximum %3\n";
  const Result<Region> region = Region::Parse(text);
  ASSERT_TRUE(region.ok()) << region.status().ToString();
  EXPECT_EQ(region->nodes[0].prefetch, ops::RowPrefetch::kPagesInTurn);
  EXPECT_EQ(region->nodes[1].prefetch, ops::RowPrefetch::kNone);
  EXPECT_EQ(region->nodes[2].literal, -3.0);
  EXPECT_TRUE(region->nodes[3].skips_a);
  EXPECT_FALSE(region->nodes[3].skips_b);
  EXPECT_EQ(region->outputs[1].fold, ops::simd::Fold::kMaximum);
  EXPECT_EQ(region->ToText(), text);
}

TEST(RegionTextTest, ColumnsAndMeans) {
  const char* const text = "region 1 columns 10\n%0 = cells 0\nfold-rows add %0 mean\n";
  const Result<Region> region = Region::Parse(text);
  ASSERT_TRUE(region.ok()) << region.status().ToString();
  EXPECT_EQ(region->columns, 10);
  EXPECT_TRUE(region->outputs[0].is_mean);
  EXPECT_EQ(region->ToText(), text);
  const Result<Region> flat = Region::Parse("region 1\n%0 = cells 0\nfold-flat minimum %0 eights 5\n");
  ASSERT_TRUE(flat.ok()) << flat.status().ToString();
  EXPECT_EQ(flat->outputs[0].eights, 5);
  for (const char* const by_halves : {"region 1 half-registers\n%0 = cells 0\nfold-flat add %0\n",
                                      "region 1 columns 3 half-registers\n%0 = cells 0\nstore %0\n"}) {
    const Result<Region> halves = Region::Parse(by_halves);
    ASSERT_TRUE(halves.ok()) << halves.status().ToString();
    EXPECT_TRUE(halves->half_registers);
    EXPECT_EQ(halves->ToText(), by_halves);
  }
}

TEST(RegionTextTest, RowsAreFetchedInOneWay) {
  const Result<Region> one = Region::Parse("region 1\n%0 = cells 0 prefetch-in-order\nfold-flat add %0\n");
  ASSERT_TRUE(one.ok()) << one.status().ToString();
  EXPECT_EQ(one->nodes[0].prefetch, ops::RowPrefetch::kInOrder);
  EXPECT_FALSE(Region::Parse("region 1\n%0 = row 0 prefetch-in-order\nfold-flat add %0\n").ok());
  EXPECT_FALSE(Region::Parse("region 2\n%0 = cells 0 prefetch\n%1 = cells 1 prefetch-in-order\n"
                             "%2 = Add %0 %1\nfold-flat add %2\n")
                   .ok());
}

TEST(RegionTextTest, RandomRegionsParseBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const Region region = RandomRegion(random, 1 + static_cast<int>(random() % 30), true);
    const Result<Region> parsed = Region::Parse(region.ToText());
    ASSERT_TRUE(parsed.ok()) << parsed.status().ToString() << region.ToText();
    EXPECT_EQ(parsed->ToText(), region.ToText());
    bool has_nan = false;  // which does not equal itself
    for (const ops::RegionNode& node : region.nodes) has_nan |= std::isnan(node.literal);
    EXPECT_TRUE(has_nan || *parsed == region) << region.ToText();
  }
}

TEST(RegionTextTest, LiteralsKeepEveryBit) {
  for (const double x : {0.0, -0.0, 0.1, 0x1p-1074, std::numeric_limits<double>::max(),
                         -std::numeric_limits<double>::infinity()}) {
    Region region;
    region.nodes.emplace_back().op = ops::RegionOp::kLiteral;
    region.nodes[0].literal = x;
    region.outputs.push_back({0});
    const Result<Region> parsed = Region::Parse(region.ToText());
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->nodes[0].literal, x);
    EXPECT_EQ(std::signbit(parsed->nodes[0].literal), std::signbit(x));
  }
}

TEST(RegionTextTest, WrongTextsAndRegionsAreRefused) {
  for (const char* const text : {"",
                                 "region",
                                 "region half-registers",
                                 "region x\n",
                                 "region 1\n%0 = cells 0\n",
                                 "region 1\n%0 = cells 1\nstore %0\n",
                                 "region 1\n%0 = cells 0\nstore %1\n",
                                 "region 1\n%1 = cells 0\nstore %0\n",
                                 "region 1\n%0 = Add %0 %0\nstore %0\n",
                                 "region 1\n%0 = cells 0\nfold-rows %0\n",
                                 "region 1\n%0 = cells 0\n%1 = Unknown %0\nstore %1\n",
                                 "region 1\n%0 = cells 0\nstore %0\n%1 = cells 0\n",
                                 "region 1\n%0 = cells 0\nfold-flat add %0 eights 9\n",
                                 "region 1\n%0 = cells 0\nfold-rows add %0 eights 2\n",
                                 "region 1\n%0 = cells 0\nfold-flat add %0 eights 2\nfold-flat add %0\n",
                                 "region 1 columns 3\n%0 = cells 0\n%1 = row 0\nstore %1\n",
                                 "region 1 columns 65\n%0 = cells 0\nstore %0\n",
                                 "region 1 columns\n%0 = cells 0\nstore %0\n",
                                 "region 1 columns 3\n%0 = cells 0\nfold-flat add %0\n",
                                 "region 1\n%0 = cells 0\nfold-rows maximum %0 mean\n",
                                 "region 1\n%0 = cells 0\nfold-columns add %0 mean\n",
                                 "region 1\n%0 = cells 0 skips-a\nstore %0\n",
                                 "region 1\n%0 = literal 1x\nstore %0\n"}) {
    const Result<Region> region = Region::Parse(text);
    ASSERT_FALSE(region.ok()) << text;
    EXPECT_EQ(region.status().code(), StatusCode::kInternal) << text;
  }
}

}  // namespace
}  // namespace heddle::codegen
