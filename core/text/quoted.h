// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Words of text forms and of the log: names, numbers, and texts in quotes.
namespace heddle {

/// Letters, digits, '_' and '.': what names consist of that need no quotes.
bool IsWordCharacter(char c);

/// Appends `text` in double quotes; quotes, backslashes and control characters are escaped, all other bytes
/// stay.
void AppendQuoted(std::string_view text, std::string* out);
/// Appends a name as it is when it is a plain word (letters, digits, '_', '.', not starting with a digit),
/// else quoted.
void AppendName(std::string_view name, std::string* out);
void AppendInteger(int64_t value, std::string* out);

/// What AppendQuoted made, read back.
struct QuotedText {
  std::string text;
  size_t end = 0;             ///< Behind the closing quote, or where reading stopped.
  std::string_view expected;  ///< What should have stood there; empty when all is well.
};
/// Reads the quoted text at the front of `source`.
QuotedText ReadQuoted(std::string_view source);

}  // namespace heddle
