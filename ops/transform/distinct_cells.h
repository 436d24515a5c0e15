// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/values/frame.h"

namespace heddle::ops {

/// The cells of a column, each distinct one once.
struct DistinctCells {
  std::vector<int32_t> numbers;     ///< One a row: which distinct cell it holds; -1: missing or empty.
  std::vector<int64_t> first_rows;  ///< Of each distinct cell, ascending: they are in order of appearance.

  int64_t count() const { return static_cast<int64_t>(first_rows.size()); }
  /// Of one of them, AppendCell.
  std::string TextOf(const Column& column, int64_t number) const;
};

/// Cells are equal when their texts are: 0.0 differs from -0.0, NaN equals NaN.
///
/// Order:   that of rows, however many threads there are.
/// Errors:  kResourceExhausted beyond 2^31 - 1 distinct cells.
/// Cost:    one hash of every cell, in parallel; the distinct cells of each piece, of 2^17 rows or more, are
///          put together one after the other.
Result<DistinctCells> FindDistinctCells(const Column& column, const std::atomic<bool>* cancelled = nullptr);

}  // namespace heddle::ops
