// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/map/java_expression.h"
#include "ops/map/java_lexer.h"

namespace heddle::ops {
namespace {

constexpr int kMostNested = 200;
constexpr size_t kMostTokens = 2000;  // Operands of one operator nest as deep as there are.
constexpr const char* kManual = "docs/map.md lists the methods and operators of Java that map() knows";

using Kind = JavaExpression::Kind;

// The binary operators, those that bind closest last.
constexpr std::string_view kLevels[][4] = {
    {"||"}, {"&&"}, {"|"}, {"&"}, {"==", "!="}, {"<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "%"}};
constexpr size_t kLevelCount = std::size(kLevels);

std::string TypesOf(std::span<const JavaType> types) {
  std::string text;
  for (const JavaType type : types) text += (text.empty() ? "" : ", ") + std::string(Name(type));
  return text;
}

}  // namespace

/// Recursive descent. Every function leaves an expression that has its type.
class JavaParser {
 public:
  explicit JavaParser(std::vector<JavaToken> tokens) : tokens_(std::move(tokens)) {}

  Result<JavaLambda> Parse(JavaType parameter) {
    type_of_parameter_ = parameter;
    HEDDLE_RETURN_IF_ERROR(Head());
    HEDDLE_ASSIGN_OR_RETURN(lambda_.body_, Choice());
    if (Now().kind != JavaToken::Kind::kEnd) return Wrong("'" + Now().text + "' is one too many");
    return std::move(lambda_);
  }

 private:
  const JavaToken& Now() const { return tokens_[at_]; }
  bool Is(std::string_view symbol) const {
    return Now().kind == JavaToken::Kind::kSymbol && Now().text == symbol;
  }
  bool Take(std::string_view symbol) {
    if (!Is(symbol)) return false;
    ++at_;
    return true;
  }
  Status Wrong(const std::string& what) const { return WrongAt(Now().at, what); }
  static Status WrongAt(size_t at, const std::string& what) {
    return InvalidArgument("map: {} at character {} of the expression", what, at).WithNote(kManual);
  }
  Status Expect(std::string_view symbol) {
    if (Take(symbol)) return OkStatus();
    return Wrong(fmt::format("'{}' is missing", symbol));
  }
  Result<std::string> TakeName() {
    if (Now().kind != JavaToken::Kind::kName) return Wrong("a name is missing");
    return tokens_[at_++].text;
  }

  Status Head() {
    const bool in_brackets = Take("(");
    do {
      HEDDLE_ASSIGN_OR_RETURN(std::string name, TakeName());
      lambda_.parameters_.push_back(std::move(name));
    } while (in_brackets && Take(","));
    if (in_brackets) HEDDLE_RETURN_IF_ERROR(Expect(")"));
    return Expect("->");
  }

  static JavaExpression Make(Kind kind, JavaType type, size_t at, std::vector<JavaExpression> operands = {}) {
    JavaExpression expression;
    expression.kind = kind;
    expression.type = type;
    expression.at = at;
    expression.operands = std::move(operands);
    return expression;
  }

  Result<JavaExpression> Choice() {
    if (++depth_ > kMostNested) return Wrong("an expression nested too deep");
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression condition, Binary(0));
    const size_t at = Now().at;
    if (!Take("?")) {
      --depth_;
      return condition;
    }
    if (condition.type != JavaType::kBoolean)
      return WrongAt(condition.at, fmt::format("a condition is a boolean, not a {}", Name(condition.type)));
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression yes, Choice());
    HEDDLE_RETURN_IF_ERROR(Expect(":"));
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression no, Choice());
    const bool widens = Widens(yes.type, no.type);
    if (!widens && !Widens(no.type, yes.type))
      return WrongAt(at, fmt::format("a choice between a {} and a {}", Name(yes.type), Name(no.type)));
    --depth_;
    const JavaType type = widens ? no.type : yes.type;
    std::vector<JavaExpression> operands;
    for (JavaExpression* operand : {&condition, &yes, &no}) operands.push_back(std::move(*operand));
    return Make(Kind::kChoice, type, at, std::move(operands));
  }

  Result<JavaExpression> Binary(size_t level) {
    if (level == kLevelCount) return Unary();
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression left, Binary(level + 1));
    for (;;) {
      const auto& ops = kLevels[level];
      const bool is_here = Now().kind == JavaToken::Kind::kSymbol &&
                           std::find(std::begin(ops), std::end(ops), Now().text) != std::end(ops);
      if (!is_here) return left;
      const JavaToken op = tokens_[at_++];
      HEDDLE_ASSIGN_OR_RETURN(JavaExpression right, Binary(level + 1));
      HEDDLE_ASSIGN_OR_RETURN(const JavaType type, TypeOf(op, left.type, right.type));
      std::vector<JavaExpression> operands;
      operands.push_back(std::move(left));
      operands.push_back(std::move(right));
      left = Make(Kind::kBinary, type, op.at, std::move(operands));
      left.op = op.text;
    }
  }

  static Result<JavaType> TypeOf(const JavaToken& op, JavaType a, JavaType b) {
    const bool numbers = IsNumber(a) && IsNumber(b);
    const bool booleans = a == JavaType::kBoolean && b == JavaType::kBoolean;
    const bool equality = op.text == "==" || op.text == "!=";
    const bool logical = op.text[0] == '&' || op.text[0] == '|';
    if (logical || (equality && booleans)) {
      if (booleans) return JavaType::kBoolean;
    } else if (op.text == "+" && (a == JavaType::kString || b == JavaType::kString)) {
      if (a != JavaType::kStrings && b != JavaType::kStrings) return JavaType::kString;
    } else if (equality && a == JavaType::kString && b == JavaType::kString) {
      return WrongAt(
          op.at, fmt::format("{} asks whether two texts are one object; a.equals(b) compares them", op.text));
    } else if (numbers && (equality || op.text[0] == '<' || op.text[0] == '>')) {
      return JavaType::kBoolean;
    } else if (numbers) {
      return std::max({a, b, JavaType::kInteger});
    }
    return WrongAt(op.at, fmt::format("{} is not defined on a {} and a {}", op.text, Name(a), Name(b)));
  }

  Result<JavaExpression> Unary() {
    const JavaToken op = Now();
    if (!Take("!") && !Take("-")) return Postfix();
    if (++depth_ > kMostNested) return Wrong("an expression nested too deep");
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression operand, Unary());
    --depth_;
    const bool fits = op.text == "!" ? operand.type == JavaType::kBoolean : IsNumber(operand.type);
    if (!fits) return WrongAt(op.at, fmt::format("{} is not defined on a {}", op.text, Name(operand.type)));
    const JavaType type = op.text == "!" ? operand.type : std::max(operand.type, JavaType::kInteger);
    std::vector<JavaExpression> operands;
    operands.push_back(std::move(operand));
    JavaExpression result = Make(Kind::kUnary, type, op.at, std::move(operands));
    result.op = op.text;
    return result;
  }

  Result<JavaExpression> Postfix() {
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression value, Primary());
    for (;;) {
      const size_t at = Now().at;
      if (Take("[")) {
        HEDDLE_ASSIGN_OR_RETURN(JavaExpression index, Choice());
        HEDDLE_RETURN_IF_ERROR(Expect("]"));
        if (value.type != JavaType::kStrings)
          return WrongAt(at, fmt::format("a {} has no elements", Name(value.type)));
        if (!Widens(index.type, JavaType::kInteger))
          return WrongAt(index.at, fmt::format("an index is an int, not a {}", Name(index.type)));
        std::vector<JavaExpression> operands;
        operands.push_back(std::move(value));
        operands.push_back(std::move(index));
        value = Make(Kind::kElement, JavaType::kString, at, std::move(operands));
      } else if (Take(".")) {
        const size_t name_at = Now().at;
        HEDDLE_ASSIGN_OR_RETURN(const std::string name, TakeName());
        std::vector<JavaExpression> operands;
        const JavaType type = value.type;
        operands.push_back(std::move(value));
        if (type == JavaType::kStrings && name == "length" && !Is("(")) {
          value = Make(Kind::kLength, JavaType::kInteger, name_at, std::move(operands));
          continue;
        }
        const bool is_stream = type == JavaType::kDoubles;
        if (type != JavaType::kString && !is_stream)
          return WrongAt(name_at, fmt::format("map() knows no methods of a {}", Name(type)));
        HEDDLE_ASSIGN_OR_RETURN(
            value, Call(is_stream ? "DoubleStream" : "String", true, name, name_at, std::move(operands)));
      } else {
        return value;
      }
    }
  }

  // The arguments and the method that takes them; `operands` holds the text that a method is called on.
  Result<JavaExpression> Call(const std::string& owner, bool on_text, const std::string& name, size_t at,
                              std::vector<JavaExpression> operands) {
    HEDDLE_RETURN_IF_ERROR(Expect("("));
    if (!Is(")")) {
      do {
        HEDDLE_ASSIGN_OR_RETURN(JavaExpression argument, Choice());
        operands.push_back(std::move(argument));
      } while (Take(","));
    }
    HEDDLE_RETURN_IF_ERROR(Expect(")"));
    std::vector<JavaType> types;
    for (const JavaExpression& operand : operands) types.push_back(operand.type);
    const JavaMethod* method = FindJavaMethod(owner, on_text, name, types);
    if (method == nullptr)
      return WrongAt(at, fmt::format("map() does not know {}.{}({})", on_text ? "text" : owner, name,
                                     TypesOf(std::span(types).subspan(on_text ? 1 : 0))));
    JavaExpression call = Make(Kind::kCall, method->result, at, std::move(operands));
    call.method = method;
    if (method->regex >= 0) {
      const JavaExpression& regex = call.operands[static_cast<size_t>(method->regex)];
      if (regex.kind == Kind::kLiteral) {
        Result<JavaRegex> parsed = JavaRegex::Parse(std::get<std::u16string>(regex.literal));
        if (!parsed.ok()) return WrongAt(regex.at, parsed.status().message() + ",");
        call.regex = *std::move(parsed);
      }
    }
    return call;
  }

  Result<JavaExpression> Primary() {
    const JavaToken token = Now();
    if (Take("(")) {
      HEDDLE_ASSIGN_OR_RETURN(JavaExpression inside, Choice());
      HEDDLE_RETURN_IF_ERROR(Expect(")"));
      return inside;
    }
    if (token.kind == JavaToken::Kind::kEnd) return Wrong("the expression ends too early");
    if (token.kind == JavaToken::Kind::kSymbol) return Wrong("'" + token.text + "' cannot stand here");
    ++at_;
    if (token.kind == JavaToken::Kind::kLiteral) return Literal(token, token.literal);
    if (token.text == "true" || token.text == "false") return Literal(token, token.text == "true");
    const std::vector<std::string>& names = lambda_.parameters_;
    const auto parameter = std::find(names.begin(), names.end(), token.text);
    if (parameter != names.end()) {
      JavaExpression result = Make(Kind::kParameter, type_of_parameter_, token.at);
      result.parameter = static_cast<size_t>(parameter - names.begin());
      return result;
    }
    if (token.text == "new") return Texts(token.at);
    if (!Take(".")) return WrongAt(token.at, "map() does not know '" + token.text + "'");
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, TakeName());
    if (!Is("(")) return WrongAt(token.at, fmt::format("map() does not know {}.{}", token.text, name));
    return Call(token.text, false, name, token.at, {});
  }

  static JavaExpression Literal(const JavaToken& token, JavaValue value) {
    JavaExpression result = Make(Kind::kLiteral, ops::TypeOf(value), token.at);
    result.literal = std::move(value);
    return result;
  }

  // Behind `new`: String[]{a, b}
  Result<JavaExpression> Texts(size_t at) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, TakeName());
    if (name != "String") return WrongAt(at, "map() does not know new " + name);
    for (const std::string_view symbol : {"[", "]", "{"}) HEDDLE_RETURN_IF_ERROR(Expect(symbol));
    std::vector<JavaExpression> elements;
    while (!Is("}")) {
      HEDDLE_ASSIGN_OR_RETURN(JavaExpression element, Choice());
      if (element.type != JavaType::kString)
        return WrongAt(element.at, fmt::format("a String is needed, not a {}", Name(element.type)));
      elements.push_back(std::move(element));
      if (!Take(",")) break;
    }
    HEDDLE_RETURN_IF_ERROR(Expect("}"));
    return Make(Kind::kTexts, JavaType::kStrings, at, std::move(elements));
  }

  std::vector<JavaToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  JavaType type_of_parameter_ = JavaType::kString;
  JavaLambda lambda_;
};

Result<JavaLambda> JavaLambda::Parse(std::string_view text, JavaType parameter) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<JavaToken> tokens, LexJava(text));
  if (tokens.size() > kMostTokens)
    return InvalidArgument("map: the expression has {} words and signs, {} are possible", tokens.size(),
                           kMostTokens);
  return JavaParser(std::move(tokens)).Parse(parameter);
}

}  // namespace heddle::ops
