// SPDX-License-Identifier: Apache-2.0
#include "core/environment/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace heddle {
namespace {

TEST(RandomTest, OneSeedGivesOneSequence) {
  SeededRandom a(7);
  SeededRandom b(7);
  SeededRandom other(8);
  int differing = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t x = a.Next();
    EXPECT_EQ(x, b.Next());
    differing += x != other.Next();
  }
  EXPECT_EQ(differing, 100);
}

TEST(RandomTest, TheNumbersAreThoseOfThePublishedGenerator) {
  // splitmix64(0) starts e220a8397b1dcdaf, 6e789e6aa1b965f4, ...; the first result is rotl(s[1] * 5, 7) * 9.
  const uint64_t product = 0x6e789e6aa1b965f4 * uint64_t{5};
  EXPECT_EQ(SeededRandom(0).Next(), (product << 7 | product >> 57) * 9);
}

TEST(RandomTest, BelowCoversItsRangeEvenly) {
  SeededRandom random(1);
  std::array<int, 6> seen{};
  for (int i = 0; i < 60000; ++i) ++seen[random.Below(6)];
  for (const int count : seen) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(RandomTest, TheSystemDoesNotRepeatItself) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 64; ++i) seen.insert(SystemRandom().Next());
  EXPECT_EQ(seen.size(), 64u);
}

}  // namespace
}  // namespace heddle
