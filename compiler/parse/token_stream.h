// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/parse/diagnostics.h"
#include "compiler/parse/lexer.h"

namespace heddle::compiler {

/// The tokens of one file with a position in them, and the parser's way to report errors and to go on after
/// one. At most one error per statement is reported: after the first, Error() is silent until
/// BeginStatement().
class TokenStream {
 public:
  TokenStream(const std::string& file, std::string_view text, Diagnostics* diagnostics);

  const Token& Current() const { return tokens_[position_]; }
  const Token& Ahead(size_t count) const { return tokens_[std::min(position_ + count, tokens_.size() - 1)]; }
  const Token& Previous() const { return tokens_[position_ == 0 ? 0 : position_ - 1]; }
  size_t position() const { return position_; }
  std::string_view text() const { return text_; }
  /// Where the last token that is no ";" ends.
  Place PreviousEnd() const;

  bool At(std::string_view symbol_or_keyword) const { return Current().Is(symbol_or_keyword); }
  bool At(Token::Kind kind) const { return Current().kind == kind; }
  bool AtEnd() const { return At(Token::Kind::kEnd); }
  bool AtAssignment(size_t ahead = 0) const { return Ahead(ahead).Is("=") || Ahead(ahead).Is("<-"); }

  /// Takes the current token. A literal or name that the lexer complained about is reported here.
  const Token& Take();
  bool Accept(std::string_view symbol_or_keyword);
  /// Takes the symbol or reports that it was expected; `context` continues the message (" after ...").
  bool Expect(std::string_view symbol_or_keyword, std::string_view context = "");

  /// True at a "[" that begins a new statement [a, b] = f(...), although an expression stands before it:
  /// after the matching "]" comes an assignment.
  bool AtMultiAssignment() const;

  /// Reports, unless this statement has had its error. The reference serves to add notes, reported or not.
  Diagnostic& Error(const SourceRange& range, std::string message);
  /// "expected {what}, found 'x'", placed at the current token, or behind the previous one if that ends its
  /// line.
  Diagnostic& ErrorExpected(std::string_view what);
  Diagnostic& Warning(const SourceRange& range, std::string message);

  void BeginStatement() { failed_ = false; }
  /// True if the first error was that the text ends where more must follow.
  bool ends_inside() const { return ends_inside_; }

  /// Moves to where the next statement may begin: past a ";", before the "}" of the block, or at a line that
  /// is not indented deeper than `column`. Whole {...} are passed over. Moves at least one token on from
  /// `begin`.
  void SkipStatement(size_t begin, int32_t column);
  /// After a broken header: moves to the "{" of its block; false, not moved, if none comes before the next
  /// statement.
  bool SkipToBlock(int32_t column);

  /// Counts nesting while it lives. Too deep nesting is reported and ends the file.
  class Nesting {
   public:
    explicit Nesting(TokenStream* stream) : stream_(stream) { ++stream_->nesting_; }
    ~Nesting() { --stream_->nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    /// False if the nesting is too deep.
    bool Check();

   private:
    TokenStream* stream_;
  };

 private:
  Diagnostic& Report(const Token& token);
  bool MayBeginStatement(const Token& token) const;
  void GiveUp();

  std::string file_;
  std::string_view text_;
  Diagnostics* diagnostics_;
  std::vector<SourceRange> stray_;  // full stops that were left out
  std::vector<Token> tokens_;
  std::vector<uint32_t> closing_;  // of each "[": the token after its "]", or 0
  size_t position_ = 0;
  int32_t nesting_ = 0;
  size_t errors_ = 0;
  bool failed_ = false;
  bool ends_inside_ = false;
  bool given_up_ = false;
  Diagnostic unreported_;
};

/// "'x'", "a string", "the end of the file".
std::string Describe(const Token& token);

}  // namespace heddle::compiler
