// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/cells/global_places.h"

namespace heddle::ops {

/// The cells of a column as if they were sorted, -0.0 before 0.0, where only those in some ranges are asked
/// for. None is NaN.
///
/// Cost: reads the column once, on all threads; copies and sorts the cells within the ranges.
class UnsortedColumn final : public RankElements {
 public:
  struct Range {
    std::optional<double> begin, end;  ///< nullopt: up to that end of the column.
  };
  /// Key() knows the elements that are in one of the ranges or equal to an end of one.
  UnsortedColumn(std::span<const double> cells, std::span<const Range> ranges);

  int64_t count() const override { return begins_.back(); }
  double Key(int64_t element, size_t key) const override;
  /// CountBefore (ops/cells/global_places.h) of a bound that is an end of a range.
  int64_t CountBefore(int32_t rank, const GlobalElement& bound) const;

 private:
  // The ends of the ranges cut the cells into classes: class 2 i + 1 are those equal to end i, class 2 i
  // those between end i - 1 and end i.
  size_t ClassOf(uint64_t key) const;

  std::vector<uint64_t> ends_;                 // Keys, ascending, each once.
  std::vector<std::vector<uint64_t>> inside_;  // By class: the keys between two ends, sorted, if asked for.
  std::vector<int64_t> begins_;                // By class: how many cells are in front of it.
};

}  // namespace heddle::ops
