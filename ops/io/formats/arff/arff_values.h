// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// The values of a line of an ARFF file: words, or texts in single or double quotes with backslashes before
// what would end them.
namespace heddle::ops {

enum class ArffSeparator : uint8_t { kComma, kBlanks };

struct ArffValue {
  std::string_view text;
  bool is_quoted = false;
  bool IsMissing() const { return !is_quoted && text == "?"; }
};

/// The values of a line, or of a part of one, one after the other.
class ArffValues {
 public:
  ArffValues(std::string_view text, ArffSeparator separator) : rest_(text), separator_(separator) {}

  /// False at the end, at a comment, and where fault() then says what is wrong. The text is valid until the
  /// next call.
  bool Next(ArffValue* value);
  /// "" where all is well.
  std::string_view fault() const { return fault_; }
  /// What stands behind the value that Next gave, and its separator.
  std::string_view rest() const { return rest_; }

 private:
  bool TakeQuoted(ArffValue* value);
  void TakeWord(ArffValue* value);
  bool TakeSeparator();

  std::string_view rest_;
  const ArffSeparator separator_;
  bool is_open_ = true;  // A value has to come: the text began, or a comma stands before.
  bool any_ = false;
  std::string room_;
  std::string_view fault_;
};

/// Comma where the line has one outside of quotes; one value alone needs no separator.
ArffSeparator FindArffSeparator(std::string_view line);

/// Where the brace is that closes a list of values; one in quotes is a character. npos where none is.
size_t FindArffBrace(std::string_view text);

/// Appends the text as a value: in single quotes where it would be read as something else.
void AppendArffText(std::string_view text, std::string* out);

}  // namespace heddle::ops
