// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/programs/graph.h"
#include "ops/base/broadcast.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {

/// The kernel of a DML operator: "+" is kAdd, "pmin" kMinimum, "log" with a base kLogBase. nullopt for other
/// operators.
std::optional<BinaryCode> FindBinaryCode(std::string_view op);
std::optional<UnaryCode> FindUnaryCode(std::string_view op);

/// What x ^ y is by definition (ops/simd/cellwise/math_power.h): y = 2, y = 3, y = -1, and all others.
enum class PowerForm : uint8_t { kSquare, kCube, kReciprocal, kFunction };
constexpr PowerForm FormOfPower(double y) {
  return y == 2    ? PowerForm::kSquare
         : y == 3  ? PowerForm::kCube
         : y == -1 ? PowerForm::kReciprocal
                   : PowerForm::kFunction;
}

/// Format of a cell-wise result: a function of the operator, the patterns, the formats and of scalars that
/// are known (`left`, `right`; null: none) only (docs/numerics.md, section 7 has the table). At least one
/// operand is a matrix.
Format BinaryFormat(BinaryCode code, const ValueInfo& a, const ValueInfo& b, const Scalar* left,
                    const Scalar* right);
Format UnaryFormat(UnaryCode code, const ValueInfo& x);

/// Format of ifelse(condition, a, b): CSR if every cell is zero where some CSR operands have no entries.
Format SelectFormat(std::span<const ValueInfo> inputs, std::span<const Scalar* const> known);

/// True if condition != 0 ? a : b is zero where these are zero.
constexpr bool SelectVanishes(bool condition, bool a, bool b) { return b && (condition || a); }

/// True if `right` is a literal for which 0 op right is 0, or `left` one for which left op 0 is 0: absent
/// cells stay absent.
bool KeepsZeroOnLeft(BinaryCode code, const Node& right);
bool KeepsZeroOnRight(BinaryCode code, const Node& left);
/// A literal 0.
bool IsZero(const Node& node);
/// True for * and &: an absent cell of a CSR operand makes an absent cell whatever the other operand holds.
bool SkipsAbsentCells(BinaryCode code);

}  // namespace heddle::ops
