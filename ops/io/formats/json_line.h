// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::ops {

/// A value in a line of JSON.
struct JsonValue {
  bool is_null = false;
  bool is_text = false;
  /// Of a text its characters, without escapes; of all else what stands in the line. Valid until the next
  /// value is taken.
  std::string_view text;
};

/// One line that is an object or an array, value by value. What is inside of a value stays as it stands.
/// Besides JSON, NaN, Infinity and -Infinity are taken for numbers, as Python writes them.
class JsonLine {
 public:
  explicit JsonLine(std::string_view line) : line_(line) {}

  /// '{' or '[', which begins the line; 0 where it is neither.
  char Begin();
  /// The next value, of an object behind its name, which stays valid as long as this object. False at the end
  /// of the line and at a fault.
  bool Next(std::string_view* name, JsonValue* value);

  /// What is wrong; "" where nothing is.
  std::string_view fault() const { return fault_; }
  /// Where: the number of the character of the line, counted in bytes from 1.
  int64_t place() const { return static_cast<int64_t>(at_) + 1; }

 private:
  bool Fail(std::string_view fault) {
    fault_ = fault;
    return false;
  }
  char Peek();
  bool TakeText(std::string* room, std::string_view* text);
  bool TakeEscape(std::string* out);
  bool TakeCodeUnit(uint32_t* unit);
  bool TakeValue(JsonValue* value);
  bool TakeWord(std::string_view* text);
  bool TakeNested(std::string_view* text);

  const std::string_view line_;
  size_t at_ = 0;
  char kind_ = 0;
  bool first_ = true;
  bool done_ = false;
  std::string_view fault_;
  std::string name_room_;
  std::string text_room_;
};

/// A text in quotes, with escapes. False, and nothing is appended, where it is no UTF-8.
bool AppendJsonText(std::string_view text, std::string* out);

}  // namespace heddle::ops
