// SPDX-License-Identifier: Apache-2.0
#include "core/text/quoted.h"

#include <charconv>

namespace heddle {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexadecimalDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_' || c == '.';
}

void AppendQuoted(std::string_view text, std::string* out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out->push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"': out->append("\\\""); break;
      case '\\': out->append("\\\\"); break;
      case '\n': out->append("\\n"); break;
      case '\t': out->append("\\t"); break;
      default:
        if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) {
          out->append("\\x");
          out->push_back(kDigits[byte >> 4]);
          out->push_back(kDigits[byte & 15]);
        } else {
          out->push_back(c);
        }
    }
  }
  out->push_back('"');
}

void AppendName(std::string_view name, std::string* out) {
  bool plain = !name.empty() && !IsDigit(name.front());
  for (const char c : name) plain = plain && IsWordCharacter(c);
  if (plain)
    out->append(name);
  else
    AppendQuoted(name, out);
}

void AppendInteger(int64_t value, std::string* out) {
  char text[24];
  out->append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

QuotedText ReadQuoted(std::string_view source) {
  QuotedText result;
  size_t& at = result.end;
  if (source.empty() || source.front() != '"') {
    result.expected = "a quoted string";
    return result;
  }
  at = 1;
  while (at < source.size()) {
    const char c = source[at++];
    if (c == '"') return result;
    if (c != '\\') {
      result.text.push_back(c);
      continue;
    }
    const char escaped = at < source.size() ? source[at++] : '\0';
    if (escaped == 'n') {
      result.text.push_back('\n');
    } else if (escaped == 't') {
      result.text.push_back('\t');
    } else if (escaped == '"' || escaped == '\\') {
      result.text.push_back(escaped);
    } else {
      const int high = escaped == 'x' && at + 1 < source.size() ? HexadecimalDigit(source[at]) : -1;
      const int low = high >= 0 ? HexadecimalDigit(source[at + 1]) : -1;
      if (low < 0) {
        --at;
        result.expected = "one of the escapes \\n \\t \\\" \\\\ \\xHH";
        return result;
      }
      result.text.push_back(static_cast<char>(high * 16 + low));
      at += 2;
    }
  }
  result.expected = "the end of a quoted string";
  return result;
}

}  // namespace heddle
