// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/json_line.h"

#include <nlohmann/json.hpp>

#include "core/text/utf8.h"

namespace heddle::ops {
namespace {

bool IsJsonBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// JSON's numbers: no sign but a minus, no zeros in front, digits on both sides of a point.
bool IsJsonNumber(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at > begin;
  };
  const bool zero = at < text.size() && text[at] == '0';
  const size_t begin = at;
  if (!digits() || (zero && at > begin + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!digits()) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits()) return false;
  }
  return at == text.size();
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto append = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) return append(code);
  if (code < 0x800) {
    append(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      append(0xe0 | code >> 12);
    } else {
      append(0xf0 | code >> 18);
      append(0x80 | (code >> 12 & 0x3f));
    }
    append(0x80 | (code >> 6 & 0x3f));
  }
  append(0x80 | (code & 0x3f));
}

}  // namespace

char JsonLine::Peek() {
  while (at_ < line_.size() && IsJsonBlank(line_[at_])) ++at_;
  return at_ < line_.size() ? line_[at_] : '\0';
}

char JsonLine::Begin() {
  kind_ = Peek();
  if (kind_ != '{' && kind_ != '[') return 0;
  ++at_;
  return kind_;
}

bool JsonLine::Next(std::string_view* name, JsonValue* value) {
  if (done_) return false;
  const char end = kind_ == '{' ? '}' : ']';
  char next = Peek();
  if (next == end) {
    ++at_;
    if (Peek() != '\0' || at_ < line_.size()) return Fail("more follows its end");
    done_ = true;
    return false;
  }
  if (!first_) {
    if (next != ',') return Fail(at_ == line_.size() ? "its end is missing" : "a comma is missing");
    ++at_;
    next = Peek();
  }
  first_ = false;
  if (kind_ == '{') {
    if (next != '"') return Fail(at_ == line_.size() ? "its end is missing" : "a name in quotes is missing");
    if (!TakeText(&name_room_, name)) return false;
    if (Peek() != ':') return Fail("a colon is missing");
    ++at_;
  }
  return TakeValue(value);
}

bool JsonLine::TakeValue(JsonValue* value) {
  const char next = Peek();
  *value = {};
  if (next == '"') {
    value->is_text = true;
    return TakeText(&text_room_, &value->text);
  }
  if (next == '{' || next == '[') return TakeNested(&value->text);
  const size_t begin = at_;
  if (!TakeWord(&value->text)) return false;
  const std::string_view text = value->text;
  value->is_null = text == "null";
  if (value->is_null || text == "true" || text == "false" || text == "NaN" || text == "Infinity" ||
      text == "-Infinity" || IsJsonNumber(text))
    return true;
  at_ = begin;
  return Fail(text.empty() ? "a value is missing" : "this is no value");
}

bool JsonLine::TakeWord(std::string_view* text) {
  const size_t begin = at_;
  constexpr std::string_view kEnds = ",:]}[{\" \t\r";
  while (at_ < line_.size() && kEnds.find(line_[at_]) == std::string_view::npos) ++at_;
  *text = line_.substr(begin, at_ - begin);
  return true;
}

bool JsonLine::TakeText(std::string* room, std::string_view* text) {
  const size_t begin = ++at_;
  const auto is_plain = [&] {
    return line_[at_] != '"' && line_[at_] != '\\' && static_cast<unsigned char>(line_[at_]) >= 0x20;
  };
  while (at_ < line_.size() && is_plain()) ++at_;
  if (at_ < line_.size() && line_[at_] == '"') {  // without escapes
    *text = line_.substr(begin, at_ - begin);
    ++at_;
    return true;
  }
  room->assign(line_.substr(begin, at_ - begin));
  while (at_ < line_.size()) {
    if (line_[at_] == '"') {
      ++at_;
      *text = *room;
      return true;
    }
    if (line_[at_] == '\\') {
      if (!TakeEscape(room)) return false;
    } else if (is_plain()) {
      room->push_back(line_[at_++]);
    } else {
      return Fail("a control character in a text needs an escape");
    }
  }
  return Fail("the end of a text is missing");
}

bool JsonLine::TakeCodeUnit(uint32_t* unit) {
  *unit = 0;
  for (size_t i = at_ + 2; i < at_ + 6; ++i) {
    const char c = i < line_.size() ? line_[i] : '\0';
    const int digit = IsDigit(c)             ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return Fail("\\u needs four hexadecimal digits");
    *unit = *unit << 4 | static_cast<uint32_t>(digit);
  }
  at_ += 6;
  return true;
}

bool JsonLine::TakeEscape(std::string* out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const char letter = at_ + 1 < line_.size() ? line_[at_ + 1] : '\0';
  if (letter == 'u') {
    const size_t begin = at_;
    uint32_t code = 0, low = 0;
    if (!TakeCodeUnit(&code)) return false;
    if (code >= 0xd800 && code < 0xe000) {  // two units make a character
      const bool paired = code < 0xdc00 && line_.substr(at_).starts_with("\\u");
      if (paired && !TakeCodeUnit(&low)) return false;
      if (!paired || low < 0xdc00 || low >= 0xe000) {
        at_ = begin;
        return Fail("half of a character of UTF-16 stands alone");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    AppendUtf8(code, out);
    return true;
  }
  const size_t known = letter == '\0' ? std::string_view::npos : kLetters.find(letter);
  if (known == std::string_view::npos) return Fail("this is no escape");
  out->push_back(kMeanings[known]);
  at_ += 2;
  return true;
}

bool JsonLine::TakeNested(std::string_view* text) {
  const size_t begin = at_;
  int64_t depth = 0;
  bool quoted = false;
  for (; at_ < line_.size(); ++at_) {
    const char c = line_[at_];
    if (quoted) {
      if (c == '\\') ++at_;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      ++at_;
      *text = line_.substr(begin, at_ - begin);
      if (nlohmann::json::accept(*text)) return true;
      at_ = begin;
      return Fail("what is inside of this value is no JSON");
    }
  }
  at_ = begin;
  return Fail("the end of this value is missing");
}

bool AppendJsonText(std::string_view text, std::string* out) {
  const size_t before = out->size();
  out->push_back('"');
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      const size_t length = Utf8Length(text, i);
      if (length == 0) {
        out->resize(before);
        return false;
      }
      out->append(text.substr(i, length));
      i += length;
      continue;
    }
    constexpr char kHex[] = "0123456789abcdef";
    switch (c) {
      case '"': out->append("\\\""); break;
      case '\\': out->append("\\\\"); break;
      case '\n': out->append("\\n"); break;
      case '\r': out->append("\\r"); break;
      case '\t': out->append("\\t"); break;
      default:
        if (c >= 0x20)
          out->push_back(static_cast<char>(c));
        else
          out->append("\\u00") += {kHex[c >> 4], kHex[c & 15]};
    }
    ++i;
  }
  out->push_back('"');
  return true;
}

}  // namespace heddle::ops
