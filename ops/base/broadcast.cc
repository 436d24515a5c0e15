// SPDX-License-Identifier: Apache-2.0
#include "ops/base/broadcast.h"

#include <string>

namespace heddle::ops {
namespace {

// True if a known size contradicts another.
bool Differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

// Whether left op right is possible, given what is known of the shapes.
bool Match(const Shape& left, const Shape& right) {
  const bool same_rows = !Differ(left.rows, right.rows);
  const bool same_columns = !Differ(left.columns, right.columns);
  if (same_rows && same_columns) return true;
  if (same_rows && !Differ(right.columns, 1)) return true;               // a column on the right
  if (same_columns && !Differ(right.rows, 1)) return true;               // a row on the right
  if (!Differ(right.rows, 1) && !Differ(right.columns, 1)) return true;  // a single cell on the right
  return !Differ(left.columns, 1) && !Differ(right.rows, 1);             // outer
}

Status Mismatch(std::string_view op, const Shape& left, const Shape& right) {
  std::string allowed = fmt::format("{}", left);
  if (left.columns != 1) allowed += fmt::format(", {}", Shape{left.rows, 1});
  if (left.rows != 1 && left.columns != 1) allowed += fmt::format(", {}", Shape{1, left.columns});
  if (left.columns == 1) allowed += ", a row vector";
  Status status =
      InvalidArgument("{}: shapes {} and {} do not match; on the right of {} there may be {} or a scalar", op,
                      left, right, left, allowed);
  if (left.IsKnown() && right.IsKnown() && Match(right, left))
    return status.WithNote("a vector is repeated only where it stands on the right");
  return status;
}

}  // namespace

Result<Shape> BroadcastShape(std::string_view op, const ValueInfo& a, const ValueInfo& b) {
  if (!b.IsMatrix()) return a.shape;
  if (!a.IsMatrix()) return b.shape;
  const Shape left = a.shape, right = b.shape;
  if (!Match(left, right)) return Mismatch(op, left, right);
  Shape result = left;
  // The right operand never has more rows than the result, and more columns than one only if as many as the
  // result.
  if (result.rows < 0 && right.rows > 1) result.rows = right.rows;
  if (left.columns == 1) {
    result.columns = right.columns;
  } else if (left.columns < 0 && right.columns > 1) {
    result.columns = right.columns;
  }
  return result;
}

Result<Shape> OuterShape(std::string_view op, const ValueInfo& u, const ValueInfo& v) {
  const bool are_known = u.shape.IsKnown() && v.shape.IsKnown();
  if (!u.IsMatrix() || !v.IsMatrix() || (are_known && Match(u.shape, v.shape)))
    return BroadcastShape(op, u, v);
  if (are_known && Match(v.shape, u.shape)) return v.shape;
  if (are_known) return Mismatch(op, u.shape, v.shape);
  // Which of the two is the vector is not known yet.
  const auto size = [](int64_t a, int64_t b) { return a > 1 ? a : b > 1 ? b : kUnknown; };
  return Shape{size(u.shape.rows, v.shape.rows), size(u.shape.columns, v.shape.columns)};
}

Patterns PatternsOf(const ValueInfo& a, const ValueInfo& b) {
  if (!a.IsMatrix()) return {Pattern::kScalar, Pattern::kCells};
  if (!b.IsMatrix()) return {Pattern::kCells, Pattern::kScalar};
  if (a.shape == b.shape) return {Pattern::kCells, Pattern::kCells};
  if (a.shape.rows == b.shape.rows && b.shape.columns == 1) return {Pattern::kCells, Pattern::kColumn};
  if (a.shape.columns == b.shape.columns && b.shape.rows == 1) return {Pattern::kCells, Pattern::kRow};
  if (b.shape == Shape{1, 1}) return {Pattern::kCells, Pattern::kScalar};
  return {Pattern::kColumn, Pattern::kRow};
}

}  // namespace heddle::ops
