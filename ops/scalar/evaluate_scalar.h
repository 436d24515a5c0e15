// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "core/values/scalar.h"
#include "ops/base/operator.h"

namespace heddle::ops {

/// Value type of a scalar operator's result (language reference 2.2): int op int is int, `/` and `^` are
/// double, boolean op boolean is double for arithmetic, comparisons and logic are boolean, functions of one
/// number are double (is.nan too), `+` with a string is a string, ifelse is the chosen value as it is.
/// kUnknown where it depends on types that are unknown, or on the condition of ifelse. kInvalidArgument where
/// strings cannot be (only `+` and comparisons take them).
///
/// The dynamic type of a value agrees with it, except x %/% 0 and x %% 0 of integers, which are double
/// (Infinity, NaN).
Result<ValueType> ScalarResultType(std::string_view op, std::span<const ValueType> inputs);

/// Operator::scalar_type and Operator::evaluate of cell-wise operators: those with two operands, with one,
/// with one or two as many as are given, and ifelse. Inputs that are left out at the end are not in the span.
Result<ValueType> BinaryScalarType(const Operator& op, std::span<const ValueType> inputs);
Result<ValueType> UnaryScalarType(const Operator& op, std::span<const ValueType> inputs);
Result<ValueType> CellScalarType(const Operator& op, std::span<const ValueType> inputs);
Result<ValueType> SelectScalarType(const Operator& op, std::span<const ValueType> inputs);
Result<Scalar> EvaluateBinaryScalar(const Operator& op, const Node& node,
                                    std::span<const Scalar* const> inputs);
Result<Scalar> EvaluateUnaryScalar(const Operator& op, const Node& node,
                                   std::span<const Scalar* const> inputs);
Result<Scalar> EvaluateCellScalar(const Operator& op, const Node& node,
                                  std::span<const Scalar* const> inputs);
Result<Scalar> EvaluateSelectScalar(const Operator& op, const Node& node,
                                    std::span<const Scalar* const> inputs);

/// Converts between value types: strings are parsed as doubles, integers truncate, booleans ask for non-zero
/// (strings: "TRUE", "true"). kFailedPrecondition, naming `op`, for text that is no number. Also what binding
/// a scalar to a typed parameter does.
Result<Scalar> CastScalar(const Scalar& x, ValueType type, std::string_view op);

}  // namespace heddle::ops
