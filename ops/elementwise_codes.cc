// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise_codes.h"

#include <algorithm>
#include <iterator>

#include "ops/math.h"

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
  const auto* found = std::find_if(std::begin(table), std::end(table), [&](const auto& entry) { return entry.name == op; });
  return found == std::end(table) ? std::nullopt : std::optional(found->code);
}

}  // namespace

std::optional<BinaryCode> FindBinaryCode(std::string_view op) { return Find(kBinary, op); }
std::optional<UnaryCode> FindUnaryCode(std::string_view op) { return Find(kUnary, op); }

bool SkipsAbsentCells(BinaryCode code) { return code == BinaryCode::kMultiply || code == BinaryCode::kLogicalAnd; }

bool KeepsZero(BinaryCode code, const Node& right) {
  const Scalar* const value = right.Is("literal") ? right.FindAttribute("value") : nullptr;
  return value != nullptr && !value->IsString() && Apply(code, 0.0, value->AsDouble()) == 0.0;
}

Format BinaryFormat(BinaryCode code, const ValueInfo& a, const ValueInfo& b) {
  const Patterns patterns = PatternsOf(a, b);
  const bool left = a.IsMatrix() && a.format == Format::kSparse && patterns.left == Pattern::kCells;
  const bool right = b.IsMatrix() && b.format == Format::kSparse && patterns.right == Pattern::kCells;
  bool sparse = false;
  switch (code) {
    case BinaryCode::kMultiply:
    case BinaryCode::kLogicalAnd:
      sparse = left || right;
      break;
    case BinaryCode::kAdd:
    case BinaryCode::kSubtract:
    case BinaryCode::kLogicalOr:
    case BinaryCode::kExclusiveOr:
    case BinaryCode::kMinimum:
    case BinaryCode::kMaximum:
      sparse = left && right;
      break;
    case BinaryCode::kNotEqual:
    case BinaryCode::kLess:
    case BinaryCode::kGreater:
      sparse = (left && (right || !b.IsMatrix())) || (right && !a.IsMatrix());
      break;
    case BinaryCode::kDivide:
      sparse = left && !right;
      break;
    case BinaryCode::kPower:
      sparse = left && !b.IsMatrix();
      break;
    default:
      break;
  }
  return sparse ? Format::kSparse : Format::kDense;
}

Format UnaryFormat(UnaryCode code, const ValueInfo& x) {
  return Apply(code, 0.0) == 0.0 ? x.format : Format::kDense;
}

}  // namespace heddle::ops
