// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/code_bytes.h"

#include <gtest/gtest.h>

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

TEST(CodeBytesTest, WhatIsAskedForDecidesWhetherBytesAreLookedUp) {
  const Cpu before = SelectedCpu();
  ASSERT_TRUE(ForceCpu(Cpu::kAvx2).ok());
  EXPECT_FALSE(CanLookUpBytes());
  ASSERT_TRUE(ForceCpu(before).ok());
}

}  // namespace
}  // namespace heddle::ops::simd
