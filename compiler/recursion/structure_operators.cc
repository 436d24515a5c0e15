// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/structure_operators.h"

#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

using Code = ops::StructureProgram::Code;
using Found = std::optional<StructureOperator>;

Found Binary(ops::BinaryCode binary) {
  using enum ops::BinaryCode;
  switch (binary) {
    case kAdd: return {{.code = Code::kAdd}};
    case kSubtract: return {{.code = Code::kSubtract}};
    case kMultiply: return {{.code = Code::kMultiply}};
    case kDivide: return {{.code = Code::kDivide}};
    case kEqual: return {{.code = Code::kEqual}};
    case kNotEqual: return {{.code = Code::kNotEqual}};
    case kLess: return {{.code = Code::kLess}};
    case kLessEqual: return {{.code = Code::kLessEqual}};
    case kGreater: return {{.code = Code::kLess, .swaps = true}};
    case kGreaterEqual: return {{.code = Code::kLessEqual, .swaps = true}};
    case kLogicalAnd: return {{.code = Code::kAnd}};
    case kLogicalOr: return {{.code = Code::kOr}};
    case kModulus:
    case kIntegerDivide:
    case kExclusiveOr:
    case kMinimum:
    case kMaximum: return {{.code = Code::kBinary, .index = static_cast<int32_t>(binary)}};
    default: return std::nullopt;
  }
}

Found Unary(ops::UnaryCode unary) {
  using enum ops::UnaryCode;
  switch (unary) {
    case kNot: return {{.code = Code::kNot}};
    case kAbsolute:
    case kRound:
    case kRoundDown:
    case kRoundUp:
    case kSign: return {{.code = Code::kUnary, .index = static_cast<int32_t>(unary)}};
    default: return std::nullopt;
  }
}

// The result of a function that has become part of this one, as a number of the type that was declared.
Found Declared(const Node& node) {
  if (node.FindAttribute("keeps.fractions") != nullptr) return std::nullopt;
  switch (ParseValueType(node.Text("type")).value_or(ValueType::kUnknown)) {
    case ValueType::kInteger: return {{.code = Code::kWhole}};
    case ValueType::kBoolean: return {{.code = Code::kBoolean}};
    case ValueType::kDouble: return {{.code = Code::kDouble}};
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<StructureOperator> StructureOperatorOf(const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr) return std::nullopt;
  switch (op->role) {
    case ops::Role::kAsInteger: return {{.code = Code::kTruncate}};
    case ops::Role::kAsLogical: return {{.code = Code::kBoolean}};
    case ops::Role::kAsDouble: return {{.code = Code::kDouble}};
    case ops::Role::kAsDeclared: return Declared(node);
    default: break;
  }
  if (op->binary) return Binary(*op->binary);
  return op->unary ? Unary(*op->unary) : std::nullopt;
}

}  // namespace heddle::compiler
