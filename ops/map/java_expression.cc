// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_expression.h"

#include <algorithm>
#include <cmath>

namespace heddle::ops {
namespace {

using Arguments = std::span<const JavaValue>;

Result<JavaValue> Evaluate(const JavaExpression& expression, Arguments arguments);

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
  if (expression.type == JavaType::kBoolean)
    return JavaValue(Compared(expression.op, std::get<T>(a), std::get<T>(b)));
  return Calculate(expression.op[0], std::get<T>(a), std::get<T>(b));
}

Result<JavaValue> EvaluateBinary(const JavaExpression& expression, Arguments arguments) {
  HEDDLE_ASSIGN_OR_RETURN(JavaValue a, Evaluate(expression.operands[0], arguments));
  if (expression.op == "&&" || expression.op == "||") {
    if (std::get<bool>(a) == (expression.op == "||")) return a;
    return Evaluate(expression.operands[1], arguments);
  }
  HEDDLE_ASSIGN_OR_RETURN(JavaValue b, Evaluate(expression.operands[1], arguments));
  if (expression.type == JavaType::kString) return JavaValue(TextOf(a) + TextOf(b));
  if (expression.op == "&") return JavaValue(std::get<bool>(a) && std::get<bool>(b));
  if (expression.op == "|") return JavaValue(std::get<bool>(a) || std::get<bool>(b));
  if (TypeOf(a) == JavaType::kBoolean)
    return JavaValue((std::get<bool>(a) == std::get<bool>(b)) == (expression.op == "=="));
  const JavaType type = std::max({TypeOf(a), TypeOf(b), JavaType::kInteger});
  a = Widened(std::move(a), type);
  b = Widened(std::move(b), type);
  if (type == JavaType::kInteger) return OfNumbers<int32_t>(expression, a, b);
  if (type == JavaType::kLong) return OfNumbers<int64_t>(expression, a, b);
  return OfNumbers<double>(expression, a, b);
}

Result<JavaValue> EvaluateUnary(const JavaExpression& expression, Arguments arguments) {
  HEDDLE_ASSIGN_OR_RETURN(JavaValue value, Evaluate(expression.operands[0], arguments));
  if (expression.op == "!") return JavaValue(!std::get<bool>(value));
  value = Widened(std::move(value), expression.type);
  if (expression.type == JavaType::kDouble) return JavaValue(-std::get<double>(value));
  if (expression.type == JavaType::kLong) return Calculate<int64_t>('-', 0, std::get<int64_t>(value));
  return Calculate<int32_t>('-', 0, std::get<int32_t>(value));
}

Result<JavaValue> EvaluateCall(const JavaExpression& expression, Arguments arguments) {
  const JavaMethod& method = *expression.method;
  std::vector<JavaValue> values;
  for (size_t i = 0; i < expression.operands.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(JavaValue value, Evaluate(expression.operands[i], arguments));
    values.push_back(Widened(std::move(value), method.parameters[i]));
  }
  if (method.regex < 0 || expression.regex)
    return method.run(values, expression.regex ? &*expression.regex : nullptr);
  const Result<JavaRegex> regex =
      JavaRegex::Parse(std::get<std::u16string>(values[static_cast<size_t>(method.regex)]));
  if (!regex.ok()) return FailedPrecondition("{}", regex.status().message());
  return method.run(values, &*regex);
}

Result<JavaValue> EvaluateElement(const JavaExpression& expression, Arguments arguments) {
  HEDDLE_ASSIGN_OR_RETURN(JavaValue texts, Evaluate(expression.operands[0], arguments));
  HEDDLE_ASSIGN_OR_RETURN(JavaValue index, Evaluate(expression.operands[1], arguments));
  const int32_t i = std::get<int32_t>(Widened(std::move(index), JavaType::kInteger));
  JavaTexts& elements = std::get<JavaTexts>(texts);
  if (i < 0 || static_cast<size_t>(i) >= elements.size())
    return FailedPrecondition("element {} of {}", i, elements.size());
  return JavaValue(std::move(elements[static_cast<size_t>(i)]));
}

Result<JavaValue> Evaluate(const JavaExpression& expression, Arguments arguments) {
  using Kind = JavaExpression::Kind;
  switch (expression.kind) {
    case Kind::kLiteral: return expression.literal;
    case Kind::kParameter: return arguments[expression.parameter];
    case Kind::kTexts: {
      JavaTexts texts;
      for (const JavaExpression& operand : expression.operands) {
        HEDDLE_ASSIGN_OR_RETURN(JavaValue text, Evaluate(operand, arguments));
        texts.push_back(std::get<std::u16string>(std::move(text)));
      }
      return JavaValue(std::move(texts));
    }
    case Kind::kElement: return EvaluateElement(expression, arguments);
    case Kind::kLength: {
      HEDDLE_ASSIGN_OR_RETURN(const JavaValue texts, Evaluate(expression.operands[0], arguments));
      return JavaValue(static_cast<int32_t>(std::get<JavaTexts>(texts).size()));
    }
    case Kind::kCall: return EvaluateCall(expression, arguments);
    case Kind::kUnary: return EvaluateUnary(expression, arguments);
    case Kind::kBinary: return EvaluateBinary(expression, arguments);
    case Kind::kChoice: {
      HEDDLE_ASSIGN_OR_RETURN(const JavaValue condition, Evaluate(expression.operands[0], arguments));
      HEDDLE_ASSIGN_OR_RETURN(JavaValue value,
                              Evaluate(expression.operands[std::get<bool>(condition) ? 1 : 2], arguments));
      return Widened(std::move(value), expression.type);
    }
  }
  HEDDLE_CHECK(false, "every kind of expression has a value");
}

}  // namespace

Result<JavaValue> JavaLambda::Apply(std::span<const JavaValue> arguments) const {
  return Evaluate(body_, arguments);
}

}  // namespace heddle::ops
