// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_method_table.h"
#include "ops/text/java_text.h"

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

// f of the unit.
template <auto f>
Result<JavaValue> OfUnit(const JavaCall& a) {
  HEDDLE_ASSIGN_OR_RETURN(const char16_t unit, UnitOf(a));
  return JavaValue(f(unit));
}
// The other case of a char is a char, of an int an int.
template <auto f>
Result<JavaValue> OtherCase(const JavaCall& a) {
  HEDDLE_ASSIGN_OR_RETURN(const char16_t unit, UnitOf(a));
  if (TypeOf(a[0]) == kCharacter) return JavaValue(f(unit));
  return JavaValue(int32_t{f(unit)});
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
  Add("isSpaceChar", kBoolean, OfUnit<IsSpaceCharacter>, &table);
  Add("getNumericValue", kInteger, OfUnit<NumericValue>, &table);
  Add("toString", kString, OfUnit<TextOfUnit>, &table);
  const JavaMethod methods[] = {
      {"Character", false, "isAlphabetic", {kInteger}, kBoolean, OfUnit<IsAlphabetic>},
      {"Character", false, "toUpperCase", {kCharacter}, kCharacter, OtherCase<UpperCase>},
      {"Character", false, "toUpperCase", {kInteger}, kInteger, OtherCase<UpperCase>},
      {"Character", false, "toLowerCase", {kCharacter}, kCharacter, OtherCase<LowerCase>},
      {"Character", false, "toLowerCase", {kInteger}, kInteger, OtherCase<LowerCase>},
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
