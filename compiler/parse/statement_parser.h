// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/parse/ast.h"
#include "compiler/parse/expression_parser.h"
#include "compiler/parse/token_stream.h"

namespace heddle::compiler {

/// True for the names that stand for a number and cannot be assigned: pi, Inf, NaN.
bool IsConstant(std::string_view name);

/// Parses statements and function definitions (language reference 1.2) into a ScriptFile.
class StatementParser {
 public:
  /// `takes_expressions` as of Parse().
  StatementParser(TokenStream* stream, ScriptFile* file, bool takes_expressions)
      : stream_(*stream), expressions_(stream), file_(*file), takes_expressions_(takes_expressions) {}

  void ParseFile();

 private:
  enum class Outcome : uint8_t {
    kParsed,
    kDropped,  // an error was reported, the stream stands behind the statement
    kFailed,   // an error was reported, the rest of the statement is to be skipped
  };

  void ParseStatement(std::vector<Statement>* statements);
  Outcome Dispatch(Statement* statement);
  bool AtExpression() const;
  Outcome ParseExpressionAlone(Statement* statement);
  Outcome ParseNamed(Statement* statement);
  Outcome ParseMultiAssignment(Statement* statement);
  Outcome ParseRightSide(Statement* statement);
  bool ParseIfdef(Statement* statement);
  Outcome ParseSource(Statement* statement);
  Outcome ParseSetDirectory(Statement* statement);
  Outcome ParseIfOrWhile(Statement* statement);
  Outcome ParseLoop(Statement* statement);
  bool ParseLoopHeader(Statement* statement);
  bool ParseIterated(Statement* statement);
  bool ParseLoopOption(Statement* statement);
  bool ParseTarget(Target* target);
  bool CheckVariable(const Token& token);
  bool ParsePath(std::string_view of, std::string* path);
  Outcome FailUnexpected();

  bool ParseBlock(std::vector<Statement>* statements);
  bool ParseStatementsOfBlock(std::vector<Statement>* statements);
  bool AtFunction() const;
  bool AtFunctionOfTheFile() const;
  void ReportOpenBlock(const Token& open);

  // In function_parser.cc.
  void ParseFunction();
  bool ParseFunctionHeader(FunctionDefinition* function);
  bool ParseParameters(std::string_view what, bool are_results, std::vector<ParameterDefinition>* parameters);
  bool ParseParameter(std::string_view what, bool is_result, ParameterDefinition* parameter);
  bool ParseType(std::string_view what, ParameterDefinition* parameter);
  bool ParseExternalPart();

  TokenStream& stream_;
  ExpressionParser expressions_;
  ScriptFile& file_;
  const bool takes_expressions_;
  std::map<std::string, int32_t, std::less<>> function_lines_;
  std::string directory_;           // of the last setwd()
  int32_t top_column_ = 1;          // where the item of the top level begins that is being parsed
  int32_t depth_ = 0;               // of blocks
  size_t open_block_reported_ = 0;  // position where a missing "}" was reported
};

}  // namespace heddle::compiler
