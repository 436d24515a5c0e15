// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/ordered_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

namespace heddle::ops {
namespace {

// Gives pieces 0 to count - 1 on `threads` threads.
template <typename Make, typename Give>
Status GiveNumbers(int threads, int64_t count, const Make& make, const Give& give,
                   const std::atomic<bool>* cancelled = nullptr) {
  Arena arena(threads);
  Status status;
  int64_t next = 0;
  arena.Execute([&] {
    status = GiveInOrder<int64_t>(
        cancelled,
        [&](int64_t* piece) {
          *piece = next;
          return next++ < count;
        },
        make, give);
  });
  return status;
}

TEST(OrderedPiecesTest, PiecesAreGivenInOrderAndAFewAreMadeAhead) {
  for (const int threads : {1, 2, 7}) {
    std::atomic<int64_t> made = 0;
    std::vector<int64_t> given;
    int64_t most_ahead = 0;
    const Status status = GiveNumbers(
        threads, 1000,
        [&](int64_t* piece) {
          *piece = 3 * *piece;
          made.fetch_add(1);
          return OkStatus();
        },
        [&](const int64_t* piece) {
          most_ahead = std::max(most_ahead, made - static_cast<int64_t>(given.size()));
          given.push_back(*piece);
          return OkStatus();
        });
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(given.size(), 1000u);
    for (size_t i = 0; i < given.size(); ++i) EXPECT_EQ(given[i], static_cast<int64_t>(3 * i));
    EXPECT_LE(most_ahead, threads == 1 ? 1 : 3 * threads);
  }
}

TEST(OrderedPiecesTest, TheFirstPieceThatFailsIsTold) {
  for (const int threads : {1, 4}) {
    int64_t given = 0;
    const Status status = GiveNumbers(
        threads, 1000,
        [](const int64_t* piece) {
          return *piece == 20 || *piece > 21 ? Internal("piece {}", *piece) : OkStatus();
        },
        [&](const int64_t*) {
          ++given;
          return OkStatus();
        });
    EXPECT_EQ(status.message(), "piece 20");
    EXPECT_EQ(given, 20);
    const Status refused = GiveNumbers(
        threads, 1000, [](const int64_t*) { return OkStatus(); },
        [](const int64_t* piece) { return *piece == 5 ? DataLoss("full at {}", *piece) : OkStatus(); });
    EXPECT_EQ(refused.message(), "full at 5");
  }
}

TEST(OrderedPiecesTest, NothingIsGivenOnceItIsCancelled) {
  std::atomic<bool> cancelled = false;
  int64_t given = 0;
  const Status status = GiveNumbers(
      4, 1000, [](const int64_t*) { return OkStatus(); },
      [&](const int64_t*) {
        cancelled = ++given == 10;
        return OkStatus();
      },
      &cancelled);
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(given, 10);
}

TEST(OrderedPiecesTest, WantOfMemoryEndsTheWorkOfAllThreads) {
  for (const int threads : {1, 4})
    EXPECT_THROW((void)GiveNumbers(
                     threads, 1000,
                     [](const int64_t* piece) {
                       if (*piece == 30) throw std::bad_alloc();
                       return OkStatus();
                     },
                     [](const int64_t*) { return OkStatus(); }),
                 std::bad_alloc);
}

}  // namespace
}  // namespace heddle::ops
