// SPDX-License-Identifier: Apache-2.0
#include "core/recently_used.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace heddle {
namespace {

TEST(RecentlyUsedTest, TheLeastRecentlyUsedValueGoes) {
  RecentlyUsedMap<std::string, int> cache(3);
  cache.Add("a", 1);
  cache.Add("b", 2);
  cache.Add("c", 3);
  EXPECT_EQ(*cache.Find("a"), 1);
  cache.Add("d", 4);
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_NE(cache.Find("c"), nullptr);
  EXPECT_NE(cache.Find("d"), nullptr);
  EXPECT_EQ(cache.size(), 3u);
}

TEST(RecentlyUsedTest, AWorkingSetAtTheLimitIsMadeOnce) {
  constexpr int kMost = 8;
  RecentlyUsedMap<int, int> cache(kMost);
  int made = 0;
  for (int round = 0; round < 5; ++round)
    for (int key = 0; key < kMost; ++key)
      if (cache.Find(key) == nullptr) cache.Add(key, ++made);
  EXPECT_EQ(made, kMost);
}

TEST(RecentlyUsedTest, AValueStaysInItsPlaceUntilItGoes) {
  RecentlyUsedMap<int, std::string> cache(2);
  const std::string* const first = &cache.Add(1, "one");
  cache.Add(2, "two");
  EXPECT_EQ(cache.Find(1), first);
  EXPECT_EQ(*first, "one");
}

TEST(RecentlyUsedTest, WeightsCountAndTheValueUsedLastStaysWhateverItWeighs) {
  RecentlyUsedMap<int, int> cache(100, /*most_weight=*/10);
  cache.Add(1, 1, 4);
  cache.Add(2, 2, 6);
  EXPECT_EQ(cache.size(), 2u);
  cache.Add(3, 3, 1);
  EXPECT_EQ(cache.Find(1), nullptr) << "4 + 6 + 1 is too much";
  EXPECT_NE(cache.Find(2), nullptr);
  cache.Add(4, 4, 1000);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_NE(cache.Find(4), nullptr);
}

TEST(RecentlyUsedTest, AValueThatIsAddedAgainReplacesTheOldOneAndItsWeight) {
  RecentlyUsedMap<int, int> cache(100, /*most_weight=*/10);
  for (int i = 0; i < 5; ++i) cache.Add(1, i, 8);
  cache.Add(2, 0, 2);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(*cache.Find(1), 4);
  cache.Erase(1);
  cache.Erase(1);
  cache.Add(3, 0, 8);
  EXPECT_NE(cache.Find(2), nullptr) << "the erased value weighs nothing any more";
}

TEST(RecentlyUsedTest, ValuesWithoutKeysAreAskedInTheOrderOfTheirLastUse) {
  RecentlyUsedList<std::unique_ptr<int>> cache(3);
  for (int i = 1; i <= 3; ++i) cache.Add(std::make_unique<int>(i));
  EXPECT_EQ(**cache.FindIf([](const auto& value) { return *value < 3; }), 2);
  std::vector<int> order;
  EXPECT_EQ(cache.FindIf([&](const auto& value) {
    order.push_back(*value);
    return false;
  }),
            nullptr);
  EXPECT_EQ(order, (std::vector<int>{2, 3, 1}));
  std::vector<int> dropped;
  cache.Add(std::make_unique<int>(4), 0, [&](const auto& value) { dropped.push_back(*value); });
  EXPECT_EQ(dropped, std::vector<int>{1});
  EXPECT_EQ(**cache.TakeIf([](const auto& value) { return *value == 3; }), 3);
  EXPECT_FALSE(cache.TakeIf([](const auto& value) { return *value == 3; }).has_value());
  EXPECT_EQ(cache.size(), 2u);
}

}  // namespace
}  // namespace heddle
