// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "compiler/parse/diagnostics.h"
#include "core/text/utf8.h"

namespace heddle::compiler {
namespace {

constexpr std::array<std::string_view, 28> kReservedWords = {"source",
                                                             "as",
                                                             "setwd",
                                                             "ifdef",
                                                             "if",
                                                             "else",
                                                             "for",
                                                             "parfor",
                                                             "while",
                                                             "in",
                                                             "function",
                                                             "return",
                                                             "externalFunction",
                                                             "implemented",
                                                             "TRUE",
                                                             "FALSE",
                                                             "int",
                                                             "integer",
                                                             "string",
                                                             "boolean",
                                                             "double",
                                                             "unknown",
                                                             "Int",
                                                             "Integer",
                                                             "String",
                                                             "Boolean",
                                                             "Double",
                                                             "Unknown"};

// The only names with a dot; each is one token.
constexpr std::array<std::string_view, 16> kDottedNames = {
    "as.scalar",  "as.matrix",  "as.frame",     "as.list",      "as.double",  "as.integer",
    "as.logical", "as.boolean", "index.return", "empty.return", "lower.tail", "lower.tri",
    "upper.tri",  "is.na",      "is.nan",       "is.infinite"};

// Of those that begin alike the longest first; the most frequent early.
constexpr std::array<std::string_view, 31> kSymbols = {
    "(",  ")",  ",", "==", "=", "[", "]",  "+=", "+",  "*", "/",  "-", ":",   "{",   "}", ";",
    "<-", "<=", "<", ">=", ">", "^", "!=", "!",  "&&", "&", "||", "|", "%*%", "%/%", "%%"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsNamePart(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class Lexer {
 public:
  Lexer(std::string_view text, std::vector<SourceRange>* stray) : text_(text), stray_(stray) {
    constexpr size_t kBytesOfToken = 4;  // of a dense script, with the blank behind it
    constexpr size_t kMostAtOnce = 16384;
    tokens_.reserve(std::min(text.size() / kBytesOfToken, kMostAtOnce));
  }

  std::vector<Token> Run() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") offset_ = 3;  // a byte order mark, as Windows editors write it
    for (;;) {
      SkipBlanksAndComments();
      if (offset_ >= text_.size()) break;
      if (SkipsFullStop()) continue;
      Begin();
      ReadToken();
      Finish();
    }
    Token end;
    end.range = {last_end_, last_end_};
    end.offset = end.end_offset = text_.size();
    end.first_on_line = true;
    tokens_.push_back(std::move(end));
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const { return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0'; }

  // Moves one character on and keeps line and column.
  void Step() {
    if (text_[offset_] == '\n') {
      ++place_.line;
      place_.column = 1;
      on_new_line_ = true;
      ++offset_;
      return;
    }
    const bool is_ascii = static_cast<unsigned char>(text_[offset_]) < 0x80;
    offset_ += is_ascii ? 1 : std::max<size_t>(1, Utf8Length(text_, offset_));
    ++place_.column;
  }

  void StepTo(size_t offset) {
    while (offset_ < offset) Step();
  }

  void Begin() {
    token_ = Token();
    token_.first_on_line = on_new_line_;
    token_.range.begin = place_;
    token_.offset = offset_;
    on_new_line_ = false;
  }

  void Finish() {
    token_.range.end = place_;
    token_.end_offset = offset_;
    if (token_.text.empty()) token_.text = text_.substr(token_.offset, offset_ - token_.offset);
    last_end_ = place_;
    on_new_line_ = false;  // a string may span lines; what follows it does not start one
    tokens_.push_back(std::move(token_));
  }

  void SkipBlanksAndComments() {
    while (offset_ < text_.size()) {
      if (IsBlank(Peek())) {
        Step();
      } else if (Peek() == '#') {
        while (offset_ < text_.size() && Peek() != '\n') Step();
      } else if (Peek() == '/' && Peek(1) == '*') {
        const size_t close = text_.find("*/", offset_ + 2);
        if (close == std::string_view::npos) {
          Begin();
          Fail("this comment is not closed", "a block comment ends with */; comments do not nest");
          token_.problem->is_open = true;
          token_.range.end = {place_.line, place_.column + 2};
          token_.end_offset = text_.size();
          last_end_ = token_.range.end;
          offset_ = text_.size();
          tokens_.push_back(std::move(token_));
          return;
        }
        StepTo(close + 2);
      } else {
        return;
      }
    }
  }

  void Fail(std::string error, std::string note = "") {
    token_.kind = Token::Kind::kInvalid;
    Complain(std::move(error), std::move(note));
  }

  // Keeps the token usable; the first complaint counts.
  void Complain(std::string error, std::string note = "") {
    if (token_.problem != nullptr) return;
    token_.problem = std::make_unique<TokenProblem>(TokenProblem{{}, std::move(error), std::move(note), ""});
  }

  void ReadToken() {
    const char c = Peek();
    if (IsLetter(c)) return ReadName();
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return ReadNumber();
    if (c == '"' || c == '\'') return ReadString();
    if (c == '$') return ReadParameter();
    for (const std::string_view symbol : kSymbols) {
      if (symbol[0] != c || text_.substr(offset_, symbol.size()) != symbol) continue;
      token_.kind = Token::Kind::kSymbol;
      StepTo(offset_ + symbol.size());
      return;
    }
    ReadInvalid();
  }

  size_t NameEnd(size_t offset) const {
    while (offset < text_.size() && IsNamePart(text_[offset])) ++offset;
    return offset;
  }

  void ReadName() {
    size_t end = NameEnd(offset_);
    const std::string_view first = text_.substr(offset_, end - offset_);
    token_.kind = Token::Kind::kIdentifier;
    if (text_.substr(end, 2) == "::" && end + 2 < text_.size() && IsLetter(text_[end + 2])) {
      token_.name_space = first;
      const size_t begin = end + 2;
      end = NameEnd(begin);
      token_.text = text_.substr(begin, end - begin);
      if (IsReservedWord(first))
        Complain(fmt::format("the reserved word '{}' cannot name a namespace", first));
    } else if (end < text_.size() && text_[end] == '.' && end + 1 < text_.size() &&
               IsLetter(text_[end + 1])) {
      size_t dotted_end = NameEnd(end + 1);
      while (dotted_end + 1 < text_.size() && text_[dotted_end] == '.' && IsLetter(text_[dotted_end + 1])) {
        dotted_end = NameEnd(dotted_end + 1);
      }
      token_.text = text_.substr(offset_, dotted_end - offset_);
      end = dotted_end;
      if (std::find(kDottedNames.begin(), kDottedNames.end(), token_.text) == kDottedNames.end()) {
        Complain(fmt::format("a name must not contain a dot: '{}'", token_.text),
                 "names are letters, digits and '_'; only builtins like as.scalar have a dot");
        token_.problem->suggestion = SuggestName(token_.text, {kDottedNames.begin(), kDottedNames.end()});
      }
    } else {
      token_.text = first;
      if (first == "TRUE" || first == "FALSE") {
        token_.kind = Token::Kind::kLiteral;
        token_.value = Scalar(first == "TRUE");
      } else if (IsReservedWord(first)) {
        token_.kind = Token::Kind::kKeyword;
      }
    }
    StepTo(end);
  }

  void ReadNumber() {
    size_t end = offset_;
    const auto digits = [&] {
      while (end < text_.size() && IsDigit(text_[end])) ++end;
    };
    const auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    bool is_double = false;
    digits();
    if (at(end) == '.') {
      is_double = true;
      ++end;
      digits();
    }
    if (at(end) == 'e' || at(end) == 'E') {
      const size_t sign = at(end + 1) == '+' || at(end + 1) == '-' ? 1 : 0;
      if (IsDigit(at(end + 1 + sign))) {
        is_double = true;
        end += 1 + sign;
        digits();
      }
    }
    const std::string_view number = text_.substr(offset_, end - offset_);
    token_.kind = Token::Kind::kLiteral;
    if (is_double) {
      double value = 0;
      const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
      // Out of range: strtod tells infinity from zero.
      if (parsed.ec != std::errc()) value = std::strtod(std::string(number).c_str(), nullptr);
      token_.value = Scalar(value);
    } else {
      int64_t value = 0;
      const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
      if (parsed.ec != std::errc()) {
        Complain(fmt::format("an integer must fit 64 bits: {}", Shorten(number)),
                 "write it with a decimal point to make it a double");
      }
      token_.value = Scalar(value);
    }
    if ((at(end) == 'L' || at(end) == 'l') && !IsNamePart(at(end + 1))) {
      Complain(fmt::format("a number has no suffix '{}': {}{}", at(end), Shorten(number), at(end)),
               fmt::format("write {}", Shorten(number)));
      ++end;
    } else if (IsNamePart(at(end))) {
      const size_t name_end = NameEnd(end);
      Complain(fmt::format("a name must begin with a letter: {}",
                           Shorten(text_.substr(offset_, name_end - offset_))));
      end = name_end;
    }
    StepTo(end);
  }

  static std::string Shorten(std::string_view text) {
    constexpr size_t kMost = 40;
    return text.size() <= kMost ? std::string(text) : std::string(CutAtCharacter(text, kMost)) + "...";
  }

  void ReadString() {
    const char quote = Peek();
    const size_t begin = offset_ + 1;
    token_.kind = Token::Kind::kLiteral;
    // After one that is not closed, strings end with their line: what follows is guessed, and the cost stays
    // linear.
    bool& unclosed = quote == '"' ? unclosed_double_ : unclosed_single_;
    const size_t limit = unclosed ? std::min(text_.find('\n', begin), text_.size()) : text_.size();
    size_t bad_escape = std::string_view::npos;
    size_t end = begin;
    while (end < limit && text_[end] != quote) {
      if (text_[end] == '\\') {
        const char next = end + 1 < text_.size() ? text_[end + 1] : '\0';
        if (next == '\0' || std::string_view("btnfr\"'\\").find(next) == std::string_view::npos) {
          bad_escape = std::min(bad_escape, end);
        }
        ++end;
      }
      ++end;
    }
    if (end >= limit) {
      unclosed = true;
      // The rest of the line is lost, the lines after it are not.
      Fail(fmt::format("this string is not closed: no {} follows", quote));
      token_.problem->is_open = true;
      StepTo(std::min(text_.find('\n', begin), text_.size()));
      return;
    }
    token_.value = Scalar(Unescape(text_.substr(begin, end - begin)));
    if (bad_escape != std::string_view::npos) {
      StepTo(bad_escape);
      ComplainAboutEscape(bad_escape);
      token_.problem->range = {place_, {place_.line, place_.column + 2}};
    }
    StepTo(end + 1);
  }

  void ComplainAboutEscape(size_t backslash) {
    const size_t length = std::max<size_t>(1, Utf8Length(text_, backslash + 1));
    const std::string_view escape = text_.substr(backslash, 1 + length);
    const bool shown =
        static_cast<unsigned char>(escape.back()) >= 0x20 && Utf8Length(text_, backslash + 1) > 0;
    Complain(shown ? fmt::format("unknown escape '{}' in a string", escape) : "unknown escape in a string",
             "legal are \\b \\t \\n \\f \\r \\\" \\' \\\\");
  }

  void ReadParameter() {
    Step();
    if (IsLetter(Peek())) {
      token_.text = text_.substr(offset_, NameEnd(offset_) - offset_);
    } else if (IsDigit(Peek())) {
      size_t end = offset_;
      while (end < text_.size() && IsDigit(text_[end])) ++end;
      token_.text = text_.substr(offset_, end - offset_);
    } else {
      return Fail("'$' must be followed by the name or the number of an argument", "for example $X or $1");
    }
    token_.kind = Token::Kind::kParameter;
    StepTo(offset_ + token_.text.size());
  }

  // A run of bytes that begin no token is one error.
  void ReadInvalid() {
    const char c = Peek();
    const size_t length = Utf8Length(text_, offset_);
    const std::string_view character = text_.substr(offset_, std::max<size_t>(1, length));
    if (c == '_') {
      StepTo(NameEnd(offset_));
      return Fail(fmt::format("a name must begin with a letter: '{}'",
                              Shorten(text_.substr(token_.offset, offset_ - token_.offset))));
    }
    if (c == '%') {
      Step();
      return Fail("'%' alone is no operator",
                  "operators are %% (modulus), %/% (integer division) and %*% (matrix product)");
    }
    if (c == '.') {
      Step();
      return Fail("unexpected '.'", "names and operators have no dot; elements of a list are l[\"name\"]");
    }
    if (length == 0) {
      Fail(fmt::format("unexpected byte 0x{:02x}: the script is not valid UTF-8 text",
                       static_cast<unsigned char>(c)));
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      Fail(fmt::format("unexpected control character 0x{:02x}", static_cast<unsigned char>(c)));
    } else if (character == "\xE2\x80\x9C" || character == "\xE2\x80\x9D" || character == "\xE2\x80\x98" ||
               character == "\xE2\x80\x99") {
      Fail(fmt::format("unexpected character '{}'", character),
           "strings are written with straight quotes, \" or '");
    } else if (character == "\xC2\xA0") {
      Fail("unexpected no-break space", "replace it by an ordinary space");
    } else {
      Fail(fmt::format("unexpected character '{}'", character));
    }
    Step();
    while (offset_ < text_.size() && !BeginsToken(Peek())) Step();
  }

  static bool BeginsToken(char c) {
    return IsBlank(c) || IsNamePart(c) ||
           std::string_view("\"'$#%^*/+-<>=!&|:,()[]{};.").find(c) != std::string_view::npos;
  }

  // A '.' right behind a statement that a ')' ends, at the end of the line.
  bool SkipsFullStop() {
    if (Peek() != '.' || tokens_.empty() || !tokens_.back().Is(")") || tokens_.back().end_offset != offset_)
      return false;
    const size_t end = text_.find_first_not_of(" \t\r", offset_ + 1);
    if (end != std::string_view::npos && text_[end] != '\n') return false;
    const Place begin = place_;
    Step();
    if (stray_ != nullptr) stray_->push_back({begin, place_});
    return true;
  }

  std::string_view text_;
  std::vector<SourceRange>* stray_;
  size_t offset_ = 0;
  Place place_{1, 1};
  Place last_end_{1, 1};
  bool on_new_line_ = true;
  bool unclosed_double_ = false;
  bool unclosed_single_ = false;
  Token token_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view text, std::vector<SourceRange>* stray) {
  return Lexer(text, stray).Run();
}

std::string Unescape(std::string_view raw) {
  std::string result;
  result.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    const size_t escape = raw[i] == '\\' && i + 1 < raw.size() ? std::string_view("btnfr\"'").find(raw[i + 1])
                                                               : std::string_view::npos;
    if (escape == std::string_view::npos) {
      result += raw[i];
    } else {
      result += "\b\t\n\f\r\"'"[escape];
      ++i;
    }
  }
  return result;
}

bool IsReservedWord(std::string_view word) {
  return std::any_of(kReservedWords.begin(), kReservedWords.end(), [&](std::string_view reserved) {
    return reserved.size() == word.size() && reserved[0] == word[0] && reserved == word;
  });
}

}  // namespace heddle::compiler
