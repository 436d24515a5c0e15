// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/arff/arff_values.h"

#include <algorithm>
#include <charconv>

#include "core/text/utf8.h"
#include "ops/io/formats/lines.h"

namespace heddle::ops {
namespace {

bool IsQuote(char c) { return c == '\'' || c == '"'; }

// Takes a number of `least` to `most` digits off the front.
bool TakeCode(std::string_view* text, size_t least, size_t most, int base, uint32_t* code) {
  const std::string_view digits = text->substr(0, most);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *code, base);
  const auto taken = static_cast<size_t>(end - digits.data());
  if (error != std::errc() || taken < least) return false;
  text->remove_prefix(taken);
  return true;
}

// What is behind a backslash: Java's letters, octal numbers, u and four hexadecimal digits; of any other
// character the character.
void AppendEscaped(std::string_view* text, std::string* out) {
  static constexpr std::string_view kLetters = "nrtbfva", kMeant = "\n\r\t\b\f\v\a";
  const char c = text->front();
  uint32_t code = 0;
  std::string_view behind = text->substr(1);
  if (c >= '0' && c <= '7' && TakeCode(text, 1, 3, 8, &code)) return AppendUtf8(code, out);
  if (c == 'u' && TakeCode(&behind, 4, 4, 16, &code)) {
    AppendUtf8(code, out);
    *text = behind;
    return;
  }
  const size_t letter = kLetters.find(c);
  out->push_back(letter == std::string_view::npos ? c : kMeant[letter]);
  text->remove_prefix(1);
}

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  return text;
}

}  // namespace

bool ArffValues::Next(ArffValue* value) {
  rest_ = WithoutBlanks(rest_);
  if (rest_.empty() || rest_.front() == '%') {
    // Behind a comma a value has to come, in a line of nothing none.
    if (is_open_ && any_) fault_ = "a value is missing behind the last comma";
    return false;
  }
  if (rest_.front() == ',') {
    fault_ = "a value is empty; ? is a missing one";
    return false;
  }
  any_ = true;
  if (!IsQuote(rest_.front())) {
    TakeWord(value);
  } else if (!TakeQuoted(value)) {
    fault_ = "a quote is not closed in its line";
    return false;
  }
  return TakeSeparator();
}

bool ArffValues::TakeQuoted(ArffValue* value) {
  const char quote = rest_.front();
  const char ends[] = {quote, '\\', '\0'};
  std::string_view text = rest_.substr(1);
  const size_t plain = text.find_first_of(ends);
  if (plain == std::string_view::npos) return false;
  *value = {text.substr(0, plain), true};
  rest_ = text.substr(plain + 1);
  if (text[plain] == quote) return true;
  room_.clear();
  for (;;) {
    const size_t end = text.find_first_of(ends);
    if (end == std::string_view::npos) return false;
    room_.append(text.substr(0, end));
    const bool is_end = text[end] == quote;
    text.remove_prefix(end + 1);
    if (is_end) break;
    if (text.empty()) return false;
    AppendEscaped(&text, &room_);
  }
  value->text = room_;
  rest_ = text;
  return true;
}

// Up to the separator, or the comment that a blank stands before.
void ArffValues::TakeWord(ArffValue* value) {
  size_t end = 0;
  if (separator_ == ArffSeparator::kComma) {
    end = std::min(rest_.find(','), rest_.size());
  } else {
    while (end < rest_.size() && rest_[end] != ',' && !IsBlank(rest_[end])) ++end;
  }
  std::string_view word = rest_.substr(0, end);
  for (size_t at = word.find('%'); at != std::string_view::npos; at = word.find('%', at + 1))
    if (IsBlank(word[at - 1])) word = word.substr(0, end = at);
  *value = {Trim(word), false};
  rest_.remove_prefix(end);
}

bool ArffValues::TakeSeparator() {
  const size_t before = rest_.size();
  rest_ = WithoutBlanks(rest_);
  is_open_ = !rest_.empty() && rest_.front() == ',';
  if (is_open_) {
    rest_.remove_prefix(1);
    return true;
  }
  if (rest_.empty() || rest_.front() == '%') return true;
  // A list of values may follow a name without a blank.
  if (separator_ == ArffSeparator::kBlanks && (rest_.size() < before || rest_.front() == '{')) return true;
  fault_ = "a comma is missing behind a quote";
  return false;
}

ArffSeparator FindArffSeparator(std::string_view line) {
  const size_t comma = line.find(',');
  if (comma == std::string_view::npos) return ArffSeparator::kBlanks;
  if (line.substr(0, comma).find_first_of("'\"") == std::string_view::npos) return ArffSeparator::kComma;
  ArffValues values(line, ArffSeparator::kBlanks);
  for (ArffValue value; values.Next(&value);) {
    // A comma is taken with the value before it.
    const auto* const end = values.rest().data();
    if (end > line.data() && end[-1] == ',') return ArffSeparator::kComma;
  }
  return values.fault().empty() ? ArffSeparator::kBlanks : ArffSeparator::kComma;
}

size_t FindArffBrace(std::string_view text) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (IsQuote(c)) {
      quote = c;
    } else if (c == '}') {
      return i;
    }
  }
  return std::string_view::npos;
}

void AppendArffText(std::string_view text, std::string* out) {
  // Weka takes every control character for a blank.
  const auto is_special = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' ||
           std::string_view(",{}'\"%\\").find(c) != std::string_view::npos;
  };
  const bool is_plain = !text.empty() && text != "?" && text.front() != '@' &&
                        std::none_of(text.begin(), text.end(), is_special);
  if (is_plain) {
    out->append(text);
    return;
  }
  out->push_back('\'');
  for (const char c : text) {
    switch (c) {
      case '\n': out->append("\\n"); break;
      case '\r': out->append("\\r"); break;
      case '\t': out->append("\\t"); break;
      case '\0': out->append("\\000"); break;
      case '\'':
      case '\\': out->push_back('\\'); [[fallthrough]];
      default: out->push_back(c);
    }
  }
  out->push_back('\'');
}

}  // namespace heddle::ops
