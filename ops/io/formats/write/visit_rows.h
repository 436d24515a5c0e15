// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/values/value.h"
#include "ops/base/split.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {

/// How many rows of panels (core/values/row_panels.h) are read at once, so that these and what they are put
/// together from take about `held_bytes`; one at least.
inline int64_t RowsAtOnce(const ValueInfo& info, int64_t held_bytes) {
  const double rows = static_cast<double>(std::max<int64_t>(1, info.shape.rows));
  const double row_bytes = std::max(1.0, BytesToMove(info) / rows);
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(held_bytes / 2) / row_bytes));
}

/// Calls take(begin, rows) for rows [begin, end) of a value: once, or of panels for a few rows at a time, as
/// many as a multiple of `unit`. `info` tells how large the rows of the value are, `held_bytes` what may be
/// held of them.
template <typename Take>
Status VisitRows(const Value& value, const ValueInfo& info, int64_t begin, int64_t end, int64_t unit,
                 int64_t held_bytes, const Take& take) {
  const int64_t at_once =
      value.IsPanels() ? std::max<int64_t>(1, RowsAtOnce(info, held_bytes) / unit) * unit : end - begin;
  do {
    const int64_t behind = end - begin > at_once ? begin + at_once : end;
    HEDDLE_ASSIGN_OR_RETURN(const Value rows, SliceRows(value, begin, behind));
    HEDDLE_RETURN_IF_ERROR(take(begin, rows));
    begin = behind;
  } while (begin < end);
  return OkStatus();
}

}  // namespace heddle::ops
