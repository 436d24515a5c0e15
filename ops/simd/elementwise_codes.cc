// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/elementwise_codes.h"

#include <algorithm>
#include <iterator>

#include "ops/simd/math.h"

namespace heddle::ops {
namespace {

template <typename Code>
struct Named {
  std::string_view name;
  Code code;
};

constexpr Named<BinaryCode> kBinary[] = {
    {"+", BinaryCode::kAdd},
    {"-", BinaryCode::kSubtract},
    {"*", BinaryCode::kMultiply},
    {"/", BinaryCode::kDivide},
    {"^", BinaryCode::kPower},
    {"%%", BinaryCode::kModulus},
    {"%/%", BinaryCode::kIntegerDivide},
    {"<", BinaryCode::kLess},
    {"<=", BinaryCode::kLessEqual},
    {">", BinaryCode::kGreater},
    {">=", BinaryCode::kGreaterEqual},
    {"==", BinaryCode::kEqual},
    {"!=", BinaryCode::kNotEqual},
    {"&", BinaryCode::kLogicalAnd},
    {"|", BinaryCode::kLogicalOr},
    {"xor", BinaryCode::kExclusiveOr},
    {"pmin", BinaryCode::kMinimum},
    {"pmax", BinaryCode::kMaximum},
    {"bitwAnd", BinaryCode::kBitAnd},
    {"bitwOr", BinaryCode::kBitOr},
    {"bitwXor", BinaryCode::kBitXor},
    {"bitwShiftL", BinaryCode::kBitShiftLeft},
    {"bitwShiftR", BinaryCode::kBitShiftRight},
    {"log", BinaryCode::kLogBase},
};

constexpr Named<UnaryCode> kUnary[] = {
    {"!", UnaryCode::kNot},
    {"sqrt", UnaryCode::kSquareRoot},
    {"exp", UnaryCode::kExponential},
    {"log", UnaryCode::kLogarithm},
    {"abs", UnaryCode::kAbsolute},
    {"round", UnaryCode::kRound},
    {"floor", UnaryCode::kRoundDown},
    {"ceil", UnaryCode::kRoundUp},
    {"sign", UnaryCode::kSign},
    {"sin", UnaryCode::kSine},
    {"cos", UnaryCode::kCosine},
    {"tan", UnaryCode::kTangent},
    {"asin", UnaryCode::kArcSine},
    {"acos", UnaryCode::kArcCosine},
    {"atan", UnaryCode::kArcTangent},
    {"sinh", UnaryCode::kHyperbolicSine},
    {"cosh", UnaryCode::kHyperbolicCosine},
    {"tanh", UnaryCode::kHyperbolicTangent},
    {"sigmoid", UnaryCode::kSigmoid},
    {"is.nan", UnaryCode::kIsNaN},
    {"is.na", UnaryCode::kIsNaN},
    {"is.infinite", UnaryCode::kIsInfinite},
};

template <typename Table>
auto Find(const Table& table, std::string_view op) {
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& entry) { return entry.name == op; });
  return found == std::end(table) ? std::nullopt : std::optional(found->code);
}

const Scalar* LiteralOf(const Node& node) {
  return node.Is("literal") ? node.FindAttribute("value") : nullptr;
}
bool IsZero(const Scalar* value) { return value != nullptr && !value->IsString() && value->AsDouble() == 0; }

// 0 op right, or left op 0, is 0; the other one is null.
bool KeepsZero(BinaryCode code, const Scalar* left, const Scalar* right) {
  const Scalar* const value = left != nullptr ? left : right;
  if (value == nullptr || value->IsString()) return false;
  return (left != nullptr ? Apply(code, value->AsDouble(), 0.0) : Apply(code, 0.0, value->AsDouble())) == 0.0;
}

}  // namespace

std::optional<BinaryCode> FindBinaryCode(std::string_view op) { return Find(kBinary, op); }
std::optional<UnaryCode> FindUnaryCode(std::string_view op) { return Find(kUnary, op); }

bool SkipsAbsentCells(BinaryCode code) {
  return code == BinaryCode::kMultiply || code == BinaryCode::kLogicalAnd;
}

bool KeepsZeroOnLeft(BinaryCode code, const Node& right) {
  return KeepsZero(code, nullptr, LiteralOf(right));
}
bool KeepsZeroOnRight(BinaryCode code, const Node& left) { return KeepsZero(code, LiteralOf(left), nullptr); }
bool IsZero(const Node& node) { return IsZero(LiteralOf(node)); }

Format BinaryFormat(BinaryCode code, const ValueInfo& a, const ValueInfo& b, const Scalar* x,
                    const Scalar* y) {
  const Patterns patterns = PatternsOf(a, b);
  const bool left = a.IsMatrix() && a.format == Format::kSparse && patterns.left == Pattern::kCells;
  const bool right = b.IsMatrix() && b.format == Format::kSparse && patterns.right == Pattern::kCells;
  if (((left && y != nullptr) || (right && x != nullptr)) && !SkipsAbsentCells(code))
    return KeepsZero(code, x, y) ? Format::kSparse : Format::kDense;
  bool sparse = false;
  switch (code) {
    case BinaryCode::kMultiply:
    case BinaryCode::kLogicalAnd: sparse = left || right; break;
    case BinaryCode::kAdd:
    case BinaryCode::kSubtract:
    case BinaryCode::kLogicalOr:
    case BinaryCode::kExclusiveOr:
    case BinaryCode::kMinimum:
    case BinaryCode::kMaximum: sparse = left && right; break;
    case BinaryCode::kNotEqual:
    case BinaryCode::kLess:
    case BinaryCode::kGreater: sparse = (left && (right || !b.IsMatrix())) || (right && !a.IsMatrix()); break;
    case BinaryCode::kDivide: sparse = left && !right; break;
    case BinaryCode::kPower: sparse = left && !b.IsMatrix(); break;
    default: break;
  }
  return sparse ? Format::kSparse : Format::kDense;
}

Format SelectFormat(std::span<const ValueInfo> inputs, std::span<const Scalar* const> known) {
  const auto sparse = [&](size_t i) { return inputs[i].IsMatrix() && inputs[i].format == Format::kSparse; };
  const auto vanishes = [&](size_t i) {
    return sparse(i) || (inputs[i].IsScalar() && i < known.size() && IsZero(known[i]));
  };
  const bool any = sparse(0) || sparse(1) || sparse(2);
  return any && SelectVanishes(sparse(0), vanishes(1), vanishes(2)) ? Format::kSparse : Format::kDense;
}

Format UnaryFormat(UnaryCode code, const ValueInfo& x) {
  return Apply(code, 0.0) == 0.0 ? x.format : Format::kDense;
}

}  // namespace heddle::ops
