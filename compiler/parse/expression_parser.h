// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "compiler/parse/ast.h"
#include "compiler/parse/token_stream.h"

namespace heddle::compiler {

/// Parses expressions by operator precedence (language reference 1.3). Every function returns null or false
/// after it has reported an error.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream* stream) : stream_(*stream) {}

  ExpressionPointer Parse();
  /// name(arguments); the stream stands at the name. The ";" that may follow are taken.
  ExpressionPointer ParseCall();
  /// [rows, columns]; the stream stands at the "[". `indexed` is for messages: "'X'".
  std::unique_ptr<Index> ParseIndex(const std::string& indexed);
  /// argument {, argument} ")"; the "(" has been taken. `what` is for messages: "the arguments of 'f'".
  bool ParseArguments(const std::string& what, std::vector<Argument>* arguments);

 private:
  ExpressionPointer ParseAtLevel(int level);
  ExpressionPointer ParsePrefix();
  ExpressionPointer ParsePrimary();
  ExpressionPointer ParseUnindexed();
  ExpressionPointer ParseIndexOf(ExpressionPointer value);
  ExpressionPointer ParseName();
  ExpressionPointer ParseParenthesized();
  ExpressionPointer ParseList();
  bool ParseArgument(Argument* argument);
  bool ParseIndexRange(IndexRange* range);
  bool Finish(Expression* expression);

  TokenStream& stream_;
};

}  // namespace heddle::compiler
