// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "compiler/parse/statement_parser.h"

namespace heddle::compiler {
namespace {

std::string LowerFirst(std::string_view word) {
  std::string result(word);
  if (!result.empty() && result[0] >= 'A' && result[0] <= 'Z')
    result[0] = static_cast<char>(result[0] - 'A' + 'a');
  return result;
}

// double, integer, int, boolean, string, unknown; capitalised too.
std::optional<ValueType> ValueTypeOf(const Token& token) {
  if (token.kind != Token::Kind::kKeyword) return std::nullopt;
  const std::string word = LowerFirst(token.text);
  if (word == "double") return ValueType::kDouble;
  if (word == "integer" || word == "int") return ValueType::kInteger;
  if (word == "boolean") return ValueType::kBoolean;
  if (word == "string") return ValueType::kString;
  if (word == "unknown") return ValueType::kUnknown;
  return std::nullopt;
}

std::optional<DataType> ContainerOf(const Token& token) {
  if (token.kind != Token::Kind::kIdentifier || !token.name_space.empty()) return std::nullopt;
  const std::string word = LowerFirst(token.text);
  if (word == "matrix") return DataType::kMatrix;
  if (word == "frame") return DataType::kFrame;
  if (word == "list") return DataType::kList;
  if (word == "scalar") return DataType::kScalar;
  return std::nullopt;
}

// A parameter that is declared boolean and whose default is 3, say, is meant to hold numbers: scripts that
// declare one so (enumerateLogical) get by because SystemDS puts constants into bodies unconverted.
bool CountsMoreThanABoolean(const Expression& value) {
  if (value.kind != Expression::Kind::kLiteral) return false;
  const ValueType type = value.literal.type();
  if (type != ValueType::kInteger && type != ValueType::kDouble) return false;
  return value.literal.AsDouble() != 0 && value.literal.AsDouble() != 1;
}

}  // namespace

void StatementParser::ParseFunction() {
  FunctionDefinition function;
  const Token& name = stream_.Take();
  function.name = name.text;
  function.name_range = name.range;
  function.range.begin = name.range.begin;
  stream_.Take();  // "=" or "<-"
  const bool is_external = stream_.Take().text == "externalFunction";

  bool ok = name.name_space.empty();
  if (!ok)
    stream_.Error(name.range, fmt::format("a function is defined without a namespace: {}", Describe(name)));
  ok = ParseFunctionHeader(&function) && ok;
  if (is_external) {
    if (!ok || !ParseExternalPart()) {
      stream_.SkipStatement(stream_.position(), name.range.begin.column);
    } else {
      stream_.Warning(name.range, fmt::format("the external function {} is ignored", Describe(name)));
    }
    return;
  }
  if (ok && !stream_.At("{")) {
    stream_.ErrorExpected(fmt::format("'{{' to begin the body of function {}", Describe(name)));
    ok = false;
  }
  if (!ok && !stream_.SkipToBlock(name.range.begin.column)) {
    stream_.SkipStatement(stream_.position(), name.range.begin.column);
    return;
  }
  const Token& body = stream_.Current();
  const bool is_empty = stream_.Ahead(1).Is("}");
  if (!ParseBlock(&function.body)) return;
  function.range.end = stream_.PreviousEnd();
  if (is_empty && ok) {
    stream_.BeginStatement();
    stream_.Error(body.range, fmt::format("function {} has an empty body", Describe(name)));
    return;
  }
  const auto [first, is_new] = function_lines_.emplace(function.name, name.range.begin.line);
  if (!is_new && takes_expressions_) {  // a session defines it anew
    std::erase_if(file_.functions, [&](const auto& other) { return other.name == function.name; });
  } else if (!is_new) {
    stream_.BeginStatement();
    stream_.Error(name.range, fmt::format("function {} is defined twice", Describe(name)))
        .notes.push_back(fmt::format("the first definition is on line {}", first->second));
    return;
  }
  if (ok) file_.functions.push_back(std::move(function));
}

bool StatementParser::ParseFunctionHeader(FunctionDefinition* function) {
  if (!stream_.Expect("(", " after 'function'")) return false;
  if (!ParseParameters("parameter", false, &function->parameters)) return false;
  if (!stream_.Accept("return")) return true;
  return stream_.Expect("(", " after 'return'") && ParseParameters("result", true, &function->results);
}

// parameter {, parameter} ")"; the "(" has been taken.
bool StatementParser::ParseParameters(std::string_view what, bool are_results,
                                      std::vector<ParameterDefinition>* parameters) {
  if (stream_.Accept(")")) return true;
  for (;;) {
    ParameterDefinition parameter;
    if (!ParseParameter(what, are_results, &parameter)) return false;
    const bool is_double =
        std::any_of(parameters->begin(), parameters->end(),
                    [&](const ParameterDefinition& other) { return other.name == parameter.name; });
    if (is_double) {
      stream_.Error(parameter.name_range,
                    fmt::format("two {}s have the same name: '{}'", what, parameter.name));
      return false;
    }
    parameters->push_back(std::move(parameter));
    if (stream_.Accept(")")) return true;
    if (!stream_.Accept(",")) {
      stream_.ErrorExpected(fmt::format("',' or ')' after {} '{}'", what, parameters->back().name));
      return false;
    }
  }
}

bool StatementParser::ParseParameter(std::string_view what, bool is_result, ParameterDefinition* parameter) {
  parameter->range.begin = stream_.Current().range.begin;
  if (!ParseType(what, parameter)) return false;
  const Token& name = stream_.Current();
  if (name.kind == Token::Kind::kKeyword) {
    stream_.Error(name.range, fmt::format("the reserved word {} cannot name a {}", Describe(name), what));
    return false;
  }
  if (name.kind != Token::Kind::kIdentifier || !name.name_space.empty()) {
    stream_.ErrorExpected(fmt::format("the name of a {}", what));
    return false;
  }
  if (IsConstant(name.text)) {
    stream_.Error(name.range, fmt::format("the constant {} cannot name a {}", Describe(name), what));
    return false;
  }
  stream_.Take();
  parameter->name = name.text;
  parameter->name_range = name.range;
  if (stream_.At("=") && !is_result) {
    stream_.Take();
    parameter->default_value = expressions_.Parse();
    if (parameter->default_value == nullptr) return false;
    if (CountsMoreThanABoolean(*parameter->default_value) && parameter->value_type == ValueType::kBoolean)
      parameter->value_type = parameter->default_value->literal.type();
  }
  parameter->range.end = stream_.PreviousEnd();
  return true;
}

bool StatementParser::ParseType(std::string_view what, ParameterDefinition* parameter) {
  const Token& word = stream_.Current();
  if (const auto value_type = ValueTypeOf(word)) {
    stream_.Take();
    parameter->data_type = DataType::kScalar;
    parameter->value_type = *value_type;
    return true;
  }
  if (word.kind != Token::Kind::kIdentifier || !word.name_space.empty()) {
    stream_.ErrorExpected(fmt::format("the type of a {}", what));
    return false;
  }
  const std::optional<DataType> container = ContainerOf(word);
  const bool stands_alone = stream_.Ahead(1).Is(",") || stream_.Ahead(1).Is(")") || stream_.Ahead(1).Is("=");
  if (!container && stands_alone) {
    stream_.Error(word.range, fmt::format("{} {} has no type", what, Describe(word)))
        .notes.push_back(
            fmt::format("write for example 'double {}' or 'matrix[double] {}'", word.text, word.text));
    return false;
  }
  if (!container) {
    Diagnostic& diagnostic = stream_.Error(word.range, fmt::format("unknown type {}", Describe(word)));
    diagnostic.suggestion = SuggestName(word.text, {"double", "integer", "boolean", "string", "unknown",
                                                    "matrix", "frame", "list", "scalar"});
    diagnostic.notes.push_back(
        "types are double, integer, boolean, string, unknown, matrix[...], frame[...], list[...]");
    return false;
  }
  stream_.Take();
  if (!stream_.At("[")) {
    const char* inner = *container == DataType::kMatrix   ? "double"
                        : *container == DataType::kScalar ? "double"
                                                          : "unknown";
    stream_.Error(word.range, fmt::format("the type {} needs a value type", Describe(word)))
        .notes.push_back(fmt::format("write {}[{}]", word.text, inner));
    return false;
  }
  stream_.Take();
  const auto value_type = ValueTypeOf(stream_.Current());
  if (!value_type) {
    stream_.ErrorExpected(fmt::format("a value type in {}[...]", word.text))
        .notes.push_back("value types are double, integer, boolean, string and unknown");
    return false;
  }
  stream_.Take();
  parameter->data_type = *container;
  parameter->value_type = *value_type;
  return stream_.Expect("]", " after the value type");
}

// implemented in (name = value, ...)
bool StatementParser::ParseExternalPart() {
  if (!stream_.Expect("implemented", " after the header of an external function")) return false;
  if (!stream_.Expect("in", " after 'implemented'") || !stream_.Expect("(", " after 'in'")) return false;
  std::vector<Argument> ignored;
  return expressions_.ParseArguments("the description of an external function", &ignored);
}

}  // namespace heddle::compiler
