// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/cellwise/elementwise_codes.h"

#include "ops/base/operator.h"
#include "ops/simd/cellwise/math.h"

namespace heddle::ops {
namespace {

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

std::optional<BinaryCode> FindBinaryCode(std::string_view op) {
  const Operator* found = FindOperator(op);
  return found == nullptr ? std::nullopt : found->binary;
}
std::optional<UnaryCode> FindUnaryCode(std::string_view op) {
  const Operator* found = FindOperator(op);
  return found == nullptr ? std::nullopt : found->unary;
}

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
  const bool right_is_single = patterns.right == Pattern::kScalar;
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
    case BinaryCode::kGreater:
      sparse = (left && (right || right_is_single)) || (right && !a.IsMatrix());
      break;
    case BinaryCode::kDivide: sparse = left && !right; break;
    case BinaryCode::kPower: sparse = left && right_is_single; break;
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
