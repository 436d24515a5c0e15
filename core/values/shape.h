// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <cstdint>

namespace heddle {

constexpr int64_t kUnknown = -1;

/// Rows and columns of a matrix; kUnknown (-1) where not known yet. A scalar has no shape (0 x 0 by
/// convention).
struct Shape {
  int64_t rows = kUnknown;
  int64_t columns = kUnknown;

  bool IsKnown() const { return rows >= 0 && columns >= 0; }
  /// Number of cells, kUnknown when not known; INT64_MAX when there are more.
  int64_t Cells() const {
    int64_t cells = 0;
    if (!IsKnown()) return kUnknown;
    return __builtin_mul_overflow(rows, columns, &cells) ? INT64_MAX : cells;
  }
  bool operator==(const Shape&) const = default;
};

}  // namespace heddle

template <>
struct fmt::formatter<heddle::Shape> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const heddle::Shape& shape, Context& context) const {
    if (shape.IsKnown()) return fmt::format_to(context.out(), "{}x{}", shape.rows, shape.columns);
    if (shape.rows >= 0) return fmt::format_to(context.out(), "{}x?", shape.rows);
    if (shape.columns >= 0) return fmt::format_to(context.out(), "?x{}", shape.columns);
    return fmt::format_to(context.out(), "?x?");
  }
};
