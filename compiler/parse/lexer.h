// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/parse/source_range.h"
#include "core/values/scalar.h"

namespace heddle::compiler {

/// What is wrong with a token, even if its kind is usable.
struct TokenProblem {
  SourceRange range;  ///< Of the wrong part; unset means the whole token.
  std::string message;
  std::string note;  ///< What to do about it.
  std::string suggestion;
  bool is_open = false;  ///< It begins what the text does not end: a string, a comment.
};

struct Token {
  enum class Kind : uint8_t {
    kEnd,         ///< Stands right after the last token of the file.
    kIdentifier,  ///< text is the name without the namespace
    kKeyword,     ///< a reserved word
    kSymbol,      ///< operators and punctuation
    kLiteral,     ///< value; TRUE and FALSE too
    kParameter,   ///< text is the name without the $
    kInvalid,     ///< problem says why
  };

  Kind kind = Kind::kEnd;
  bool first_on_line = false;
  SourceRange range;
  std::string_view text;        ///< Points into the script.
  std::string_view name_space;  ///< "ns" of ns::name, else "".
  Scalar value;                 ///< Of kLiteral.
  size_t offset = 0;            ///< Of the first byte in the script.
  size_t end_offset = 0;
  std::unique_ptr<TokenProblem> problem;  ///< Null if nothing is wrong.

  bool Is(std::string_view symbol_or_keyword) const {
    // Most tokens are asked for many, which differ in their first characters.
    return (kind == Kind::kSymbol || kind == Kind::kKeyword) && text[0] == symbol_or_keyword[0] &&
           text == symbol_or_keyword;
  }
};

/// Cuts a script into tokens; the last one is kEnd. Never fails: what is no token becomes kInvalid with its
/// reason. The tokens point into `text`. Cost: linear.
/// `stray`, if given, gets the full stops that end a line and mean nothing: they are left out.
std::vector<Token> Tokenize(std::string_view text, std::vector<SourceRange>* stray = nullptr);

/// What a string literal with this text between its quotes means: \b \t \n \f \r \" \' are replaced
/// textually, any other backslash stays; so "\\n" is a backslash and a newline.
std::string Unescape(std::string_view raw);
/// True for words that can be neither variable nor argument name.
bool IsReservedWord(std::string_view word);

}  // namespace heddle::compiler
