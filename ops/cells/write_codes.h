// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "core/values/column_groups.h"

namespace heddle::ops {

/// Writes the codes of rows [begin, end), at most 1024, of a group that is being made.
using CodeReader = std::function<void(int64_t begin, int64_t end, uint16_t* codes)>;

/// A group with the dictionary, the columns, the encoding and the number of bits of another one, and other
/// codes. Not of kUncompressed. Of kDefault and kRuns `read` is called for all rows in their order.
/// kResourceExhausted.
Result<ColumnGroup> WithCodes(const ColumnGroup& other, int64_t rows, const CodeReader& read);

}  // namespace heddle::ops
