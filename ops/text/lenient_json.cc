// SPDX-License-Identifier: Apache-2.0
#include "ops/text/lenient_json.h"

#include <algorithm>

#include "core/text/double_text.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// Readers of JSON call themselves for what is inside of something.
constexpr int kMostDepth = 100;
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kEndsOfWord = " \t\r\n{}[],:\"'";

bool IsJsonWord(std::string_view word) {
  if (word == "true" || word == "false" || word == "null") return true;
  // "NaN" and "1d" are numbers for Java only.
  return word.find_first_not_of("+-.0123456789eE") == std::string_view::npos && ParseDouble(word).has_value();
}

void AppendQuoted(std::string_view word, std::string* json) {
  json->push_back('"');
  for (const char c : word) {
    if (c == '"' || c == '\\') json->push_back('\\');
    json->push_back(c);
  }
  json->push_back('"');
}

// The text in quotes of `text[0]`; its size where they do not end.
size_t EndOfQuotes(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[0]) {
      return i + 1;
    }
  }
  return text.size();
}

bool EndsAfterComma(std::string_view text) {
  const size_t next = text.find_first_not_of(kBlanks, 1);
  return next != std::string_view::npos && (text[next] == '}' || text[next] == ']');
}

}  // namespace

std::string StrictJson(std::string_view text) {
  std::string json;
  int depth = 0;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    size_t end = 1;
    if (text[0] == '"') {
      end = EndOfQuotes(text);
      json.append(text.substr(0, end));
    } else if (text[0] == '\'') {
      end = EndOfQuotes(text);
      // Without its end it is no JSON, whatever the quotes.
      if (end >= 2 && text[end - 1] == '\'')
        AppendQuoted(text.substr(1, end - 2), &json);
      else
        json.append(text.substr(0, end));
    } else if (text[0] == ',' && EndsAfterComma(text)) {
      json.push_back(' ');
    } else if (kEndsOfWord.find(text[0]) != std::string_view::npos) {
      depth += text[0] == '{' || text[0] == '[' ? 1 : text[0] == '}' || text[0] == ']' ? -1 : 0;
      if (depth > kMostDepth) return "";
      json.push_back(kBlanks.find(text[0]) != std::string_view::npos ? ' ' : text[0]);
    } else {
      end = std::min(text.find_first_of(kEndsOfWord), text.size());
      const std::string_view word = text.substr(0, end);
      if (IsJsonWord(word))
        json.append(word);
      else
        AppendQuoted(word, &json);
    }
    text.remove_prefix(end);
  }
  return json;
}

}  // namespace heddle::ops
