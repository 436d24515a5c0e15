// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/parse/ast.h"
#include "compiler/parse/lexer.h"

namespace heddle::compiler {

/// What stands before a token of a formatted script.
struct TokenLayout {
  enum class Break : uint8_t {
    kNever,   ///< The token stays on the line of the one before it, unless a comment ends that.
    kKeep,    ///< A line begins here if one does in the text.
    kAlways,  ///< A line begins here.
  };
  Break line_break = Break::kNever;
  bool blank = false;  ///< A blank before it when it goes on a line.
  bool begins_statement = false;
  bool begins_body = false;    ///< The statement of an `if`, `else` or loop without braces.
  bool may_break = false;      ///< A line that is too long may be broken here.
  int32_t depth = 0;           ///< Of brackets within the statement.
  int32_t indent = 0;          ///< In columns, of a line that begins here.
  int32_t comment_indent = 0;  ///< Of a comment on a line of its own before the token.
};

/// The layout of every token of a script that has parsed without errors; `tokens` and `file` are of one text.
std::vector<TokenLayout> LayOut(const std::vector<Token>& tokens, const ScriptFile& file);

}  // namespace heddle::compiler
