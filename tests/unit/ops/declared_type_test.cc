// SPDX-License-Identifier: Apache-2.0
#include "ops/scalar/declared_type.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "ops/base/operator.h"

namespace heddle::ops {
namespace {

Node Declared(const char* type) {
  Node node;
  node.op = "as.declared";
  node.inputs = {0};
  node.SetAttribute("type", Scalar(type));
  node.SetAttribute("what", Scalar("function 'f': result 'b'"));
  return node;
}

Scalar Cast(const char* type, const Scalar& x) {
  const Result<Scalar> result = CastToDeclared(Declared(type), x);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? *result : Scalar("failed");
}

std::string ErrorOf(const char* type, const Scalar& x) {
  const Result<Scalar> result = CastToDeclared(Declared(type), x);
  return result.ok() ? "" : result.status().message();
}

TEST(DeclaredTypeTest, ValuesTakeTheType) {
  EXPECT_EQ(Cast("double", 7), Scalar(7.0));
  EXPECT_EQ(Cast("double", true), Scalar(1.0));
  EXPECT_EQ(Cast("integer", 4.0), Scalar(4));
  EXPECT_EQ(Cast("integer", -0.0), Scalar(0));
  EXPECT_EQ(Cast("integer", false), Scalar(0));
  EXPECT_EQ(Cast("integer", -0x1p63), Scalar(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(Cast("boolean", 7.5), Scalar(true));
  EXPECT_EQ(Cast("boolean", "true"), Scalar(true));
  EXPECT_EQ(Cast("string", 7), Scalar("7"));
  EXPECT_EQ(Cast("string", 7.0), Scalar("7.0"));
  EXPECT_EQ(Cast("unknown", 7), Scalar(7));
}

TEST(DeclaredTypeTest, WhatWouldBeLostIsAnError) {
  EXPECT_EQ(ErrorOf("integer", 3.5), "function 'f': result 'b' is declared as integer, but its value is 3.5");
  EXPECT_EQ(ErrorOf("integer", std::nan("")),
            "function 'f': result 'b' is declared as integer, but its value is NaN");
  for (double x : {0x1p63, 1e300, std::numeric_limits<double>::infinity(), 1e-300, -0.5})
    EXPECT_NE(ErrorOf("integer", x), "") << x;
  EXPECT_EQ(ErrorOf("double", "7"),
            "function 'f': result 'b' is declared as double, but its value is a string: \"7\"");
  EXPECT_NE(ErrorOf("integer", "7"), "");
}

TEST(DeclaredTypeTest, FractionsMayBeKept) {
  Node node = Declared("integer");
  node.SetAttribute("keeps.fractions", Scalar(true));
  EXPECT_EQ(*CastToDeclared(node, Scalar(2.75)), Scalar(2.75));
  EXPECT_EQ(*CastToDeclared(node, Scalar(4.0)), Scalar(4));
  EXPECT_FALSE(CastToDeclared(node, Scalar("7")).ok());
  const std::array infos = {ValueInfo::OfScalar(ValueType::kDouble)};
  const std::array<const Scalar*, 1> values = {nullptr};
  EXPECT_EQ(Infer({node, infos, values})->value_type, ValueType::kUnknown);
}

TEST(DeclaredTypeTest, WhatIsCertainIsFoundBeforeTheRun) {
  const Node to_integer = Declared("integer");
  const auto infer = [&](const ValueInfo& info, const Scalar* value) {
    const std::array infos = {info};
    const std::array values = {value};
    return Infer({to_integer, infos, values});
  };
  const Scalar half(3.5), four(4.0);
  EXPECT_EQ(infer(ValueInfo::OfScalar(ValueType::kDouble), &half).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(infer(ValueInfo::OfScalar(ValueType::kString), nullptr).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(infer(ValueInfo::OfMatrix({1, 1}), nullptr).status().message(),
            "function 'f': result 'b' is declared as a scalar, but its value is a matrix");
  EXPECT_EQ(infer(ValueInfo::OfScalar(ValueType::kDouble), nullptr)->value_type, ValueType::kInteger);
  EXPECT_EQ(infer(ValueInfo::OfScalar(ValueType::kDouble), &four)->value_type, ValueType::kInteger);
  EXPECT_FALSE(IsAsDeclared(to_integer, ValueType::kInteger));  // 7 %/% 0 is Infinity
  EXPECT_TRUE(IsAsDeclared(Declared("double"), ValueType::kDouble));
  EXPECT_FALSE(IsAsDeclared(Declared("double"), ValueType::kUnknown));
}

}  // namespace
}  // namespace heddle::ops
