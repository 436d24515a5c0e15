// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "core/values/frame.h"

namespace heddle::ops {

/// Which rows (columns) of the frame have a cell that is not empty: one byte each. Empty are missing cells,
/// 0, FALSE and the text "0", as SystemDS has it; the text "" is not.
std::vector<char> NotEmpty(const Frame& frame, bool rows);

/// The rows (columns) of the frame with these numbers, from 0, which ascend. Columns are counted anew: C1 to
/// Cn.
///
/// Cost: one copy of the cells of rows; columns are shared.
Result<Frame> Gathered(const Frame& frame, bool rows, std::span<const int64_t> kept);

/// One row (column) in place of none: missing texts, 0 and FALSE of the frame's types; a column is of texts.
Result<Frame> NothingLeft(const Frame& frame, bool rows);

}  // namespace heddle::ops
