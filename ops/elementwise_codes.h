// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "core/graph.h"
#include "ops/broadcast.h"
#include "ops/simd/elementwise.h"

namespace heddle::ops {

/// The kernel of a DML operator: "+" is kAdd, "pmin" kMinimum, "log" with a base kLogBase. nullopt for other operators.
std::optional<BinaryCode> FindBinaryCode(std::string_view op);
std::optional<UnaryCode> FindUnaryCode(std::string_view op);

/// Format of a cell-wise result: a function of the operator, the patterns and the formats only (docs/numerics.md,
/// section 7 has the table). At least one operand is a matrix.
Format BinaryFormat(BinaryCode code, const ValueInfo& a, const ValueInfo& b);
Format UnaryFormat(UnaryCode code, const ValueInfo& x);

/// True if `right` is a literal for which 0 op right is 0: absent cells on the left stay absent.
bool KeepsZero(BinaryCode code, const Node& right);
/// True for * and &: an absent cell of a CSR operand makes an absent cell whatever the other operand holds.
bool SkipsAbsentCells(BinaryCode code);

}  // namespace heddle::ops
