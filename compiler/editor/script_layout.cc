// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/script_layout.h"

#include <algorithm>
#include <string_view>

namespace heddle::compiler {
namespace {

using Break = TokenLayout::Break;

constexpr int32_t kIndent = 2;
constexpr int32_t kContinuation = 4;

bool IsOneOf(const Token& token, std::initializer_list<std::string_view> texts) {
  return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) { return token.Is(text); });
}

bool IsAssignment(const Token& token) { return IsOneOf(token, {"=", "<-", "+="}); }

bool IsBinaryText(const Token& token) {
  return IsOneOf(token, {"+", "-", "*", "/", "^", "%*%", "%/%", "%%", "<", "<=", ">", ">=", "==", "!=", "&",
                         "&&", "|", "||"});
}

// What a bracket that is open encloses.
enum class Bracket : uint8_t { kGroup, kArguments, kParameters, kIndex, kType, kList };

// Where lines begin, by the structure of the script. Its statements are those of the syntax tree; which of
// them have braces is seen in the tokens.
class LineBreaks {
 public:
  LineBreaks(const std::vector<Token>& tokens, std::vector<TokenLayout>* layout)
      : tokens_(tokens), layout_(*layout), closing_(tokens.size(), 0) {
    std::vector<size_t> open;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (IsOneOf(tokens[i], {"(", "[", "{"})) open.push_back(i);
      if (!IsOneOf(tokens[i], {")", "]", "}"}) || open.empty()) continue;
      closing_[open.back()] = i;
      open.pop_back();
    }
  }

  void Run(const ScriptFile& file) {
    struct Item {
      Place begin;
      const Statement* statement;
      const FunctionDefinition* function;
    };
    std::vector<Item> items;
    for (const Statement& statement : file.statements)
      items.push_back({statement.range.begin, &statement, nullptr});
    for (const FunctionDefinition& function : file.functions)
      items.push_back({function.range.begin, nullptr, &function});
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.begin < b.begin; });
    size_t at = 0;
    for (const Item& item : items) {
      const size_t begin = IndexOf(item.begin);
      // What the parser has left out: external functions.
      if (begin > at) Continue(Start(at, 0), begin, 0);
      at = item.statement != nullptr ? VisitStatement(*item.statement, begin, 0)
                                     : VisitFunction(*item.function, begin);
    }
    const size_t end = tokens_.size() - 1;
    if (end > at) Continue(Start(at, 0), end, 0);
    layout_[end].line_break = Break::kAlways;
  }

 private:
  size_t IndexOf(const Place& place) const {
    const auto found =
        std::lower_bound(tokens_.begin(), tokens_.end(), place,
                         [](const Token& token, const Place& at) { return token.range.begin < at; });
    return static_cast<size_t>(found - tokens_.begin());
  }

  // The token `begin` begins a statement; returns the token behind it.
  size_t Start(size_t begin, int32_t depth) {
    TokenLayout& token = layout_[begin];
    const bool follows_on_line = begin > 0 && tokens_[begin - 1].Is(";");
    token.line_break = follows_on_line ? Break::kKeep : Break::kAlways;
    token.begins_statement = true;
    token.indent = token.comment_indent = depth * kIndent;
    return begin + 1;
  }

  // The same of the body of an `if` or a loop, which may stay on the line of its head.
  void StartBody(size_t begin, int32_t depth) {
    Start(begin, depth);
    layout_[begin].line_break = Break::kKeep;
    layout_[begin].begins_body = true;
  }

  // Tokens within a statement of that depth; a closing bracket that begins a line stands below the statement.
  size_t Continue(size_t begin, size_t end, int32_t depth) {
    for (size_t i = begin; i < end; ++i) {
      TokenLayout& token = layout_[i];
      const bool closes = IsOneOf(tokens_[i], {")", "]", "}"});
      const bool stays = IsOneOf(tokens_[i], {",", ";", "{"}) || IsAssignment(tokens_[i]);
      token.line_break = stays ? Break::kNever : Break::kKeep;
      token.indent = depth * kIndent + (closes ? 0 : kContinuation);
      token.comment_indent = depth * kIndent + kContinuation;
    }
    return end;
  }

  // The ";" behind a statement belong to it.
  size_t SkipSemicolons(size_t at, int32_t depth) {
    size_t end = at;
    while (tokens_[end].Is(";")) ++end;
    return Continue(at, end, depth);
  }

  size_t EndOf(const SourceRange& range) const {
    const auto found =
        std::lower_bound(tokens_.begin(), tokens_.end(), range.end,
                         [](const Token& token, const Place& at) { return token.range.end <= at; });
    return std::min(static_cast<size_t>(found - tokens_.begin()),
                    tokens_.size() - 1);  // not the end of the file
  }

  // Returns the token behind the statement and the ";" that end it.
  size_t VisitStatement(const Statement& statement, size_t begin, int32_t depth, bool is_body = false) {
    using enum Statement::Kind;
    if (is_body) {
      StartBody(begin, depth);
    } else {
      Start(begin, depth);
    }
    const bool is_if = statement.kind == kIf;
    if (!is_if && statement.kind != kWhile && statement.kind != kFor && statement.kind != kParallelFor)
      return SkipSemicolons(Continue(begin + 1, std::max(EndOf(statement.range), begin + 1), depth), depth);
    const size_t head_end = closing_[begin + 1] + 1;
    Continue(begin + 1, head_end, depth);
    size_t at = VisitBody(statement.body, head_end, depth);
    if (is_if && tokens_[at].Is("else")) {
      TokenLayout& word = layout_[at];
      word.line_break = tokens_[at - 1].Is("}") ? Break::kNever : Break::kKeep;
      word.indent = word.comment_indent = depth * kIndent;
      const bool chained =
          tokens_[at + 1].Is("if") && tokens_[at].range.begin.line == tokens_[at + 1].range.begin.line;
      if (chained && statement.otherwise.size() == 1) {
        const size_t end = VisitStatement(statement.otherwise[0], at + 1, depth);
        layout_[at + 1].line_break = Break::kNever;
        layout_[at + 1].begins_statement = false;
        at = end;
      } else {
        at = VisitBody(statement.otherwise, at + 1, depth);
      }
    }
    return SkipSemicolons(at, depth);
  }

  // A block in braces or a single statement, behind a head of that depth.
  size_t VisitBody(const std::vector<Statement>& statements, size_t begin, int32_t depth) {
    if (tokens_[begin].Is("{")) return VisitBlock(statements, begin, depth);
    if (statements.empty()) return begin;
    return VisitStatement(statements[0], begin, depth + 1, /*is_body=*/true);
  }

  size_t VisitBlock(const std::vector<Statement>& statements, size_t open, int32_t depth) {
    const size_t close = closing_[open];
    layout_[open].indent = layout_[open].comment_indent = depth * kIndent;
    size_t at = open + 1;
    for (const Statement& statement : statements) {
      const size_t begin = IndexOf(statement.range.begin);
      Continue(at, begin, depth + 1);
      at = VisitStatement(statement, begin, depth + 1);
    }
    Continue(at, close, depth + 1);
    TokenLayout& end = layout_[close];
    end.line_break = close > open + 1 ? Break::kAlways : Break::kNever;
    end.indent = depth * kIndent;
    end.comment_indent = (depth + 1) * kIndent;
    return close + 1;
  }

  size_t VisitFunction(const FunctionDefinition& function, size_t begin) {
    Start(begin, 0);
    size_t at = closing_[begin + 3] + 1;  // name = function (...)
    if (tokens_[at].Is("return")) at = closing_[at + 1] + 1;
    Continue(begin + 1, at, 0);
    return SkipSemicolons(VisitBlock(function.body, at, 0), 0);
  }

  const std::vector<Token>& tokens_;
  std::vector<TokenLayout>& layout_;
  std::vector<size_t> closing_;  // of each bracket that opens: the one that closes it
};

// Blanks and places where long lines may be broken, token by token.
class Blanks {
 public:
  Blanks(const std::vector<Token>& tokens, std::vector<TokenLayout>* layout)
      : tokens_(tokens), layout_(*layout) {}

  void Run() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (layout_[i].begins_statement) open_.clear();
      const Token& token = tokens_[i];
      const bool closes = IsOneOf(token, {")", "]"});
      if (closes && !open_.empty()) open_.pop_back();
      layout_[i].depth = static_cast<int32_t>(open_.size());
      layout_[i].blank = i > 0 && NeedsBlank(i);
      layout_[i].may_break = i > 0 && MayBreak(i);
      if (token.Is("(")) open_.push_back(BracketOfParenthesis(i));
      if (token.Is("[")) open_.push_back(BracketOfSquare(i));
      if (closes && open_.empty()) is_header_ = false;
      if (token.Is("function") || token.Is("externalFunction") || token.Is("return")) is_header_ = true;
    }
  }

 private:
  bool IsWord(const Token& token) const {
    return token.kind == Token::Kind::kIdentifier || token.kind == Token::Kind::kKeyword ||
           token.kind == Token::Kind::kLiteral || token.kind == Token::Kind::kParameter;
  }

  // A "-", "+" or "!" before its operand.
  bool IsSign(size_t i) const {
    if (tokens_[i].Is("!")) return true;
    if (!IsOneOf(tokens_[i], {"-", "+"}) || i == 0 || layout_[i].begins_statement) return false;
    const Token& before = tokens_[i - 1];
    if (IsOneOf(before, {")", "]"})) return false;
    return before.kind == Token::Kind::kSymbol || before.kind == Token::Kind::kKeyword;
  }

  bool In(Bracket bracket) const { return !open_.empty() && open_.back() == bracket; }

  Bracket BracketOfParenthesis(size_t i) const {
    if (is_header_ && open_.empty()) return Bracket::kParameters;
    const bool is_call = i > 0 && tokens_[i - 1].kind == Token::Kind::kIdentifier;
    const bool is_head = i > 0 && tokens_[i - 1].kind == Token::Kind::kKeyword;
    return is_call || is_head ? Bracket::kArguments : Bracket::kGroup;
  }

  Bracket BracketOfSquare(size_t i) const {
    if (i == 0 || layout_[i].begins_statement) return Bracket::kList;
    const Token& before = tokens_[i - 1];
    if (before.kind != Token::Kind::kIdentifier && !IsOneOf(before, {")", "]"})) return Bracket::kList;
    return In(Bracket::kParameters) ? Bracket::kType : Bracket::kIndex;
  }

  bool NeedsBlank(size_t i) const {
    const Token& before = tokens_[i - 1];
    const Token& token = tokens_[i];
    if (token.kind == Token::Kind::kEnd || IsOneOf(token, {",", ";", ")", "]"})) return false;
    if (IsOneOf(before, {"(", "["})) return false;
    if (before.Is("{") && token.Is("}")) return false;
    if (IsOneOf(token, {"{", "}"}) || IsOneOf(before, {"{", "}", ";"})) return true;
    if (before.Is(",")) return !In(Bracket::kIndex);
    if (IsOneOf(before, {":", "^"}) || IsOneOf(token, {":", "^"})) return false;
    if (IsSign(i - 1)) return false;
    if (token.Is("=") || before.Is("=")) return open_.empty() || In(Bracket::kParameters);
    if (IsAssignment(token) || IsAssignment(before)) return true;
    if (IsBinaryText(token) || IsBinaryText(before) || token.Is("!")) return true;
    if (token.Is("("))
      return before.kind == Token::Kind::kKeyword && !before.Is("function") &&
             !IsOneOf(before, {"source", "setwd", "ifdef", "externalFunction"});
    if (token.Is("[")) return BracketOfSquare(i) == Bracket::kList;
    return IsWord(token) || IsWord(before);
  }

  bool MayBreak(size_t i) const {
    const Token& before = tokens_[i - 1];
    const Token& token = tokens_[i];
    if (In(Bracket::kIndex) || In(Bracket::kType)) return false;
    if (before.Is(",")) return true;
    if (token.Is("return") && before.Is(")")) return true;
    return IsBinaryText(token) && !token.Is("^") && !IsSign(i);
  }

  const std::vector<Token>& tokens_;
  std::vector<TokenLayout>& layout_;
  std::vector<Bracket> open_;
  bool is_header_ = false;  // within the parameters or results of a function
};

}  // namespace

std::vector<TokenLayout> LayOut(const std::vector<Token>& tokens, const ScriptFile& file) {
  std::vector<TokenLayout> layout(tokens.size());
  LineBreaks(tokens, &layout).Run(file);
  Blanks(tokens, &layout).Run();
  return layout;
}

}  // namespace heddle::compiler
