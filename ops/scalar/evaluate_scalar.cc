// SPDX-License-Identifier: Apache-2.0
#include "ops/scalar/evaluate_scalar.h"

#include <optional>

#include "core/memory/counted_heap.h"
#include "core/text/double_text.h"
#include "ops/simd/cellwise/elementwise_codes.h"
#include "ops/simd/cellwise/math.h"

namespace heddle::ops {
namespace {

bool IsComparison(BinaryCode code) { return code >= BinaryCode::kLess && code <= BinaryCode::kNotEqual; }
bool IsLogical(BinaryCode code) {
  return code >= BinaryCode::kLogicalAnd && code <= BinaryCode::kExclusiveOr;
}
bool IsBitwise(BinaryCode code) { return code >= BinaryCode::kBitAnd && code <= BinaryCode::kBitShiftRight; }

// + - * %/% %% min max: whole numbers stay whole.
bool KeepsIntegers(BinaryCode code) {
  switch (code) {
    case BinaryCode::kAdd:
    case BinaryCode::kSubtract:
    case BinaryCode::kMultiply:
    case BinaryCode::kModulus:
    case BinaryCode::kIntegerDivide:
    case BinaryCode::kMinimum:
    case BinaryCode::kMaximum: return true;
    default: return false;
  }
}

Status NoStrings(std::string_view op) {
  return InvalidArgument("{}: strings are not numbers; use as.double", op);
}

// boolean op boolean is double, an integer with an integer or boolean is integer (a boolean counts as 0 or
// 1).
ValueType ArithmeticType(ValueType a, ValueType b) {
  if (a == ValueType::kDouble || b == ValueType::kDouble) return ValueType::kDouble;
  if (a == ValueType::kUnknown || b == ValueType::kUnknown) return ValueType::kUnknown;
  return a == ValueType::kBoolean && b == ValueType::kBoolean ? ValueType::kDouble : ValueType::kInteger;
}

Result<ValueType> BinaryType(std::string_view op, BinaryCode code, ValueType a, ValueType b) {
  if (IsComparison(code)) return ValueType::kBoolean;
  const bool string = a == ValueType::kString || b == ValueType::kString;
  if (code == BinaryCode::kAdd) {
    if (string) return ValueType::kString;
    if (a == ValueType::kUnknown || b == ValueType::kUnknown) return ValueType::kUnknown;
  }
  if (string) return NoStrings(op);
  if (IsLogical(code)) return ValueType::kBoolean;
  if (!KeepsIntegers(code) && !IsBitwise(code)) return ValueType::kDouble;
  const ValueType type = ArithmeticType(a, b);
  return IsBitwise(code) && a == ValueType::kBoolean && b == ValueType::kBoolean ? ValueType::kInteger : type;
}

Result<ValueType> UnaryType(std::string_view op, UnaryCode code, ValueType x) {
  if (x == ValueType::kString) return NoStrings(op);
  return code == UnaryCode::kNot ? ValueType::kBoolean : ValueType::kDouble;
}

int64_t Whole(const Scalar& x) { return x.IsBoolean() ? static_cast<int64_t>(x.AsBoolean()) : x.AsInteger(); }

Result<Scalar> EvaluateIntegers(std::string_view op, BinaryCode code, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (code) {
    case BinaryCode::kAdd: overflow = __builtin_add_overflow(a, b, &result); break;
    case BinaryCode::kSubtract: overflow = __builtin_sub_overflow(a, b, &result); break;
    case BinaryCode::kMultiply: overflow = __builtin_mul_overflow(a, b, &result); break;
    case BinaryCode::kIntegerDivide:
    case BinaryCode::kModulus:
      if (b == 0) return Scalar(Apply(code, static_cast<double>(a), 0.0));  // Infinity or NaN, never an error
      if (b == -1) {
        overflow = code == BinaryCode::kIntegerDivide && __builtin_sub_overflow(int64_t{0}, a, &result);
      } else {
        result = code == BinaryCode::kModulus ? a % b : a / b;
      }
      break;
    case BinaryCode::kMinimum: result = a < b ? a : b; break;
    default: result = a < b ? b : a; break;
  }
  if (overflow)
    return FailedPrecondition("{}: the result does not fit in a 64-bit integer: {} {} {}", op, a, op, b);
  return Scalar(result);
}

template <typename T>
bool Compare(BinaryCode code, const T& a, const T& b) {
  switch (code) {
    case BinaryCode::kLess: return a < b;
    case BinaryCode::kLessEqual: return a <= b;
    case BinaryCode::kGreater: return a > b;
    case BinaryCode::kGreaterEqual: return a >= b;
    case BinaryCode::kEqual: return a == b;
    default: return a != b;
  }
}

// What print() shows of it; a string, which may be long, is not copied for that.
std::string_view TextOf(const Scalar& x, std::string* own) {
  if (x.IsString()) return x.AsString();
  return *own = x.ToText();
}

std::string Joined(const Scalar& a, const Scalar& b) {
  std::string of_a, of_b, joined;
  const std::string_view left = TextOf(a, &of_a), right = TextOf(b, &of_b);
  joined.reserve(left.size() + right.size());
  return joined.append(left).append(right);
}

Result<Scalar> EvaluateBinary(std::string_view op, BinaryCode code, const Scalar& a, const Scalar& b) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueType type, BinaryType(op, code, a.type(), b.type()));
  if (IsComparison(code)) {
    if (a.IsString() || b.IsString()) {
      std::string of_a, of_b;
      return Scalar(Compare(code, TextOf(a, &of_a), TextOf(b, &of_b)));
    }
    if (!a.IsDouble() && !b.IsDouble()) return Scalar(Compare(code, Whole(a), Whole(b)));
    return Scalar(Compare(code, a.AsDouble(), b.AsDouble()));
  }
  if (type == ValueType::kString) return Scalar(Joined(a, b));
  if (type == ValueType::kInteger && KeepsIntegers(code))
    return EvaluateIntegers(op, code, Whole(a), Whole(b));
  if (IsBitwise(code) && !a.IsDouble() && !b.IsDouble()) {
    // Exact for all 64 bits, where the way through doubles is for 53.
    const uint64_t x = static_cast<uint64_t>(Whole(a)), y = static_cast<uint64_t>(Whole(b));
    switch (code) {
      case BinaryCode::kBitAnd: return Scalar(static_cast<int64_t>(x & y));
      case BinaryCode::kBitOr: return Scalar(static_cast<int64_t>(x | y));
      case BinaryCode::kBitXor: return Scalar(static_cast<int64_t>(x ^ y));
      case BinaryCode::kBitShiftLeft: return Scalar(static_cast<int64_t>(x << (y & 63)));
      default: return Scalar(static_cast<int64_t>(x) >> (y & 63));
    }
  }
  const double result = Apply(code, a.AsDouble(), b.AsDouble());
  if (type == ValueType::kBoolean) return Scalar(result != 0);
  if (type == ValueType::kInteger) return Scalar(TruncateToInteger(result));
  return Scalar(result);
}

Result<Scalar> EvaluateUnary(std::string_view op, UnaryCode code, const Scalar& x) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueType type, UnaryType(op, code, x.type()));
  const double result = Apply(code, x.AsDouble());
  if (type == ValueType::kBoolean) return Scalar(result != 0);
  return Scalar(result);
}

}  // namespace

Result<Scalar> CastScalar(const Scalar& x, ValueType type, std::string_view op) {
  if (type == x.type() || type == ValueType::kUnknown) return x;
  if (type == ValueType::kString) return Scalar(x.ToText());
  if (type == ValueType::kBoolean) return Scalar(x.AsBoolean());
  if (x.IsString()) {
    const std::optional<double> number = ParseDouble(x.AsString());
    if (!number) return FailedPrecondition("{}: the text is not a number: \"{}\"", op, x.AsString());
    if (type == ValueType::kInteger) return Scalar(TruncateToInteger(*number));
    return Scalar(*number);
  }
  if (type == ValueType::kInteger) return Scalar(Whole(x));
  return Scalar(x.AsDouble());
}

Result<ValueType> BinaryScalarType(const Operator& op, std::span<const ValueType> inputs) {
  return BinaryType(op.name, *op.binary, inputs[0], inputs[1]);
}
Result<ValueType> UnaryScalarType(const Operator& op, std::span<const ValueType> inputs) {
  return UnaryType(op.name, *op.unary, inputs[0]);
}
Result<ValueType> CellScalarType(const Operator& op, std::span<const ValueType> inputs) {
  return inputs.size() == 2 ? BinaryScalarType(op, inputs) : UnaryScalarType(op, inputs);
}
Result<ValueType> SelectScalarType(const Operator& op, std::span<const ValueType> inputs) {
  if (inputs[0] == ValueType::kString) return NoStrings(op.name);
  return inputs[1] == inputs[2] ? inputs[1] : ValueType::kUnknown;  // the chosen value's own
}

Result<Scalar> EvaluateBinaryScalar(const Operator& op, const Node&, std::span<const Scalar* const> inputs) {
  return EvaluateBinary(op.name, *op.binary, *inputs[0], *inputs[1]);
}
Result<Scalar> EvaluateUnaryScalar(const Operator& op, const Node&, std::span<const Scalar* const> inputs) {
  return EvaluateUnary(op.name, *op.unary, *inputs[0]);
}
Result<Scalar> EvaluateCellScalar(const Operator& op, const Node& node,
                                  std::span<const Scalar* const> inputs) {
  return inputs.size() == 2 ? EvaluateBinaryScalar(op, node, inputs) : EvaluateUnaryScalar(op, node, inputs);
}
Result<Scalar> EvaluateSelectScalar(const Operator& op, const Node&, std::span<const Scalar* const> inputs) {
  if (inputs[0]->IsString()) return NoStrings(op.name);
  return inputs[0]->AsDouble() != 0 ? *inputs[1] : *inputs[2];
}

namespace {

Status NotOnScalars(std::string_view op) { return Unimplemented("{} is not defined on scalars", op); }

bool HasCount(const Operator& op, size_t count) {
  return count >= static_cast<size_t>(op.min_inputs) &&
         (op.max_inputs < 0 || count <= static_cast<size_t>(op.max_inputs));
}

Result<Scalar> Evaluate(const Node& node, std::span<const Scalar* const> inputs) {
  const Operator* op = FindOperator(node.op);
  size_t count = inputs.size();
  while (count > 0 && inputs[count - 1] == nullptr) --count;
  if (op == nullptr || op->evaluate == nullptr || !HasCount(*op, count)) return NotOnScalars(node.op);
  for (int i = 0; i < op->min_inputs; ++i)
    if (inputs[static_cast<size_t>(i)] == nullptr) return Internal("{}: input {} is missing", node.op, i);
  return op->evaluate(*op, node, inputs.first(count));
}

}  // namespace

Result<ValueType> ScalarResultType(std::string_view name, std::span<const ValueType> inputs) {
  const Operator* op = FindOperator(name);
  if (op == nullptr || op->scalar_type == nullptr || !HasCount(*op, inputs.size())) return NotOnScalars(name);
  return op->scalar_type(*op, inputs);
}

Result<Scalar> EvaluateScalar(const Node& node, std::span<const Scalar* const> inputs) {
  return WithinMemory(node.op, [&] { return Evaluate(node, inputs); });
}

}  // namespace heddle::ops
