// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/programs/program.h"
#include "core/values/list.h"
#include "core/values/value.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// What a host program gives to a script and gets from it: a scalar, a matrix, a frame, or a list of such.
/// Copies share memory. A matrix or frame may stand in memory of the host (Matrix::AdoptDense,
/// Matrix::AdoptSparse, Column::Adopt).
struct HostValue {
  HostValue() = default;
  HostValue(Value value) : value(std::move(value)) {}     // NOLINT: implicit by design
  HostValue(Scalar scalar) : value(std::move(scalar)) {}  // NOLINT: implicit by design
  HostValue(Matrix matrix) : value(std::move(matrix)) {}  // NOLINT: implicit by design
  HostValue(Frame frame) : value(std::move(frame)) {}     // NOLINT: implicit by design

  Value value;                              ///< Meaningless where there is a list.
  std::shared_ptr<ListOf<HostValue>> list;  ///< nullptr: no list.
};

/// The variable that a script finds. A matrix of the other precision is copied and its cells rounded, any
/// other value shares its memory. kInvalidArgument for a size that no matrix of a script has, and for a name
/// that no variable has; kResourceExhausted where a copy does not fit.
Result<Variable> ToVariable(const std::string& name, const HostValue& value, ElementType element_type);
/// The value of a variable when nothing runs; it shares its memory, but for a compressed matrix, which a host
/// gets dense. kResourceExhausted.
Result<HostValue> ToHostValue(const Variable& variable);

/// What the compiler is told of a variable that a program begins with.
GivenVariable GivenOf(const std::string& name, const Variable& variable);

}  // namespace heddle::engine
