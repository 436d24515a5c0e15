// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_method_table.h"
#include "ops/text/java_text.h"
#include "ops/text/letter_case.h"

// The methods of Character, of a char and of an int, which is a code point.
namespace heddle::ops {
namespace {

using enum JavaType;

constexpr int32_t kLeastRadix = 2, kMostRadix = 36;

// The unit of a char or of a code point. The tables of what units are end at U+FFFF.
Result<char16_t> UnitOf(const JavaCall& a) {
  if (const auto* const unit = std::get_if<char16_t>(&a[0])) return *unit;
  const int32_t point = a.Integer(0);
  if (point < 0 || point > 0xFFFF)
    return FailedPrecondition("map() knows the characters from 0 to 65535, and {} is none of them", point);
  return static_cast<char16_t>(point);
}

constexpr int32_t kLastPoint = 0x10FFFF;
bool IsCodePoint(int32_t point) { return point >= 0 && point <= kLastPoint; }
bool IsFarPoint(int32_t point) { return point > 0xFFFF && point <= kLastPoint; }
bool IsNearPoint(int32_t point) { return point >= 0 && point <= 0xFFFF; }
bool IsHighHalf(char16_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowHalf(char16_t unit) { return unit >= 0xDC00 && unit < 0xE000; }
bool IsHalf(char16_t unit) { return IsHighHalf(unit) || IsLowHalf(unit); }
bool ArePair(char16_t high, char16_t low) { return IsHighHalf(high) && IsLowHalf(low); }
// As Java computes them, of any numbers.
char16_t HighHalf(int32_t point) {
  return static_cast<char16_t>((static_cast<uint32_t>(point) >> 10) + (0xD800 - (0x10000 >> 10)));
}
char16_t LowHalf(int32_t point) {
  return static_cast<char16_t>((static_cast<uint32_t>(point) & 0x3FF) + 0xDC00);
}
int32_t PointOfPair(char16_t high, char16_t low) {
  return (int32_t{high} << 10) + low + (0x10000 - (0xD800 << 10) - 0xDC00);
}
int32_t UnitsOf(int32_t point) { return point > 0xFFFF ? 2 : 1; }
char16_t BytesReversed(char16_t unit) { return static_cast<char16_t>(unit << 8 | unit >> 8); }

Result<JavaValue> UnitsOfPoint(const JavaCall& a) {
  const int32_t point = a.Integer(0);
  if (!IsCodePoint(point)) return FailedPrecondition("{} is no code point", point);
  if (IsNearPoint(point)) return JavaValue(JavaCharacters{JavaText(1, static_cast<char16_t>(point))});
  return JavaValue(JavaCharacters{{HighHalf(point), LowHalf(point)}});
}

bool IsControl(char16_t unit) { return unit <= 0x1F || (unit >= 0x7F && unit <= 0x9F); }

// Letters of two with a capital first, and capitals of Greek with a small iota.
bool IsTitle(char32_t point) {
  return point == 0x1C5 || point == 0x1C8 || point == 0x1CB || point == 0x1F2 ||
         (point >= 0x1F88 && point <= 0x1FAF && (point & 8) != 0) || point == 0x1FBC || point == 0x1FCC ||
         point == 0x1FFC;
}
bool IsTitleUnit(char16_t unit) { return IsTitle(unit); }
char32_t TitlePoint(char32_t point) {
  if (IsTitle(point)) return point;
  if (point >= 0x1C4 && point <= 0x1CC) return 0x1C5 + (point - 0x1C4) / 3 * 3;
  if (point >= 0x1F1 && point <= 0x1F3) return 0x1F2;
  const bool is_georgian = (point >= 0x10D0 && point <= 0x10FA) || (point >= 0x10FD && point <= 0x10FF);
  return is_georgian ? point : UpperCasePoint(point);
}

// f of the unit.
template <auto f>
Result<JavaValue> OfUnit(const JavaCall& a) {
  HEDDLE_ASSIGN_OR_RETURN(const char16_t unit, UnitOf(a));
  return JavaValue(f(unit));
}
// The other case of a char is a char, of an int, any code point, an int.
template <auto f>
Result<JavaValue> OtherCase(const JavaCall& a) {
  if (const auto* const unit = std::get_if<char16_t>(&a[0]))
    return JavaValue(static_cast<char16_t>(f(char32_t{*unit})));
  const int32_t point = a.Integer(0);
  return JavaValue(IsCodePoint(point) ? static_cast<int32_t>(f(static_cast<char32_t>(point))) : point);
}

bool IsLetterOrDigit(char16_t unit) { return IsLetter(unit) || IsDecimalDigit(unit); }
JavaText TextOfUnit(char16_t unit) { return JavaText(1, unit); }
int32_t HashOf(char16_t unit) { return unit; }
int32_t Difference(char16_t a, char16_t b) { return int32_t{a} - int32_t{b}; }

Result<JavaValue> DigitOf(const JavaCall& a) {
  HEDDLE_ASSIGN_OR_RETURN(const char16_t unit, UnitOf(a));
  const int32_t radix = a.Integer(1);
  const bool is_latin = (unit >= 'A' && unit <= 'Z') || (unit >= 'a' && unit <= 'z') ||
                        (unit >= 0xFF21 && unit <= 0xFF3A) || (unit >= 0xFF41 && unit <= 0xFF5A);
  const bool may_be = radix >= kLeastRadix && radix <= kMostRadix && (is_latin || IsDecimalDigit(unit));
  return JavaValue(may_be && NumericValue(unit) < radix ? NumericValue(unit) : int32_t{-1});
}
char16_t ForDigit(int32_t digit, int32_t radix) {
  if (radix < kLeastRadix || radix > kMostRadix || digit < 0 || digit >= radix) return u'\0';
  return static_cast<char16_t>(digit < 10 ? u'0' + digit : u'a' + digit - 10);
}

// A test of chars and of ints.
void Add(std::string_view name, JavaType result, Result<JavaValue> (*run)(const JavaCall&),
         std::vector<JavaMethod>* table) {
  table->push_back({"Character", false, name, {kCharacter}, result, run});
  table->push_back({"Character", false, name, {kInteger}, result, run});
}

std::vector<JavaMethod> MakeTable() {
  std::vector<JavaMethod> table;
  Add("isDigit", kBoolean, OfUnit<IsDecimalDigit>, &table);
  Add("isLetter", kBoolean, OfUnit<IsLetter>, &table);
  Add("isLetterOrDigit", kBoolean, OfUnit<IsLetterOrDigit>, &table);
  Add("isUpperCase", kBoolean, OfUnit<IsUpperCase>, &table);
  Add("isLowerCase", kBoolean, OfUnit<IsLowerCase>, &table);
  Add("isWhitespace", kBoolean, OfUnit<IsWhitespace>, &table);
  Add("isTitleCase", kBoolean, OfUnit<IsTitleUnit>, &table);
  Add("isISOControl", kBoolean, OfUnit<IsControl>, &table);
  Add("isSpaceChar", kBoolean, OfUnit<IsSpaceCharacter>, &table);
  Add("getNumericValue", kInteger, OfUnit<NumericValue>, &table);
  Add("toString", kString, OfUnit<TextOfUnit>, &table);
  const JavaMethod methods[] = {
      {"Character", false, "isAlphabetic", {kInteger}, kBoolean, OfUnit<IsAlphabetic>},
      {"Character", false, "toUpperCase", {kCharacter}, kCharacter, OtherCase<UpperCasePoint>},
      {"Character", false, "toUpperCase", {kInteger}, kInteger, OtherCase<UpperCasePoint>},
      {"Character", false, "toLowerCase", {kCharacter}, kCharacter, OtherCase<LowerCasePoint>},
      {"Character", false, "toLowerCase", {kInteger}, kInteger, OtherCase<LowerCasePoint>},
      {"Character", false, "toTitleCase", {kCharacter}, kCharacter, OtherCase<TitlePoint>},
      {"Character", false, "toTitleCase", {kInteger}, kInteger, OtherCase<TitlePoint>},
      {"Character", false, "isHighSurrogate", {kCharacter}, kBoolean, OfOne<char16_t, IsHighHalf>},
      {"Character", false, "isLowSurrogate", {kCharacter}, kBoolean, OfOne<char16_t, IsLowHalf>},
      {"Character", false, "isSurrogate", {kCharacter}, kBoolean, OfOne<char16_t, IsHalf>},
      {"Character", false, "isSurrogatePair", {kCharacter, kCharacter}, kBoolean, OfTwo<char16_t, ArePair>},
      {"Character", false, "isValidCodePoint", {kInteger}, kBoolean, OfOne<int32_t, IsCodePoint>},
      {"Character", false, "isBmpCodePoint", {kInteger}, kBoolean, OfOne<int32_t, IsNearPoint>},
      {"Character", false, "isSupplementaryCodePoint", {kInteger}, kBoolean, OfOne<int32_t, IsFarPoint>},
      {"Character", false, "charCount", {kInteger}, kInteger, OfOne<int32_t, UnitsOf>},
      {"Character", false, "toChars", {kInteger}, kCharacters, UnitsOfPoint},
      {"Character", false, "toCodePoint", {kCharacter, kCharacter}, kInteger, OfTwo<char16_t, PointOfPair>},
      {"Character", false, "highSurrogate", {kInteger}, kCharacter, OfOne<int32_t, HighHalf>},
      {"Character", false, "lowSurrogate", {kInteger}, kCharacter, OfOne<int32_t, LowHalf>},
      {"Character", false, "reverseBytes", {kCharacter}, kCharacter, OfOne<char16_t, BytesReversed>},
      {"Character", false, "digit", {kCharacter, kInteger}, kInteger, DigitOf},
      {"Character", false, "digit", {kInteger, kInteger}, kInteger, DigitOf},
      {"Character", false, "forDigit", {kInteger, kInteger}, kCharacter, OfTwo<int32_t, ForDigit>},
      {"Character", false, "compare", {kCharacter, kCharacter}, kInteger, OfTwo<char16_t, Difference>},
      {"Character", false, "hashCode", {kCharacter}, kInteger, OfOne<char16_t, HashOf>},
      Boxed({"Character", false, "valueOf", {kCharacter}, kCharacter, FirstOf}),
      {"Character", true, "charValue", {kCharacter}, kCharacter, FirstOf},
      {"Character", true, "toString", {kCharacter}, kString, TextOfFirst},
      {"Character", true, "equals", {kCharacter, kAny}, kBoolean, AreEqual},
      {"Character", true, "compareTo", {kCharacter, kCharacter}, kInteger, OfTwo<char16_t, Difference>},
      {"Character", true, "hashCode", {kCharacter}, kInteger, OfOne<char16_t, HashOf>},
  };
  table.insert(table.end(), std::begin(methods), std::end(methods));
  return table;
}

}  // namespace

std::span<const JavaMethod> JavaCharacterMethods() {
  static const auto* const table = new std::vector<JavaMethod>(MakeTable());
  return *table;
}

}  // namespace heddle::ops
