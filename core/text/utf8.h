// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Texts that people and messages take as UTF-8 are made from bytes that may be anything: cells of a file,
// names of files, the last words of a process.
namespace heddle {

/// Bytes of the well-formed UTF-8 character that starts at `offset` (1 to 4), or 0 if there is none. Overlong
/// forms, surrogates and values above U+10FFFF are not well-formed.
size_t Utf8Length(std::string_view text, size_t offset);

/// True of a text that is characters alone.
bool IsUtf8(std::string_view text);

/// Appends a character, up to U+10FFFF, as UTF-8: 1 to 4 bytes.
void AppendUtf8(uint32_t character, std::string* text);

/// The text with every byte that is not part of a UTF-8 character written as \xHH.
std::string EscapeInvalidUtf8(std::string_view bytes);

/// The same, and every character that a terminal obeys instead of showing it: control characters but line
/// feed and tab (\x1b), and marks that turn the direction of writing (\u202e). For texts that come from
/// elsewhere.
std::string EscapeForTerminal(std::string_view bytes);

/// The beginning of `text`: at most `most_bytes`, without a part of a character at its end.
std::string_view CutAtCharacter(std::string_view text, size_t most_bytes);
/// The same for a message: in one line, blanks for line ends.
std::string ShownInLine(std::string_view text, size_t most_bytes);

}  // namespace heddle
