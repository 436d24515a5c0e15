// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "core/text/utf8.h"
#include "ops/map/java_expression.h"
#include "ops/map/java_lexer.h"
#include "ops/map/java_typing.h"

namespace heddle::ops {
namespace {

constexpr int kMostNested = 200;
constexpr size_t kMostOfWord = 40;    // of the expression, in a message
constexpr size_t kMostTokens = 2000;  // Operands of one operator nest as deep as there are.

using Kind = JavaExpression::Kind;

// The binary operators, those that bind closest last.
constexpr std::string_view kLevels[][4] = {{"||"},
                                           {"&&"},
                                           {"|"},
                                           {"^"},
                                           {"&"},
                                           {"==", "!="},
                                           {"<", "<=", ">", ">="},
                                           {"<<", ">>", ">>>"},
                                           {"+", "-"},
                                           {"*", "/", "%"}};
constexpr size_t kLevelCount = std::size(kLevels);

}  // namespace

/// Recursive descent. Every function leaves an expression that has its type.
class JavaParser {
 public:
  explicit JavaParser(std::vector<JavaToken> tokens) : tokens_(std::move(tokens)) {}

  Result<JavaLambda> Parse(JavaType parameter) {
    type_of_parameter_ = parameter;
    HEDDLE_RETURN_IF_ERROR(Head());
    HEDDLE_ASSIGN_OR_RETURN(lambda_.body_, Choice());
    if (!HasText(lambda_.body_.type))
      return WrongExpression(lambda_.body_.at, fmt::format("a {} has no text", Name(lambda_.body_.type)));
    if (Now().kind != JavaToken::Kind::kEnd)
      return Wrong(fmt::format("'{}' is one too many", ShownInLine(Now().text, kMostOfWord)));
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
  Status Wrong(const std::string& what) const { return WrongExpression(Now().at, what); }
  Status Expect(std::string_view symbol) {
    if (Take(symbol)) return OkStatus();
    return Wrong(fmt::format("'{}' is missing", symbol));
  }
  Result<std::string> TakeName() {
    if (Now().kind != JavaToken::Kind::kName) return Wrong("a name is missing");
    return tokens_[at_++].text;
  }

  Status Head() {
    HEDDLE_ASSIGN_OR_RETURN(lambda_.parameters_, Parameters());
    for (const std::string& name : lambda_.parameters_)
      names_.push_back({name, type_of_parameter_, places_++});
    lambda_.places_ = places_;
    return OkStatus();
  }

  // a -> or (a, b) ->
  Result<std::vector<std::string>> Parameters() {
    std::vector<std::string> names;
    const bool in_brackets = Take("(");
    do {
      HEDDLE_ASSIGN_OR_RETURN(std::string name, TakeName());
      names.push_back(std::move(name));
    } while (in_brackets && Take(","));
    if (in_brackets) HEDDLE_RETURN_IF_ERROR(Expect(")"));
    HEDDLE_RETURN_IF_ERROR(Expect("->"));
    return names;
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
      return WrongExpression(condition.at,
                             fmt::format("a condition is a boolean, not a {}", Name(condition.type)));
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression yes, Choice());
    HEDDLE_RETURN_IF_ERROR(Expect(":"));
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression no, Choice());
    --depth_;
    std::optional<JavaType> type = TypeOfChoice(yes, no);
    if (!type)
      return WrongExpression(at,
                             fmt::format("a choice between a {} and a {}", Name(yes.type), Name(no.type)));
    const bool is_boxed = IsPrimitive(*type) && IsObject(yes) && IsObject(no) &&
                          (yes.type == no.type || yes.type == JavaType::kNull || no.type == JavaType::kNull);
    std::vector<JavaExpression> operands;
    for (JavaExpression* operand : {&condition, &yes, &no}) operands.push_back(std::move(*operand));
    JavaExpression choice = MakeExpression(Kind::kChoice, *type, at, std::move(operands));
    choice.is_boxed = is_boxed;
    return choice;
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
      HEDDLE_ASSIGN_OR_RETURN(const JavaType type, TypeOfBinary(op, left, right));
      std::vector<JavaExpression> operands;
      operands.push_back(std::move(left));
      operands.push_back(std::move(right));
      left = MakeExpression(Kind::kBinary, type, op.at, std::move(operands));
      left.op = op.text;
    }
  }

  Result<JavaExpression> Unary() {
    const JavaToken op = Now();
    if (IsCast()) return CastOf(op.at);
    if (!Take("!") && !Take("-") && !Take("+") && !Take("~")) return Postfix();
    if (++depth_ > kMostNested) return Wrong("an expression nested too deep");
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression operand, Unary());
    --depth_;
    const bool fits = op.text == "!"   ? operand.type == JavaType::kBoolean
                      : op.text == "~" ? IsWhole(operand.type)
                                       : IsNumber(operand.type);
    if (!fits)
      return WrongExpression(op.at, fmt::format("{} is not defined on a {}", op.text, Name(operand.type)));
    const JavaType type = op.text == "!" ? operand.type : std::max(operand.type, JavaType::kInteger);
    std::vector<JavaExpression> operands;
    operands.push_back(std::move(operand));
    JavaExpression result = MakeExpression(Kind::kUnary, type, op.at, std::move(operands));
    result.op = op.text;
    return result;
  }

  // "(int)": a type in brackets, of String only before what can be its operand.
  bool IsCast() const {
    if (!Is("(") || at_ + 3 >= tokens_.size()) return false;
    std::string op;
    const JavaToken& name = tokens_[at_ + 1];
    const JavaToken& close = tokens_[at_ + 2];
    return name.kind == JavaToken::Kind::kName && close.kind == JavaToken::Kind::kSymbol &&
           close.text == ")" && (TypeOfCast(name.text, &op) || name.text == "float");
  }

  Result<JavaExpression> CastOf(size_t at) {
    const std::string name = tokens_[at_ + 1].text;
    at_ += 3;
    std::string op;
    const std::optional<JavaType> type = TypeOfCast(name, &op);
    if (!type) return WrongExpression(at, fmt::format("map() does not know the type {}", name));
    if (++depth_ > kMostNested) return Wrong("an expression nested too deep");
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression operand, Unary());
    --depth_;
    const bool fits = (IsNumber(operand.type) && IsNumber(*type)) || operand.type == *type ||
                      (*type == JavaType::kString && operand.type == JavaType::kNull);
    if (!fits) return WrongExpression(at, fmt::format("a {} cannot become a {}", Name(operand.type), name));
    std::vector<JavaExpression> operands;
    operands.push_back(std::move(operand));
    JavaExpression cast = MakeExpression(Kind::kCast, *type, at, std::move(operands));
    cast.op = op;
    return cast;
  }

  Result<JavaExpression> Postfix() {
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression value, Primary());
    for (;;) {
      const size_t at = Now().at;
      if (Take("[")) {
        HEDDLE_ASSIGN_OR_RETURN(JavaExpression index, Choice());
        HEDDLE_RETURN_IF_ERROR(Expect("]"));
        const std::optional<JavaType> element = ElementOf(value.type);
        if (!element) return WrongExpression(at, fmt::format("a {} has no elements", Name(value.type)));
        if (!Widens(index.type, JavaType::kInteger))
          return WrongExpression(index.at, fmt::format("an index is an int, not a {}", Name(index.type)));
        std::vector<JavaExpression> operands;
        operands.push_back(std::move(value));
        operands.push_back(std::move(index));
        value = MakeExpression(Kind::kElement, *element, at, std::move(operands));
      } else if (Take(".")) {
        const size_t name_at = Now().at;
        HEDDLE_ASSIGN_OR_RETURN(const std::string name, TakeName());
        std::vector<JavaExpression> operands;
        const JavaType type = value.type;
        const bool has_methods = !IsPrimitive(type) || value.is_boxed;
        operands.push_back(std::move(value));
        if (ElementOf(type) && name == "length" && !Is("(")) {
          value = MakeExpression(Kind::kLength, JavaType::kInteger, name_at, std::move(operands));
          continue;
        }
        if (!has_methods || ElementOf(type) || type == JavaType::kNull)
          return WrongExpression(name_at, fmt::format("map() knows no methods of a {}", Name(type)));
        HEDDLE_ASSIGN_OR_RETURN(value,
                                Call(std::string(ClassOf(type)), true, name, name_at, std::move(operands)));
      } else {
        return value;
      }
    }
  }

  // The arguments and the method that takes them; `operands` holds the value that a method is called on.
  Result<JavaExpression> Call(const std::string& owner, bool on_value, const std::string& name, size_t at,
                              std::vector<JavaExpression> operands) {
    HEDDLE_RETURN_IF_ERROR(Expect("("));
    if (!Is(")")) {
      do {
        if (IsFunction()) {
          const JavaSignature* const signature = FindJavaSignature(owner, on_value, name, operands.size());
          if (signature == nullptr)
            return Wrong(fmt::format("map() knows no function that {}.{}() takes here", owner, name));
          HEDDLE_ASSIGN_OR_RETURN(JavaExpression function, Function(*signature));
          operands.push_back(std::move(function));
        } else {
          HEDDLE_ASSIGN_OR_RETURN(JavaExpression argument, Choice());
          operands.push_back(std::move(argument));
        }
      } while (Take(","));
    }
    HEDDLE_RETURN_IF_ERROR(Expect(")"));
    return CallOf(owner, on_value, name, at, std::move(operands));
  }

  // Whether a lambda expression or a reference to a method stands here: c -> ..., (a, b) -> ..., Name::name.
  bool IsFunction() const {
    const auto is = [&](size_t at, std::string_view symbol) {
      return at < tokens_.size() && tokens_[at].kind == JavaToken::Kind::kSymbol &&
             tokens_[at].text == symbol;
    };
    const auto is_name = [&](size_t at) {
      return at < tokens_.size() && tokens_[at].kind == JavaToken::Kind::kName;
    };
    if (is_name(at_)) return is(at_ + 1, "->") || is(at_ + 1, "::");
    if (!is(at_, "(")) return false;
    size_t at = at_ + 1;
    while (is_name(at) && is(at + 1, ",")) at += 2;
    return is_name(at) && is(at + 1, ")") && is(at + 2, "->");
  }

  // A function that takes what the signature says; its type is that of what it gives.
  Result<JavaExpression> Function(const JavaSignature& signature) {
    if (++depth_ > kMostNested) return Wrong("an expression nested too deep");
    const size_t at = Now().at;
    const size_t first = places_;
    const bool is_reference = Now().kind == JavaToken::Kind::kName && tokens_[at_ + 1].text == "::";
    places_ += signature.takes.size();
    lambda_.places_ = std::max(lambda_.places_, places_);
    Result<JavaExpression> body = is_reference ? Reference(signature, first) : LambdaBody(signature, first);
    HEDDLE_RETURN_IF_ERROR(body.status());
    places_ = first;
    --depth_;
    const JavaType type = body->type;
    std::vector<JavaExpression> operands;
    operands.push_back(*std::move(body));
    JavaExpression function = MakeExpression(Kind::kFunction, type, at, std::move(operands));
    function.parameter = first;
    return function;
  }

  Result<JavaExpression> LambdaBody(const JavaSignature& signature, size_t first) {
    const size_t at = Now().at;
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, Parameters());
    if (names.size() != signature.takes.size())
      return WrongExpression(
          at, fmt::format("a function of {} parameter{}, not {}, is needed", signature.takes.size(),
                          signature.takes.size() == 1 ? "" : "s", names.size()));
    for (size_t i = 0; i < names.size(); ++i) names_.push_back({names[i], signature.takes[i], first + i});
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression body, Choice());
    names_.resize(names_.size() - names.size());
    return body;
  }

  // Owner::name, a method of the class or one that is called on the first parameter.
  Result<JavaExpression> Reference(const JavaSignature& signature, size_t first) {
    const size_t at = Now().at;
    HEDDLE_ASSIGN_OR_RETURN(const std::string owner, TakeName());
    HEDDLE_RETURN_IF_ERROR(Expect("::"));
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, TakeName());
    const auto parameters = [&] {
      std::vector<JavaExpression> operands;
      for (size_t i = 0; i < signature.takes.size(); ++i) {
        operands.push_back(MakeExpression(Kind::kParameter, signature.takes[i], at));
        operands.back().parameter = first + i;
      }
      return operands;
    };
    Result<JavaExpression> of_class = CallOf(owner, false, name, at, parameters());
    if (of_class.ok() || signature.takes.empty() || owner != ClassOf(signature.takes[0])) return of_class;
    return CallOf(owner, true, name, at, parameters());
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
    if (token.text == "null") return Literal(token, JavaNull());
    const auto variable = std::find_if(names_.rbegin(), names_.rend(),
                                       [&](const Variable& known) { return known.name == token.text; });
    if (variable != names_.rend()) {
      JavaExpression result = MakeExpression(Kind::kParameter, variable->type, token.at);
      result.parameter = variable->place;
      return result;
    }
    if (token.text == "new") return New(token.at);
    --at_;
    HEDDLE_ASSIGN_OR_RETURN(const std::string owner, ClassName());
    if (!Take(".")) return WrongExpression(token.at, "map() does not know '" + owner + "'");
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, TakeName());
    if (Is("(")) return Call(owner, false, name, token.at, {});
    const JavaConstant* const constant = FindJavaConstant(owner, name);
    if (constant == nullptr)
      return WrongExpression(token.at, fmt::format("map() does not know {}.{}", owner, name));
    return Literal(token, constant->value);
  }

  // A class, with its package or without: java.time.LocalDate.
  Result<std::string> ClassName() {
    const size_t at = Now().at;
    HEDDLE_ASSIGN_OR_RETURN(std::string name, TakeName());
    // The older class has the same methods.
    if (name == "StringBuffer") return std::string("StringBuilder");
    if (name != "java") return name;
    std::string package;
    while (Is(".") && !(name[0] >= 'A' && name[0] <= 'Z')) {
      package += (package.empty() ? "" : ".") + name;
      ++at_;
      HEDDLE_ASSIGN_OR_RETURN(name, TakeName());
    }
    const std::string_view known = PackageOf(name);
    if (package != (known.empty() ? std::string_view("java.lang") : known))
      return WrongExpression(at, fmt::format("map() does not know {}.{}", package, name));
    return name;
  }

  static JavaExpression Literal(const JavaToken& token, JavaValue value) {
    JavaExpression result = MakeExpression(Kind::kLiteral, TypeOf(value), token.at);
    result.literal = std::move(value);
    return result;
  }

  // Behind `new`: String[]{a, b} or StringBuilder(a)
  Result<JavaExpression> New(size_t at) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, ClassName());
    if (Is("(")) return Call(name, false, "new", at, {});
    if (name != "String") return WrongExpression(at, "map() does not know new " + name);
    for (const std::string_view symbol : {"[", "]", "{"}) HEDDLE_RETURN_IF_ERROR(Expect(symbol));
    std::vector<JavaExpression> elements;
    while (!Is("}")) {
      HEDDLE_ASSIGN_OR_RETURN(JavaExpression element, Choice());
      if (!Widens(element.type, JavaType::kString))
        return WrongExpression(element.at, fmt::format("a String is needed, not a {}", Name(element.type)));
      elements.push_back(std::move(element));
      if (!Take(",")) break;
    }
    HEDDLE_RETURN_IF_ERROR(Expect("}"));
    return MakeExpression(Kind::kTexts, JavaType::kStrings, at, std::move(elements));
  }

  struct Variable {
    std::string name;
    JavaType type;
    size_t place;
  };

  std::vector<JavaToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<Variable> names_;  // What can be named here: those of inner functions last.
  size_t places_ = 0;
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
