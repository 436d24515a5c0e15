// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/code_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "ops/base/cpu.h"

namespace heddle::ops::simd {
namespace {

TEST(CodeBytesTest, SumsByTheNumberModuloEight) {
  std::mt19937 random(5);
  std::array<uint8_t, 256> table{};
  for (uint8_t& byte : table) byte = static_cast<uint8_t>(random());
  for (const int64_t count : {0, 1, 31, 32, 33, 63, 64, 65, 8191, 16'385, 70'001}) {
    std::vector<uint8_t> codes(static_cast<size_t>(count));
    for (uint8_t& code : codes) code = static_cast<uint8_t>(count % 2 == 0 ? 255 : random());
    std::array<uint64_t, 8> wanted{}, sums{}, wanted_looked_up{}, looked_up{};
    for (size_t i = 0; i < codes.size(); ++i) {
      wanted[i % 8] += codes[i];
      wanted_looked_up[i % 8] += table[codes[i]];
    }
    AddOfBytes(codes.data(), count, sums.data());
    EXPECT_EQ(sums, wanted) << count;
    if (!CanLookUpBytes()) continue;
    AddOfLookedUpBytes(codes.data(), count, table.data(), looked_up.data());
    EXPECT_EQ(looked_up, wanted_looked_up) << count;
  }
}

TEST(CodeBytesTest, EachIsLookedUp) {
  std::mt19937 random(6);
  std::array<uint8_t, 256> table{};
  for (uint8_t& byte : table) byte = static_cast<uint8_t>(random());
  std::vector<int32_t> numbers(70'000);
  for (int32_t& number : numbers) number = static_cast<int32_t>(random() % 1'000'000);
  for (const int64_t count : {0, 1, 7, 8, 63, 64, 200, 1024}) {
    std::vector<uint8_t> codes(static_cast<size_t>(count));
    std::vector<uint16_t> wide_codes(codes.size());
    for (uint8_t& code : codes) code = static_cast<uint8_t>(random());
    for (uint16_t& code : wide_codes) code = static_cast<uint16_t>(random());
    std::vector<uint16_t> wanted_bytes(codes.size(), 300), bytes = wanted_bytes;
    std::vector<uint8_t> wanted_least(codes.size(), 99), least = wanted_least;
    for (size_t i = 0; i < codes.size(); ++i) {
      wanted_bytes[i] = static_cast<uint16_t>(wanted_bytes[i] + table[codes[i]]);
      wanted_least[i] = std::min(wanted_least[i], table[codes[i]]);
    }
    const std::vector<double> doubles(numbers.begin(), numbers.end());
    std::array<double, 8> wanted_places{}, places{};
    wanted_places.fill(0.5);
    places.fill(0.5);
    for (size_t i = 0; i < codes.size(); ++i) wanted_places[i % 8] += doubles[wide_codes[i]];
    AddOfLookedUp(wide_codes.data(), count, doubles.data(), places.data());
    EXPECT_EQ(places, wanted_places);
    if (!CanLookUpBytes()) continue;
    AddEachLookedUpByte(codes.data(), count, table.data(), bytes.data());
    LeastOfEachLookedUpByte(codes.data(), count, table.data(), least.data());
    EXPECT_EQ(bytes, wanted_bytes);
    EXPECT_EQ(least, wanted_least);
  }
}

TEST(CodeBytesTest, WhatIsAskedForDecidesWhetherBytesAreLookedUp) {
  const Cpu before = SelectedCpu();
  ASSERT_TRUE(ForceCpu(Cpu::kAvx2).ok());
  EXPECT_FALSE(CanLookUpBytes());
  ASSERT_TRUE(ForceCpu(before).ok());
}

}  // namespace
}  // namespace heddle::ops::simd
