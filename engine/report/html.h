// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::engine {

/// Text as it stands in HTML, in elements and in attributes in double quotes. What is no UTF-8, or a
/// character that HTML has none for, is shown by its number.
std::string EscapeHtml(std::string_view text);

/// JSON as it stands in an element "script": no tag begins or ends in it.
std::string EscapeForScript(std::string_view json);

/// "3.1 s", "12 ms", "850 us", "0 s": two or three digits.
std::string ShortTime(int64_t ns);
/// "1.2 GB", "12 MB", "850 bytes".
std::string ShortBytes(int64_t bytes);
/// "92 %"; "0.4 %" where it is less than ten; "under 0.1 %".
std::string Percent(double share);

}  // namespace heddle::engine
