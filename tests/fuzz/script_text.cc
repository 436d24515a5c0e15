// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/script_text.h"

#include <algorithm>
#include <array>

namespace heddle::fuzz {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Longest first.
constexpr std::array<std::string_view, 26> kOperators = {
    "%*%", "%/%", "<-", "<=", ">=", "==", "!=", "%%", "+=", "&&", "||", "^", "*",
    "/",   "+",   "-",  "<",  ">",  "!",  "&",  "|",  "=",  ":",  ",",  "(", ")"};

size_t LengthWhile(std::string_view text, bool (*holds)(char)) {
  size_t length = 0;
  while (length < text.size() && holds(text[length])) ++length;
  return length;
}

size_t LengthOfNumber(std::string_view text) {
  size_t length = LengthWhile(text, [](char c) { return IsDigit(c) || c == '.'; });
  if (length < text.size() && (text[length] == 'e' || text[length] == 'E')) {
    size_t digits = length + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const size_t count = LengthWhile(text.substr(std::min(digits, text.size())), IsDigit);
    if (count > 0) length = digits + count;
  }
  return length;
}

size_t LengthOfToken(std::string_view text) {
  const char c = text[0];
  if (IsBlank(c)) return LengthWhile(text, IsBlank);
  if (c == '#') return std::min(text.find('\n'), text.size());
  if (c == '"' || c == '\'') {
    size_t end = 1;
    while (end < text.size() && text[end] != c) end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  if (IsLetter(c) || c == '$')
    return 1 + LengthWhile(text.substr(1),
                           [](char d) { return IsLetter(d) || IsDigit(d) || d == '_' || d == '.'; });
  if (IsDigit(c) || (c == '.' && text.size() > 1 && IsDigit(text[1]))) return LengthOfNumber(text);
  for (std::string_view op : kOperators)
    if (text.starts_with(op)) return op.size();
  return 1;
}

}  // namespace

std::vector<std::string> SplitTokens(std::string_view text) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const size_t length = LengthOfToken(text);
    tokens.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return tokens;
}

std::string JoinTokens(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t length = end == std::string_view::npos ? text.size() : end + 1;
    lines.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

bool IsNameToken(std::string_view token) { return IsLetter(token[0]); }
bool IsNumberToken(std::string_view token) {
  return IsDigit(token[0]) || (token[0] == '.' && token.size() > 1);
}
bool IsOperatorToken(std::string_view token) {
  // The punctuation at the end of the table is none.
  return std::find(kOperators.begin(), kOperators.end() - 4, token) != kOperators.end() - 4;
}

}  // namespace heddle::fuzz
