// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "core/values/frame.h"
#include "core/values/matrix.h"
#include "core/values/scalar.h"

namespace heddle {

/// What a register slot or a variable holds: a scalar, or (this rank's rows of) a matrix or a frame. Copies
/// share the cells and touch one counter. What treats kinds differently switches over kind() without a
/// default, so that the compiler names every place that does not know a new kind.
class Value {
 public:
  enum class Kind : uint8_t { kScalar, kMatrix, kFrame };

  Value() = default;
  Value(Scalar scalar) : value_(std::move(scalar)) {}  // NOLINT: implicit by design
  Value(Matrix matrix) : value_(std::move(matrix)) {}  // NOLINT: implicit by design
  Value(Frame frame) : value_(std::move(frame)) {}     // NOLINT: implicit by design

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool IsScalar() const { return kind() == Kind::kScalar; }
  bool IsMatrix() const { return kind() == Kind::kMatrix; }
  bool IsFrame() const { return kind() == Kind::kFrame; }
  const Scalar& scalar() const { return std::get<Scalar>(value_); }
  const Matrix& matrix() const { return std::get<Matrix>(value_); }
  Matrix& matrix() { return std::get<Matrix>(value_); }
  const Frame& frame() const { return std::get<Frame>(value_); }

  /// Rows and columns; 0 x 0 of a scalar.
  Shape shape() const;
  /// Bytes of its cells.
  int64_t bytes() const;

 private:
  std::variant<Scalar, Matrix, Frame> value_;  // In the order of Kind.
};

}  // namespace heddle
