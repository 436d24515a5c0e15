// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "ops/cpu.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops::simd {
namespace {

constexpr uint64_t kLine = 64, kPage = 4096, kBlock = 8 * kPage;

// The lines of three blocks from address `at` on, in the order in which they are fetched. Nothing is read:
// any address will do.
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
    for (size_t k = 0; k + skipped < whole.size(); ++k)
      ASSERT_EQ(rest[k], whole[k + skipped]) << skipped << " " << k;
  }
}

// Eight lines at once, by whole pages: never a line behind those that take turns, in whatever pieces a loop
// reads.
TEST(AheadTest, EightLinesAtOnceKeepUp) {
  // There lines follow one another: no eight are fetched at once, and nobody asks for them.
  if (MemoryStreams() == 1) GTEST_SKIP() << "this machine reads one page after the other";
  for (const uint64_t first_line : {0u, 1u, 7u, 8u, 63u, 64u, 65u, 511u}) {
    for (const int64_t piece : {1, 9, 64, 100, 1000}) {
      const auto* const start = reinterpret_cast<const double*>(9 * kBlock + first_line * kLine);
      Ahead turns(start);
      EightAhead eight(turns);
      for (int64_t read = 0, fetched = 0; read < 3 * 4096; read += piece) {
        eight.Read(piece);
        for (; fetched < (read + piece) / 8; ++fetched) turns.Fetch();
        // Both in the same block, at the same line of its pages, but for a turn that is not over.
        EXPECT_EQ(eight.next() / kBlock, turns.next() / kBlock) << first_line << " " << piece << " " << read;
        EXPECT_EQ(eight.next() % kPage / kLine, turns.next() % kPage / kLine)
            << first_line << " " << piece << " " << read;
      }
    }
  }
}

// NaNs are alike (docs/numerics.md, R7).
bool HaveSameBits(const double* a, const double* b, int64_t count) {
  return std::equal(a, a + count, b, [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (std::isnan(x) && std::isnan(y));
  });
}

// What is fetched beside, and rows one by one, change no byte: every fold over every shape of loop, with rows
// and columns left over, and with cells that have no order.
TEST(AheadTest, FoldsOfMemoryAreThoseOfTheCache) {
  for (const int64_t n : {1,  2,  7,  8,  9,  10, 15, 16, 31, 33, 63, 64, 65,  66,  67,  68,
                          69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 100, 129, 1000}) {
    const int64_t rows = 8 * 37 + 5, padded = (std::max<int64_t>(n, 8 * std::min<int64_t>(n, 8)) + 7) / 8 * 8;
    std::vector<double> cells(static_cast<size_t>(rows * n));
    for (size_t k = 0; k < cells.size(); ++k)
      cells[k] = 1.0 + static_cast<double>(k * 2654435761 % 1000) * 1e-6;
    for (size_t k = 0; k < cells.size(); k += cells.size() / 40 + 1) {
      constexpr double kSpecial[] = {-0.0, 0.0, std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN()};
      cells[k] = kSpecial[k % 5];
    }
    for (const Fold fold : {Fold::kAdd, Fold::kMultiply, Fold::kMinimum, Fold::kMaximum}) {
      AlignedArray flat[2], columns[2], narrow[2];
      std::vector<double> out[2];
      for (const From from : {From::kCache, From::kMemory}) {
        const auto which = static_cast<size_t>(from);
        for (AlignedArray* array : {&flat[which], &columns[which], &narrow[which]}) {
          *array = AlignedArray(std::max<int64_t>(8, padded));
          std::fill_n(array->data(), std::max<int64_t>(8, padded), StartOf(fold));
        }
        out[which].assign(static_cast<size_t>(rows), -1.0);
        FoldFlat(fold, cells.data(), rows * n, flat[which].data(), from);
        FoldColumns(fold, cells.data(), rows, n, n, columns[which].data(), from);
        if (n <= 8) FoldNarrow(fold, cells.data(), rows, n, narrow[which].data(), from);
        FoldRows(fold, cells.data(), rows, n, n, out[which].data(), from);
      }
      EXPECT_TRUE(HaveSameBits(flat[0].data(), flat[1].data(), 8)) << n;
      EXPECT_TRUE(HaveSameBits(columns[0].data(), columns[1].data(), n)) << n;
      EXPECT_TRUE(HaveSameBits(narrow[0].data(), narrow[1].data(), n <= 8 ? 8 * n : 0)) << n;
      EXPECT_TRUE(HaveSameBits(out[0].data(), out[1].data(), rows)) << n;
    }
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
