// SPDX-License-Identifier: Apache-2.0
#include "actor/early_messages.h"

#include <gtest/gtest.h>

namespace heddle::actor {
namespace {

Message Of(uint32_t run, uint32_t sequence) { return {.run = run, .sequence = sequence}; }

TEST(EarlyMessagesTest, ARunGetsItsOwnInTheirOrder) {
  std::atomic<int64_t> room{10};
  EarlyMessages early(room);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(early.Add(Of(1, i)));
    EXPECT_TRUE(early.Add(Of(2, 10 + i)));
  }
  const std::vector<Message> first = early.Take(1);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0].sequence, 0u);
  EXPECT_EQ(first[2].sequence, 2u);
  EXPECT_TRUE(early.Take(1).empty());
  EXPECT_EQ(early.Take(2).size(), 3u);
  EXPECT_TRUE(early.empty());
}

TEST(EarlyMessagesTest, ThereIsRoomForSoManyOfAllLanes) {
  std::atomic<int64_t> room{3};
  EarlyMessages one(room), two(room);
  EXPECT_TRUE(one.Add(Of(1, 0)));
  EXPECT_TRUE(two.Add(Of(1, 0)));
  EXPECT_TRUE(one.Add(Of(5, 0)));
  EXPECT_FALSE(two.Add(Of(1, 1)));
  EXPECT_FALSE(one.Add(Of(1, 1)));
  one.Take(2);  // That of run 1 goes, that of run 5 stays.
  EXPECT_EQ(room.load(), 1);
  EXPECT_TRUE(two.Add(Of(1, 2)));
  EXPECT_FALSE(one.Add(Of(6, 0)));
}

TEST(EarlyMessagesTest, ALaneThatEndsGivesItsRoomBack) {
  std::atomic<int64_t> room{3};
  {
    EarlyMessages early(room);
    EXPECT_TRUE(early.Add(Of(1, 0)));
  }
  EXPECT_EQ(room.load(), 3);
}

}  // namespace
}  // namespace heddle::actor
