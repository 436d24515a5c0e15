// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/prefetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "ops/reduction/reduction_tree.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops::simd {
namespace {

constexpr uint64_t kLine = 64, kPage = 4096, kBlock = 8 * kPage;

uint64_t LineOf(const double* cell) { return reinterpret_cast<uint64_t>(cell) / kLine; }
// Nothing is read: any address will do.
const double* AtLine(uint64_t line) { return reinterpret_cast<const double*>(line * kLine); }

// One page after the other, and eight pages in turns, on any machine.
class PrefetchTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Streams, PrefetchTest, testing::Values(1, 8));

// Who reads three blocks fetches three later ones, each line once.
TEST_P(PrefetchTest, EveryLineOnceAndPagesInTurn) {
  for (const int64_t cells : {100, 1024, 4096, 5000}) {
    const Prefetch prefetch(cells, GetParam());
    EXPECT_TRUE(prefetch);
    const uint64_t first = 40 * kBlock / kLine, count = 3 * kBlock / kLine;
    std::set<uint64_t> lines;
    for (uint64_t line = first; line < first + count; ++line) {
      const uint64_t fetched = LineOf(prefetch.Of(AtLine(line)));
      lines.insert(fetched);
      if (GetParam() == 1) {
        EXPECT_EQ(fetched, line + static_cast<uint64_t>(cells) / 8);
      } else {
        EXPECT_EQ(fetched * kLine / kBlock, line * kLine / kBlock + (cells <= 4096 ? 1 : 2)) << line;
        EXPECT_NE(fetched * kLine / kPage, LineOf(prefetch.Of(AtLine(line + 1))) * kLine / kPage) << line;
      }
    }
    EXPECT_EQ(lines.size(), count) << cells;
  }
}

// A line that is read from its middle is the same line.
TEST_P(PrefetchTest, CellsOfALineAreAlike) {
  const Prefetch prefetch(Prefetch::kFar, GetParam());
  for (uint64_t line = 8000; line < 8600; ++line)
    for (int cell = 1; cell < 8; ++cell)
      EXPECT_EQ(LineOf(prefetch.Of(AtLine(line) + cell)), LineOf(prefetch.Of(AtLine(line))))
          << line << " " << cell;
}

TEST(NoPrefetchTest, FetchesNothing) {
  EXPECT_FALSE(Prefetch());
  EXPECT_FALSE(Prefetch().Even());
  EXPECT_FALSE(Prefetch().Odd());
  EXPECT_FALSE(Prefetch::OfStream(1));
  EXPECT_TRUE(Prefetch::OfStream(8));
}

// NaNs are alike (docs/numerics.md, R7).
bool HaveSameBits(const double* a, const double* b, int64_t count) {
  return std::equal(a, a + count, b, [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (std::isnan(x) && std::isnan(y));
  });
}

// What is fetched meanwhile changes no byte: every fold over every shape of loop, with rows
// and columns left over, and with cells that have no order.
TEST_P(PrefetchTest, FoldsOfMemoryAreThoseOfTheCache) {
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
      for (const size_t which : {0u, 1u}) {
        const Prefetch from = which == 0 ? Prefetch() : Prefetch(Prefetch::kFar, GetParam());
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

}  // namespace
}  // namespace heddle::ops::simd
