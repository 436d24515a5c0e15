// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/values/value.h"
#include "ops/base/split.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {

/// Of panels (core/values/row_panels.h) of which nobody needs all rows, about so many bytes are read at once.
constexpr int64_t kPanelBytesAtOnce = int64_t{4} << 20;
inline int64_t RowsAtOnce(const ValueInfo& info) {
  const double rows = static_cast<double>(std::max<int64_t>(1, info.shape.rows));
  const double row_bytes = std::max(1.0, BytesToMove(info) / rows);
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(kPanelBytesAtOnce) / row_bytes));
}

/// Calls take(begin, rows) for rows [begin, end) of a value: once, or of panels for a few rows at a time, as
/// many as a multiple of `unit`. `info` tells how large the rows of the value are.
template <typename Take>
Status VisitRows(const Value& value, const ValueInfo& info, int64_t begin, int64_t end, int64_t unit,
                 const Take& take) {
  const int64_t at_once =
      value.IsPanels() ? std::max<int64_t>(1, RowsAtOnce(info) / unit) * unit : end - begin;
  do {
    const int64_t behind = end - begin > at_once ? begin + at_once : end;
    HEDDLE_ASSIGN_OR_RETURN(const Value rows, SliceRows(value, begin, behind));
    HEDDLE_RETURN_IF_ERROR(take(begin, rows));
    begin = behind;
  } while (begin < end);
  return OkStatus();
}

}  // namespace heddle::ops
