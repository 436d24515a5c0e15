// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/expression_parser.h"

#include <algorithm>
#include <array>

namespace heddle::compiler {
namespace {

// Binding strength of the operators, language reference 1.3; higher binds tighter.
constexpr int kPowerLevel = 10;
constexpr int kSignLevel = 9;
constexpr int kNotLevel = 3;

struct BinaryLevel {
  std::string_view name;
  int level;
};
constexpr std::array<BinaryLevel, 18> kBinaryLevels = {{{"^", kPowerLevel},
                                                        {"%*%", 8},
                                                        {"%/%", 7},
                                                        {"%%", 7},
                                                        {"*", 6},
                                                        {"/", 6},
                                                        {"+", 5},
                                                        {"-", 5},
                                                        {"<", 4},
                                                        {"<=", 4},
                                                        {">", 4},
                                                        {">=", 4},
                                                        {"==", 4},
                                                        {"!=", 4},
                                                        {"&", 2},
                                                        {"&&", 2},
                                                        {"|", 1},
                                                        {"||", 1}}};

int LevelOf(const Token& token) {
  if (token.kind != Token::Kind::kSymbol) return 0;
  for (const BinaryLevel& entry : kBinaryLevels) {
    if (token.text[0] == entry.name[0] && token.text == entry.name) return entry.level;
  }
  return 0;
}

ExpressionPointer New(Expression::Kind kind, const Token& token) {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->range = token.range;
  expression->name_range = token.range;
  return expression;
}

bool IsNumber(const Expression& expression) {
  return expression.kind == Expression::Kind::kLiteral &&
         (expression.literal.IsInteger() || expression.literal.IsDouble());
}

int32_t HeightOf(const ExpressionPointer& expression) {
  return expression == nullptr ? 0 : expression->height;
}

int32_t HeightInside(const Expression& expression) {
  int32_t height = 0;
  for (const ExpressionPointer& operand : expression.operands) height = std::max(height, HeightOf(operand));
  for (const Argument& argument : expression.arguments) height = std::max(height, HeightOf(argument.value));
  if (expression.index != nullptr) {
    const Index& index = *expression.index;
    height = std::max({height, HeightOf(index.rows.from), HeightOf(index.rows.to),
                       HeightOf(index.columns.from), HeightOf(index.columns.to)});
  }
  return height;
}

}  // namespace

// Sets range end and height.
bool ExpressionParser::Finish(Expression* expression) {
  expression->range.end = stream_.PreviousEnd();
  expression->height = 1 + HeightInside(*expression);
  if (expression->height <= kMaxExpressionHeight) return true;
  stream_
      .Error(expression->name_range,
             fmt::format("this expression has more than {} operators in a row", kMaxExpressionHeight))
      .notes.push_back("assign a part to a variable");
  return false;
}

ExpressionPointer ExpressionParser::Parse() { return ParseAtLevel(1); }

ExpressionPointer ExpressionParser::ParseAtLevel(int level) {
  TokenStream::Nesting nesting(&stream_);
  if (!nesting.Check()) return nullptr;
  ExpressionPointer left = ParsePrefix();
  while (left != nullptr) {
    const Token& operation = stream_.Current();
    const int operation_level = LevelOf(operation);
    if (operation_level < level || operation_level == 0) break;
    if (operation.text == "&&" || operation.text == "||") {
      stream_.Error(operation.range, fmt::format("the operator '{}' is not supported", operation.text))
          .notes.push_back(fmt::format("write '{}'; it evaluates both sides", operation.text.substr(1)));
    }
    stream_.Take();
    ExpressionPointer right = ParseAtLevel(operation.text == "^" ? operation_level : operation_level + 1);
    if (right == nullptr) return nullptr;
    ExpressionPointer binary = New(Expression::Kind::kBinary, operation);
    binary->range.begin = left->range.begin;
    binary->name =
        operation.text == "&&" || operation.text == "||" ? operation.text.substr(1) : operation.text;
    binary->operands.push_back(std::move(left));
    binary->operands.push_back(std::move(right));
    if (!Finish(binary.get())) return nullptr;
    left = std::move(binary);
  }
  return left;
}

ExpressionPointer ExpressionParser::ParsePrefix() {
  if (!stream_.At("-") && !stream_.At("+") && !stream_.At("!")) return ParsePrimary();
  const Token& operation = stream_.Take();
  ExpressionPointer operand = ParseAtLevel(operation.text == "!" ? kNotLevel : kSignLevel);
  if (operand == nullptr) return nullptr;
  if (IsNumber(*operand) && operation.text != "!") {
    if (operation.text == "-") {
      Scalar& literal = operand->literal;
      literal = literal.IsInteger() ? Scalar(-literal.AsInteger()) : Scalar(-literal.AsDouble());
    }
    operand->range.begin = operation.range.begin;
    operand->name_range = operand->range;
    return operand;
  }
  ExpressionPointer unary = New(Expression::Kind::kUnary, operation);
  unary->name = operation.text;
  unary->operands.push_back(std::move(operand));
  return Finish(unary.get()) ? std::move(unary) : nullptr;
}

ExpressionPointer ExpressionParser::ParsePrimary() {
  ExpressionPointer primary = ParseUnindexed();
  // x = y, and on the next line [a, b] = f(z): two statements. Behind the ';' that may end a call, too.
  while (primary != nullptr && stream_.At("[") && !stream_.AtMultiAssignment() && !stream_.Previous().Is(";"))
    primary = ParseIndexOf(std::move(primary));
  return primary;
}

ExpressionPointer ExpressionParser::ParseUnindexed() {
  const Token& token = stream_.Current();
  ExpressionPointer primary;
  if (token.kind == Token::Kind::kLiteral) {
    stream_.Take();
    primary = New(Expression::Kind::kLiteral, token);
    primary->literal = token.value;
  } else if (token.kind == Token::Kind::kParameter) {
    stream_.Take();
    primary = New(Expression::Kind::kParameter, token);
    primary->name = token.text;
  } else if (token.kind == Token::Kind::kIdentifier) {
    primary = ParseName();
  } else if (token.Is("(")) {
    primary = ParseParenthesized();
  } else if (token.Is("[")) {
    primary = ParseList();
  } else if (token.Is("ifdef")) {
    stream_.Error(token.range, "ifdef() cannot be part of an expression")
        .notes.push_back("it is legal only as the whole right side of an assignment: x = ifdef($x, 1)");
    return nullptr;
  } else {
    Diagnostic& diagnostic = stream_.ErrorExpected("an expression");
    if (token.Is("*") && stream_.Previous().Is("*")) diagnostic.notes.push_back("the power operator is '^'");
    return nullptr;
  }
  return primary;
}

ExpressionPointer ExpressionParser::ParseIndexOf(ExpressionPointer value) {
  if (value->kind == Expression::Kind::kIdentifier) {
    value->kind = Expression::Kind::kIndexed;
    value->index = ParseIndex(fmt::format("'{}'", value->name));
    return value->index != nullptr && Finish(value.get()) ? std::move(value) : nullptr;
  }
  ExpressionPointer indexed = New(Expression::Kind::kIndexedValue, stream_.Current());
  indexed->range.begin = value->range.begin;
  const bool is_call = value->kind == Expression::Kind::kCall;
  indexed->operands.push_back(std::move(value));
  indexed->index = ParseIndex(is_call ? fmt::format("'{}()'", indexed->operands[0]->name) : "a value");
  return indexed->index != nullptr && Finish(indexed.get()) ? std::move(indexed) : nullptr;
}

ExpressionPointer ExpressionParser::ParseName() {
  if (stream_.Ahead(1).Is("(")) return ParseCall();
  const Token& token = stream_.Take();
  if (!token.name_space.empty()) {
    stream_.Error(token.range, fmt::format("only functions have a namespace: {}", Describe(token)));
    return nullptr;
  }
  ExpressionPointer name = New(Expression::Kind::kIdentifier, token);
  name->name = token.text;
  return name;
}

ExpressionPointer ExpressionParser::ParseCall() {
  const Token& token = stream_.Take();
  ExpressionPointer call = New(Expression::Kind::kCall, token);
  call->name_space = token.name_space;
  call->name = token.text;
  stream_.Take();  // "("
  if (!ParseArguments(fmt::format("the arguments of {}", Describe(token)), &call->arguments)) return nullptr;
  if (!Finish(call.get())) return nullptr;
  while (stream_.Accept(";")) {
  }
  return call;
}

bool ExpressionParser::ParseArguments(const std::string& what, std::vector<Argument>* arguments) {
  const Token& open = stream_.Previous();
  bool ok = true;
  while (ok && !stream_.At(")")) {
    ok = ParseArgument(&arguments->emplace_back());
    if (!ok || stream_.At(")")) break;
    if (!stream_.Accept(",")) {
      ok = false;
      stream_.ErrorExpected(fmt::format("',' or ')' in {}", what))
          .notes.push_back(fmt::format("they begin at line {}, column {}", open.range.begin.line,
                                       open.range.begin.column));
    } else if (stream_.At(")")) {
      ok = false;
      stream_.ErrorExpected("another argument after ','");
    }
  }
  if (ok) stream_.Take();  // ")"
  return ok;
}

bool ExpressionParser::ParseArgument(Argument* argument) {
  const Token& token = stream_.Current();
  if (stream_.Ahead(1).Is("=") && token.kind == Token::Kind::kKeyword) {
    stream_.Error(token.range, fmt::format("the reserved word {} cannot name an argument", Describe(token)));
    return false;
  }
  if (stream_.Ahead(1).Is("=") && token.kind == Token::Kind::kIdentifier && token.name_space.empty()) {
    stream_.Take();
    stream_.Take();
    argument->name = token.text;
    argument->name_range = token.range;
  }
  argument->value = Parse();
  return argument->value != nullptr;
}

ExpressionPointer ExpressionParser::ParseParenthesized() {
  const Token& open = stream_.Take();
  ExpressionPointer inner = Parse();
  if (inner == nullptr) return nullptr;
  if (!stream_.At(")")) {
    stream_.ErrorExpected(fmt::format("')' to close the '(' of line {}, column {}", open.range.begin.line,
                                      open.range.begin.column));
    return nullptr;
  }
  inner->range = {open.range.begin, stream_.Take().range.end};
  return inner;
}

ExpressionPointer ExpressionParser::ParseList() {
  const Token& open = stream_.Take();
  ExpressionPointer list = New(Expression::Kind::kList, open);
  do {
    list->operands.push_back(Parse());
    if (list->operands.back() == nullptr) return nullptr;
  } while (stream_.Accept(","));
  if (!stream_.At("]")) {
    stream_.ErrorExpected("',' or ']' in a list");
    return nullptr;
  }
  stream_.Take();
  return Finish(list.get()) ? std::move(list) : nullptr;
}

std::unique_ptr<Index> ExpressionParser::ParseIndex(const std::string& indexed) {
  auto index = std::make_unique<Index>();
  index->range.begin = stream_.Take().range.begin;
  bool ok = ParseIndexRange(&index->rows);
  if (ok && stream_.Accept(",")) {
    index->has_comma = true;
    ok = ParseIndexRange(&index->columns);
  }
  if (!ok) return nullptr;
  if (!stream_.At("]")) {
    if (index->has_comma && stream_.At(",")) {
      stream_.Error(stream_.Current().range, fmt::format("an index has at most two dimensions: {}", indexed));
    } else {
      stream_.ErrorExpected(fmt::format("']' in the index of {}", indexed));
    }
    return nullptr;
  }
  index->range.end = stream_.Take().range.end;
  return index;
}

bool ExpressionParser::ParseIndexRange(IndexRange* range) {
  if (stream_.At(",") || stream_.At("]")) return true;
  if (stream_.At(":")) {
    stream_.ErrorExpected("the lower bound of a range")
        .notes.push_back("both bounds must be given: X[1:n,], or none: X[,]");
    return false;
  }
  range->kind = IndexRange::Kind::kSingle;
  range->from = Parse();
  if (range->from == nullptr) return false;
  if (!stream_.Accept(":")) return true;
  if (stream_.At(",") || stream_.At("]")) {
    stream_.ErrorExpected("the upper bound of a range")
        .notes.push_back("both bounds must be given: X[i:nrow(X),]");
    return false;
  }
  range->kind = IndexRange::Kind::kRange;
  range->to = Parse();
  return range->to != nullptr;
}

}  // namespace heddle::compiler
