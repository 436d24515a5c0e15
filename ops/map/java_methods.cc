// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_methods.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/utf8.h"
#include "ops/map/java_method_table.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

constexpr size_t kMostShown = 40;  // Bytes of a text in an error.

const std::vector<std::span<const JavaMethod>>& Tables() {
  static const auto* const tables = new std::vector<std::span<const JavaMethod>>{
      JavaTextMethods(),   JavaBuilderMethods(),   JavaNumberMethods(), JavaCharacterMethods(),
      JavaStreamMethods(), JavaLocalDateMethods(), SystemdsMethods()};
  return *tables;
}

const JavaConstant kConstants[] = {
    {"Integer", "MAX_VALUE", std::numeric_limits<int32_t>::max()},
    {"Integer", "MIN_VALUE", std::numeric_limits<int32_t>::min()},
    {"Long", "MAX_VALUE", std::numeric_limits<int64_t>::max()},
    {"Long", "MIN_VALUE", std::numeric_limits<int64_t>::min()},
    {"Double", "MAX_VALUE", std::numeric_limits<double>::max()},
    {"Double", "MIN_VALUE", std::numeric_limits<double>::denorm_min()},
    {"Double", "MIN_NORMAL", std::numeric_limits<double>::min()},
    {"Double", "NaN", std::numeric_limits<double>::quiet_NaN()},
    {"Double", "POSITIVE_INFINITY", std::numeric_limits<double>::infinity()},
    {"Double", "NEGATIVE_INFINITY", -std::numeric_limits<double>::infinity()},
    {"Character", "MIN_VALUE", char16_t{0}},
    {"Character", "MAX_VALUE", char16_t{0xFFFF}},
    {"Character", "MIN_RADIX", int32_t{2}},
    {"Character", "MAX_RADIX", int32_t{36}},
    {"Character", "MIN_CODE_POINT", int32_t{0}},
    {"Character", "MAX_CODE_POINT", int32_t{0x10FFFF}},
    {"Math", "PI", M_PI},
    {"Math", "E", M_E},
    {"Locale", "ROOT", JavaLocale()},
    {"Locale", "US", JavaLocale()},
    {"Locale", "ENGLISH", JavaLocale()},
    {"ChronoUnit", "DAYS", JavaTimeUnit::kDays},
    {"ChronoUnit", "WEEKS", JavaTimeUnit::kWeeks},
    {"ChronoUnit", "MONTHS", JavaTimeUnit::kMonths},
    {"ChronoUnit", "YEARS", JavaTimeUnit::kYears},
    {"ChronoUnit", "DECADES", JavaTimeUnit::kDecades},
    {"ChronoUnit", "CENTURIES", JavaTimeUnit::kCenturies},
    {"DayOfWeek", "MONDAY", JavaDayOfWeek{1}},
    {"DayOfWeek", "TUESDAY", JavaDayOfWeek{2}},
    {"DayOfWeek", "WEDNESDAY", JavaDayOfWeek{3}},
    {"DayOfWeek", "THURSDAY", JavaDayOfWeek{4}},
    {"DayOfWeek", "FRIDAY", JavaDayOfWeek{5}},
    {"DayOfWeek", "SATURDAY", JavaDayOfWeek{6}},
    {"DayOfWeek", "SUNDAY", JavaDayOfWeek{7}},
    {"Month", "JANUARY", JavaMonth{1}},
    {"Month", "FEBRUARY", JavaMonth{2}},
    {"Month", "MARCH", JavaMonth{3}},
    {"Month", "APRIL", JavaMonth{4}},
    {"Month", "MAY", JavaMonth{5}},
    {"Month", "JUNE", JavaMonth{6}},
    {"Month", "JULY", JavaMonth{7}},
    {"Month", "AUGUST", JavaMonth{8}},
    {"Month", "SEPTEMBER", JavaMonth{9}},
    {"Month", "OCTOBER", JavaMonth{10}},
    {"Month", "NOVEMBER", JavaMonth{11}},
    {"Month", "DECEMBER", JavaMonth{12}},
};

constexpr std::pair<std::string_view, std::string_view> kPackages[] = {{"LocalDate", "java.time"},
                                                                       {"Period", "java.time"},
                                                                       {"DayOfWeek", "java.time"},
                                                                       {"Month", "java.time"},
                                                                       {"ChronoUnit", "java.time.temporal"},
                                                                       {"Collectors", "java.util.stream"},
                                                                       {"Arrays", "java.util"},
                                                                       {"List", "java.util"},
                                                                       {"Locale", "java.util"}};

bool Takes(const JavaMethod& method, std::span<const JavaType> arguments,
           std::optional<JavaType> function_result) {
  const size_t fixed = method.parameters.size() - (method.repeats_last ? 1 : 0);
  if (arguments.size() < fixed || (!method.repeats_last && arguments.size() > fixed)) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const JavaType wanted = method.parameters[std::min(i, method.parameters.size() - 1)];
    if (wanted == JavaType::kFunction || arguments[i] == JavaType::kFunction) {
      if (wanted != arguments[i] || !Widens(*function_result, method.function->gives)) return false;
    } else if (!Widens(arguments[i], wanted)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string Shown(std::u16string_view text) { return ShownInLine(ToUtf8(text), kMostShown); }

const JavaMethod* FindJavaMethod(std::string_view owner, bool on_value, std::string_view name,
                                 std::span<const JavaType> arguments,
                                 std::optional<JavaType> function_result) {
  for (const std::span<const JavaMethod> table : Tables())
    for (const JavaMethod& method : table)
      if (method.owner == owner && method.on_value == on_value && method.name == name &&
          Takes(method, arguments, function_result))
        return &method;
  return nullptr;
}

const JavaSignature* FindJavaSignature(std::string_view owner, bool on_value, std::string_view name,
                                       size_t index) {
  for (const std::span<const JavaMethod> table : Tables())
    for (const JavaMethod& method : table)
      if (method.owner == owner && method.on_value == on_value && method.name == name && method.function &&
          index < method.parameters.size() && method.parameters[index] == JavaType::kFunction)
        return &*method.function;
  return nullptr;
}

const JavaConstant* FindJavaConstant(std::string_view owner, std::string_view name) {
  for (const JavaConstant& constant : kConstants)
    if (constant.owner == owner && constant.name == name) return &constant;
  return nullptr;
}

std::string_view PackageOf(std::string_view class_name) {
  for (const auto& [name, package] : kPackages)
    if (name == class_name) return package;
  return {};
}

}  // namespace heddle::ops
