// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>

#include "core/values/matrix.h"

namespace heddle::ops {

/// A number for each cell of the first argument of table(), or the same one for all.
struct TableOperand {
  const double* cells = nullptr;  ///< Row-major; nullptr: `constant`.
  double constant = 1;

  double operator[](int64_t k) const { return cells != nullptr ? cells[k] : constant; }
};

/// table(A, B, W) as a dense matrix, read panel by panel on all threads without ordering the entries: where
/// there are few cells in the table beside those of A. `a` is dense. `shape` is that of the table, or
/// unknown: then the largest keys and `least_rows` decide.
///
/// nullopt where ordering the entries is better, and where keys are errors. The bytes are those of table()
/// (docs/numerics.md, section 2).
Result<std::optional<Matrix>> TableOfFewCells(const Matrix& a, const TableOperand& b,
                                              const TableOperand& weights, Shape shape, int64_t least_rows,
                                              const std::atomic<bool>* cancelled);

}  // namespace heddle::ops
