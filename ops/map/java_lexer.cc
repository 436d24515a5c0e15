// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_lexer.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/text/double_text.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

// Longer ones first.
constexpr std::array<std::string_view, 28> kSymbols = {
    "->", "&&", "||", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ",",
    ".",  "?",  ":",  "+",  "-",  "*",  "/",  "%", "!", "<", ">", ";", "&", "|"};

bool IsNameStart(char16_t unit) { return unit == '_' || unit == '$' || IsLetter(unit); }
bool IsDigit(char16_t unit) { return unit >= '0' && unit <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view expression) : text_(ToUtf16(expression)) {}

  Result<std::vector<JavaToken>> Lex() {
    for (;;) {
      while (at_ < text_.size() && text_[at_] <= ' ') ++at_;
      begin_ = at_;
      if (at_ == text_.size()) {
        Add(JavaToken::Kind::kEnd);
        return std::move(tokens_);
      }
      HEDDLE_RETURN_IF_ERROR(Next());
    }
  }

 private:
  char16_t Unit(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : u'\0'; }

  void Add(JavaToken::Kind kind, JavaValue literal = false) {
    std::string written = ToUtf8(std::u16string_view(text_).substr(begin_, at_ - begin_));
    tokens_.push_back({kind, std::move(written), std::move(literal), begin_ + 1});
  }

  Status Wrong(std::string_view what) const {
    return InvalidArgument("map: {} at character {} of the expression", what, begin_ + 1);
  }

  Status Next() {
    if (IsNameStart(Unit())) {
      while (IsNameStart(Unit()) || IsDigit(Unit())) ++at_;
      return Add(JavaToken::Kind::kName), OkStatus();
    }
    if (IsDigit(Unit()) || (Unit() == '.' && IsDigit(Unit(1)))) return Number();
    if (Unit() == '"' || Unit() == '\'') return Quoted();
    for (const std::string_view symbol : kSymbols) {
      if (!std::equal(symbol.begin(), symbol.end(), text_.begin() + static_cast<int64_t>(at_),
                      text_.begin() + static_cast<int64_t>(std::min(at_ + symbol.size(), text_.size()))))
        continue;
      at_ += symbol.size();
      return Add(JavaToken::Kind::kSymbol), OkStatus();
    }
    ++at_;
    return Wrong(fmt::format("'{}' is no part of Java that map() knows",
                             ToUtf8(std::u16string_view(text_).substr(begin_, 1))));
  }

  Status Number() {
    bool is_whole = true;
    while (IsDigit(Unit())) ++at_;
    if (Unit() == '.' && IsDigit(Unit(1))) {
      is_whole = false;
      ++at_;
      while (IsDigit(Unit())) ++at_;
    }
    if ((Unit() == 'e' || Unit() == 'E') &&
        (IsDigit(Unit(1)) || ((Unit(1) == '-' || Unit(1) == '+') && IsDigit(Unit(2))))) {
      is_whole = false;
      at_ += 2;
      while (IsDigit(Unit())) ++at_;
    }
    const std::string digits = ToUtf8(std::u16string_view(text_).substr(begin_, at_ - begin_));
    const bool is_long = is_whole && (Unit() == 'L' || Unit() == 'l');
    if (is_long || Unit() == 'd' || Unit() == 'D') ++at_;
    if (IsNameStart(Unit())) return Wrong("a number that map() cannot read");
    if (!is_whole || (!is_long && text_[at_ - 1] > '9'))
      return Add(JavaToken::Kind::kLiteral, *ParseDouble(digits)), OkStatus();
    if (digits.size() > 1 && digits[0] == '0') return Wrong("an octal number");
    // The largest of each type and one more, which only a minus makes possible, is refused as well.
    const int64_t most = is_long ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max();
    int64_t value = 0;
    for (const char digit : digits) {
      if (value > (most - (digit - '0')) / 10) return Wrong("a number too large for its type");
      value = value * 10 + (digit - '0');
    }
    if (is_long) return Add(JavaToken::Kind::kLiteral, value), OkStatus();
    return Add(JavaToken::Kind::kLiteral, static_cast<int32_t>(value)), OkStatus();
  }

  Status Quoted() {
    const char16_t quote = text_[at_++];
    std::u16string value;
    for (;;) {
      if (at_ == text_.size()) return Wrong("a quotation without an end");
      const char16_t unit = text_[at_++];
      if (unit == quote) break;
      if (unit != '\\') {
        value.push_back(unit);
        continue;
      }
      const char16_t escaped = Unit();
      ++at_;
      switch (escaped) {
        case 'n': value.push_back('\n'); break;
        case 't': value.push_back('\t'); break;
        case 'r': value.push_back('\r'); break;
        case 'b': value.push_back('\b'); break;
        case 'f': value.push_back('\f'); break;
        case '0': value.push_back('\0'); break;
        case '\\':
        case '"':
        case '\'': value.push_back(escaped); break;
        case 'u': HEDDLE_RETURN_IF_ERROR(Hexadecimal(&value)); break;
        default: return Wrong("a quotation with an escape that map() does not know");
      }
    }
    if (quote == '"') return Add(JavaToken::Kind::kLiteral, std::move(value)), OkStatus();
    if (value.size() != 1) return Wrong("a character of another length than one");
    return Add(JavaToken::Kind::kLiteral, value[0]), OkStatus();
  }

  Status Hexadecimal(std::u16string* value) {
    int unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char16_t digit = LowerCase(Unit());
      if (!IsDigit(digit) && !(digit >= 'a' && digit <= 'f')) return Wrong("an escape without four digits");
      unit = unit * 16 + (IsDigit(digit) ? digit - '0' : digit - 'a' + 10);
    }
    value->push_back(static_cast<char16_t>(unit));
    return OkStatus();
  }

  std::u16string text_;
  size_t at_ = 0;
  size_t begin_ = 0;
  std::vector<JavaToken> tokens_;
};

}  // namespace

Result<std::vector<JavaToken>> LexJava(std::string_view expression) { return Lexer(expression).Lex(); }

}  // namespace heddle::ops
