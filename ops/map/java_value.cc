// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_value.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/status.h"
#include "core/text/double_text.h"
#include "ops/map/java_local_date.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

int64_t IntegerOf(const JavaValue& value) {
  if (const auto* const character = std::get_if<char16_t>(&value)) return *character;
  if (const auto* const integer = std::get_if<int32_t>(&value)) return *integer;
  if (const auto* const whole = std::get_if<int64_t>(&value)) return *whole;
  HEDDLE_CHECK(false, "integers widen");
}

// (T) x of a double: the nearest number there is, 0 of NaN.
template <typename T>
T Saturated(double x) {
  if (std::isnan(x)) return 0;
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(x);
}

template <typename Items>
std::u16string InBrackets(const Items& items) {
  std::u16string text = u"[";
  for (const auto& item : items) {
    if (text.size() > 1) text += u", ";
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, std::u16string>)
      text += item == kJavaNull ? std::u16string(u"null") : item;
    else
      text += TextOf(JavaValue(item));
  }
  return text + u"]";
}

template <typename T>
std::u16string TextOfOptional(std::u16string_view name, const std::optional<T>& value) {
  if (!value) return std::u16string(name) + u".empty";
  return std::u16string(name) + u"[" + TextOf(JavaValue(*value)) + u"]";
}

struct Writer {
  std::u16string operator()(bool value) const { return value ? u"true" : u"false"; }
  std::u16string operator()(char16_t value) const { return std::u16string(1, value); }
  std::u16string operator()(int32_t value) const { return ToUtf16(std::to_string(value)); }
  std::u16string operator()(int64_t value) const { return ToUtf16(std::to_string(value)); }
  std::u16string operator()(double value) const { return ToUtf16(FormatDouble(value)); }
  std::u16string operator()(const std::u16string& value) const { return value; }
  std::u16string operator()(const JavaTexts& value) const { return InBrackets(value); }
  std::u16string operator()(const JavaDoubles& value) const { return InBrackets(value); }
  std::u16string operator()(JavaNull) const { return u"null"; }
  std::u16string operator()(const JavaIntegers& value) const { return InBrackets(value); }
  std::u16string operator()(const JavaCharacters& value) const { return value.units; }
  std::u16string operator()(const JavaBuilder& value) const { return value.text; }
  std::u16string operator()(const JavaTextList& value) const { return InBrackets(value.items); }
  std::u16string operator()(const JavaOptionalInteger& value) const {
    return TextOfOptional(u"OptionalInt", value.value);
  }
  std::u16string operator()(const JavaOptionalDouble& value) const {
    return TextOfOptional(u"OptionalDouble", value.value);
  }
  std::u16string operator()(const JavaOptionalText& value) const {
    return TextOfOptional(u"Optional", value.value);
  }
  std::u16string operator()(const JavaDate& value) const { return TextOfDate(value); }
  std::u16string operator()(const JavaPeriod& value) const { return TextOfPeriod(value); }
  std::u16string operator()(JavaDayOfWeek value) const { return NameOf(value); }
  std::u16string operator()(JavaMonth value) const { return NameOf(value); }
  std::u16string operator()(JavaTimeUnit value) const { return NameOf(value); }
  std::u16string operator()(const JavaIntegerStream&) const { return NoText(); }
  std::u16string operator()(const JavaDoubleStream&) const { return NoText(); }
  std::u16string operator()(const JavaCharacterStream&) const { return NoText(); }
  std::u16string operator()(const JavaTextStream&) const { return NoText(); }
  std::u16string operator()(const JavaJoining&) const { return NoText(); }
  std::u16string operator()(JavaLocale) const { return NoText(); }

 private:
  static std::u16string NoText() { HEDDLE_CHECK(false, "the parser refuses texts of what has none"); }
};

}  // namespace

std::string_view Name(JavaType type) {
  constexpr std::array<std::string_view, 29> kNames = {
      "boolean",        "char",       "int",          "long",       "double",  "String",
      "String[]",       "double[]",   "null",         "int[]",      "char[]",  "StringBuilder",
      "List",           "IntStream",  "DoubleStream", "CharStream", "Stream",  "OptionalInt",
      "OptionalDouble", "Optional",   "Collector",    "LocalDate",  "Period",  "DayOfWeek",
      "Month",          "ChronoUnit", "Locale",       "Object",     "function"};
  return kNames[static_cast<size_t>(type)];
}

bool HasText(JavaType type) {
  switch (type) {
    case JavaType::kIntegerStream:
    case JavaType::kDoubleStream:
    case JavaType::kCharacterStream:
    case JavaType::kTextStream:
    case JavaType::kJoining:
    case JavaType::kLocale:
    case JavaType::kFunction: return false;
    default: return true;
  }
}

JavaValue Widened(JavaValue value, JavaType to) {
  if (TypeOf(value) == to || !IsPrimitive(to) || TypeOf(value) == JavaType::kNull) return value;
  return Cast(value, to);
}

JavaValue Cast(const JavaValue& value, JavaType to) {
  if (const auto* const x = std::get_if<double>(&value)) {
    switch (to) {
      case JavaType::kDouble: return *x;
      case JavaType::kLong: return Saturated<int64_t>(*x);
      case JavaType::kInteger: return Saturated<int32_t>(*x);
      case JavaType::kCharacter: return static_cast<char16_t>(Saturated<int32_t>(*x));
      default: break;
    }
    HEDDLE_CHECK(false, "numbers become numbers");
  }
  const int64_t integer = IntegerOf(value);
  switch (to) {
    case JavaType::kCharacter: return static_cast<char16_t>(integer);
    case JavaType::kInteger: return static_cast<int32_t>(integer);
    case JavaType::kLong: return integer;
    case JavaType::kDouble: return static_cast<double>(integer);
    default: break;
  }
  HEDDLE_CHECK(false, "numbers become numbers");
}

std::u16string TextOf(const JavaValue& value) { return std::visit(Writer{}, value); }

}  // namespace heddle::ops
