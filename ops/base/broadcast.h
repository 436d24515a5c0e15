// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/programs/graph.h"

namespace heddle::ops {

/// How an operand of a cell-wise operator meets the cells of the m x n result.
enum class Pattern : uint8_t {
  kCells,   ///< m x n: cell by cell.
  kScalar,  ///< A scalar, or the only cell of a matrix: the same value everywhere.
  kColumn,  ///< m x 1: repeated over the columns.
  kRow,     ///< 1 x n: repeated over the rows.
};

struct Patterns {
  Pattern left = Pattern::kCells;
  Pattern right = Pattern::kCells;
};

/// The attribute of a cell-wise operator that outer(u, v, op) wrote where sizes are not known: a vector may
/// stand on the left of a matrix, too.
constexpr std::string_view kOuter = "outer";

/// Shape of `u op v` with this attribute: a matrix and a vector in any order, or as BroadcastShape says.
Result<Shape> OuterShape(std::string_view op, const ValueInfo& u, const ValueInfo& v);

/// Shape of `a op b` (language reference 2.4): equal shapes; a scalar on either side; a vector or a
/// single cell on the right; m x 1 op 1 x n (the outer form). Unknown sizes stay unknown where nothing
/// settles them. kInvalidArgument with both shapes and what would be allowed.
Result<Shape> BroadcastShape(std::string_view op, const ValueInfo& a, const ValueInfo& b);

/// The patterns of two operands that BroadcastShape accepts; at least one is a matrix and shapes are known.
Patterns PatternsOf(const ValueInfo& a, const ValueInfo& b);

}  // namespace heddle::ops
