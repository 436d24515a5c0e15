// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "core/status.h"
#include "core/values/value.h"
#include "ops/panels/spilled_rows.h"

namespace heddle::ops {

/// Rows [begin, end) of a matrix or frame that is in memory, or in a spill file.
struct RowSource {
  Value in_memory;
  std::shared_ptr<const SpilledRows> spilled;  ///< nullptr: in_memory has the rows.
  int64_t begin = 0;
  int64_t end = 0;
};

/// The rows of all sources, one below the other: a single source in memory as a view, else cells and entries
/// of matrices right into the result, columns of frames by JoinRows. There is at least one source.
///
/// Shapes:  sources of r_i x n cells give (sum of r_i) x n; matrices are stored as JoinRows has it.
/// Errors:  those of SpilledRows and JoinRows.
/// Cost:    reads what is in files once, copies what is in memory once.
Result<Value> GatherRows(std::span<const RowSource> sources);

}  // namespace heddle::ops
