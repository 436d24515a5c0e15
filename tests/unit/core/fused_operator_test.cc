// SPDX-License-Identifier: Apache-2.0
#include "core/programs/fused_operator.h"

#include <gtest/gtest.h>

// Left-out members have their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace heddle {
namespace {

constexpr const char* kTwoSums = R"(multi-aggregate driver=0 roots=(%3, %4)
%0 = variable() name="0" : matrix double 1000x10 dense
%1 = variable() name="1" : matrix double 1000x10 dense
%2 = *(%0, %1) : matrix double 1000x10 dense @ "a.dml":1:9
%3 = sum(%2) : scalar double 0x0 dense
%4 = min(%0) : scalar double 0x0 dense
)";

FusedOperator Parsed(std::string_view text) {
  Result<FusedOperator> fused = FusedOperator::Parse(text);
  EXPECT_TRUE(fused.ok()) << fused.status().ToString();
  return fused.ok() ? *fused : FusedOperator();
}

void ExpectBroken(const FusedOperator& fused, std::string_view why) {
  const Status status = Verify(fused);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find(why), std::string::npos) << status.ToString();
}

TEST(FusedOperatorTest, ItsTextParsesBack) {
  const FusedOperator fused = Parsed(kTwoSums);
  EXPECT_EQ(fused.kind, FusionTemplate::kMultiAggregate);
  EXPECT_EQ(fused.driver, 0);
  EXPECT_EQ(fused.roots, (std::vector<NodeId>{3, 4}));
  EXPECT_EQ(fused.body.size(), 5);
  EXPECT_EQ(fused.ToText(), kTwoSums);
  EXPECT_TRUE(Verify(fused).ok()) << Verify(fused).ToString();
}

TEST(FusedOperatorTest, EveryTemplateHasAName) {
  for (const FusionTemplate kind : {FusionTemplate::kMultiAggregate, FusionTemplate::kOuter,
                                    FusionTemplate::kRow, FusionTemplate::kCell}) {
    FusedOperator fused = Parsed(kTwoSums);
    fused.kind = kind;
    EXPECT_EQ(Parsed(fused.ToText()).kind, kind) << Name(kind);
  }
}

TEST(FusedOperatorTest, BrokenTextsAreErrors) {
  const std::string text = kTwoSums;
  for (const std::string& broken :
       {std::string(), std::string("tile driver=0 roots=(%1)\n"), std::string("cell roots=(%1)\n"),
        std::string("cell driver=0 roots=()\n"), text + "what", text.substr(0, text.size() / 2)})
    EXPECT_FALSE(FusedOperator::Parse(broken).ok()) << broken;
}

TEST(FusedOperatorTest, VerifyNamesTheFault) {
  FusedOperator fused = Parsed(kTwoSums);
  fused.kind = FusionTemplate::kRow;
  ExpectBroken(fused, "no multi-aggregate");
  fused = Parsed(kTwoSums);
  fused.roots = {};
  ExpectBroken(fused, "no or too many roots");
  fused.roots = {3, 3};
  ExpectBroken(fused, "stands twice");
  fused.roots = {5};
  ExpectBroken(fused, "not in the body");
  fused.roots = {0};
  ExpectBroken(fused, "computes nothing");
  fused.roots = {2, 3};
  ExpectBroken(fused, "not a scalar");
  fused = Parsed(kTwoSums);
  fused.driver = 2;
  ExpectBroken(fused, "driver is no input");
  fused = Parsed(kTwoSums);
  fused.body[1].SetAttribute("name", "0");
  ExpectBroken(fused, "stands twice");
  fused.body[1].SetAttribute("name", "2");
  ExpectBroken(fused, "not named 0, 1");
  fused = Parsed(kTwoSums);
  fused.body[4].after = {3};
  ExpectBroken(fused, "order edge");
  fused = Parsed(kTwoSums);
  fused.body[2].inputs = {0, 7};
  ExpectBroken(fused, "does not come before");
}

}  // namespace
}  // namespace heddle
