// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/optimize/names.h"
#include "compiler/optimize/shared_map.h"

namespace heddle::compiler {
namespace {

using Plain = std::map<std::string, int, std::less<>>;

Plain ToPlain(const SharedMap<int>& map) {
  Plain plain;
  std::vector<std::string> order;
  map.ForEach([&](const std::string& name, int value) {
    plain[name] = value;
    order.push_back(name);
  });
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  return plain;
}

// What ForEachDifference tells: name, and the values on both sides ("-" for none).
std::vector<std::string> Differences(const SharedMap<int>& mine, const SharedMap<int>& theirs) {
  std::vector<std::string> told;
  mine.ForEachDifference(theirs, [&](const std::string& name, const int* a, const int* b) {
    const auto text = [](const int* x) { return x == nullptr ? std::string("-") : std::to_string(*x); };
    told.push_back(name + " " + text(a) + " " + text(b));
  });
  return told;
}

TEST(SharedMapTest, CopiesChangeOnTheirOwn) {
  SharedMap<int> first;
  first["a"] = 1;
  first["b"] = 2;
  SharedMap<int> second = first;
  second["b"] = 3;
  second["c"] = 4;
  second.erase("a");
  second.erase("none");
  EXPECT_EQ(ToPlain(first), (Plain{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(ToPlain(second), (Plain{{"b", 3}, {"c", 4}}));
  EXPECT_EQ(first.Find("c"), nullptr);
  EXPECT_EQ(*second.Find("c"), 4);
  EXPECT_EQ(Differences(first, second), (std::vector<std::string>{"a 1 -", "b 2 3", "c - 4"}));
}

TEST(SharedMapTest, OnlyWhatWasChangedIsVisited) {
  SharedMap<int> first;
  for (int i = 0; i < 1000; ++i) first["v" + std::to_string(i)] = i;
  SharedMap<int> second = first;
  EXPECT_TRUE(Differences(first, second).empty());
  second["v500"] = -1;
  EXPECT_EQ(Differences(first, second), std::vector<std::string>{"v500 500 -1"});
}

// Many maps, each a copy of another one with a few changes: all behave like maps that share nothing.
TEST(SharedMapTest, DoesWhatPlainMapsDo) {
  std::mt19937 random(7);
  std::vector<std::pair<SharedMap<int>, Plain>> maps(1);
  for (int step = 0; step < 5000; ++step) {
    if (random() % 20 == 0 && maps.size() < 30) maps.push_back(maps[random() % maps.size()]);
    auto& [map, plain] = maps[random() % maps.size()];
    const std::string name = "n" + std::to_string(random() % 60);
    if (random() % 3 == 0) {
      map.erase(name);
      plain.erase(name);
    } else {
      const int value = static_cast<int>(random() % 100);
      map[name] = value;
      plain[name] = value;
    }
    ASSERT_EQ(map.contains(name), plain.contains(name));
  }
  for (const auto& [map, plain] : maps) ASSERT_EQ(ToPlain(map), plain);
  for (const auto& [mine, my_plain] : maps) {
    for (const auto& [theirs, their_plain] : maps) {
      Plain rebuilt = my_plain;
      mine.ForEachDifference(theirs, [&](const std::string& name, const int* a, const int* b) {
        EXPECT_EQ(a != nullptr, my_plain.contains(name));
        if (b == nullptr)
          rebuilt.erase(name);
        else
          rebuilt[name] = *b;
      });
      ASSERT_EQ(rebuilt, their_plain) << "the differences lead from one map to the other";
    }
  }
}

TEST(SharedNamesTest, AddsAndKeepsThoseOfAnother) {
  SharedNames a, b;
  for (const char* name : {"x", "y"}) a.insert(name);
  for (const char* name : {"y", "z"}) b.insert(name);
  EXPECT_EQ(a.Beside(b), std::vector<std::string>{"x"});
  SharedNames all = a;
  all.AddAllOf(b);
  EXPECT_TRUE(all.contains("x") && all.contains("y") && all.contains("z"));
  EXPECT_FALSE(a.contains("z"));
  EXPECT_TRUE(all.KeepThoseOf(b));
  EXPECT_FALSE(all.contains("x"));
  EXPECT_FALSE(all.KeepThoseOf(b));
}

}  // namespace
}  // namespace heddle::compiler
