// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/statement_parser.h"

#include <algorithm>
#include <array>

#include "compiler/parse/source_path.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

constexpr std::array<std::string_view, 10> kLoopOptions = {
    "check",           "par",         "mode", "opt",    "taskpartitioner", "tasksize",
    "datapartitioner", "resultmerge", "log",  "profile"};

}  // namespace

bool IsConstant(std::string_view name) { return name == "pi" || name == "Inf" || name == "NaN"; }

void StatementParser::ParseFile() {
  while (!stream_.AtEnd()) {
    stream_.BeginStatement();
    top_column_ = stream_.Current().range.begin.column;
    if (AtFunction()) {
      ParseFunction();
    } else if (stream_.At("}")) {
      stream_.Error(stream_.Current().range, "unexpected '}': no block is open here");
      stream_.Take();
    } else {
      ParseStatement(&file_.statements);
    }
    while (stream_.Accept(";")) {
    }
  }
}

void StatementParser::ParseStatement(std::vector<Statement>* statements) {
  stream_.BeginStatement();
  const size_t begin = stream_.position();
  const int32_t column = stream_.Current().range.begin.column;
  Statement statement;
  statement.range.begin = stream_.Current().range.begin;
  TokenStream::Nesting nesting(&stream_);
  const Outcome outcome = nesting.Check() ? Dispatch(&statement) : Outcome::kFailed;
  if (outcome == Outcome::kParsed) {
    statement.range.end = stream_.PreviousEnd();
    statements->push_back(std::move(statement));
  } else if (outcome == Outcome::kFailed) {
    stream_.SkipStatement(begin, column);
  }
  stream_.BeginStatement();
  while (stream_.Accept(";")) {
  }
}

StatementParser::Outcome StatementParser::Dispatch(Statement* statement) {
  const Token& token = stream_.Current();
  if (takes_expressions_ && depth_ == 0 && AtExpression()) return ParseExpressionAlone(statement);
  if (token.Is("[")) return ParseMultiAssignment(statement);
  if (token.Is("if") || token.Is("while")) return ParseIfOrWhile(statement);
  if (token.Is("for") || token.Is("parfor")) return ParseLoop(statement);
  if (token.Is("source")) return ParseSource(statement);
  if (token.Is("setwd")) return ParseSetDirectory(statement);
  if (token.kind == Token::Kind::kIdentifier && !AtFunction()) return ParseNamed(statement);
  return FailUnexpected();
}

// At what is no statement but the value of one: no assignment follows the name or call that it begins with.
bool StatementParser::AtExpression() const {
  const Token& token = stream_.Current();
  for (const std::string_view symbol : {"(", "-", "+", "!"})
    if (token.Is(symbol)) return true;
  if (token.kind == Token::Kind::kLiteral) return true;
  if (token.kind == Token::Kind::kParameter) return !stream_.AtAssignment(1);
  if (token.kind != Token::Kind::kIdentifier || AtFunction()) return false;
  size_t ahead = 1;
  int32_t open = 0;
  while (stream_.Ahead(ahead).kind != Token::Kind::kEnd) {
    const Token& next = stream_.Ahead(ahead);
    const bool opens = next.Is("(") || next.Is("[");
    if (open == 0 && !opens) break;
    open += opens ? 1 : 0;
    open -= next.Is(")") || next.Is("]") ? 1 : 0;
    ++ahead;
  }
  return !stream_.AtAssignment(ahead) && !stream_.Ahead(ahead).Is("+=");
}

StatementParser::Outcome StatementParser::ParseExpressionAlone(Statement* statement) {
  statement->value = expressions_.Parse();
  if (statement->value == nullptr) return Outcome::kFailed;
  const Expression& value = *statement->value;
  const ops::Operator* const builtin = value.kind == Expression::Kind::kCall && value.name_space.empty()
                                           ? ops::FindBuiltin(value.name)
                                           : nullptr;
  if (builtin != nullptr && builtin->effect) {
    statement->kind = Statement::Kind::kCall;
    return Outcome::kParsed;
  }
  statement->kind = Statement::Kind::kAssign;
  Target& target = statement->targets.emplace_back();
  target.name = kExpressionValue;
  target.range = value.range;
  return Outcome::kParsed;
}

StatementParser::Outcome StatementParser::FailUnexpected() {
  const Token& token = stream_.Current();
  if (AtFunction()) {
    stream_.Error(token.range, fmt::format("function {} is defined inside a block", Describe(token)))
        .notes.push_back("functions are defined at the top level of a file only");
    stream_.Take();
    stream_.Take();
    stream_.Take();
    return Outcome::kFailed;
  }
  if (token.kind == Token::Kind::kParameter && stream_.AtAssignment(1)) {
    stream_.Error(token.range,
                  fmt::format("a command-line argument cannot be assigned: {}", Describe(token)));
  } else if (token.Is("else")) {
    stream_.Error(token.range, "'else' without 'if'");
  } else if (token.Is("return")) {
    stream_.Error(token.range, "there is no return statement")
        .notes.push_back("a function's results are the variables named in its header: return (double y)");
  } else if (token.kind == Token::Kind::kKeyword && stream_.AtAssignment(1)) {
    stream_.Error(token.range, fmt::format("the reserved word {} cannot be assigned", Describe(token)));
  } else {
    stream_.ErrorExpected("a statement");
  }
  return Outcome::kFailed;
}

bool StatementParser::CheckVariable(const Token& token) {
  if (token.kind == Token::Kind::kKeyword) {
    stream_.Error(token.range, fmt::format("the reserved word {} cannot name a variable", Describe(token)));
  } else if (token.kind != Token::Kind::kIdentifier) {
    stream_.ErrorExpected("the name of a variable");
  } else if (!token.name_space.empty()) {
    stream_.Error(token.range, fmt::format("only functions have a namespace: {}", Describe(token)));
  } else if (IsConstant(token.text)) {
    stream_.Error(token.range, fmt::format("the constant {} cannot be assigned", Describe(token)));
  } else {
    return true;
  }
  return false;
}

bool StatementParser::ParseTarget(Target* target) {
  if (!CheckVariable(stream_.Current())) return false;
  const Token& token = stream_.Take();
  target->name = token.text;
  target->range.begin = token.range.begin;
  if (stream_.At("[")) {
    target->index = expressions_.ParseIndex(fmt::format("'{}'", target->name));
    if (target->index == nullptr) return false;
  }
  target->range.end = stream_.PreviousEnd();
  return true;
}

StatementParser::Outcome StatementParser::ParseNamed(Statement* statement) {
  if (stream_.Ahead(1).Is("(")) {
    statement->kind = Statement::Kind::kCall;
    statement->value = expressions_.ParseCall();
    if (statement->value == nullptr) return Outcome::kFailed;
    if (!stream_.AtAssignment()) return Outcome::kParsed;
    stream_.Error(stream_.Current().range, "the result of a call cannot be assigned to");
    return Outcome::kFailed;
  }
  if (!ParseTarget(&statement->targets.emplace_back())) return Outcome::kFailed;
  if (stream_.Accept("+=")) {
    statement->kind = Statement::Kind::kAccumulate;
    statement->value = expressions_.Parse();
    return statement->value == nullptr ? Outcome::kFailed : Outcome::kParsed;
  }
  if (!stream_.AtAssignment()) {
    const std::string& name = statement->targets.front().name;
    const bool combined = stream_.Current().kind == Token::Kind::kSymbol && stream_.Ahead(1).Is("=");
    Diagnostic& diagnostic = stream_.ErrorExpected(fmt::format("'=' after '{}'", name));
    if (combined) diagnostic.notes.push_back("of the combined assignments there is only '+='");
    return Outcome::kFailed;
  }
  return ParseRightSide(statement);
}

StatementParser::Outcome StatementParser::ParseRightSide(Statement* statement) {
  stream_.Take();  // "=" or "<-"
  if (stream_.At("ifdef")) return ParseIfdef(statement) ? Outcome::kParsed : Outcome::kFailed;
  statement->kind = Statement::Kind::kAssign;
  statement->value = expressions_.Parse();
  if (statement->value == nullptr) return Outcome::kFailed;
  if (!stream_.AtAssignment()) return Outcome::kParsed;
  stream_.ErrorExpected("a statement");
  return Outcome::kFailed;
}

bool StatementParser::ParseIfdef(Statement* statement) {
  statement->kind = Statement::Kind::kIfdef;
  stream_.Take();
  if (!stream_.Expect("(", " after 'ifdef'")) return false;
  if (!stream_.At(Token::Kind::kParameter)) {
    stream_.ErrorExpected("a command-line argument like $x as first argument of ifdef()");
    return false;
  }
  const Token& parameter = stream_.Take();
  statement->name = parameter.text;
  statement->name_range = parameter.range;
  if (!stream_.Expect(",", " and a default value in ifdef()")) return false;
  statement->value = expressions_.Parse();
  return statement->value != nullptr && stream_.Expect(")", " to close ifdef()");
}

StatementParser::Outcome StatementParser::ParseMultiAssignment(Statement* statement) {
  statement->kind = Statement::Kind::kMultiAssign;
  stream_.Take();  // "["
  do {
    if (!ParseTarget(&statement->targets.emplace_back())) return Outcome::kFailed;
  } while (stream_.Accept(","));
  if (!stream_.At("]")) {
    stream_.ErrorExpected("',' or ']' in the variables of a multi-assignment");
    return Outcome::kFailed;
  }
  stream_.Take();
  if (!stream_.AtAssignment()) {
    stream_.ErrorExpected("'=' after the variables of a multi-assignment");
    return Outcome::kFailed;
  }
  stream_.Take();
  if (!stream_.At(Token::Kind::kIdentifier) || !stream_.Ahead(1).Is("(")) {
    stream_.ErrorExpected("the call of a function as the right side of a multi-assignment");
    return Outcome::kFailed;
  }
  statement->value = expressions_.ParseCall();
  return statement->value == nullptr ? Outcome::kFailed : Outcome::kParsed;
}

bool StatementParser::ParsePath(std::string_view of, std::string* path) {
  stream_.Take();  // "source" or "setwd"
  if (!stream_.Expect("(", fmt::format(" after '{}'", of))) return false;
  if (!stream_.At(Token::Kind::kLiteral) || !stream_.Current().value.IsString()) {
    stream_.ErrorExpected(fmt::format("a path in quotes in {}()", of));
    return false;
  }
  *path = stream_.Take().value.AsString();
  return stream_.Expect(")", fmt::format(" to close {}()", of));
}

StatementParser::Outcome StatementParser::ParseSource(Statement* statement) {
  statement->kind = Statement::Kind::kSource;
  if (!ParsePath("source", &statement->path)) return Outcome::kFailed;
  if (!stream_.Expect("as", " and a namespace after source()")) return Outcome::kFailed;
  const Token& name = stream_.Current();
  if (name.kind != Token::Kind::kIdentifier || !name.name_space.empty()) {
    stream_.ErrorExpected("the name of a namespace after 'as'");
    return Outcome::kFailed;
  }
  stream_.Take();
  statement->name = name.text;
  statement->name_range = name.range;
  if (takes_expressions_)  // a session may bind it anew
    std::erase_if(file_.imports, [&](const Import& other) { return other.name_space == statement->name; });
  Import& import = file_.imports.emplace_back();
  import.path = statement->path;
  import.directory = directory_;
  import.name_space = statement->name;
  import.range = {statement->range.begin, name.range.end};
  return Outcome::kParsed;
}

StatementParser::Outcome StatementParser::ParseSetDirectory(Statement* statement) {
  statement->kind = Statement::Kind::kSetDirectory;
  if (!ParsePath("setwd", &statement->path)) return Outcome::kFailed;
  directory_ = JoinPath(directory_, statement->path);
  return Outcome::kParsed;
}

StatementParser::Outcome StatementParser::ParseIfOrWhile(Statement* statement) {
  const Token& word = stream_.Take();
  const bool is_if = word.text == "if";
  statement->kind = is_if ? Statement::Kind::kIf : Statement::Kind::kWhile;
  bool ok = stream_.Expect("(", fmt::format(" after '{}'", word.text));
  if (ok) statement->value = expressions_.Parse();
  ok = ok && statement->value != nullptr &&
       stream_.Expect(")", fmt::format(" to close the condition of '{}'", word.text));
  if (!ok && !stream_.SkipToBlock(word.range.begin.column)) return Outcome::kFailed;
  ok = ParseBlock(&statement->body) && ok;
  if (is_if && stream_.Accept("else")) ok = ParseBlock(&statement->otherwise) && ok;
  return ok ? Outcome::kParsed : Outcome::kDropped;
}

StatementParser::Outcome StatementParser::ParseLoop(Statement* statement) {
  const Token& word = stream_.Take();
  statement->kind = word.text == "for" ? Statement::Kind::kFor : Statement::Kind::kParallelFor;
  bool ok = stream_.Expect("(", fmt::format(" after '{}'", word.text)) && ParseLoopHeader(statement);
  if (!ok && !stream_.SkipToBlock(word.range.begin.column)) return Outcome::kFailed;
  if (ok && statement->kind == Statement::Kind::kFor && !statement->options.empty()) {
    stream_.Warning(statement->options.front().name_range, "the options of a 'for' have no effect");
  }
  ok = ParseBlock(&statement->body) && ok;
  return ok ? Outcome::kParsed : Outcome::kDropped;
}

bool StatementParser::ParseLoopHeader(Statement* statement) {
  if (!CheckVariable(stream_.Current())) return false;
  const Token& variable = stream_.Take();
  statement->name = variable.text;
  statement->name_range = variable.range;
  if (!stream_.Expect("in", " after the loop variable") || !ParseIterated(statement)) return false;
  while (stream_.Accept(",")) {
    if (!ParseLoopOption(statement)) return false;
  }
  return stream_.Expect(")", " to close the header of the loop");
}

bool StatementParser::ParseIterated(Statement* statement) {
  const Token& first = stream_.Current();
  statement->from = expressions_.Parse();
  if (statement->from == nullptr) return false;
  if (stream_.Accept(":")) {
    statement->to = expressions_.Parse();
    return statement->to != nullptr;
  }
  Expression& call = *statement->from;
  const bool is_sequence = call.kind == Expression::Kind::kCall && call.name_space.empty() &&
                           call.name == "seq" && call.arguments.size() >= 2 && call.arguments.size() <= 3 &&
                           std::all_of(call.arguments.begin(), call.arguments.end(),
                                       [](const Argument& argument) { return argument.name.empty(); });
  if (!is_sequence) {
    const SourceRange range = {first.range.begin, call.range.end};
    stream_.Error(range, "a loop runs over from:to or seq(from, to, increment), found another expression")
        .notes.push_back("to visit the rows of X write 1:nrow(X)");
    return false;
  }
  std::vector<Argument> arguments = std::move(call.arguments);
  statement->is_sequence = true;
  statement->from = std::move(arguments[0].value);
  statement->to = std::move(arguments[1].value);
  if (arguments.size() == 3) statement->increment = std::move(arguments[2].value);
  return true;
}

bool StatementParser::ParseLoopOption(Statement* statement) {
  const Token& name = stream_.Current();
  if (name.kind != Token::Kind::kIdentifier) {
    stream_.ErrorExpected("the name of an option of the loop");
    return false;
  }
  if (std::find(kLoopOptions.begin(), kLoopOptions.end(), name.text) == kLoopOptions.end() ||
      !name.name_space.empty()) {
    Diagnostic& diagnostic =
        stream_.Error(name.range, fmt::format("unknown option of a loop: {}", Describe(name)));
    diagnostic.suggestion = SuggestName(name.text, {kLoopOptions.begin(), kLoopOptions.end()});
    if (diagnostic.suggestion.empty()) {
      diagnostic.notes.push_back(
          "options are check, par, mode, opt, taskpartitioner, tasksize, datapartitioner, resultmerge, log, "
          "profile");
    }
  }
  stream_.Take();
  if (!stream_.Expect("=", fmt::format(" after the option {}", Describe(name)))) return false;
  // The value is raw text; reading it as an expression finds its end.
  const size_t begin = stream_.Current().offset;
  const ExpressionPointer value = expressions_.Parse();
  if (value == nullptr) return false;
  ParallelForOption& option = statement->options.emplace_back();
  option.name = name.text;
  option.name_range = name.range;
  option.text_range = value->range;
  option.text = stream_.text().substr(begin, stream_.Previous().end_offset - begin);
  return true;
}

bool StatementParser::AtFunction() const {
  return stream_.At(Token::Kind::kIdentifier) && stream_.AtAssignment(1) &&
         (stream_.Ahead(2).Is("function") || stream_.Ahead(2).Is("externalFunction"));
}

// Inside a block: a definition that stands where the definitions of the file stand means that a "}" is
// missing.
bool StatementParser::AtFunctionOfTheFile() const {
  return stream_.Current().first_on_line && stream_.Current().range.begin.column <= top_column_ &&
         AtFunction();
}

void StatementParser::ReportOpenBlock(const Token& open) {
  if (open_block_reported_ == stream_.position()) return;
  open_block_reported_ = stream_.position();
  stream_.BeginStatement();
  stream_.ErrorExpected(fmt::format("'}}' to close the block of line {}, column {}", open.range.begin.line,
                                    open.range.begin.column));
}

bool StatementParser::ParseBlock(std::vector<Statement>* statements) {
  ++depth_;
  const bool ok = ParseStatementsOfBlock(statements);
  --depth_;
  return ok;
}

bool StatementParser::ParseStatementsOfBlock(std::vector<Statement>* statements) {
  if (!stream_.At("{")) {
    if (stream_.AtEnd() || stream_.At("}")) {
      stream_.ErrorExpected("a statement");
      return false;
    }
    ParseStatement(statements);
    return true;
  }
  const Token& open = stream_.Take();
  while (!stream_.At("}")) {
    if (stream_.AtEnd() || AtFunctionOfTheFile()) {
      ReportOpenBlock(open);
      return false;
    }
    ParseStatement(statements);
  }
  stream_.BeginStatement();
  stream_.Take();
  return true;
}

}  // namespace heddle::compiler
