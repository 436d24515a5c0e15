// SPDX-License-Identifier: Apache-2.0
#include "core/text/utf8.h"

#include <algorithm>
#include <cstdint>

namespace heddle {
namespace {

constexpr size_t kMostBytes = 4;  // of one character

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: there is none
};

// The character at the beginning of `text`; none where it is cut short, longer than need be, a surrogate or
// past U+10FFFF.
Character FirstOf(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return {};
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t code = first & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[kMostBytes + 1] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

void AppendHexadecimal(uint32_t value, int digits, std::string* out) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out->push_back("0123456789abcdef"[value >> shift & 0xf]);
}

bool IsObeyed(uint32_t code) {
  if (code < 0x20) return code != '\n' && code != '\t';
  if (code >= 0x7f && code < 0xa0) return true;
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

template <typename Predicate>
std::string Escape(std::string_view bytes, const Predicate& is_escaped) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Character character = FirstOf(bytes);
    if (character.bytes == 0 || (is_escaped(character.code) && character.code < 0x80)) {
      text += "\\x";
      AppendHexadecimal(static_cast<unsigned char>(bytes[0]), 2, &text);
    } else if (is_escaped(character.code)) {
      text += "\\u";
      AppendHexadecimal(character.code, 4, &text);
    } else {
      text += bytes.substr(0, character.bytes);
    }
    bytes.remove_prefix(std::max<size_t>(character.bytes, 1));
  }
  return text;
}

}  // namespace

size_t Utf8Length(std::string_view text, size_t offset) {
  return offset < text.size() ? FirstOf(text.substr(offset)).bytes : 0;
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

void AppendUtf8(uint32_t character, std::string* text) {
  const auto add = [text](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xC0 | character >> 6);
    add(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    add(0xE0 | character >> 12);
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  } else {
    add(0xF0 | character >> 18);
    add(0x80 | (character >> 12 & 0x3F));
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  }
}

std::string EscapeInvalidUtf8(std::string_view bytes) {
  return Escape(bytes, [](uint32_t) { return false; });
}

std::string EscapeForTerminal(std::string_view bytes) { return Escape(bytes, IsObeyed); }

std::string_view CutAtCharacter(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  // The character that the cut would divide, if there is one, begins at most three bytes before it.
  for (size_t back = 1; back < kMostBytes && back <= most_bytes; ++back) {
    const size_t begin = most_bytes - back;
    if (FirstOf(text.substr(begin)).bytes > back) return text.substr(0, begin);
  }
  return text.substr(0, most_bytes);
}

std::string ShownInLine(std::string_view text, size_t most_bytes) {
  std::string line(CutAtCharacter(text, most_bytes));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

}  // namespace heddle
