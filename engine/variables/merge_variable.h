// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/variables/variables.h"

namespace heddle::engine {

/// Whether two variables are the same without a look at cells: scalars of one type and with the same bytes,
/// matrices, frames and lists that share their memory.
bool SharesValue(const Variable& a, const Variable& b);

/// What a variable of before a parfor became when each of `changed` (one at least, the first is that of the
/// last iteration) stands for changes of other cells of it, or of other elements of a list. kInternal when
/// they cannot be put together; kResourceExhausted.
Result<Variable> MergeVariable(const Variable& before, std::vector<Variable> changed);

}  // namespace heddle::engine
