// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/ahead.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "ops/cpu.h"

namespace heddle::ops::simd {
namespace {

constexpr uint64_t kLine = 64, kPage = 4096, kBlock = 8 * kPage;

// The lines of three blocks from address `at` on, in the order in which they are fetched. Nothing is read: any address will do.
std::vector<uint64_t> Fetched(uint64_t at) {
  Ahead ahead(reinterpret_cast<const double*>(at));
  std::vector<uint64_t> lines;
  for (uint64_t k = 0; k < 3 * kBlock / kLine; ++k) {
    lines.push_back(ahead.next() / kLine);
    ahead.Fetch();
  }
  return lines;
}

TEST(AheadTest, EveryLineOnceAndPagesInTurn) {
  const uint64_t start = 40 * kBlock;
  const std::vector<uint64_t> lines = Fetched(start);
  EXPECT_EQ(std::set<uint64_t>(lines.begin(), lines.end()).size(), lines.size());
  for (size_t k = 0; k < lines.size(); ++k) {
    // Blocks one after the other; or, where one page after the other is as fast, lines.
    EXPECT_EQ(lines[k] * kLine / kBlock, start / kBlock + k * kLine / kBlock) << k;
    if (MemoryStreams() == 1) {
      EXPECT_EQ(lines[k], start / kLine + k);
    } else if (k > 0) {
      EXPECT_NE(lines[k] * kLine / kPage, lines[k - 1] * kLine / kPage) << k;
    }
  }
}

// Who reads on from where another left off fetches what that one would have fetched.
TEST(AheadTest, GoesOnFromAnyLine) {
  const uint64_t start = 7 * kBlock;
  const std::vector<uint64_t> whole = Fetched(start);
  for (const size_t skipped : {1u, 5u, 8u, 63u, 511u, 512u, 700u}) {
    const std::vector<uint64_t> rest = Fetched(start + skipped * kLine + 8);
    for (size_t k = 0; k + skipped < whole.size(); ++k) ASSERT_EQ(rest[k], whole[k + skipped]) << skipped << " " << k;
  }
}

TEST(AheadTest, NothingAndWhatIsAtHand) {
  EXPECT_FALSE(Ahead());
  double cells[8] = {};
  EXPECT_TRUE(Ahead::AtHand(cells));
  EXPECT_FALSE(Ahead::AtHand(cells).side_by_side());
}

}  // namespace
}  // namespace heddle::ops::simd
