// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_lexer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/text/double_text.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

// Longer ones first.
constexpr std::array<std::string_view, 34> kSymbols = {
    ">>>", "->", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "::", "(", ")", "[", "]", "{", "}",
    ",",   ".",  "?",  ":",  "+",  "-",  "*",  "/",  "%",  "!",  "<",  ">", ";", "&", "|", "^", "~"};

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
    if (Unit() == '0' && LowerCase(Unit(1)) == 'x') return NumberOfBase(16);
    if (Unit() == '0' && LowerCase(Unit(1)) == 'b') return NumberOfBase(2);
    bool is_whole = true;
    const auto skip_digits = [&] {
      while (IsDigit(Unit()) || (Unit() == '_' && IsDigit(text_[at_ - 1]))) ++at_;
    };
    skip_digits();
    // A point behind which a name stands would be that of a call: no number has methods.
    if (Unit() == '.' && !IsNameStart(Unit(1))) {
      is_whole = false;
      ++at_;
      skip_digits();
    }
    if ((Unit() == 'e' || Unit() == 'E') &&
        (IsDigit(Unit(1)) || ((Unit(1) == '-' || Unit(1) == '+') && IsDigit(Unit(2))))) {
      is_whole = false;
      at_ += 2;
      skip_digits();
    }
    if (text_[at_ - 1] == '_') return Wrong("a number that ends with _");
    std::string digits;
    for (size_t i = begin_; i < at_; ++i)
      if (text_[i] != '_') digits.push_back(static_cast<char>(text_[i]));
    const bool is_long = is_whole && (Unit() == 'L' || Unit() == 'l');
    const bool is_double = !is_long && (Unit() == 'd' || Unit() == 'D');
    if (is_long || is_double) ++at_;
    if (Unit() == 'f' || Unit() == 'F') return Wrong("a float, which map() does not know,");
    if (IsNameStart(Unit())) return Wrong("a number that map() cannot read");
    if (!is_whole || is_double) {
      const std::optional<double> value = ParseDouble(digits);
      if (!value || std::isinf(*value)) return Wrong("a number that map() cannot read");
      return Add(JavaToken::Kind::kLiteral, *value), OkStatus();
    }
    if (digits.size() > 1 && digits[0] == '0') return Wrong("an octal number");
    // Behind a minus sign there is room for one more, which is its own negative.
    const uint64_t most = (is_long ? uint64_t{INT64_MAX} : uint64_t{INT32_MAX}) + (IsNegated() ? 1 : 0);
    uint64_t value = 0;
    for (const char digit : digits) {
      const auto more = static_cast<uint64_t>(digit - '0');
      if (value > (most - more) / 10) return Wrong("a number too large for its type");
      value = value * 10 + more;
    }
    return AddWhole(value, is_long), OkStatus();
  }

  // Whether the token before is a minus sign with nothing before it that it could subtract from.
  bool IsNegated() const {
    if (tokens_.empty() || tokens_.back().text != "-" || tokens_.back().kind != JavaToken::Kind::kSymbol)
      return false;
    if (tokens_.size() == 1) return true;
    const JavaToken& before = tokens_[tokens_.size() - 2];
    return before.kind == JavaToken::Kind::kSymbol && before.text != ")" && before.text != "]";
  }

  void AddWhole(uint64_t bits, bool is_long) {
    if (is_long)
      Add(JavaToken::Kind::kLiteral, static_cast<int64_t>(bits));
    else
      Add(JavaToken::Kind::kLiteral, static_cast<int32_t>(static_cast<uint32_t>(bits)));
  }

  // 0x and 0b: the bits of the number, up to the sign.
  Status NumberOfBase(uint64_t base) {
    at_ += 2;
    uint64_t value = 0;
    bool is_too_large = false;
    size_t digits = 0;
    for (;; ++at_) {
      const char16_t unit = LowerCase(Unit());
      if (unit == '_' && digits > 0) continue;
      const uint64_t digit = IsDigit(unit)                ? unit - uint64_t{'0'}
                             : unit >= 'a' && unit <= 'f' ? unit - uint64_t{'a'} + 10
                                                          : base;
      if (digit >= base) break;
      is_too_large = is_too_large || value > (UINT64_MAX - digit) / base;
      value = value * base + digit;
      ++digits;
    }
    if (digits == 0 || text_[at_ - 1] == '_') return Wrong("a number that map() cannot read");
    const bool is_long = Unit() == 'L' || Unit() == 'l';
    if (is_long) ++at_;
    if (IsNameStart(Unit()) || IsDigit(Unit()) || Unit() == '.')
      return Wrong("a number that map() cannot read");
    if (is_too_large || (!is_long && value > UINT32_MAX)) return Wrong("a number too large for its type");
    return AddWhole(value, is_long), OkStatus();
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
        case 's': value.push_back(' '); break;
        case '0':
          if (Unit() >= '0' && Unit() <= '7')
            return Wrong("a quotation with an escape that map() does not know");
          value.push_back('\0');
          break;
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
