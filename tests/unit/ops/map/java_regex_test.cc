// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_regex.h"

#include <gtest/gtest.h>

namespace heddle::ops {
namespace {

// Where the expression matches first, as "begin-end"; "none"; or the error.
std::string FirstMatch(std::u16string_view expression, std::u16string_view text) {
  const Result<JavaRegex> regex = JavaRegex::Parse(expression);
  if (!regex.ok()) return regex.status().message();
  const std::optional<JavaRegex::Match> match = JavaRegexSearch(*regex, text).Find(0);
  return match ? fmt::format("{}-{}", (*match)[0], (*match)[1]) : "none";
}

TEST(JavaRegexTest, TheLeftmostMatchCounts) {
  const std::tuple<const char16_t*, const char16_t*, const char*> cases[] = {
      {u"b+", u"abbbc", "1-4"},
      {u"b+?", u"abbbc", "1-2"},
      {u"b*", u"abbbc", "0-0"},
      {u"[^a-c]", u"abcd", "3-4"},
      {u"[.]", u"a.b", "1-2"},
      {u".", u"\nx", "1-2"},
      {u"a|ab", u"ab", "0-1"},
      {u"(?:ab|a)c", u"aac", "1-3"},
      {u"x{2,3}", u"axxxx", "1-4"},
      {u"x{2}", u"ax", "none"},
      {u"x{2,}", u"xxxx", "0-4"},
      {u"^b", u"ab", "none"},
      {u"b$", u"ab", "1-2"},
      {u"\\d+\\.\\d", u"v12.5", "1-5"},
      {u"[a\\-z]", u"-", "0-1"},
      {u"[^a-zA-Z\\s]", u"a b!", "3-4"},
      {u"(a*)*c", u"aac", "0-3"},
      {u"(|a)+b", u"aab", "0-3"},
      {u"\\w+", u"-é_a1", "2-5"},
      {u"[]a]", u"]", "0-1"},
      {u"[^\\p{Alnum}]+", u"aB1-?", "3-5"},
      {u"\\P{Upper}\\p{Punct}", u"A!a!", "2-4"},
  };
  for (const auto& [expression, text, expected] : cases)
    EXPECT_EQ(FirstMatch(expression, text), expected) << ::testing::PrintToString(std::u16string(expression));
}

TEST(JavaRegexTest, GroupsAreWhatTheLastRoundTook) {
  const JavaRegex regex = *JavaRegex::Parse(u"(a)|(b)(c)?");
  const JavaRegex::Match match = *JavaRegexSearch(regex, u"xb").Find(0);
  EXPECT_EQ(regex.groups(), 3);
  EXPECT_EQ(match[2], JavaRegex::kNone);
  EXPECT_EQ(match[4], 1u);
  EXPECT_EQ(match[5], 2u);
  EXPECT_EQ(match[6], JavaRegex::kNone);
}

TEST(JavaRegexTest, MatchesAllTakesTheWholeText) {
  EXPECT_TRUE(JavaRegex::Parse(u"a|ab")->MatchesAll(u"ab"));
  EXPECT_FALSE(JavaRegex::Parse(u"a+")->MatchesAll(u"aab"));
}

// Backtracking without marks would take 2^40 steps here.
TEST(JavaRegexTest, NoPlaceIsTriedTwice) {
  const std::u16string text(40, u'a');
  EXPECT_FALSE(JavaRegex::Parse(u"(a*)*(a*)*b")->MatchesAll(text));
}

// All matches of a text together cost steps x length: each of these looks for the b to the end of the text.
TEST(JavaRegexTest, ManyMatchesLookOnceAtThePlacesBehindThem) {
  const std::u16string text(20000, u'a');
  const JavaRegex regex = *JavaRegex::Parse(u"a(?:.*b)?");
  JavaRegexSearch search(regex, text);
  size_t matches = 0;
  for (size_t at = 0; at < text.size(); ++matches) {
    const JavaRegex::Match match = *search.Find(at);
    EXPECT_EQ(match[0], at);
    at = match[1];
  }
  EXPECT_EQ(matches, text.size());
}

TEST(JavaRegexTest, ACancelledSearchFindsNothing) {
  const std::atomic<bool> cancelled = true;
  const JavaRegex regex = *JavaRegex::Parse(u"a");
  EXPECT_FALSE(JavaRegexSearch(regex, u"a", &cancelled).Find(0));
  EXPECT_FALSE(JavaRegexSearch(regex, u"a", &cancelled).MatchesAll());
}

TEST(JavaRegexTest, CountsThatMakeAnExpressionTooLongAreRefused) {
  for (const char16_t* const expression :
       {u"(a{1,1000}){1,1000}", u"a{20001}", u"((a{100}){100}){100}", u"(?:(?:){0,19999}){0,2}",
        u"a{999999999999}", u"(ab){5000}(cd){5001}"}) {
    const Result<JavaRegex> regex = JavaRegex::Parse(expression);
    EXPECT_NE(regex.status().message().find("with what its counts repeat it has more than 20000 steps"),
              std::string::npos)
        << ::testing::PrintToString(std::u16string(expression));
  }
  EXPECT_TRUE(JavaRegex::Parse(u"(a{1,100}){1,90}")->MatchesAll(std::u16string(9000, u'a')));
  EXPECT_FALSE(JavaRegex::Parse(u"(a{1,100}){1,90}")->MatchesAll(std::u16string(9001, u'a')));
}

TEST(JavaRegexTest, WhatIsNotKnownIsNamedWithItsPlace) {
  const std::pair<const char16_t*, const char*> cases[] = {
      {u"a(b", "the regular expression \"a(b\": a ( without its ) at character 4"},
      {u"ab)", "the regular expression \"ab)\": a ) without its ( at character 3"},
      {u"[ab", "the regular expression \"[ab\": a [ without its ] at character 4"},
      {u"*a", "the regular expression \"*a\": nothing to repeat at character 1"},
      {u"(?=a)", "the regular expression \"(?=a)\": a kind of group that is not known at character 3"},
      {u"a\\", "the regular expression \"a\\\": nothing behind \\ at character 3"},
      {u"\\b", "the regular expression \"\\b\": an escape that is not known at character 2"},
      {u"\\p{Greek}", "the regular expression \"\\p{Greek}\": a class that is not known at character 3"},
      {u"[b-a]", "the regular expression \"[b-a]\": a range that goes nowhere at character 5"},
      {u"a{3,2}", "the regular expression \"a{3,2}\": no count that can be at character 7"},
      {u"a++", "the regular expression \"a++\": a repetition of a repetition at character 3"},
      {u"(a{1000}){1000}",
       "the regular expression \"(a{1000}){1000}\": with what its counts repeat it has more than 20000 steps at character 16"},
  };
  for (const auto& [expression, message] : cases) EXPECT_EQ(FirstMatch(expression, u""), message);
}

}  // namespace
}  // namespace heddle::ops
