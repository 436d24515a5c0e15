// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/token_stream.h"

#include <algorithm>

#include "compiler/parse/ast.h"
#include "core/text/utf8.h"

namespace heddle::compiler {
namespace {

// A file with more errors than this is no script.
constexpr size_t kMostErrors = 200;

bool IsOpening(const Token& token) { return token.Is("(") || token.Is("[") || token.Is("{"); }
bool IsClosing(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }
std::string_view OpeningOf(std::string_view closing) {
  return closing == ")" ? "(" : closing == "]" ? "[" : "{";
}

}  // namespace

std::string Describe(const Token& token) {
  constexpr size_t kMost = 40;
  if (token.kind == Token::Kind::kEnd) return "the end of the file";
  if (token.kind == Token::Kind::kLiteral && token.value.IsString()) return "a string";
  std::string name(token.text);
  if (token.kind == Token::Kind::kParameter) name = "$" + name;
  if (!token.name_space.empty()) name = std::string(token.name_space) + "::" + name;
  if (name.size() > kMost) name = std::string(CutAtCharacter(name, kMost)) + "...";
  return "'" + name + "'";
}

TokenStream::TokenStream(const std::string& file, std::string_view text, Diagnostics* diagnostics)
    : file_(file),
      text_(text),
      diagnostics_(diagnostics),
      tokens_(Tokenize(text, &stray_)),
      closing_(tokens_.size()) {
  for (const SourceRange& range : stray_)
    diagnostics_->Warning(file_, range, "this '.' means nothing and is left out");
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    if (IsOpening(tokens_[i])) open.push_back(i);
    if (!IsClosing(tokens_[i])) continue;
    // A bracket that is not closed inside is passed over, but not beyond the block.
    const std::string_view opening = OpeningOf(tokens_[i].text);
    while (!open.empty() && !tokens_[open.back()].Is(opening) &&
           (opening == "{" || !tokens_[open.back()].Is("{"))) {
      open.pop_back();
    }
    if (open.empty() || !tokens_[open.back()].Is(opening)) continue;
    if (opening == "[") closing_[open.back()] = i + 1;
    open.pop_back();
  }
}

Place TokenStream::PreviousEnd() const {
  size_t i = position_;
  while (i > 0 && tokens_[i - 1].Is(";")) --i;
  return i == 0 ? Place{1, 1} : tokens_[i - 1].range.end;
}

const Token& TokenStream::Take() {
  const Token& token = Current();
  if (token.problem != nullptr) Report(token);
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenStream::Accept(std::string_view symbol_or_keyword) {
  if (!At(symbol_or_keyword)) return false;
  Take();
  return true;
}

bool TokenStream::Expect(std::string_view symbol_or_keyword, std::string_view context) {
  if (Accept(symbol_or_keyword)) return true;
  ErrorExpected(fmt::format("'{}'{}", symbol_or_keyword, context));
  return false;
}

bool TokenStream::AtMultiAssignment() const {
  if (!At("[") || closing_[position_] == 0) return false;
  const Token& next = tokens_[closing_[position_]];
  return next.Is("=") || next.Is("<-");
}

Diagnostic& TokenStream::Error(const SourceRange& range, std::string message) {
  unreported_ = Diagnostic();
  if (failed_ || given_up_) return unreported_;
  failed_ = true;
  Diagnostic& diagnostic = diagnostics_->Error(file_, range, std::move(message));
  if (++errors_ >= kMostErrors) GiveUp();
  return diagnostic;
}

Diagnostic& TokenStream::Report(const Token& token) {
  const TokenProblem& problem = *token.problem;
  if (errors_ == 0 && problem.is_open) ends_inside_ = true;
  Diagnostic& diagnostic = Error(problem.range.begin.line > 0 ? problem.range : token.range, problem.message);
  if (!problem.note.empty()) diagnostic.notes.push_back(problem.note);
  diagnostic.suggestion = problem.suggestion;
  return diagnostic;
}

Diagnostic& TokenStream::ErrorExpected(std::string_view what) {
  // In "if (x[1] <-1)" the index was taken for a multi-assignment; what is wrong is the assignment.
  const bool is_misread = AtMultiAssignment() && !Current().first_on_line;
  const Token& found = is_misread ? tokens_[closing_[position_]] : Current();
  if (found.kind == Token::Kind::kInvalid) return Report(found);
  if (errors_ == 0 && found.kind == Token::Kind::kEnd) ends_inside_ = true;
  SourceRange range = found.range;
  std::string message = fmt::format("expected {}, found {}", what, Describe(found));
  if (found.first_on_line && position_ > 0 && !is_misread) {
    const Place end = Previous().range.end;
    range = {end, end};
    if (found.kind != Token::Kind::kEnd) message += fmt::format(" on line {}", found.range.begin.line);
  }
  Diagnostic& diagnostic = Error(range, std::move(message));
  if (found.Is("<-")) {
    diagnostic.notes.push_back("'<-' assigns; to compare with a negative number write '< -'");
  } else if (found.Is("=")) {
    diagnostic.notes.push_back("'=' assigns and has no value; to compare write '=='");
  } else if (found.kind == Token::Kind::kKeyword && !found.first_on_line) {
    diagnostic.notes.push_back(fmt::format("{} is a reserved word", Describe(found)));
  }
  return diagnostic;
}

Diagnostic& TokenStream::Warning(const SourceRange& range, std::string message) {
  return diagnostics_->Warning(file_, range, std::move(message));
}

bool TokenStream::MayBeginStatement(const Token& token) const {
  if (token.kind == Token::Kind::kIdentifier || token.kind == Token::Kind::kParameter) return true;
  if (token.kind == Token::Kind::kInvalid) return true;
  for (const std::string_view word : {"if", "for", "parfor", "while", "source", "setwd", "["}) {
    if (token.Is(word)) return true;
  }
  return false;
}

void TokenStream::SkipStatement(size_t begin, int32_t column) {
  int32_t braces = 0;
  while (!AtEnd()) {
    const Token& token = Current();
    if (braces == 0) {
      if (token.Is("}") && position_ > begin) return;
      if (token.first_on_line && position_ > begin && token.range.begin.column <= column &&
          MayBeginStatement(token)) {
        return;
      }
    }
    ++position_;
    if (token.Is("{")) ++braces;
    if (token.Is("}")) braces = std::max(0, braces - 1);
    if (token.Is(";") && braces == 0) return;
  }
}

bool TokenStream::SkipToBlock(int32_t column) {
  const size_t begin = position_;
  for (size_t i = begin; i < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    if (token.Is("{")) {
      position_ = i;
      return !given_up_;
    }
    if (token.Is("}") || token.Is(";")) return false;
    if (token.first_on_line && token.range.begin.column <= column && MayBeginStatement(token)) return false;
  }
  return false;
}

void TokenStream::GiveUp() {
  given_up_ = true;
  position_ = tokens_.size() - 1;
}

bool TokenStream::Nesting::Check() {
  if (stream_->nesting_ <= kMaxNesting) return true;
  stream_->BeginStatement();
  stream_->Error(stream_->Current().range, fmt::format("nested too deeply: more than {} levels", kMaxNesting))
      .notes.push_back("assign a part to a variable, or move a part into a function");
  stream_->GiveUp();
  return false;
}

}  // namespace heddle::compiler
