// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "ops/base/adjoint.h"
#include "ops/catalog.h"
#include "ops/elementwise/elementwise.h"
#include "ops/simd/cellwise/elementwise_codes.h"

// The cell-wise operators. What each computes is one line of ops/simd/cellwise/cell_operators.h; formats and
// special values are in docs/numerics.md, section 7.
namespace heddle::ops {
namespace {

using enum CallForm;

bool SelectVanishesAt(const CellOperands& operands) {
  const auto is_zero = [&](size_t i) { return operands.absent(i) || IsZero(operands.operand(i)); };
  return SelectVanishes(operands.absent(0), is_zero(1), is_zero(2));
}

// At a tie, half goes to each of the two; the other being a constant, nothing does: max(X, 0) is flat at 0.
// Where one is constant, the result and not the other is asked for: the next operator keeps it anyway.
void DifferentiateExtreme(AdjointCall& call, std::string_view wins, std::string_view loses) {
  if (call.IsWanted(0) && call.IsWanted(1)) {
    call.Give(0, call.Formula(fmt::format("sumTo(dy * ((a {} b) + 0.5 * (a == b)), a)", wins)));
    call.Give(1, call.Formula(fmt::format("sumTo(dy * ((a {} b) + 0.5 * (a == b)), b)", loses)));
  } else if (call.IsWanted(0)) {
    call.Give(0, call.Formula(fmt::format("sumTo(dy * (y {} b), a)", wins)));
  } else {
    call.Give(1, call.Formula(fmt::format("sumTo(dy * (y {} a), b)", wins)));
  }
}
void DifferentiateMaximum(AdjointCall& call) { DifferentiateExtreme(call, ">", "<"); }
void DifferentiateMinimum(AdjointCall& call) { DifferentiateExtreme(call, "<", ">"); }

// Where b is 0, or a is, the other factor of a derivative of 0 may be infinite. A root, b between 0 and 1,
// has at 0 the slope of sqrt() there.
void DifferentiatePower(AdjointCall& call) {
  const Scalar* const known = call.Known(1);
  const bool may_be_root = known == nullptr || (known->AsDouble() > 0 && known->AsDouble() < 1);
  if (call.IsWanted(0) && may_be_root) {
    const NodeId is_root_of_0 = call.Formula("(a == 0) * (b > 0) * (b < 1)");
    call.Give(0, call.Formula("sumTo(dy * ((Z + a) ^ (b - 1 + (b == 0)) * ((1 - Z) * b)), a)",
                              {{"Z", is_root_of_0}}));
  } else if (call.IsWanted(0)) {
    call.Give(0, call.Formula("sumTo(dy * (a ^ (b - 1 + (b == 0)) * b), a)"));
  }
  if (call.IsWanted(1)) call.Give(1, call.Formula("sumTo(dy * (y * log(a + (a == 0))), b)"));
}

// log(x), log(x, base) = log(x) / log(base).
void DifferentiateLogarithm(AdjointCall& call) {
  const bool has_base = call.node().inputs.size() > 1 && call.node().inputs[1] != kNoNode;
  if (call.IsWanted(0)) call.Give(0, call.Formula(has_base ? "sumTo(dy / x / log(base), x)" : "dy / x"));
  if (has_base && call.IsWanted(1)) call.Give(1, call.Formula("sumTo(dy * (-y / base / log(base)), base)"));
}

constexpr Operator kOperators[] = {
    BinaryOperator({.name = "+",
                    .outer = "+",
                    .binary = BinaryCode::kAdd,
                    .total = "sum",
                    .fusion = {.work = 0.35},
                    .adjoints = "sumTo(dy, a); sumTo(dy, b)"}),
    BinaryOperator({.name = "-",
                    .outer = "-",
                    .binary = BinaryCode::kSubtract,
                    .total = "sum",
                    .fusion = {.work = 0.35},
                    .adjoints = "sumTo(dy, a); sumTo(-dy, b)"}),
    BinaryOperator({.name = "*",
                    .outer = "*",
                    .binary = BinaryCode::kMultiply,
                    .total = "prod",
                    .fusion = {.work = 0.35},
                    .adjoints = "sumTo(dy * b, a); sumTo(dy * a, b)"}),
    BinaryOperator({.name = "/",
                    .outer = "/",
                    .binary = BinaryCode::kDivide,
                    .fusion = {.work = 4},
                    .adjoints = "sumTo(dy / b, a); sumTo(dy * (-y / b), b)"}),
    BinaryOperator({.name = "^",
                    .outer = "^",
                    .binary = BinaryCode::kPower,
                    .function = true,
                    .fusion = {.work = 45},
                    .adjoints = "*; *",
                    .differentiate = DifferentiatePower}),
    BinaryOperator({.name = "%%",
                    .outer = "%%",
                    .binary = BinaryCode::kModulus,
                    .fusion = {.work = 8},
                    .adjoints = "sumTo(dy, a); sumTo(dy * -(a %/% b), b)"}),
    BinaryOperator({.name = "%/%",
                    .outer = "%/%",
                    .binary = BinaryCode::kIntegerDivide,
                    .fusion = {.work = 6},
                    .adjoints = "0"}),
    BinaryOperator(
        {.name = "<", .outer = "<", .binary = BinaryCode::kLess, .fusion = {.work = 0.5}, .adjoints = "0"}),
    BinaryOperator({.name = "<=",
                    .outer = "<=",
                    .binary = BinaryCode::kLessEqual,
                    .fusion = {.work = 0.5},
                    .adjoints = "0"}),
    BinaryOperator({.name = ">",
                    .outer = ">",
                    .binary = BinaryCode::kGreater,
                    .fusion = {.work = 0.5},
                    .adjoints = "0"}),
    BinaryOperator({.name = ">=",
                    .outer = ">=",
                    .binary = BinaryCode::kGreaterEqual,
                    .fusion = {.work = 0.5},
                    .adjoints = "0"}),
    BinaryOperator({.name = "==",
                    .outer = "==",
                    .binary = BinaryCode::kEqual,
                    .fusion = {.work = 0.5},
                    .adjoints = "0"}),
    BinaryOperator({.name = "!=",
                    .outer = "!=",
                    .binary = BinaryCode::kNotEqual,
                    .fusion = {.work = 0.5},
                    .adjoints = "0"}),
    BinaryOperator({.name = "&",
                    .outer = "&&",
                    .binary = BinaryCode::kLogicalAnd,
                    .fusion = {.work = 0.4},
                    .adjoints = "0"}),
    BinaryOperator({.name = "|",
                    .outer = "||",
                    .binary = BinaryCode::kLogicalOr,
                    .fusion = {.work = 0.4},
                    .adjoints = "0"}),
    BinaryOperator({.name = "xor",
                    .form = kPositional,
                    .outer = "xor",
                    .binary = BinaryCode::kExclusiveOr,
                    .fusion = {.work = 0.4},
                    .adjoints = "0"}),
    BinaryOperator({.name = "pmin",
                    .outer = "min",
                    .binary = BinaryCode::kMinimum,
                    .total = "min",
                    .fusion = {.work = 1.7},
                    .adjoints = "*",
                    .differentiate = DifferentiateMinimum}),
    BinaryOperator({.name = "pmax",
                    .outer = "max",
                    .binary = BinaryCode::kMaximum,
                    .total = "max",
                    .fusion = {.work = 1.7},
                    .adjoints = "*",
                    .differentiate = DifferentiateMaximum}),
    BinaryOperator({.name = "bitwAnd",
                    .form = kPositional,
                    .binary = BinaryCode::kBitAnd,
                    .fusion = {.work = 8},
                    .adjoints = "0"}),
    BinaryOperator({.name = "bitwOr",
                    .form = kPositional,
                    .binary = BinaryCode::kBitOr,
                    .fusion = {.work = 8},
                    .adjoints = "0"}),
    BinaryOperator({.name = "bitwXor",
                    .form = kPositional,
                    .binary = BinaryCode::kBitXor,
                    .fusion = {.work = 8},
                    .adjoints = "0"}),
    BinaryOperator({.name = "bitwShiftL",
                    .form = kPositional,
                    .parameters = "a n",
                    .binary = BinaryCode::kBitShiftLeft,
                    .fusion = {.work = 8},
                    .adjoints = "0"}),
    BinaryOperator({.name = "bitwShiftR",
                    .form = kPositional,
                    .parameters = "a n",
                    .binary = BinaryCode::kBitShiftRight,
                    .fusion = {.work = 8},
                    .adjoints = "0"}),
    UnaryOperator({.name = "!", .unary = UnaryCode::kNot, .fusion = {.work = 0.4}, .adjoints = "0"}),
    CellFunction({.name = "sqrt",
                  .unary = UnaryCode::kSquareRoot,
                  .fusion = {.work = 9},
                  // At 0, where the slope is infinite, the one of the constant below: a distance of equal
                  // points, sqrt(sum((a - b)^2)), does not change with them to either side.
                  .derivative = "0.5 * (y != 0) / (y + (y == 0))"}),
    CellFunction({.name = "exp",
                  .unary = UnaryCode::kExponential,
                  .function = true,
                  .fusion = {.work = 9, .alone = true},
                  .derivative = "y"}),
    CellFunction({.name = "log",
                  .parameters = "x base?",
                  .outer = "log",
                  .drops_last_input = true,
                  .binary = BinaryCode::kLogBase,
                  .unary = UnaryCode::kLogarithm,
                  .function = true,
                  .fusion = {.work = 12, .alone = true},
                  .adjoints = "*",
                  .differentiate = DifferentiateLogarithm}),
    CellFunction(
        {.name = "abs", .unary = UnaryCode::kAbsolute, .fusion = {.work = 0.3}, .derivative = "sign(x)"}),
    CellFunction({.name = "round", .unary = UnaryCode::kRound, .fusion = {.work = 0.7}, .adjoints = "0"}),
    CellFunction({.name = "floor", .unary = UnaryCode::kRoundDown, .fusion = {.work = 0.7}, .adjoints = "0"}),
    CellFunction({.name = "ceil",
                  .aliases = "ceiling",
                  .unary = UnaryCode::kRoundUp,
                  .fusion = {.work = 0.7},
                  .adjoints = "0"}),
    CellFunction({.name = "sign", .unary = UnaryCode::kSign, .fusion = {.work = 1.5}, .adjoints = "0"}),
    CellFunction({.name = "sin",
                  .unary = UnaryCode::kSine,
                  .function = true,
                  .fusion = {.work = 26},
                  .derivative = "cos(x)"}),
    CellFunction({.name = "cos",
                  .unary = UnaryCode::kCosine,
                  .function = true,
                  .fusion = {.work = 26},
                  .derivative = "-sin(x)"}),
    CellFunction({.name = "tan",
                  .unary = UnaryCode::kTangent,
                  .function = true,
                  .fusion = {.work = 40},
                  .derivative = "1 + y ^ 2"}),
    CellFunction({.name = "asin",
                  .unary = UnaryCode::kArcSine,
                  .function = true,
                  .fusion = {.work = 22},
                  .derivative = "1 / sqrt(1 - x ^ 2)"}),
    CellFunction({.name = "acos",
                  .unary = UnaryCode::kArcCosine,
                  .function = true,
                  .fusion = {.work = 22},
                  .derivative = "-1 / sqrt(1 - x ^ 2)"}),
    CellFunction({.name = "atan",
                  .unary = UnaryCode::kArcTangent,
                  .function = true,
                  .fusion = {.work = 20},
                  .derivative = "1 / (1 + x ^ 2)"}),
    CellFunction({.name = "sinh",
                  .unary = UnaryCode::kHyperbolicSine,
                  .function = true,
                  .fusion = {.work = 26},
                  .derivative = "cosh(x)"}),
    CellFunction({.name = "cosh",
                  .unary = UnaryCode::kHyperbolicCosine,
                  .function = true,
                  .fusion = {.work = 22},
                  .derivative = "sinh(x)"}),
    CellFunction({.name = "tanh",
                  .unary = UnaryCode::kHyperbolicTangent,
                  .function = true,
                  .fusion = {.work = 24},
                  .derivative = "1 - y ^ 2"}),
    CellFunction({.name = "sigmoid",
                  .parameters = "X",
                  .unary = UnaryCode::kSigmoid,
                  .function = true,
                  .fusion = {.work = 18},
                  .derivative = "y * (1 - y)"}),
    CellFunction({.name = "is.nan",
                  .aliases = "isNaN",
                  .unary = UnaryCode::kIsNaN,
                  .fusion = {.work = 0.5},
                  .adjoints = "0"}),
    CellFunction({.name = "is.na",
                  .aliases = "isNA",
                  .unary = UnaryCode::kIsNaN,
                  .fusion = {.work = 0.5},
                  .adjoints = "0"}),
    CellFunction({.name = "is.infinite",
                  .aliases = "isInf",
                  .unary = UnaryCode::kIsInfinite,
                  .fusion = {.work = 0.5},
                  .adjoints = "0"}),
    CellOperator({.name = "ifelse",
                  .form = kPositional,
                  .parameters = "c a b",
                  .min_inputs = 3,
                  .max_inputs = 3,
                  .infer = InferSelect,
                  .run = RunSelect,
                  .scalar_type = SelectScalarType,
                  .evaluate = EvaluateSelectScalar,
                  .role = Role::kChoose,
                  .fusion = {.work = 0.3},
                  .vanishes = SelectVanishesAt,
                  .adjoints = "0; sumTo(ifelse(c, dy, 0), a); sumTo(ifelse(c, 0, dy), b)"}),
};

}  // namespace

std::span<const Operator> ElementwiseOperators() { return kOperators; }

/// outer(u, v, "op"), also called ppred: u op t(v) for the operators that have a name there. The front end
/// writes the call as the operator itself, which repeats its vectors.
extern constexpr Operator kOuterForm = {
    .name = "outer", .form = CallForm::kOuter, .parameters = "u v op", .aliases = "ppred"};

}  // namespace heddle::ops
