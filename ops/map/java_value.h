// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The values of the part of Java that map() knows.
namespace heddle::ops {

using JavaTexts = std::vector<std::u16string>;
using JavaDoubles = std::vector<double>;
/// In the order of JavaType.
using JavaValue =
    std::variant<bool, char16_t, int32_t, int64_t, double, std::u16string, JavaTexts, JavaDoubles>;
enum class JavaType : uint8_t { kBoolean, kCharacter, kInteger, kLong, kDouble, kString, kStrings, kDoubles };

/// What stands in a String[] where Java has null: no text has this unit. It becomes a missing cell.
constexpr std::u16string_view kJavaNull = u"\uFFFF";

std::string_view Name(JavaType type);  ///< As Java spells it: "boolean", "String[]", "double[]".
inline JavaType TypeOf(const JavaValue& value) { return static_cast<JavaType>(value.index()); }
inline bool IsNumber(JavaType type) { return type >= JavaType::kCharacter && type <= JavaType::kDouble; }
/// True if Java takes a value of type `from` where one of type `to` is needed, without a cast.
inline bool Widens(JavaType from, JavaType to) {
  return from == to || (IsNumber(from) && IsNumber(to) && from < to);
}
/// The value as one of a type that it widens to.
JavaValue Widened(JavaValue value, JavaType to);

/// String.valueOf(value); of an array its elements in brackets, as Arrays.toString writes them.
std::u16string TextOf(const JavaValue& value);

}  // namespace heddle::ops
