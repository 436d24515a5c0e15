// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_value.h"

#include <array>

#include "core/status.h"
#include "core/text/double_text.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

int64_t IntegerOf(const JavaValue& value) {
  switch (TypeOf(value)) {
    case JavaType::kCharacter: return std::get<char16_t>(value);
    case JavaType::kInteger: return std::get<int32_t>(value);
    case JavaType::kLong: return std::get<int64_t>(value);
    case JavaType::kBoolean:
    case JavaType::kDouble:
    case JavaType::kString:
    case JavaType::kStrings:
    case JavaType::kDoubles: break;
  }
  HEDDLE_CHECK(false, "integers widen");
}

}  // namespace

std::string_view Name(JavaType type) {
  constexpr std::array<std::string_view, 8> kNames = {"boolean", "char",   "int",      "long",
                                                      "double",  "String", "String[]", "double[]"};
  return kNames[static_cast<size_t>(type)];
}

JavaValue Widened(JavaValue value, JavaType to) {
  if (TypeOf(value) == to) return value;
  const int64_t integer = IntegerOf(value);
  switch (to) {
    case JavaType::kInteger: return static_cast<int32_t>(integer);
    case JavaType::kLong: return integer;
    case JavaType::kDouble: return static_cast<double>(integer);
    case JavaType::kBoolean:
    case JavaType::kCharacter:
    case JavaType::kString:
    case JavaType::kStrings:
    case JavaType::kDoubles: break;
  }
  HEDDLE_CHECK(false, "values widen to numbers");
}

std::u16string TextOf(const JavaValue& value) {
  switch (TypeOf(value)) {
    case JavaType::kBoolean: return std::get<bool>(value) ? u"true" : u"false";
    case JavaType::kCharacter: return std::u16string(1, std::get<char16_t>(value));
    case JavaType::kInteger:
    case JavaType::kLong: return ToUtf16(std::to_string(IntegerOf(value)));
    case JavaType::kDouble: return ToUtf16(FormatDouble(std::get<double>(value)));
    case JavaType::kString: return std::get<std::u16string>(value);
    case JavaType::kStrings: {
      std::u16string text = u"[";
      for (const std::u16string& element : std::get<JavaTexts>(value))
        text += (text.size() > 1 ? u", " : u"") + element;
      return text + u"]";
    }
    case JavaType::kDoubles: {
      std::u16string text = u"[";
      for (const double element : std::get<JavaDoubles>(value))
        text += (text.size() > 1 ? u", " : u"") + ToUtf16(FormatDouble(element));
      return text + u"]";
    }
  }
  HEDDLE_CHECK(false, "every value has a text");
}

}  // namespace heddle::ops
