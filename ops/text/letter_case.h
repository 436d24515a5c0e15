// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Small and capital letters of whole texts, as Java 17 has them.
namespace heddle::ops {

/// Character.toLowerCase(int) and toUpperCase(int).
char32_t LowerCasePoint(char32_t point);
char32_t UpperCasePoint(char32_t point);

/// String.toLowerCase(): a capital sigma at the end of a word has a small letter of its own.
std::u16string LowerCaseText(std::u16string_view text);
/// String.toUpperCase(): some letters have several as their capital, as the sharp s has SS.
std::u16string UpperCaseText(std::u16string_view text);
/// String.compareToIgnoreCase(), character by character; 0 also says equalsIgnoreCase().
int32_t CompareIgnoringCase(std::u16string_view a, std::u16string_view b);

}  // namespace heddle::ops
