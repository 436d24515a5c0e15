// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_expression.h"

#include <algorithm>
#include <cmath>

namespace heddle::ops {
namespace {

// The parameters of the lambda and of the functions inside, and who may cancel.
struct Scope {
  std::span<JavaValue> places;
  const std::atomic<bool>* cancelled;
};

Result<JavaValue> Evaluate(const JavaExpression& expression, const Scope& scope);

Status IsNull(const JavaExpression& expression) {
  return FailedPrecondition("null where a value is needed, at character {} of the expression", expression.at);
}

// A value that is not null.
Result<JavaValue> ValueOf(const JavaExpression& expression, const Scope& scope) {
  HEDDLE_ASSIGN_OR_RETURN(JavaValue value, Evaluate(expression, scope));
  if (TypeOf(value) == JavaType::kNull) return IsNull(expression);
  return value;
}

// Whole numbers wrap around, as Java's do.
template <typename T>
Result<JavaValue> Calculate(char op, T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    switch (op) {
      case '+': return JavaValue(a + b);
      case '-': return JavaValue(a - b);
      case '*': return JavaValue(a * b);
      case '/': return JavaValue(a / b);
      default: return JavaValue(std::fmod(a, b));
    }
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    const auto x = static_cast<Unsigned>(a);
    const auto y = static_cast<Unsigned>(b);
    switch (op) {
      case '+': return JavaValue(static_cast<T>(x + y));
      case '-': return JavaValue(static_cast<T>(x - y));
      case '*': return JavaValue(static_cast<T>(x * y));
      default: break;
    }
    if (b == 0) return FailedPrecondition("division by zero");
    // The smallest number divided by -1 is itself again.
    if (b == -1) return JavaValue(op == '/' ? static_cast<T>(Unsigned{0} - x) : T{0});
    return JavaValue(static_cast<T>(op == '/' ? a / b : a % b));
  }
}

template <typename T>
bool Compared(std::string_view op, T a, T b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  return op == ">" ? a > b : a >= b;
}

template <typename T>
Result<JavaValue> OfNumbers(const JavaExpression& expression, const JavaValue& a, const JavaValue& b) {
  const T x = std::get<T>(a);
  const T y = std::get<T>(b);
  if (expression.type == JavaType::kBoolean) return JavaValue(Compared(expression.op, x, y));
  if constexpr (!std::is_same_v<T, double>) {
    if (expression.op == "&") return JavaValue(static_cast<T>(x & y));
    if (expression.op == "|") return JavaValue(static_cast<T>(x | y));
    if (expression.op == "^") return JavaValue(static_cast<T>(x ^ y));
  }
  return Calculate(expression.op[0], x, y);
}

// Only the lowest bits of the distance count.
template <typename T>
T Shifted(std::string_view op, T x, int64_t distance) {
  using Unsigned = std::make_unsigned_t<T>;
  const int64_t by = distance & static_cast<int64_t>(sizeof(T) * 8 - 1);
  if (op == "<<") return static_cast<T>(static_cast<Unsigned>(x) << by);
  if (op == ">>") return static_cast<T>(x >> by);
  return static_cast<T>(static_cast<Unsigned>(x) >> by);
}

Result<JavaValue> EvaluateBinary(const JavaExpression& expression, const Scope& scope) {
  const std::string& op = expression.op;
  if (expression.type == JavaType::kString) {
    HEDDLE_ASSIGN_OR_RETURN(const JavaValue a, Evaluate(expression.operands[0], scope));
    HEDDLE_ASSIGN_OR_RETURN(const JavaValue b, Evaluate(expression.operands[1], scope));
    return JavaValue(TextOf(a) + TextOf(b));
  }
  const bool is_equality = op == "==" || op == "!=";
  if (is_equality &&
      (!IsPrimitive(expression.operands[0].type) || !IsPrimitive(expression.operands[1].type) ||
       (expression.operands[0].is_boxed && expression.operands[1].is_boxed))) {
    HEDDLE_ASSIGN_OR_RETURN(const JavaValue a, Evaluate(expression.operands[0], scope));
    HEDDLE_ASSIGN_OR_RETURN(const JavaValue b, Evaluate(expression.operands[1], scope));
    return JavaValue((a == b) == (op == "=="));
  }
  HEDDLE_ASSIGN_OR_RETURN(JavaValue a, ValueOf(expression.operands[0], scope));
  if (op == "&&" || op == "||") {
    if (std::get<bool>(a) == (op == "||")) return a;
    return ValueOf(expression.operands[1], scope);
  }
  HEDDLE_ASSIGN_OR_RETURN(JavaValue b, ValueOf(expression.operands[1], scope));
  if (TypeOf(a) == JavaType::kBoolean) {
    const bool x = std::get<bool>(a), y = std::get<bool>(b);
    if (op == "&") return JavaValue(x && y);
    if (op == "|") return JavaValue(x || y);
    return JavaValue((x == y) == (op == "=="));  // ^ is != of booleans.
  }
  if (op == "<<" || op == ">>" || op == ">>>") {
    const int64_t distance = std::get<int64_t>(Cast(b, JavaType::kLong));
    a = Widened(std::move(a), expression.type);
    if (expression.type == JavaType::kInteger) return JavaValue(Shifted(op, std::get<int32_t>(a), distance));
    return JavaValue(Shifted(op, std::get<int64_t>(a), distance));
  }
  const JavaType type = std::max({TypeOf(a), TypeOf(b), JavaType::kInteger});
  a = Widened(std::move(a), type);
  b = Widened(std::move(b), type);
  if (type == JavaType::kInteger) return OfNumbers<int32_t>(expression, a, b);
  if (type == JavaType::kLong) return OfNumbers<int64_t>(expression, a, b);
  return OfNumbers<double>(expression, a, b);
}

Result<JavaValue> EvaluateUnary(const JavaExpression& expression, const Scope& scope) {
  HEDDLE_ASSIGN_OR_RETURN(JavaValue value, ValueOf(expression.operands[0], scope));
  if (expression.op == "!") return JavaValue(!std::get<bool>(value));
  value = Widened(std::move(value), expression.type);
  if (expression.op == "+") return value;
  if (expression.op == "~") {
    if (expression.type == JavaType::kLong) return JavaValue(~std::get<int64_t>(value));
    return JavaValue(~std::get<int32_t>(value));
  }
  if (expression.type == JavaType::kDouble) return JavaValue(-std::get<double>(value));
  if (expression.type == JavaType::kLong) return Calculate<int64_t>('-', 0, std::get<int64_t>(value));
  return Calculate<int32_t>('-', 0, std::get<int32_t>(value));
}

Result<JavaValue> EvaluateCast(const JavaExpression& expression, const Scope& scope) {
  if (!IsPrimitive(expression.type)) return Evaluate(expression.operands[0], scope);
  HEDDLE_ASSIGN_OR_RETURN(JavaValue value, ValueOf(expression.operands[0], scope));
  if (expression.type == JavaType::kBoolean) return value;
  value = Cast(value, expression.type);
  if (expression.op == "byte") return JavaValue(int32_t{static_cast<int8_t>(std::get<int32_t>(value))});
  if (expression.op == "short") return JavaValue(int32_t{static_cast<int16_t>(std::get<int32_t>(value))});
  return value;
}

Result<JavaValue> EvaluateCall(const JavaExpression& expression, const Scope& scope) {
  const JavaMethod& method = *expression.method;
  std::vector<JavaValue> values;
  JavaCall call;
  call.cancelled = scope.cancelled;
  for (size_t i = 0; i < expression.operands.size(); ++i) {
    const JavaExpression& operand = expression.operands[i];
    if (operand.kind == JavaExpression::Kind::kFunction) {
      call.function = [&operand, &scope](std::span<const JavaValue> arguments) {
        std::copy(arguments.begin(), arguments.end(),
                  scope.places.begin() + static_cast<int64_t>(operand.parameter));
        return ValueOf(operand.operands[0], scope);
      };
      values.emplace_back(JavaNull());
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(JavaValue value, Evaluate(operand, scope));
    const JavaType wanted = method.parameters[std::min(i, method.parameters.size() - 1)];
    const bool is_receiver = method.on_value && i == 0;
    if (TypeOf(value) == JavaType::kNull &&
        (is_receiver || !(wanted == JavaType::kAny || (method.takes_null && i > 0))))
      return IsNull(operand);
    values.push_back(Widened(std::move(value), wanted));
  }
  call.values = values;
  if (method.regex < 0 || expression.regex) {
    call.regex = expression.regex ? &*expression.regex : nullptr;
    return method.run(call);
  }
  const Result<JavaRegex> regex = JavaRegex::Parse(call.Text(static_cast<size_t>(method.regex)));
  if (!regex.ok()) return FailedPrecondition("{}", regex.status().message());
  call.regex = &*regex;
  return method.run(call);
}

size_t SizeOfArray(const JavaValue& array) {
  if (const auto* const texts = std::get_if<JavaTexts>(&array)) return texts->size();
  if (const auto* const doubles = std::get_if<JavaDoubles>(&array)) return doubles->size();
  if (const auto* const integers = std::get_if<JavaIntegers>(&array)) return integers->size();
  return std::get<JavaCharacters>(array).units.size();
}

Result<JavaValue> EvaluateElement(const JavaExpression& expression, const Scope& scope) {
  HEDDLE_ASSIGN_OR_RETURN(const JavaValue array, ValueOf(expression.operands[0], scope));
  HEDDLE_ASSIGN_OR_RETURN(JavaValue index, ValueOf(expression.operands[1], scope));
  const int32_t number = std::get<int32_t>(Widened(std::move(index), JavaType::kInteger));
  const auto i = static_cast<size_t>(number);
  if (number < 0 || i >= SizeOfArray(array))
    return FailedPrecondition("element {} of {}", number, SizeOfArray(array));
  if (const auto* const doubles = std::get_if<JavaDoubles>(&array)) return JavaValue((*doubles)[i]);
  if (const auto* const integers = std::get_if<JavaIntegers>(&array)) return JavaValue((*integers)[i]);
  if (const auto* const characters = std::get_if<JavaCharacters>(&array))
    return JavaValue(characters->units[i]);
  const std::u16string& text = std::get<JavaTexts>(array)[i];
  return text == kJavaNull ? JavaValue(JavaNull()) : JavaValue(text);
}

Result<JavaValue> EvaluateLength(const JavaExpression& expression, const Scope& scope) {
  HEDDLE_ASSIGN_OR_RETURN(const JavaValue array, ValueOf(expression.operands[0], scope));
  return JavaValue(static_cast<int32_t>(SizeOfArray(array)));
}

Result<JavaValue> Evaluate(const JavaExpression& expression, const Scope& scope) {
  using Kind = JavaExpression::Kind;
  switch (expression.kind) {
    case Kind::kLiteral: return expression.literal;
    case Kind::kParameter: return scope.places[expression.parameter];
    case Kind::kTexts: {
      JavaTexts texts;
      for (const JavaExpression& operand : expression.operands) {
        HEDDLE_ASSIGN_OR_RETURN(JavaValue text, Evaluate(operand, scope));
        if (TypeOf(text) == JavaType::kNull)
          texts.emplace_back(kJavaNull);
        else
          texts.push_back(std::get<std::u16string>(std::move(text)));
      }
      return JavaValue(std::move(texts));
    }
    case Kind::kElement: return EvaluateElement(expression, scope);
    case Kind::kLength: return EvaluateLength(expression, scope);
    case Kind::kCall: return EvaluateCall(expression, scope);
    case Kind::kFunction: break;
    case Kind::kCast: return EvaluateCast(expression, scope);
    case Kind::kUnary: return EvaluateUnary(expression, scope);
    case Kind::kBinary: return EvaluateBinary(expression, scope);
    case Kind::kChoice: {
      HEDDLE_ASSIGN_OR_RETURN(const JavaValue condition, ValueOf(expression.operands[0], scope));
      const JavaExpression& taken = expression.operands[std::get<bool>(condition) ? 1 : 2];
      HEDDLE_ASSIGN_OR_RETURN(JavaValue value, Evaluate(taken, scope));
      if (TypeOf(value) == JavaType::kNull && IsPrimitive(expression.type) && !expression.is_boxed)
        return IsNull(taken);
      return Widened(std::move(value), expression.type);
    }
  }
  HEDDLE_CHECK(false, "every kind of expression has a value; functions are arguments of calls");
}

}  // namespace

Result<JavaValue> JavaLambda::Apply(std::span<const JavaValue> arguments,
                                    const std::atomic<bool>* cancelled) const {
  std::vector<JavaValue> places(arguments.begin(), arguments.end());
  places.resize(places_);
  return Evaluate(body_, {places, cancelled});
}

}  // namespace heddle::ops
