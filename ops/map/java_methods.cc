// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_methods.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"
#include "core/text/utf8.h"
#include "ops/map/java_dates.h"
#include "ops/map/porter_stemmer.h"
#include "ops/map/text_measures.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

using Arguments = std::span<const JavaValue>;
using Text = std::u16string;

constexpr JavaType kBoolean = JavaType::kBoolean;
constexpr JavaType kCharacter = JavaType::kCharacter;
constexpr JavaType kInteger = JavaType::kInteger;
constexpr JavaType kLong = JavaType::kLong;
constexpr JavaType kDouble = JavaType::kDouble;
constexpr JavaType kString = JavaType::kString;
constexpr JavaType kStrings = JavaType::kStrings;
constexpr JavaType kDoubles = JavaType::kDoubles;

const Text& TextAt(Arguments arguments, size_t i) { return std::get<Text>(arguments[i]); }
int32_t IntegerAt(Arguments arguments, size_t i) { return std::get<int32_t>(arguments[i]); }
int32_t Found(size_t at) { return at == Text::npos ? -1 : static_cast<int32_t>(at); }
size_t From(Arguments arguments, size_t i) {
  return static_cast<size_t>(std::max(IntegerAt(arguments, i), int32_t{0}));
}

Status Beyond(std::string_view what, int64_t position, const Text& text) {
  return FailedPrecondition("{} {} is beyond the text '{}' of length {}", what, position,
                            ShownInLine(ToUtf8(text), 40), text.size());
}

// ---- Parts of texts.

Result<JavaValue> CharacterAt(Arguments a, const JavaRegex*) {
  const int32_t at = IntegerAt(a, 1);
  if (at < 0 || static_cast<size_t>(at) >= TextAt(a, 0).size()) return Beyond("charAt:", at, TextAt(a, 0));
  return JavaValue(TextAt(a, 0)[static_cast<size_t>(at)]);
}

Result<JavaValue> Part(const Text& text, int32_t begin, int64_t end) {
  if (begin < 0 || begin > end) return Beyond("substring: the beginning", begin, text);
  if (end > static_cast<int64_t>(text.size())) return Beyond("substring: the end", end, text);
  return JavaValue(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}

Result<JavaValue> PartFrom(Arguments a, const JavaRegex*) {
  const auto size = static_cast<int64_t>(TextAt(a, 0).size());
  if (IntegerAt(a, 1) > size) return Beyond("substring: the beginning", IntegerAt(a, 1), TextAt(a, 0));
  return Part(TextAt(a, 0), IntegerAt(a, 1), size);
}

Result<JavaValue> PartBetween(Arguments a, const JavaRegex*) {
  return Part(TextAt(a, 0), IntegerAt(a, 1), IntegerAt(a, 2));
}

Result<JavaValue> Trimmed(Arguments a, const JavaRegex*) {
  const Text& text = TextAt(a, 0);
  size_t begin = 0;
  size_t end = text.size();
  while (begin < end && text[begin] <= ' ') ++begin;
  while (end > begin && text[end - 1] <= ' ') --end;
  return JavaValue(text.substr(begin, end - begin));
}

// ---- Other texts.

template <char16_t (*change)(char16_t)>
Result<JavaValue> Changed(Arguments a, const JavaRegex*) {
  Text text = TextAt(a, 0);
  std::transform(text.begin(), text.end(), text.begin(), change);
  return JavaValue(std::move(text));
}

// The small ß has no capital of one letter.
Result<JavaValue> Capitals(Arguments a, const JavaRegex*) {
  Text text;
  for (const char16_t unit : TextAt(a, 0))
    if (unit == 0xDF)
      text += u"SS";
    else
      text.push_back(UpperCase(unit));
  return JavaValue(std::move(text));
}

Result<JavaValue> ReplaceUnit(Arguments a, const JavaRegex*) {
  Text text = TextAt(a, 0);
  std::replace(text.begin(), text.end(), std::get<char16_t>(a[1]), std::get<char16_t>(a[2]));
  return JavaValue(std::move(text));
}

Result<JavaValue> ReplaceText(Arguments a, const JavaRegex*) {
  const Text& text = TextAt(a, 0);
  const Text& old = TextAt(a, 1);
  const Text& fresh = TextAt(a, 2);
  Text result;
  size_t at = 0;
  if (old.empty()) {  // Stands before, between and behind all characters.
    for (const char16_t unit : text) (result += fresh).push_back(unit);
    return JavaValue(result + fresh);
  }
  for (size_t found; (found = text.find(old, at)) != Text::npos; at = found + old.size())
    result.append(text, at, found - at).append(fresh);
  return JavaValue(result.append(text, at, Text::npos));
}

Result<JavaValue> Repeated(Arguments a, const JavaRegex*) {
  const int32_t count = IntegerAt(a, 1);
  if (count < 0) return FailedPrecondition("repeat: {} is less than 0", count);
  constexpr size_t kMostUnits = size_t{1} << 30;
  if (TextAt(a, 0).size() * static_cast<size_t>(count) > kMostUnits)
    return ResourceExhausted("repeat: {} times a text of length {} is too long", count, TextAt(a, 0).size());
  Text text;
  for (int32_t i = 0; i < count; ++i) text += TextAt(a, 0);
  return JavaValue(std::move(text));
}

// ---- Regular expressions.

Status AppendReplacement(const Text& replacement, const Text& text, const JavaRegex& regex,
                         const JavaRegex::Match& match, Text* out) {
  for (size_t i = 0; i < replacement.size(); ++i) {
    const char16_t unit = replacement[i];
    if (unit != '\\' && unit != '$') {
      out->push_back(unit);
      continue;
    }
    if (++i == replacement.size())
      return FailedPrecondition("nothing stands behind the last {} of a replacement",
                                static_cast<char>(unit));
    if (unit == '\\') {
      out->push_back(replacement[i]);
      continue;
    }
    const int group = replacement[i] - '0';
    if (group < 0 || group > 9 || group > regex.groups())
      return FailedPrecondition("the expression has no group that a replacement could mean with ${}",
                                ToUtf8(Text(1, replacement[i])));
    const size_t begin = match[static_cast<size_t>(2 * group)];
    if (begin == JavaRegex::kNone) continue;
    out->append(text, begin, match[static_cast<size_t>(2 * group + 1)] - begin);
  }
  return OkStatus();
}

template <bool all>
Result<JavaValue> ReplaceMatches(Arguments a, const JavaRegex* regex) {
  const Text& text = TextAt(a, 0);
  Text result;
  size_t copied = 0;
  size_t at = 0;
  while (const std::optional<JavaRegex::Match> match =
             at <= text.size() ? regex->Find(text, at) : std::nullopt) {
    result.append(text, copied, (*match)[0] - copied);
    HEDDLE_RETURN_IF_ERROR(AppendReplacement(TextAt(a, 2), text, *regex, *match, &result));
    copied = (*match)[1];
    at = (*match)[1] > (*match)[0] ? (*match)[1] : (*match)[1] + 1;  // An empty match is not found again.
    if (!all) break;
  }
  return JavaValue(result.append(text, copied, Text::npos));
}

// As String.split: no empty part before an empty match at the beginning; with limit 0 no empty parts at the
// end, with another at most so many parts.
JavaTexts Split(const Text& text, const JavaRegex& regex, int32_t limit) {
  JavaTexts parts;
  size_t begin = 0;
  size_t at = 0;
  while (limit <= 0 || parts.size() + 1 < static_cast<size_t>(limit)) {
    const std::optional<JavaRegex::Match> match = at <= text.size() ? regex.Find(text, at) : std::nullopt;
    if (!match) break;
    const auto [from, to] = std::pair((*match)[0], (*match)[1]);
    at = to > from ? to : to + 1;
    if (begin == 0 && to == 0) continue;
    parts.push_back(text.substr(begin, from - begin));
    begin = to;
  }
  if (begin == 0) return {text};
  parts.push_back(text.substr(begin));
  if (limit == 0)
    while (!parts.empty() && parts.back().empty()) parts.pop_back();
  return parts;
}

Result<JavaValue> SplitAll(Arguments a, const JavaRegex* regex) {
  return JavaValue(Split(TextAt(a, 0), *regex, 0));
}
Result<JavaValue> SplitSome(Arguments a, const JavaRegex* regex) {
  return JavaValue(Split(TextAt(a, 0), *regex, IntegerAt(a, 2)));
}

// ---- Numbers from texts.

template <typename T>
Result<JavaValue> ReadWhole(Arguments a, const JavaRegex*) {
  const Text& text = TextAt(a, 0);
  const bool negative = !text.empty() && text[0] == '-';
  const size_t begin = negative || (!text.empty() && text[0] == '+') ? 1 : 0;
  bool ok = begin < text.size();
  // Below zero there is room for one more.
  T value = 0;
  for (size_t i = begin; ok && i < text.size(); ++i) {
    ok = text[i] >= '0' && text[i] <= '9' && !__builtin_mul_overflow(value, T{10}, &value) &&
         !__builtin_sub_overflow(value, static_cast<T>(text[i] - '0'), &value);
  }
  if (!ok || (!negative && value == std::numeric_limits<T>::min()))
    return FailedPrecondition("'{}' is no {}", ShownInLine(ToUtf8(text), 40),
                              sizeof(T) == 4 ? "integer of 32 bits" : "integer of 64 bits");
  return JavaValue(negative ? value : static_cast<T>(-value));
}

Result<JavaValue> ReadDouble(Arguments a, const JavaRegex*) {
  if (const std::optional<double> value = ParseDouble(ToUtf8(TextAt(a, 0)))) return JavaValue(*value);
  return FailedPrecondition("'{}' is no number", ShownInLine(ToUtf8(TextAt(a, 0)), 40));
}

bool IsTrue(const Text& text) {
  Text small = text;
  std::transform(small.begin(), small.end(), small.begin(), LowerCase);
  return small == u"true";
}

int32_t HashOf(const Text& text) {
  uint32_t hash = 0;
  for (const char16_t unit : text) hash = hash * 31 + unit;
  return static_cast<int32_t>(hash);
}

bool SameIgnoringCase(const Text& a, const Text& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char16_t x, char16_t y) {
    return LowerCase(UpperCase(x)) == LowerCase(UpperCase(y));
  });
}

int32_t Compare(const Text& a, const Text& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i] != b[i]) return a[i] - b[i];
  return static_cast<int32_t>(a.size()) - static_cast<int32_t>(b.size());
}

Result<JavaValue> TextOfFirst(Arguments a, const JavaRegex*) { return JavaValue(TextOf(a[0])); }
Result<JavaValue> First(Arguments a, const JavaRegex*) { return a[0]; }
Result<JavaValue> Stem(Arguments a, const JavaRegex*) { return JavaValue(StemOf(TextAt(a, 0))); }

template <typename T>
T Absolute(T x) {
  if constexpr (std::is_same_v<T, double>)
    return std::fabs(x);
  else
    return x < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)) : x;
}
// As Math.min and Math.max: NaN if one is, and -0.0 below 0.0.
template <typename T>
T Smaller(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}
template <typename T>
T Larger(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  }
  return a > b ? a : b;
}
int64_t Rounded(double x) {
  if (std::isnan(x)) return 0;
  const double whole = std::floor(x);
  const double nearest = x - whole >= 0.5 ? whole + 1 : whole;
  if (nearest >= 0x1p63) return std::numeric_limits<int64_t>::max();
  return nearest <= -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(nearest);
}

// x -> f(x) on arguments of one type.
template <typename T, auto f>
Result<JavaValue> OfOne(Arguments a, const JavaRegex*) {
  return JavaValue(f(std::get<T>(a[0])));
}
template <typename T, auto f>
Result<JavaValue> OfTwo(Arguments a, const JavaRegex*) {
  return JavaValue(f(std::get<T>(a[0]), std::get<T>(a[1])));
}

bool Contains(const Text& text, const Text& part) { return text.find(part) != Text::npos; }
bool StartsWith(const Text& text, const Text& part) { return text.starts_with(part); }
bool EndsWith(const Text& text, const Text& part) { return text.ends_with(part); }
bool Same(const Text& a, const Text& b) { return a == b; }
bool IsEmpty(const Text& text) { return text.empty(); }
int32_t LengthOf(const Text& text) { return static_cast<int32_t>(text.size()); }
int32_t IndexOfText(const Text& text, const Text& part) { return Found(text.find(part)); }
int32_t LastIndexOfText(const Text& text, const Text& part) { return Found(text.rfind(part)); }
Text Joined(const Text& a, const Text& b) { return a + b; }
double Floor(double x) { return std::floor(x); }
double Ceil(double x) { return std::ceil(x); }
double Sqrt(double x) { return std::sqrt(x); }
bool IsDigitUnit(char16_t unit) { return unit >= '0' && unit <= '9'; }
bool IsSpaceUnit(char16_t unit) { return (unit >= '\t' && unit <= '\r') || (unit >= 0x1C && unit <= ' '); }
bool IsUpper(char16_t unit) { return LowerCase(unit) != unit; }
bool IsLower(char16_t unit) {
  return UpperCase(unit) != unit || unit == 0xAA || unit == 0xBA || unit == 0xDF;
}

Result<JavaValue> FindUnit(Arguments a, const JavaRegex*) {
  return JavaValue(Found(TextAt(a, 0).find(std::get<char16_t>(a[1]))));
}
Result<JavaValue> FindTextFrom(Arguments a, const JavaRegex*) {
  return JavaValue(Found(TextAt(a, 0).find(TextAt(a, 1), From(a, 2))));
}
Result<JavaValue> FindLastUnit(Arguments a, const JavaRegex*) {
  return JavaValue(Found(TextAt(a, 0).rfind(std::get<char16_t>(a[1]))));
}
Result<JavaValue> MatchesWhole(Arguments a, const JavaRegex* regex) {
  return JavaValue(regex->MatchesAll(TextAt(a, 0)));
}

// ---- What SystemDS adds for scripts.

Result<JavaValue> SplitRecodeEntry(Arguments a, const JavaRegex*) {
  const size_t at = TextAt(a, 0).rfind(u'\u00B7');
  if (at == Text::npos)
    return FailedPrecondition("splitRecodeEntry: '{}' has no \u00B7 between a token and its code",
                              ShownInLine(ToUtf8(TextAt(a, 0)), 40));
  return JavaValue(JavaTexts{TextAt(a, 0).substr(0, at), TextAt(a, 0).substr(at + 1)});
}
Result<JavaValue> UnitAt(Arguments a, const JavaRegex*) {
  const int64_t at = int64_t{IntegerAt(a, 1)} - 1;
  const bool is_there = at >= 0 && at < static_cast<int64_t>(TextAt(a, 0).size());
  return JavaValue(is_there ? int32_t{TextAt(a, 0)[static_cast<size_t>(at)]} : int32_t{0});
}
Result<JavaValue> NumbersOf(Arguments a, const JavaRegex*) {
  JavaDoubles numbers;
  for (const Text& text : std::get<JavaTexts>(a[0])) {
    const std::optional<double> number = ParseDouble(ToUtf8(text));
    if (!number)
      return FailedPrecondition("convertStringToDoubleArray: '{}' is not a number",
                                ShownInLine(ToUtf8(text), 40));
    numbers.push_back(*number);
  }
  return JavaValue(std::move(numbers));
}
// DoubleStream.sum() loses little: the error of each addition is kept.
Result<JavaValue> SumOf(Arguments a, const JavaRegex*) {
  double sum = 0, lost = 0;
  for (const double number : std::get<JavaDoubles>(a[0])) {
    const double term = number - lost, next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  return JavaValue(sum);
}
Result<JavaValue> Copies(Arguments a, const JavaRegex*) {
  return JavaValue(JavaTexts(std::get<JavaTexts>(a[0]).size(), TextOf(a[1])));
}
// The words of a row, in small letters.
Result<JavaValue> WordsOf(Arguments a, const JavaRegex*) {
  JavaTexts words;
  bool inside = false;
  for (const Text& text : std::get<JavaTexts>(a[0])) {
    inside = false;
    for (const char16_t unit : text) {
      const bool is_space = unit == ' ' || (unit >= '\t' && unit <= '\r');
      if (!is_space && !inside) words.emplace_back();
      if (!is_space) words.back().push_back(LowerCase(unit));
      inside = !is_space;
    }
  }
  if (words.empty()) words.emplace_back();
  return JavaValue(std::move(words));
}
double Jaccard(const Text& a, const Text& b) { return JaccardSimilarity(a, b); }
double ErrorRate(const Text& a, const Text& b) { return WordErrorRate(a, b); }

// Of one name and number of arguments the first whose parameters take them: narrow types stand before wide.
const JavaMethod kMethods[] = {
    {"String", true, "length", {kString}, kInteger, OfOne<Text, LengthOf>},
    {"String", true, "isEmpty", {kString}, kBoolean, OfOne<Text, IsEmpty>},
    {"String", true, "charAt", {kString, kInteger}, kCharacter, CharacterAt},
    {"String", true, "substring", {kString, kInteger}, kString, PartFrom},
    {"String", true, "substring", {kString, kInteger, kInteger}, kString, PartBetween},
    {"String", true, "trim", {kString}, kString, Trimmed},
    {"String", true, "toLowerCase", {kString}, kString, Changed<LowerCase>},
    {"String", true, "toUpperCase", {kString}, kString, Capitals},
    {"String", true, "concat", {kString, kString}, kString, OfTwo<Text, Joined>},
    {"String", true, "repeat", {kString, kInteger}, kString, Repeated},
    {"String", true, "toString", {kString}, kString, First},
    {"String", true, "equals", {kString, kString}, kBoolean, OfTwo<Text, Same>},
    {"String", true, "equalsIgnoreCase", {kString, kString}, kBoolean, OfTwo<Text, SameIgnoringCase>},
    {"String", true, "compareTo", {kString, kString}, kInteger, OfTwo<Text, Compare>},
    {"String", true, "contains", {kString, kString}, kBoolean, OfTwo<Text, Contains>},
    {"String", true, "startsWith", {kString, kString}, kBoolean, OfTwo<Text, StartsWith>},
    {"String", true, "endsWith", {kString, kString}, kBoolean, OfTwo<Text, EndsWith>},
    {"String", true, "indexOf", {kString, kCharacter}, kInteger, FindUnit},
    {"String", true, "indexOf", {kString, kString}, kInteger, OfTwo<Text, IndexOfText>},
    {"String", true, "indexOf", {kString, kString, kInteger}, kInteger, FindTextFrom},
    {"String", true, "lastIndexOf", {kString, kCharacter}, kInteger, FindLastUnit},
    {"String", true, "lastIndexOf", {kString, kString}, kInteger, OfTwo<Text, LastIndexOfText>},
    {"String", true, "replace", {kString, kCharacter, kCharacter}, kString, ReplaceUnit},
    {"String", true, "replace", {kString, kString, kString}, kString, ReplaceText},
    {"String", true, "replaceAll", {kString, kString, kString}, kString, ReplaceMatches<true>, 1},
    {"String", true, "replaceFirst", {kString, kString, kString}, kString, ReplaceMatches<false>, 1},
    {"String", true, "matches", {kString, kString}, kBoolean, MatchesWhole, 1},
    {"String", true, "split", {kString, kString}, kStrings, SplitAll, 1},
    {"String", true, "split", {kString, kString, kInteger}, kStrings, SplitSome, 1},
    {"String", true, "hashCode", {kString}, kInteger, OfOne<Text, HashOf>},
    {"String", false, "valueOf", {kBoolean}, kString, TextOfFirst},
    {"String", false, "valueOf", {kCharacter}, kString, TextOfFirst},
    {"String", false, "valueOf", {kInteger}, kString, TextOfFirst},
    {"String", false, "valueOf", {kLong}, kString, TextOfFirst},
    {"String", false, "valueOf", {kDouble}, kString, TextOfFirst},
    {"String", false, "valueOf", {kString}, kString, TextOfFirst},
    {"Integer", false, "valueOf", {kString}, kInteger, ReadWhole<int32_t>},
    {"Integer", false, "parseInt", {kString}, kInteger, ReadWhole<int32_t>},
    {"Long", false, "valueOf", {kString}, kLong, ReadWhole<int64_t>},
    {"Long", false, "parseLong", {kString}, kLong, ReadWhole<int64_t>},
    {"Double", false, "valueOf", {kString}, kDouble, ReadDouble},
    {"Double", false, "parseDouble", {kString}, kDouble, ReadDouble},
    {"Boolean", false, "valueOf", {kString}, kBoolean, OfOne<Text, IsTrue>},
    {"Boolean", false, "parseBoolean", {kString}, kBoolean, OfOne<Text, IsTrue>},
    {"Character", false, "isDigit", {kCharacter}, kBoolean, OfOne<char16_t, IsDigitUnit>},
    {"Character", false, "isLetter", {kCharacter}, kBoolean, OfOne<char16_t, IsLetter>},
    {"Character", false, "isUpperCase", {kCharacter}, kBoolean, OfOne<char16_t, IsUpper>},
    {"Character", false, "isLowerCase", {kCharacter}, kBoolean, OfOne<char16_t, IsLower>},
    {"Character", false, "isWhitespace", {kCharacter}, kBoolean, OfOne<char16_t, IsSpaceUnit>},
    {"Math", false, "abs", {kInteger}, kInteger, OfOne<int32_t, Absolute<int32_t>>},
    {"Math", false, "abs", {kLong}, kLong, OfOne<int64_t, Absolute<int64_t>>},
    {"Math", false, "abs", {kDouble}, kDouble, OfOne<double, Absolute<double>>},
    {"Math", false, "min", {kInteger, kInteger}, kInteger, OfTwo<int32_t, Smaller<int32_t>>},
    {"Math", false, "min", {kLong, kLong}, kLong, OfTwo<int64_t, Smaller<int64_t>>},
    {"Math", false, "min", {kDouble, kDouble}, kDouble, OfTwo<double, Smaller<double>>},
    {"Math", false, "max", {kInteger, kInteger}, kInteger, OfTwo<int32_t, Larger<int32_t>>},
    {"Math", false, "max", {kLong, kLong}, kLong, OfTwo<int64_t, Larger<int64_t>>},
    {"Math", false, "max", {kDouble, kDouble}, kDouble, OfTwo<double, Larger<double>>},
    {"Math", false, "floor", {kDouble}, kDouble, OfOne<double, Floor>},
    {"Math", false, "ceil", {kDouble}, kDouble, OfOne<double, Ceil>},
    {"Math", false, "sqrt", {kDouble}, kDouble, OfOne<double, Sqrt>},
    {"Math", false, "round", {kDouble}, kLong, OfOne<double, Rounded>},
    {"PorterStemmer", false, "stem", {kString}, kString, Stem},
    {"Arrays", false, "stream", {kDoubles}, kDoubles, First},
    {"DoubleStream", true, "sum", {kDoubles}, kDouble, SumOf},
    {"UtilFunctions", false, "convertStringToDoubleArray", {kStrings}, kDoubles, NumbersOf},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kBoolean}, kStrings, Copies},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kInteger}, kStrings, Copies},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kLong}, kStrings, Copies},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kDouble}, kStrings, Copies},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kString}, kStrings, Copies},
    {"UtilFunctions", false, "splitRecodeEntry", {kString}, kStrings, SplitRecodeEntry},
    {"UtilFunctions", false, "getAsciiAtIdx", {kString, kInteger}, kInteger, UnitAt},
    {"UtilFunctions", false, "jaccardSim", {kString, kString}, kDouble, OfTwo<Text, Jaccard>},
    {"UtilFunctions", false, "cleanAndTokenizeRow", {kStrings}, kStrings, WordsOf},
    {"UtilFunctions", false, "toMillis", {kString}, kLong, MillisecondsOfDate},
    {"UtilFunctions", false, "toMillis", {kString, kString}, kLong, MillisecondsOfDate},
    {"UtilFunctions", false, "dateFormat", {kString, kString}, kString, RewriteDate},
    {"UtilFunctions", false, "dateFormat", {kString, kString, kString}, kString, RewriteDateOfForm},
    {"UtilFunctions", false, "dateFormat", {kLong, kString}, kString, DateOfMilliseconds},
    {"UtilFunctions", false, "isDateColumn", {kString}, kString, IsDate},
    {"UtilFunctions", false, "addTimeToDate", {kString, kInteger, kString}, kString, AddTimeToDate},
    {"UtilFunctions", false, "getDominantDateFormat", {kStrings}, kStrings, DatesOfOneForm},
    {"UtilFunctions", false, "getTimestamp", {kStrings}, kStrings, MillisecondsOfDates},
    {"UtilFunctions", false, "getWordErrorRate", {kString, kString}, kDouble, OfTwo<Text, ErrorRate>},
};

}  // namespace

std::span<const JavaMethod> JavaMethods() { return kMethods; }

const JavaMethod* FindJavaMethod(std::string_view owner, bool on_text, std::string_view name,
                                 std::span<const JavaType> arguments) {
  for (const JavaMethod& method : kMethods) {
    if (method.owner == owner && method.on_text == on_text && method.name == name &&
        std::equal(arguments.begin(), arguments.end(), method.parameters.begin(), method.parameters.end(),
                   Widens))
      return &method;
  }
  return nullptr;
}

}  // namespace heddle::ops
