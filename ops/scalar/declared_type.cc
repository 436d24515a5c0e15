// SPDX-License-Identifier: Apache-2.0
#include "ops/scalar/declared_type.h"

#include <array>
#include <cmath>
#include <span>
#include <string>

#include "ops/base/operator.h"
#include "ops/catalog.h"
#include "ops/scalar/evaluate_scalar.h"

namespace heddle::ops {
namespace {

ValueType DeclaredType(const Node& node) {
  return ParseValueType(node.Text("type")).value_or(ValueType::kUnknown);
}

bool KeepsFractions(const Node& node) {
  const Scalar* keeps = node.FindAttribute("keeps.fractions");
  return keeps != nullptr && keeps->AsBoolean();
}

bool IsNumber(ValueType type) { return type == ValueType::kDouble || type == ValueType::kInteger; }

Status NotANumber(const Node& node, const std::string& value) {
  return FailedPrecondition("{} is declared as {}, but its value is a string{}", node.Text("what"),
                            node.Text("type"), value)
      .WithNote("as.double() and as.integer() make numbers of texts");
}

// What cannot be an int64: fractions, NaN, and what is too large.
bool IsWhole(double x) { return std::trunc(x) == x && x >= -0x1p63 && x < 0x1p63; }

Result<ValueInfo> InferDeclared(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  const ValueType type = DeclaredType(context.node);
  if (!x.IsScalar())
    return InvalidArgument("{} is declared as a scalar, but its value is a {}", context.node.Text("what"),
                           Name(x.data_type))
        .WithNote("as.scalar(X) makes a scalar of a 1x1 matrix");
  if (!context.scalars.empty() && context.scalars[0] != nullptr) {
    Result<Scalar> value = CastToDeclared(context.node, *context.scalars[0]);
    if (!value.ok()) return value.status().WithCode(StatusCode::kInvalidArgument);
  }
  if (x.value_type == ValueType::kString && IsNumber(type))
    return NotANumber(context.node, "").WithCode(StatusCode::kInvalidArgument);
  if (KeepsFractions(context.node) && x.value_type != ValueType::kInteger)
    return ValueInfo::OfScalar(ValueType::kUnknown);
  return ValueInfo::OfScalar(type == ValueType::kUnknown ? x.value_type : type);
}

Result<Value> RunDeclared(const KernelCall& call) {
  const std::array inputs = {&call.inputs[0]->scalar()};
  HEDDLE_ASSIGN_OR_RETURN(Scalar result, EvaluateScalar(call.node, inputs));
  return Value(std::move(result));
}

Result<Scalar> Evaluate(const Operator&, const Node& node, std::span<const Scalar* const> inputs) {
  return CastToDeclared(node, *inputs[0]);
}

constexpr Operator kOperators[] = {{.name = "as.declared",
                                    .parameters = "x @type @what",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .infer = InferDeclared,
                                    .run = RunDeclared,
                                    .may_fail = true,
                                    .evaluate = Evaluate,
                                    .role = Role::kAsDeclared,
                                    .adjoints = "dy"}};

}  // namespace

Result<Scalar> CastToDeclared(const Node& node, const Scalar& x) {
  const ValueType type = DeclaredType(node);
  if (x.IsString() && IsNumber(type)) return NotANumber(node, fmt::format(": \"{}\"", x.AsString()));
  if (type == ValueType::kInteger && x.IsDouble() && !IsWhole(x.AsDouble())) {
    if (KeepsFractions(node)) return x;
    return FailedPrecondition("{} is declared as integer, but its value is {}", node.Text("what"), x.ToText())
        .WithNote("declare it as double, or make it whole with round(), floor() or as.integer()");
  }
  return CastScalar(x, type, "as.declared");
}

bool IsAsDeclared(const Node& node, ValueType type) {
  const ValueType declared = DeclaredType(node);
  return declared == ValueType::kUnknown || (declared == type && type != ValueType::kInteger);
}

std::span<const Operator> DeclaredTypeOperators() { return kOperators; }

}  // namespace heddle::ops
