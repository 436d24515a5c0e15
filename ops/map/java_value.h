// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The values of the part of Java that map() knows.
namespace heddle::ops {

struct JavaNull {
  bool operator==(const JavaNull&) const = default;
};
using JavaTexts = std::vector<std::u16string>;
using JavaDoubles = std::vector<double>;
using JavaIntegers = std::vector<int32_t>;
/// char[]
struct JavaCharacters {
  std::u16string units;
  bool operator==(const JavaCharacters&) const = default;
};
/// StringBuilder. An expression cannot name one twice, so it is a value like all others.
struct JavaBuilder {
  std::u16string text;
  bool operator==(const JavaBuilder&) const = default;
};
/// List<String>
struct JavaTextList {
  JavaTexts items;
  bool operator==(const JavaTextList&) const = default;
};
// Streams hold the elements that the stages before have let through.
struct JavaIntegerStream {
  JavaIntegers items;
  bool operator==(const JavaIntegerStream&) const = default;
};
struct JavaDoubleStream {
  JavaDoubles items;
  bool operator==(const JavaDoubleStream&) const = default;
};
struct JavaCharacterStream {  ///< Stream<Character>
  std::u16string items;
  bool operator==(const JavaCharacterStream&) const = default;
};
struct JavaTextStream {  ///< Stream<String>
  JavaTexts items;
  bool operator==(const JavaTextStream&) const = default;
};
struct JavaOptionalInteger {
  std::optional<int32_t> value;
  bool operator==(const JavaOptionalInteger&) const = default;
};
struct JavaOptionalDouble {
  std::optional<double> value;
  bool operator==(const JavaOptionalDouble&) const = default;
};
struct JavaOptionalText {
  std::optional<std::u16string> value;
  bool operator==(const JavaOptionalText&) const = default;
};
/// Collectors.joining(separator, prefix, suffix)
struct JavaJoining {
  std::u16string separator, prefix, suffix;
  bool operator==(const JavaJoining&) const = default;
};
/// java.time.LocalDate: a day of the Gregorian calendar, also of the years before it was made.
struct JavaDate {
  int32_t year = 1970;
  int32_t month = 1, day = 1;
  bool operator==(const JavaDate&) const = default;
};
struct JavaPeriod {
  int32_t years = 0, months = 0, days = 0;
  bool operator==(const JavaPeriod&) const = default;
};
struct JavaDayOfWeek {
  int32_t number = 1;  ///< Monday is 1.
  bool operator==(const JavaDayOfWeek&) const = default;
};
struct JavaMonth {
  int32_t number = 1;
  bool operator==(const JavaMonth&) const = default;
};
enum class JavaTimeUnit : uint8_t { kDays, kWeeks, kMonths, kYears, kDecades, kCenturies };
/// The locales that write as no language does: ROOT, US and ENGLISH.
struct JavaLocale {
  bool operator==(const JavaLocale&) const = default;
};

/// In the order of JavaType.
using JavaValue = std::variant<bool, char16_t, int32_t, int64_t, double, std::u16string, JavaTexts,
                               JavaDoubles, JavaNull, JavaIntegers, JavaCharacters, JavaBuilder, JavaTextList,
                               JavaIntegerStream, JavaDoubleStream, JavaCharacterStream, JavaTextStream,
                               JavaOptionalInteger, JavaOptionalDouble, JavaOptionalText, JavaJoining,
                               JavaDate, JavaPeriod, JavaDayOfWeek, JavaMonth, JavaTimeUnit, JavaLocale>;
enum class JavaType : uint8_t {
  kBoolean,
  kCharacter,
  kInteger,
  kLong,
  kDouble,
  kString,
  kStrings,
  kDoubles,
  kNull,
  kIntegers,
  kCharacters,
  kBuilder,
  kTextList,
  kIntegerStream,
  kDoubleStream,
  kCharacterStream,
  kTextStream,
  kOptionalInteger,
  kOptionalDouble,
  kOptionalText,
  kJoining,
  kDate,
  kPeriod,
  kDayOfWeek,
  kMonth,
  kTimeUnit,
  kLocale,
  // Of parameters of methods only:
  kAny,       ///< Object: any value, and null.
  kFunction,  ///< A lambda expression or a reference to a method.
};

/// What stands in a String[] where Java has null: no text has this unit. It becomes a missing cell.
constexpr std::u16string_view kJavaNull = u"\uFFFF";

/// As Java spells it: "boolean", "String[]", "LocalDate".
std::string_view Name(JavaType type);
inline JavaType TypeOf(const JavaValue& value) { return static_cast<JavaType>(value.index()); }
inline bool IsNumber(JavaType type) { return type >= JavaType::kCharacter && type <= JavaType::kDouble; }
inline bool IsPrimitive(JavaType type) { return type <= JavaType::kDouble; }
inline bool IsWhole(JavaType type) { return type >= JavaType::kCharacter && type <= JavaType::kLong; }
/// True if Java takes a value of type `from` where one of type `to` is needed, without a cast.
inline bool Widens(JavaType from, JavaType to) {
  return from == to || (IsNumber(from) && IsNumber(to) && from < to) || to == JavaType::kAny ||
         (from == JavaType::kNull && !IsPrimitive(to));
}
/// True of what String.valueOf() writes without the number of an object: no stream and nothing of its stages.
bool HasText(JavaType type);
/// The value as one of a type that it widens to; null stays null.
JavaValue Widened(JavaValue value, JavaType to);
/// (to) value, between numbers: as Java narrows them.
JavaValue Cast(const JavaValue& value, JavaType to);

/// String.valueOf(value); of an array its elements in brackets, as Arrays.toString writes them.
std::u16string TextOf(const JavaValue& value);

}  // namespace heddle::ops
