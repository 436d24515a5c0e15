// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/values/column_groups.h"

// Walks over the rows of a column group that is not stored row by row.
namespace heddle {

/// Whether all rows have the same tuple, and no codes.
inline bool IsUniform(const ColumnGroup& group) {
  return group.encoding == Encoding::kEmpty || group.encoding == Encoding::kConstant;
}

/// Calls visit(row, code) for the exceptions of a kDefault group in rows [begin, end), in their order.
template <typename Visit>
void ForExceptions(const ColumnGroup& group, int64_t begin, int64_t end, Visit visit) {
  const uint16_t* rows = group.exception_rows();
  for (int64_t segment = begin / kSegmentRows; segment * kSegmentRows < end; ++segment) {
    const int64_t first_row = segment * kSegmentRows;
    const int64_t first = group.segments[static_cast<size_t>(segment)];
    const int64_t last = group.segments[static_cast<size_t>(segment) + 1];
    const int64_t from = std::max<int64_t>(begin - first_row, 0);
    for (int64_t at = std::lower_bound(rows + first, rows + last, from) - rows; at < last; ++at) {
      if (first_row + rows[at] >= end) return;
      visit(first_row + rows[at], group.codes.At(at));
    }
  }
}

/// Calls visit(first, last, code) for the parts of the runs of a kRuns group in rows [begin, end), in their
/// order.
template <typename Visit>
void ForRuns(const ColumnGroup& group, int64_t begin, int64_t end, Visit visit) {
  if (begin >= end) return;
  const std::vector<int64_t>& starts = group.starts;
  auto run = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), begin) - starts.begin()) - 1;
  for (; run < starts.size() && starts[run] < end; ++run) {
    const int64_t next = run + 1 < starts.size() ? starts[run + 1] : end;
    visit(std::max(begin, starts[run]), std::min(end, next), group.codes.At(static_cast<int64_t>(run)));
  }
}

}  // namespace heddle
