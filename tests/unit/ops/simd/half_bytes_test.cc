// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/half_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace heddle::ops::simd {
namespace {

class HalfBytesTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    std::mt19937 random(static_cast<uint32_t>(GetParam()));
    for (int64_t i = 0; i < GetParam(); ++i) halves_.push_back(static_cast<uint8_t>(random()));
    for (uint8_t& byte : table_) byte = static_cast<uint8_t>(random());
  }
  int At(int64_t i) const {
    const uint8_t byte = halves_[static_cast<size_t>(i / 2)];
    return i % 2 == 0 ? byte & 15 : byte >> 4;
  }
  std::vector<uint8_t> halves_;
  std::array<uint8_t, 16> table_{};
};

TEST_P(HalfBytesTest, SumsByTheNumberModuloEight) {
  for (const int most : {1, 2, 11, 15}) {
    std::array<uint8_t, 16> table = table_;
    for (uint8_t& byte : table) byte = static_cast<uint8_t>(byte % (most + 1));
    table[3] = static_cast<uint8_t>(most);
    std::array<uint64_t, 8> wanted{}, sums{};
    wanted.fill(7);
    sums.fill(7);
    for (int64_t i = 0; i < 2 * GetParam(); ++i)
      wanted[static_cast<size_t>(i % 8)] += table[static_cast<size_t>(At(i))];
    AddOfHalfBytes(halves_.data(), GetParam(), table.data(), most, sums.data());
    EXPECT_EQ(sums, wanted) << most;
  }
}

TEST_P(HalfBytesTest, TheSetHasWhatOccurs) {
  for (const uint8_t mask : {0xFF, 0x33, 0x11, 0xCC}) {
    for (uint8_t& byte : halves_) byte &= mask;
    uint32_t wanted = 0;
    for (int64_t i = 0; i < 2 * GetParam(); ++i) wanted |= 1u << At(i);
    EXPECT_EQ(SetOfHalfBytes(halves_.data(), GetParam()), wanted);
  }
}

TEST_P(HalfBytesTest, EachIsLookedUp) {
  std::vector<uint16_t> wanted(static_cast<size_t>(2 * GetParam()), 300), sums = wanted;
  for (int64_t i = 0; i < 2 * GetParam(); ++i)
    wanted[static_cast<size_t>(i)] =
        static_cast<uint16_t>(wanted[static_cast<size_t>(i)] + table_[static_cast<size_t>(At(i))]);
  AddEachHalfByte(halves_.data(), GetParam(), table_.data(), sums.data());
  EXPECT_EQ(sums, wanted);
}

TEST_P(HalfBytesTest, TheLeastOfEachStays) {
  std::vector<uint8_t> wanted(static_cast<size_t>(2 * GetParam()), 99), least = wanted;
  for (int64_t i = 0; i < 2 * GetParam(); ++i)
    wanted[static_cast<size_t>(i)] = std::min<uint8_t>(99, table_[static_cast<size_t>(At(i))]);
  LeastOfEachHalfByte(halves_.data(), GetParam(), table_.data(), least.data());
  EXPECT_EQ(least, wanted);
}

INSTANTIATE_TEST_SUITE_P(Bytes, HalfBytesTest,
                         ::testing::Values(0, 1, 3, 15, 16, 31, 32, 33, 100, 544, 545, 8191, 20'000));

}  // namespace
}  // namespace heddle::ops::simd
