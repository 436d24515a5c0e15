// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/values/frame.h"

// Frames cut out of frames and put together: what they hold, and what can be told of it before.
namespace heddle::ops {

/// "C1" to "Cn", as names that the columns keep wherever they go.
std::vector<std::string> CountedNames(int64_t columns);
/// names == CountedNames(of as many), without making them.
bool AreCounted(const std::vector<std::string>& names);

/// As changed copies of a frame have them: names that are the counted ones are none.
std::shared_ptr<const Schema> OfChangedCopy(const std::shared_ptr<const Schema>& schema);

/// Frames side by side, one after the other. Names stay, those of unnamed columns as counted in their frame;
/// where two are the same, all so far are counted anew.
Schema SideBySide(std::span<const Schema* const> schemas);
/// The frames have the same number of rows.
Frame SideBySide(std::span<const Frame> frames);

/// Frames below each other: the names of the first as OfChangedCopy has them, of each column the widest type.
Schema BelowEachOther(std::span<const Schema* const> schemas);
/// The frames have the same number of columns. kResourceExhausted. `schema`: of all frames, of which these
/// are some.
Result<Frame> BelowEachOther(std::span<const Frame> frames);
Result<Frame> BelowEachOther(std::span<const Frame> frames, const std::shared_ptr<const Schema>& schema);

/// `frame` with rows from `row` and columns from `column` on replaced by the cells of `part`, as cells of the
/// columns that are there. kFailedPrecondition for a cell that is none of its column (Converted);
/// kResourceExhausted. Of a failure, `column_of_failure` is the column that has it.
Result<Frame> Replaced(const Frame& frame, int64_t row, int64_t column, const Frame& part,
                       int64_t* column_of_failure);

}  // namespace heddle::ops
