// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "core/matrix.h"
#include "core/scalar.h"

namespace heddle {

/// What a register slot or a variable holds: a scalar or (this rank's rows of) a matrix.
class Value {
 public:
  Value() = default;
  Value(Scalar scalar) : value_(std::move(scalar)) {}  // NOLINT: implicit by design
  Value(Matrix matrix) : value_(std::move(matrix)) {}  // NOLINT: implicit by design

  bool IsScalar() const { return std::holds_alternative<Scalar>(value_); }
  bool IsMatrix() const { return std::holds_alternative<Matrix>(value_); }
  const Scalar& scalar() const { return std::get<Scalar>(value_); }
  const Matrix& matrix() const { return std::get<Matrix>(value_); }
  Matrix& matrix() { return std::get<Matrix>(value_); }

 private:
  std::variant<Scalar, Matrix> value_;
};

}  // namespace heddle
