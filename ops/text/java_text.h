// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Texts as Java has them: UTF-16, so that lengths and positions count its units.
namespace heddle::ops {

/// Bytes that are no UTF-8 become U+FFFD.
std::u16string ToUtf16(std::string_view text);
/// Halves of a character that stand alone become '?', as Java writes them.
std::string ToUtf8(std::u16string_view text);

/// As Character.toLowerCase(char) and its like; halves of a character beyond U+FFFF are no letters.
char16_t LowerCase(char16_t unit);
char16_t UpperCase(char16_t unit);
bool IsLetter(char16_t unit);
bool IsUpperCase(char16_t unit);
bool IsLowerCase(char16_t unit);
bool IsAlphabetic(char16_t unit);    ///< Letters, and signs and numbers that stand for letters.
bool IsDecimalDigit(char16_t unit);  ///< Of any script.
bool IsWhitespace(char16_t unit);
bool IsSpaceCharacter(char16_t unit);
/// Character.getNumericValue(char): of digits, of Latin letters (10 to 35) and of other numbers; -1 where
/// there is none and -2 where it is not whole.
int32_t NumericValue(char16_t unit);

}  // namespace heddle::ops
