// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <variant>

#include "core/values/frame.h"
#include "core/values/matrix.h"
#include "core/values/row_panels.h"
#include "core/values/scalar.h"

namespace heddle {

/// What a register slot or a variable holds: a scalar, (this rank's rows of) a matrix or a frame, or a handle
/// to rows that are not all in memory. Copies share the cells and touch one counter. Kernels never see
/// panels. What treats kinds differently switches over kind() without a default, so that the compiler names
/// every place that does not know a new kind.
class Value {
 public:
  enum class Kind : uint8_t { kScalar, kMatrix, kFrame, kPanels };

  Value() = default;
  Value(Scalar scalar) : value_(std::move(scalar)) {}  // NOLINT: implicit by design
  Value(Matrix matrix) : value_(std::move(matrix)) {}  // NOLINT: implicit by design
  Value(Frame frame) : value_(std::move(frame)) {}     // NOLINT: implicit by design
  explicit Value(std::shared_ptr<const RowPanels> panels) : value_(std::move(panels)) {}

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool IsScalar() const { return kind() == Kind::kScalar; }
  bool IsMatrix() const { return kind() == Kind::kMatrix; }
  bool IsFrame() const { return kind() == Kind::kFrame; }
  bool IsPanels() const { return kind() == Kind::kPanels; }
  const Scalar& scalar() const { return std::get<Scalar>(value_); }
  const Matrix& matrix() const { return std::get<Matrix>(value_); }
  Matrix& matrix() { return std::get<Matrix>(value_); }
  const Frame& frame() const { return std::get<Frame>(value_); }
  const std::shared_ptr<const RowPanels>& panels() const {
    return std::get<std::shared_ptr<const RowPanels>>(value_);
  }

  /// Rows and columns; 0 x 0 of a scalar.
  Shape shape() const;
  /// Bytes of its cells in memory.
  int64_t bytes() const;

 private:
  std::variant<Scalar, Matrix, Frame, std::shared_ptr<const RowPanels>> value_;  // In the order of Kind.
};

}  // namespace heddle
