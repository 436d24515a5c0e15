// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/print_ast.h"

#include "core/text/double_text.h"

namespace heddle::compiler {
namespace {

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string PrintLiteral(const Scalar& literal) {
  if (literal.IsString()) return Quote(literal.AsString());
  if (literal.IsBoolean()) return literal.AsBoolean() ? "TRUE" : "FALSE";
  if (literal.IsInteger()) return fmt::format("{}", literal.AsInteger());
  return FormatDouble(literal.AsDouble());
}

std::string PrintIndexRange(const IndexRange& range) {
  switch (range.kind) {
    case IndexRange::Kind::kAll: return "_";
    case IndexRange::Kind::kSingle: return PrintExpression(*range.from);
    case IndexRange::Kind::kRange:
      return "(: " + PrintExpression(*range.from) + " " + PrintExpression(*range.to) + ")";
  }
  return "";
}

// (index X rows columns), or (index X rows) without a comma.
std::string PrintIndexed(const std::string& indexed, const Index& index) {
  std::string text = "(index " + indexed + " " + PrintIndexRange(index.rows);
  if (index.has_comma) text += " " + PrintIndexRange(index.columns);
  return text + ")";
}

std::string PrintTarget(const Target& target) {
  return target.index == nullptr ? target.name : PrintIndexed(target.name, *target.index);
}

void PrintBlock(const std::vector<Statement>& statements, int indent, std::string* text);

void PrintStatement(const Statement& statement, int indent, std::string* text) {
  *text += std::string(2 * static_cast<size_t>(indent), ' ');
  const auto head = [&](const std::string& line) { *text += line; };
  switch (statement.kind) {
    case Statement::Kind::kAssign:
      head("(= " + PrintTarget(statement.targets[0]) + " " + PrintExpression(*statement.value) + ")");
      break;
    case Statement::Kind::kAccumulate:
      head("(+= " + PrintTarget(statement.targets[0]) + " " + PrintExpression(*statement.value) + ")");
      break;
    case Statement::Kind::kMultiAssign:
      head("(= (");
      for (size_t i = 0; i < statement.targets.size(); ++i)
        head((i > 0 ? " " : "") + PrintTarget(statement.targets[i]));
      head(") " + PrintExpression(*statement.value) + ")");
      break;
    case Statement::Kind::kCall: head(PrintExpression(*statement.value)); break;
    case Statement::Kind::kIfdef:
      head("(ifdef " + PrintTarget(statement.targets[0]) + " $" + statement.name + " " +
           PrintExpression(*statement.value) + ")");
      break;
    case Statement::Kind::kSource:
      head("(source " + Quote(statement.path) + " " + statement.name + ")");
      break;
    case Statement::Kind::kSetDirectory: head("(setwd " + Quote(statement.path) + ")"); break;
    case Statement::Kind::kIf:
    case Statement::Kind::kWhile:
      head(statement.kind == Statement::Kind::kIf ? "(if " : "(while ");
      head(PrintExpression(*statement.value));
      PrintBlock(statement.body, indent + 1, text);
      if (!statement.otherwise.empty()) {
        *text += "\n" + std::string(2 * static_cast<size_t>(indent), ' ') + "else";
        PrintBlock(statement.otherwise, indent + 1, text);
      }
      head(")");
      break;
    case Statement::Kind::kFor:
    case Statement::Kind::kParallelFor:
      head(statement.kind == Statement::Kind::kFor ? "(for " : "(parfor ");
      head(statement.name + (statement.is_sequence ? " (seq " : " (: "));
      head(PrintExpression(*statement.from) + " " + PrintExpression(*statement.to));
      if (statement.increment != nullptr) head(" " + PrintExpression(*statement.increment));
      head(")");
      for (const ParallelForOption& option : statement.options)
        head(" (" + option.name + "= " + option.text + ")");
      PrintBlock(statement.body, indent + 1, text);
      head(")");
      break;
  }
}

void PrintBlock(const std::vector<Statement>& statements, int indent, std::string* text) {
  for (const Statement& statement : statements) {
    *text += "\n";
    PrintStatement(statement, indent, text);
  }
}

std::string PrintParameter(const ParameterDefinition& parameter) {
  std::string text = "(" + std::string(Name(parameter.data_type)) + "[" +
                     std::string(Name(parameter.value_type)) + "] " + parameter.name;
  if (parameter.default_value != nullptr) text += " " + PrintExpression(*parameter.default_value);
  return text + ")";
}

}  // namespace

std::string PrintExpression(const Expression& expression) {
  std::string text;
  switch (expression.kind) {
    case Expression::Kind::kLiteral: return PrintLiteral(expression.literal);
    case Expression::Kind::kIdentifier: return expression.name;
    case Expression::Kind::kParameter: return "$" + expression.name;
    case Expression::Kind::kIndexed: return PrintIndexed(expression.name, *expression.index);
    case Expression::Kind::kIndexedValue:
      return PrintIndexed(PrintExpression(*expression.operands[0]), *expression.index);
    case Expression::Kind::kBinary:
    case Expression::Kind::kUnary: text = "(" + expression.name; break;
    case Expression::Kind::kList: text = "(list"; break;
    case Expression::Kind::kCall:
      text = "(call " + (expression.name_space.empty() ? "" : expression.name_space + "::") + expression.name;
      break;
  }
  for (const ExpressionPointer& operand : expression.operands) text += " " + PrintExpression(*operand);
  for (const Argument& argument : expression.arguments) {
    const std::string value = PrintExpression(*argument.value);
    text += argument.name.empty() ? " " + value : " (" + argument.name + "= " + value + ")";
  }
  return text + ")";
}

std::string PrintStatements(const std::vector<Statement>& statements) {
  std::string text;
  for (const Statement& statement : statements) {
    PrintStatement(statement, 0, &text);
    text += "\n";
  }
  return text;
}

std::string PrintScript(const ScriptFile& script) {
  std::string text;
  for (const FunctionDefinition& function : script.functions) {
    text += "(function " + function.name + " (";
    for (size_t i = 0; i < function.parameters.size(); ++i)
      text += (i > 0 ? " " : "") + PrintParameter(function.parameters[i]);
    text += ") (";
    for (size_t i = 0; i < function.results.size(); ++i)
      text += (i > 0 ? " " : "") + PrintParameter(function.results[i]);
    text += ")";
    PrintBlock(function.body, 1, &text);
    text += ")\n";
  }
  return text + PrintStatements(script.statements);
}

}  // namespace heddle::compiler
