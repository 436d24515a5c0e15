// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "ops/map/java_expression.h"
#include "ops/map/java_lexer.h"

namespace heddle::ops {
namespace {

constexpr int kMostNested = 200;
constexpr size_t kMostTokens = 2000;  // Operands of one operator nest as deep as there are.
constexpr const char* kManual = "docs/map.md lists the methods and operators of Java that map() knows";

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

std::string TypesOf(std::span<const JavaType> types) {
  std::string text;
  for (const JavaType type : types) text += (text.empty() ? "" : ", ") + std::string(Name(type));
  return text;
}

// The element of an array; nullopt of all other types.
std::optional<JavaType> ElementOf(JavaType type) {
  switch (type) {
    case JavaType::kStrings: return JavaType::kString;
    case JavaType::kDoubles: return JavaType::kDouble;
    case JavaType::kIntegers: return JavaType::kInteger;
    case JavaType::kCharacters: return JavaType::kCharacter;
    default: return std::nullopt;
  }
}

// The class whose methods are called on a value of the type.
std::string_view ClassOf(JavaType type) {
  switch (type) {
    case JavaType::kBoolean: return "Boolean";
    case JavaType::kCharacter: return "Character";
    case JavaType::kInteger: return "Integer";
    case JavaType::kLong: return "Long";
    case JavaType::kDouble: return "Double";
    default: return Name(type);
  }
}

// The type of a cast; `op` becomes the name of a type that is an int here.
std::optional<JavaType> TypeOfCast(const std::string& name, std::string* op) {
  constexpr std::pair<std::string_view, JavaType> kTypes[] = {
      {"boolean", JavaType::kBoolean}, {"char", JavaType::kCharacter}, {"byte", JavaType::kInteger},
      {"short", JavaType::kInteger},   {"int", JavaType::kInteger},    {"long", JavaType::kLong},
      {"double", JavaType::kDouble},   {"String", JavaType::kString}};
  for (const auto& [known, type] : kTypes) {
    if (known != name) continue;
    if (name == "byte" || name == "short") *op = name;
    return type;
  }
  return std::nullopt;
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
    if (!HasText(lambda_.body_.type))
      return WrongAt(lambda_.body_.at, fmt::format("a {} has no text", Name(lambda_.body_.type)));
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
    --depth_;
    std::optional<JavaType> type = TypeOfChoice(yes, no);
    if (!type)
      return WrongAt(at, fmt::format("a choice between a {} and a {}", Name(yes.type), Name(no.type)));
    const bool is_boxed = IsPrimitive(*type) && IsObject(yes) && IsObject(no) &&
                          (yes.type == no.type || yes.type == JavaType::kNull || no.type == JavaType::kNull);
    std::vector<JavaExpression> operands;
    for (JavaExpression* operand : {&condition, &yes, &no}) operands.push_back(std::move(*operand));
    JavaExpression choice = Make(Kind::kChoice, *type, at, std::move(operands));
    choice.is_boxed = is_boxed;
    return choice;
  }

  // A number in place of one that is wanted as an object is made one where the other value is null.
  static bool IsObject(const JavaExpression& expression) {
    return !IsPrimitive(expression.type) || expression.is_boxed;
  }

  // The type that both are taken as. An int that is written as a number is a char beside a char.
  static std::optional<JavaType> TypeOfChoice(JavaExpression& yes, JavaExpression& no) {
    for (JavaExpression* const literal : {&yes, &no}) {
      const JavaExpression& other = literal == &yes ? no : yes;
      const bool is_character = literal->kind == Kind::kLiteral && literal->type == JavaType::kInteger &&
                                other.type == JavaType::kCharacter &&
                                std::get<int32_t>(literal->literal) >= 0 &&
                                std::get<int32_t>(literal->literal) <= UINT16_MAX;
      if (is_character) return JavaType::kCharacter;
    }
    if (yes.type == JavaType::kNull || no.type == JavaType::kNull) {
      // Beside null a number becomes an object.
      yes.is_boxed = no.is_boxed = true;
      return yes.type == JavaType::kNull ? no.type : yes.type;
    }
    if (Widens(yes.type, no.type)) return no.type;
    if (Widens(no.type, yes.type)) return yes.type;
    return std::nullopt;
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
      HEDDLE_ASSIGN_OR_RETURN(const JavaType type, TypeOf(op, left, right));
      std::vector<JavaExpression> operands;
      operands.push_back(std::move(left));
      operands.push_back(std::move(right));
      left = Make(Kind::kBinary, type, op.at, std::move(operands));
      left.op = op.text;
    }
  }

  static Result<JavaType> TypeOf(const JavaToken& op, const JavaExpression& left,
                                 const JavaExpression& right) {
    const JavaType a = left.type, b = right.type;
    const bool numbers = IsNumber(a) && IsNumber(b);
    const bool whole_numbers = IsWhole(a) && IsWhole(b);
    const bool booleans = a == JavaType::kBoolean && b == JavaType::kBoolean;
    const bool equality = op.text == "==" || op.text == "!=";
    const bool short_circuit = op.text == "&&" || op.text == "||";
    const bool bitwise = op.text == "&" || op.text == "|" || op.text == "^";
    const bool shift = op.text == "<<" || op.text == ">>" || op.text == ">>>";
    if (equality && (a == JavaType::kNull || b == JavaType::kNull)) {
      if (IsObject(left) && IsObject(right)) return JavaType::kBoolean;
    } else if (short_circuit || ((bitwise || equality) && booleans)) {
      if (booleans) return JavaType::kBoolean;
    } else if (bitwise || shift) {
      if (whole_numbers)
        return shift ? std::max(a, JavaType::kInteger) : std::max({a, b, JavaType::kInteger});
    } else if (op.text == "+" && (a == JavaType::kString || b == JavaType::kString)) {
      const bool arrays = ElementOf(a) || ElementOf(b);
      if (!arrays && HasText(a) && HasText(b)) return JavaType::kString;
    } else if (equality && numbers && !(left.is_boxed && right.is_boxed)) {
      return JavaType::kBoolean;
    } else if (equality && a == b) {
      const bool is_enumeration =
          a == JavaType::kDayOfWeek || a == JavaType::kMonth || a == JavaType::kTimeUnit;
      if (is_enumeration) return JavaType::kBoolean;
      return WrongAt(op.at, fmt::format("{} asks whether two {} are one object; a.equals(b) compares them",
                                        op.text, a == JavaType::kString ? "texts" : "values"));
    } else if (numbers && !equality && (op.text[0] == '<' || op.text[0] == '>')) {
      return JavaType::kBoolean;
    } else if (numbers && !equality) {
      return std::max({a, b, JavaType::kInteger});
    }
    return WrongAt(op.at, fmt::format("{} is not defined on a {} and a {}", op.text, Name(a), Name(b)));
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
    if (!fits) return WrongAt(op.at, fmt::format("{} is not defined on a {}", op.text, Name(operand.type)));
    const JavaType type = op.text == "!" ? operand.type : std::max(operand.type, JavaType::kInteger);
    std::vector<JavaExpression> operands;
    operands.push_back(std::move(operand));
    JavaExpression result = Make(Kind::kUnary, type, op.at, std::move(operands));
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
    if (!type) return WrongAt(at, fmt::format("map() does not know the type {}", name));
    if (++depth_ > kMostNested) return Wrong("an expression nested too deep");
    HEDDLE_ASSIGN_OR_RETURN(JavaExpression operand, Unary());
    --depth_;
    const bool fits = (IsNumber(operand.type) && IsNumber(*type)) || operand.type == *type ||
                      (*type == JavaType::kString && operand.type == JavaType::kNull);
    if (!fits) return WrongAt(at, fmt::format("a {} cannot become a {}", Name(operand.type), name));
    std::vector<JavaExpression> operands;
    operands.push_back(std::move(operand));
    JavaExpression cast = Make(Kind::kCast, *type, at, std::move(operands));
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
        if (!element) return WrongAt(at, fmt::format("a {} has no elements", Name(value.type)));
        if (!Widens(index.type, JavaType::kInteger))
          return WrongAt(index.at, fmt::format("an index is an int, not a {}", Name(index.type)));
        std::vector<JavaExpression> operands;
        operands.push_back(std::move(value));
        operands.push_back(std::move(index));
        value = Make(Kind::kElement, *element, at, std::move(operands));
      } else if (Take(".")) {
        const size_t name_at = Now().at;
        HEDDLE_ASSIGN_OR_RETURN(const std::string name, TakeName());
        std::vector<JavaExpression> operands;
        const JavaType type = value.type;
        const bool has_methods = !IsPrimitive(type) || value.is_boxed;
        operands.push_back(std::move(value));
        if (ElementOf(type) && name == "length" && !Is("(")) {
          value = Make(Kind::kLength, JavaType::kInteger, name_at, std::move(operands));
          continue;
        }
        if (!has_methods || ElementOf(type) || type == JavaType::kNull)
          return WrongAt(name_at, fmt::format("map() knows no methods of a {}", Name(type)));
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

  static Result<JavaExpression> CallOf(const std::string& owner, bool on_value, const std::string& name,
                                       size_t at, std::vector<JavaExpression> operands) {
    std::vector<JavaType> types;
    std::optional<JavaType> function_result;
    for (const JavaExpression& operand : operands) {
      const bool is_function = operand.kind == Kind::kFunction;
      types.push_back(is_function ? JavaType::kFunction : operand.type);
      if (is_function) function_result = operand.type;
    }
    const JavaMethod* method = FindJavaMethod(owner, on_value, name, types, function_result);
    if (method == nullptr) {
      const std::string arguments = TypesOf(std::span(types).subspan(on_value ? 1 : 0));
      if (name == "new") return WrongAt(at, fmt::format("map() does not know new {}({})", owner, arguments));
      return WrongAt(at, fmt::format("map() does not know {}.{}({})",
                                     on_value && owner == "String" ? "text" : owner, name, arguments));
    }
    JavaExpression call = Make(Kind::kCall, method->result, at, std::move(operands));
    call.method = method;
    call.is_boxed = method->is_boxed;
    if (method->regex >= 0) {
      const JavaExpression& regex = call.operands[static_cast<size_t>(method->regex)];
      if (regex.kind == Kind::kLiteral && regex.type == JavaType::kString) {
        Result<JavaRegex> parsed = JavaRegex::Parse(std::get<std::u16string>(regex.literal));
        if (!parsed.ok()) return WrongAt(regex.at, parsed.status().message() + ",");
        call.regex = *std::move(parsed);
      }
    }
    return call;
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
    JavaExpression function = Make(Kind::kFunction, type, at, std::move(operands));
    function.parameter = first;
    return function;
  }

  Result<JavaExpression> LambdaBody(const JavaSignature& signature, size_t first) {
    const size_t at = Now().at;
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, Parameters());
    if (names.size() != signature.takes.size())
      return WrongAt(at, fmt::format("a function of {} parameters, not {}, is needed", signature.takes.size(),
                                     names.size()));
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
        operands.push_back(Make(Kind::kParameter, signature.takes[i], at));
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
      JavaExpression result = Make(Kind::kParameter, variable->type, token.at);
      result.parameter = variable->place;
      return result;
    }
    if (token.text == "new") return New(token.at);
    --at_;
    HEDDLE_ASSIGN_OR_RETURN(const std::string owner, ClassName());
    if (!Take(".")) return WrongAt(token.at, "map() does not know '" + owner + "'");
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, TakeName());
    if (Is("(")) return Call(owner, false, name, token.at, {});
    const JavaConstant* const constant = FindJavaConstant(owner, name);
    if (constant == nullptr) return WrongAt(token.at, fmt::format("map() does not know {}.{}", owner, name));
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
      return WrongAt(at, fmt::format("map() does not know {}.{}", package, name));
    return name;
  }

  static JavaExpression Literal(const JavaToken& token, JavaValue value) {
    JavaExpression result = Make(Kind::kLiteral, ops::TypeOf(value), token.at);
    result.literal = std::move(value);
    return result;
  }

  // Behind `new`: String[]{a, b} or StringBuilder(a)
  Result<JavaExpression> New(size_t at) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, ClassName());
    if (Is("(")) return Call(name, false, "new", at, {});
    if (name != "String") return WrongAt(at, "map() does not know new " + name);
    for (const std::string_view symbol : {"[", "]", "{"}) HEDDLE_RETURN_IF_ERROR(Expect(symbol));
    std::vector<JavaExpression> elements;
    while (!Is("}")) {
      HEDDLE_ASSIGN_OR_RETURN(JavaExpression element, Choice());
      if (!Widens(element.type, JavaType::kString))
        return WrongAt(element.at, fmt::format("a String is needed, not a {}", Name(element.type)));
      elements.push_back(std::move(element));
      if (!Take(",")) break;
    }
    HEDDLE_RETURN_IF_ERROR(Expect("}"));
    return Make(Kind::kTexts, JavaType::kStrings, at, std::move(elements));
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
