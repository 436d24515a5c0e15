// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/frame/text_column.h"
#include "ops/map/moving_average.h"
#include "ops/map/porter_stemmer.h"

namespace heddle::ops {
namespace {

Frame SeriesOf(const std::vector<std::optional<std::string>>& cells) {
  return Frame(SchemaOfTexts(1), {*TextColumn(cells)});
}

// Column 1 as numbers, or the error.
std::vector<double> Smoothed(const std::string& arguments, const Frame& frame, std::string* error = nullptr) {
  const Result<MovingAverage> average = MovingAverage::Parse("f(" + arguments + ")");
  const Result<Frame> frame_or = average.ok() ? average->Apply(frame) : Result<Frame>(average.status());
  if (!frame_or.ok()) {
    if (error != nullptr) *error = frame_or.status().message();
    return {};
  }
  return {frame_or->column(0).doubles(), frame_or->column(0).doubles() + frame_or->rows()};
}

TEST(MovingAverageTest, FollowsTheRecurrences) {
  const Frame frame = SeriesOf({"1", "2", std::nullopt, "4"});
  EXPECT_EQ(Smoothed("1;single;0;0.5;0;0", frame), (std::vector<double>{1, 1.5, 1.5, 2.75}));
  // Levels 2, 3 and 4 with a trend of 1: a missing value is what was foretold.
  EXPECT_EQ(Smoothed("1;double;0;0.5;0.5;0", frame), (std::vector<double>{1, 3, 4, 5}));
  // Two seasons of two rows around a line: the third goes on.
  EXPECT_EQ(Smoothed("1;triple;2;0;0;0", SeriesOf({"1", "3", "3", "5", "5", "7"})),
            (std::vector<double>{1, 3, 2, 4, 4, 6}));
}

TEST(MovingAverageTest, MissingWeightsAreLookedFor) {
  // Of a series that jumps about one level, a small weight errs least; one trial has only its own.
  const Frame frame = SeriesOf({"0", "1", "-1", "1", "-1", "1", "-1", "1"});
  const auto error = [&](const std::vector<double>& foretold) {
    double sum = 0;
    for (size_t i = 1; i < foretold.size(); ++i)
      sum += (foretold[i] - (i % 2 == 1 ? 1 : -1)) * (foretold[i] - (i % 2 == 1 ? 1 : -1));
    return sum;
  };
  EXPECT_LE(error(Smoothed("50;single;0;NaN;0;0", frame)), error(Smoothed("1;single;0;NaN;0;0", frame)));
  EXPECT_EQ(Smoothed("50;single;0;NaN;0;0", frame), Smoothed("50;single;0;NaN;0;0", frame));
}

TEST(MovingAverageTest, SaysWhatIsWrong) {
  std::string error;
  Smoothed("1;single;0;0.5", SeriesOf({"1"}), &error);
  EXPECT_EQ(
      error,
      "map: UtilFunctions.exponentialMovingAverageImputation needs a number of trials, single, double or "
      "triple, a season and three weights: (100;triple;12;0.5;0.7;0.1)");
  Smoothed("0;single;0;0.5;0;0", SeriesOf({"1"}), &error);
  EXPECT_EQ(error, "map: the number of trials must be at least 1, not 0");
  Smoothed("1;triple;3;0.5;0;0", SeriesOf({"1"}), &error);
  EXPECT_EQ(error, "map: a season has an even number of rows, not 3");
  Smoothed("1;triple;2;0.5;0;0", SeriesOf({"1", "2", "3"}), &error);
  EXPECT_EQ(error, "map: column C1: a series of 3 rows is too short, it needs 4");
  Smoothed("1;single;0;0.5;0;0", SeriesOf({"1", "x"}), &error);
  EXPECT_EQ(error, "map: row 2 of column C1: 'x' is not a number");
}

TEST(PorterStemmerTest, StemsAreThoseOfThePublishedRules) {
  const std::pair<const char16_t*, const char16_t*> cases[] = {
      {u"caresses", u"caress"},
      {u"ponies", u"poni"},
      {u"cats", u"cat"},
      {u"feed", u"feed"},
      {u"agreed", u"agre"},
      {u"plastered", u"plaster"},
      {u"bled", u"bled"},
      {u"sing", u"sing"},
      {u"conflated", u"conflat"},
      {u"troubled", u"troubl"},
      {u"sized", u"size"},
      {u"hopping", u"hop"},
      {u"falling", u"fall"},
      {u"filing", u"file"},
      {u"happy", u"happi"},
      {u"sky", u"sky"},
      {u"relational", u"relat"},
      {u"vietnamization", u"vietnam"},
      {u"hopefulness", u"hope"},
      {u"triplicate", u"triplic"},
      {u"adoption", u"adopt"},
      {u"replacement", u"replac"},
      {u"probate", u"probat"},
      {u"rate", u"rate"},
      {u"controll", u"control"},
      {u"roll", u"roll"},
      {u"is", u"is"},
      {u"oscillators", u"oscil"},
      {u"archaeology", u"archaeolog"},
      {u"", u""},
  };
  for (const auto& [word, stem] : cases)
    EXPECT_EQ(StemOf(word), std::u16string(stem)) << ::testing::PrintToString(std::u16string(word));
}

}  // namespace
}  // namespace heddle::ops
