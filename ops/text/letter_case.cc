// SPDX-License-Identifier: Apache-2.0
#include "ops/text/letter_case.h"

#include <algorithm>
#include <iterator>

#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

// Letters beyond U+FFFF: capitals from `first` to `last`, small ones at this distance behind them. Made from
// what Character.toLowerCase(int) of Java 17 says of each.
struct FarRun {
  char32_t first, last, distance;
};
constexpr FarRun kFarRuns[] = {
    {0x10400, 0x10427, 40}, {0x104B0, 0x104D3, 40}, {0x10C80, 0x10CB2, 64},
    {0x118A0, 0x118BF, 32}, {0x16E40, 0x16E5F, 32}, {0x1E900, 0x1E921, 34},
};

// Letters of which String.toUpperCase() makes several. Made from what it says of each in Java 17.
struct Capitals {
  char16_t letter;
  const char16_t* text;
};
constexpr Capitals kCapitals[] = {
    {0x00DF, u"SS"},
    {0x0149, u"\u02BCN"},
    {0x01F0, u"J\u030C"},
    {0x0390, u"\u0399\u0308\u0301"},
    {0x03B0, u"\u03A5\u0308\u0301"},
    {0x0587, u"\u0535\u0552"},
    {0x1E96, u"H\u0331"},
    {0x1E97, u"T\u0308"},
    {0x1E98, u"W\u030A"},
    {0x1E99, u"Y\u030A"},
    {0x1E9A, u"A\u02BE"},
    {0x1F50, u"\u03A5\u0313"},
    {0x1F52, u"\u03A5\u0313\u0300"},
    {0x1F54, u"\u03A5\u0313\u0301"},
    {0x1F56, u"\u03A5\u0313\u0342"},
    {0x1F80, u"\u1F08\u0399"},
    {0x1F81, u"\u1F09\u0399"},
    {0x1F82, u"\u1F0A\u0399"},
    {0x1F83, u"\u1F0B\u0399"},
    {0x1F84, u"\u1F0C\u0399"},
    {0x1F85, u"\u1F0D\u0399"},
    {0x1F86, u"\u1F0E\u0399"},
    {0x1F87, u"\u1F0F\u0399"},
    {0x1F88, u"\u1F08\u0399"},
    {0x1F89, u"\u1F09\u0399"},
    {0x1F8A, u"\u1F0A\u0399"},
    {0x1F8B, u"\u1F0B\u0399"},
    {0x1F8C, u"\u1F0C\u0399"},
    {0x1F8D, u"\u1F0D\u0399"},
    {0x1F8E, u"\u1F0E\u0399"},
    {0x1F8F, u"\u1F0F\u0399"},
    {0x1F90, u"\u1F28\u0399"},
    {0x1F91, u"\u1F29\u0399"},
    {0x1F92, u"\u1F2A\u0399"},
    {0x1F93, u"\u1F2B\u0399"},
    {0x1F94, u"\u1F2C\u0399"},
    {0x1F95, u"\u1F2D\u0399"},
    {0x1F96, u"\u1F2E\u0399"},
    {0x1F97, u"\u1F2F\u0399"},
    {0x1F98, u"\u1F28\u0399"},
    {0x1F99, u"\u1F29\u0399"},
    {0x1F9A, u"\u1F2A\u0399"},
    {0x1F9B, u"\u1F2B\u0399"},
    {0x1F9C, u"\u1F2C\u0399"},
    {0x1F9D, u"\u1F2D\u0399"},
    {0x1F9E, u"\u1F2E\u0399"},
    {0x1F9F, u"\u1F2F\u0399"},
    {0x1FA0, u"\u1F68\u0399"},
    {0x1FA1, u"\u1F69\u0399"},
    {0x1FA2, u"\u1F6A\u0399"},
    {0x1FA3, u"\u1F6B\u0399"},
    {0x1FA4, u"\u1F6C\u0399"},
    {0x1FA5, u"\u1F6D\u0399"},
    {0x1FA6, u"\u1F6E\u0399"},
    {0x1FA7, u"\u1F6F\u0399"},
    {0x1FA8, u"\u1F68\u0399"},
    {0x1FA9, u"\u1F69\u0399"},
    {0x1FAA, u"\u1F6A\u0399"},
    {0x1FAB, u"\u1F6B\u0399"},
    {0x1FAC, u"\u1F6C\u0399"},
    {0x1FAD, u"\u1F6D\u0399"},
    {0x1FAE, u"\u1F6E\u0399"},
    {0x1FAF, u"\u1F6F\u0399"},
    {0x1FB2, u"\u1FBA\u0399"},
    {0x1FB3, u"\u0391\u0399"},
    {0x1FB4, u"\u0386\u0399"},
    {0x1FB6, u"\u0391\u0342"},
    {0x1FB7, u"\u0391\u0342\u0399"},
    {0x1FBC, u"\u0391\u0399"},
    {0x1FC2, u"\u1FCA\u0399"},
    {0x1FC3, u"\u0397\u0399"},
    {0x1FC4, u"\u0389\u0399"},
    {0x1FC6, u"\u0397\u0342"},
    {0x1FC7, u"\u0397\u0342\u0399"},
    {0x1FCC, u"\u0397\u0399"},
    {0x1FD2, u"\u0399\u0308\u0300"},
    {0x1FD3, u"\u0399\u0308\u0301"},
    {0x1FD6, u"\u0399\u0342"},
    {0x1FD7, u"\u0399\u0308\u0342"},
    {0x1FE2, u"\u03A5\u0308\u0300"},
    {0x1FE3, u"\u03A5\u0308\u0301"},
    {0x1FE4, u"\u03A1\u0313"},
    {0x1FE6, u"\u03A5\u0342"},
    {0x1FE7, u"\u03A5\u0308\u0342"},
    {0x1FF2, u"\u1FFA\u0399"},
    {0x1FF3, u"\u03A9\u0399"},
    {0x1FF4, u"\u038F\u0399"},
    {0x1FF6, u"\u03A9\u0342"},
    {0x1FF7, u"\u03A9\u0342\u0399"},
    {0x1FFC, u"\u03A9\u0399"},
    {0xFB00, u"FF"},
    {0xFB01, u"FI"},
    {0xFB02, u"FL"},
    {0xFB03, u"FFI"},
    {0xFB04, u"FFL"},
    {0xFB05, u"ST"},
    {0xFB06, u"ST"},
    {0xFB13, u"\u0544\u0546"},
    {0xFB14, u"\u0544\u0535"},
    {0xFB15, u"\u0544\u053B"},
    {0xFB16, u"\u054E\u0546"},
    {0xFB17, u"\u0544\u053D"},
};

constexpr char16_t kSigma = 0x03A3, kSmallSigma = 0x03C3, kFinalSigma = 0x03C2, kCapitalIWithDot = 0x0130;
constexpr char32_t kBeyond = 0x10000;

struct Point {
  char32_t value;
  size_t units;
};

bool IsHighHalf(char32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowHalf(char32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// The character at a place of the text, or the one that ends before it.
Point PointAt(std::u16string_view text, size_t at) {
  if (IsHighHalf(text[at]) && at + 1 < text.size() && IsLowHalf(text[at + 1]))
    return {kBeyond + ((text[at] - 0xD800u) << 10) + (text[at + 1] - 0xDC00u), 2};
  return {text[at], 1};
}
Point PointBefore(std::u16string_view text, size_t end) {
  if (end >= 2 && IsLowHalf(text[end - 1]) && IsHighHalf(text[end - 2])) return PointAt(text, end - 2);
  return {text[end - 1], 1};
}

void Append(char32_t point, std::u16string* text) {
  if (point < kBeyond) {
    text->push_back(static_cast<char16_t>(point));
  } else {
    text->push_back(static_cast<char16_t>(0xD800 + ((point - kBeyond) >> 10)));
    text->push_back(static_cast<char16_t>(0xDC00 + ((point - kBeyond) & 0x3FF)));
  }
}

const Capitals* SeveralCapitals(char32_t letter) {
  if (letter < kCapitals[0].letter) return nullptr;
  const Capitals* const found =
      std::lower_bound(std::begin(kCapitals), std::end(kCapitals), letter,
                       [](const Capitals& known, char32_t sought) { return known.letter < sought; });
  return found != std::end(kCapitals) && found->letter == letter ? found : nullptr;
}

char32_t Folded(char32_t point) { return LowerCasePoint(UpperCasePoint(point)); }

// A letter that has a case.
bool IsCased(char32_t point) {
  constexpr char32_t kFeminine = 0xAA, kMasculine = 0xBA;
  if (point == kFeminine || point == kMasculine) return false;
  if (LowerCasePoint(point) != point || UpperCasePoint(point) != point) return true;
  const auto unit = static_cast<char16_t>(point);
  return point < kBeyond && (IsLowerCase(unit) || IsUpperCase(unit));
}

// What a word is for the final sigma: letters, digits, accents, and between two letters a single sign that
// JoinsLetters.
bool IsOfWord(char32_t point) {
  if (point >= kBeyond) return IsCased(point);
  const auto unit = static_cast<char16_t>(point);
  const bool is_accent = unit >= 0x300 && unit <= 0x36F;
  constexpr char16_t kSoftHyphen = 0xAD;
  return IsAlphabetic(unit) || IsDecimalDigit(unit) || is_accent || unit == kSoftHyphen;
}
bool JoinsLetters(char32_t point) {
  return point == '.' || point == '-' || point == '_' || point == '"' || point == '\'';
}

// Whether a letter with a case stands before (behind) place `at` of the text, in the same word.
bool HasCasedBefore(std::u16string_view text, size_t at) {
  while (at > 0) {
    Point point = PointBefore(text, at);
    if (JoinsLetters(point.value) && at > point.units) {
      at -= point.units;
      point = PointBefore(text, at);
    }
    if (!IsOfWord(point.value)) return false;
    if (IsCased(point.value)) return true;
    at -= point.units;
  }
  return false;
}
bool HasCasedBehind(std::u16string_view text, size_t at) {
  while (at < text.size()) {
    Point point = PointAt(text, at);
    if (JoinsLetters(point.value) && at + point.units < text.size()) {
      at += point.units;
      point = PointAt(text, at);
    }
    if (!IsOfWord(point.value)) return false;
    if (IsCased(point.value)) return true;
    at += point.units;
  }
  return false;
}

}  // namespace

char32_t LowerCasePoint(char32_t point) {
  if (point < kBeyond) return LowerCase(static_cast<char16_t>(point));
  for (const FarRun& run : kFarRuns)
    if (point >= run.first && point <= run.last) return point + run.distance;
  return point;
}

char32_t UpperCasePoint(char32_t point) {
  if (point < kBeyond) return UpperCase(static_cast<char16_t>(point));
  for (const FarRun& run : kFarRuns)
    if (point >= run.first + run.distance && point <= run.last + run.distance) return point - run.distance;
  return point;
}

std::u16string LowerCaseText(std::u16string_view text) {
  std::u16string small;
  small.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Point point = PointAt(text, at);
    if (point.value == kSigma) {
      const bool is_final = HasCasedBefore(text, at) && !HasCasedBehind(text, at + 1);
      small.push_back(is_final ? kFinalSigma : kSmallSigma);
    } else if (point.value == kCapitalIWithDot) {
      small += u"i\u0307";
    } else {
      Append(LowerCasePoint(point.value), &small);
    }
    at += point.units;
  }
  return small;
}

std::u16string UpperCaseText(std::u16string_view text) {
  std::u16string capitals;
  capitals.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Point point = PointAt(text, at);
    if (const Capitals* const several = SeveralCapitals(point.value); several != nullptr)
      capitals += several->text;
    else
      Append(UpperCasePoint(point.value), &capitals);
    at += point.units;
  }
  return capitals;
}

int32_t CompareIgnoringCase(std::u16string_view a, std::u16string_view b) {
  size_t at_a = 0, at_b = 0;
  while (at_a < a.size() && at_b < b.size()) {
    const Point x = PointAt(a, at_a), y = PointAt(b, at_b);
    if (const char32_t of_x = Folded(x.value), of_y = Folded(y.value); of_x != of_y)
      return static_cast<int32_t>(of_x) - static_cast<int32_t>(of_y);
    at_a += x.units;
    at_b += y.units;
  }
  return static_cast<int32_t>(a.size()) - static_cast<int32_t>(b.size());
}

}  // namespace heddle::ops
