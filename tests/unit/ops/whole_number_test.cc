// SPDX-License-Identifier: Apache-2.0
#include "ops/base/whole_number.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/values/sizes.h"

namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(WholeNumberTest, TruncatesWhatA64BitIntegerCanBe) {
  EXPECT_EQ(WholeNumber(Scalar(2.9)), 2);
  EXPECT_EQ(WholeNumber(Scalar(-2.9)), -2);
  EXPECT_EQ(WholeNumber(Scalar(-0.0)), 0);
  EXPECT_EQ(WholeNumber(Scalar(true)), 1);
  EXPECT_EQ(WholeNumber(Scalar(0x1p62)), int64_t{1} << 62);
  EXPECT_EQ(WholeNumber(Scalar(std::numeric_limits<int64_t>::min())), std::numeric_limits<int64_t>::min());
  for (const Scalar& none :
       {Scalar(kInfinity), Scalar(-kInfinity), Scalar(kNan), Scalar(0x1p63), Scalar(-1e308), Scalar("3")})
    EXPECT_EQ(WholeNumber(none), std::nullopt) << none.ToText();
}

TEST(WholeNumberTest, AnErrorNamesTheArgumentAndTheValue) {
  EXPECT_EQ(
      RequireWholeNumber(Scalar(1e308), "rand", "seed", StatusCode::kInvalidArgument).status().message(),
      "rand: seed must be a 64-bit integer, not 1.0E308");
  EXPECT_EQ(RequireWholeNumber(Scalar("x"), "rand", "seed", StatusCode::kInvalidArgument).status().message(),
            "rand: seed must be a number, not the string \"x\"");
}

TEST(WholeNumberTest, ASizeIsNotNegativeAndNotTooLarge) {
  EXPECT_EQ(*RequireSize(Scalar(3.7), "matrix", "rows", StatusCode::kInvalidArgument), 3);
  EXPECT_EQ(*RequireSize(Scalar(kMostLength), "matrix", "rows", StatusCode::kInvalidArgument), kMostLength);
  for (const Scalar& wrong : {Scalar(-1), Scalar(kNan), Scalar(-kInfinity), Scalar(-1e308), Scalar("3")}) {
    const Status status = RequireSize(wrong, "matrix", "rows", StatusCode::kInvalidArgument).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "matrix: rows must be a number that is not negative, not " + wrong.ToText());
  }
  for (const Scalar& large : {Scalar(kInfinity), Scalar(1e308), Scalar(kMostLength + 1)}) {
    const Status status = RequireSize(large, "matrix", "rows", StatusCode::kInvalidArgument).status();
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(), "matrix: rows must be at most 281474976710656, not " + large.ToText());
  }
}

TEST(SizesTest, SumsAndProductsEndAtTheLargestNumber) {
  EXPECT_EQ(SaturatingSum(INT64_MAX - 1, 1), INT64_MAX);
  EXPECT_EQ(SaturatingSum(INT64_MAX, 64), INT64_MAX);
  EXPECT_EQ(SaturatingProduct(int64_t{1} << 40, int64_t{1} << 40), INT64_MAX);
  EXPECT_EQ(SaturatingProduct(0, INT64_MAX), 0);
}

}  // namespace
}  // namespace heddle::ops
