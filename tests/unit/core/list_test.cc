// SPDX-License-Identifier: Apache-2.0
#include "core/values/list.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

namespace heddle {
namespace {

// An element: a number, or a list.
struct Item {
  int number = 0;
  std::shared_ptr<const ListOf<Item>> list;
};
using Items = ListOf<Item>;

Item Number(int number) { return {number, nullptr}; }
Item Nested(Items list) { return {0, std::make_shared<const Items>(std::move(list))}; }

Items Named(std::vector<std::pair<std::string, int>> items) {
  Items list;
  for (auto& [name, number] : items) EXPECT_TRUE(list.Add(name, Number(number)).ok());
  return list;
}

std::vector<int> NumbersOf(const Items& list) {
  std::vector<int> numbers;
  for (const Item& item : list.elements) numbers.push_back(item.list != nullptr ? -1 : item.number);
  return numbers;
}

ListRange Find(const Items& list, const Scalar& from, const Scalar& to) {
  const Result<ListRange> range = FindInList(list.names, list.size(), from, to);
  EXPECT_TRUE(range.ok()) << range.status().ToString();
  return range.ok() ? *range : ListRange();
}

std::string WhyNot(const Items& list, const Scalar& from, const Scalar& to) {
  return FindInList(list.names, list.size(), from, to).status().message();
}

TEST(ListTest, APositionCountsFromOneAndANameIsTheLastOfItsKind) {
  const Items list = Named({{"a", 1}, {"b", 2}, {"a", 3}});
  EXPECT_EQ(Find(list, 2, 2).begin, 1U);
  EXPECT_EQ(Find(list, 2.9, 2.9).begin, 1U);
  EXPECT_EQ(Find(list, "a", "a").begin, 2U);
  const ListRange range = Find(list, "b", "a");
  EXPECT_EQ(range.begin, 1U);
  EXPECT_EQ(range.end, 3U);
}

TEST(ListTest, WhatIsNotThereIsNamed) {
  const Items list = Named({{"a", 1}, {"b", 2}});
  EXPECT_EQ(WhyNot(list, 3, 3), "there is no element 3 in a list of 2 elements");
  EXPECT_EQ(WhyNot(list, 0, 1), "there is no element 0 in a list of 2 elements");
  EXPECT_EQ(WhyNot(list, std::nan(""), 1), "there is no element NaN in a list of 2 elements");
  EXPECT_EQ(WhyNot(list, 1e300, 1), "there is no element 1.0E300 in a list of 2 elements");
  EXPECT_EQ(WhyNot(list, "c", "c"), "the list has no element \"c\"");
  EXPECT_EQ(WhyNot(list, 2, 1), "the elements 2:1 of a list: the first is behind the last");
  EXPECT_EQ(WhyNot(Named({{"", 1}}), "a", "a"), "the list has no names, so no element \"a\"");
}

TEST(ListTest, OneElementWithoutANameTakesTheNamesAway) {
  EXPECT_TRUE(Named({{"a", 1}, {"", 2}}).names.empty());
  EXPECT_TRUE(Named({{"", 1}, {"b", 2}}).names.empty());
  EXPECT_TRUE(Named({{"a", 1}, {"", 2}, {"c", 3}}).names.empty());
}

TEST(ListTest, AListOfOneGivesItsElementAndOthersAreNested) {
  Items list = Named({{"a", 1}});
  EXPECT_TRUE(list.Append(Nested(Named({{"b", 2}}))).ok());
  EXPECT_EQ(NumbersOf(list), (std::vector{1, 2}));
  EXPECT_EQ(list.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(list.Append(Number(3)).message(), "append() of an element without a name to a list with names");

  Items plain;
  EXPECT_TRUE(plain.Append(Nested(Items())).ok());
  EXPECT_TRUE(plain.Append(Nested(Named({{"a", 1}, {"b", 2}}))).ok());
  EXPECT_TRUE(plain.Append(Nested(Named({{"c", 5}}))).ok());
  EXPECT_EQ(NumbersOf(plain), (std::vector{-1, -1, 5}));
  EXPECT_TRUE(plain.names.empty());
}

TEST(ListTest, AListReplacesAsManyElementsAsItHas) {
  Items list = Named({{"a", 1}, {"b", 2}, {"c", 3}});
  EXPECT_TRUE(list.Replace({0, 2}, Nested(Named({{"", 7}, {"", 8}}))).ok());
  EXPECT_EQ(NumbersOf(list), (std::vector{7, 8, 3}));
  EXPECT_TRUE(list.Replace({1, 3}, Number(9)).ok());
  EXPECT_EQ(NumbersOf(list), (std::vector{7, 9, 3}));
  EXPECT_EQ(list.Replace({0, 1}, Nested(Named({{"", 1}, {"", 2}}))).message(),
            "the list that is assigned has another number of elements: 2 instead of 1");
  EXPECT_EQ(list.names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(list.Replace({2, 3}, Nested(Named({{"f", 4}}))).ok());
  EXPECT_EQ(list.names, (std::vector<std::string>{"a", "b", "f"}));
  EXPECT_EQ(NumbersOf(list), (std::vector{7, 9, 4}));
}

TEST(ListTest, SlicesAndWhatIsLeftKeepTheirNames) {
  Items list = Named({{"a", 1}, {"b", 2}, {"c", 3}});
  const Items slice = list.Slice({1, 3});
  EXPECT_EQ(NumbersOf(slice), (std::vector{2, 3}));
  EXPECT_EQ(slice.names, (std::vector<std::string>{"b", "c"}));
  list.Erase({1, 2});
  EXPECT_EQ(NumbersOf(list), (std::vector{1, 3}));
  EXPECT_EQ(list.names, (std::vector<std::string>{"a", "c"}));
}

// Recursion over lists, their end included, has a bound; what goes in and out again does not deepen a list.
TEST(ListTest, NestingHasABound) {
  Items list;
  for (int i = 1; i < kMostNestedLists; ++i) {
    Items outer;
    ASSERT_TRUE(outer.Add("", Nested(std::move(list))).ok()) << i;
    list = std::move(outer);
  }
  Items one_more;
  EXPECT_EQ(one_more.Add("", Nested(std::move(list))).message(), "lists are nested more than 500 deep");

  Items flat = Named({{"", 1}});
  for (int i = 0; i < 2 * kMostNestedLists; ++i) {
    ASSERT_TRUE(flat.Append(Nested(flat.Slice({0, 1}))).ok());
    flat = flat.Slice({1, 2});
  }
  EXPECT_EQ(flat.depth, 1);
}

}  // namespace
}  // namespace heddle
