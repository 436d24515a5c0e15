// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/variables/variables.h"

namespace heddle::engine {

/// Whether two variables are the same without a look at cells: scalars of one type and with the same bytes,
/// matrices, frames and lists that share their memory.
bool SharesValue(const Variable& a, const Variable& b);

/// A matrix or frame in panels, or on a device, becomes one in the memory of the host. kResourceExhausted
/// where it does not fit; kDataLoss; kUnavailable.
Status BringIntoMemory(Variable* variable);

/// One variable of what the iterations of a parfor made of `before`: each of `changed` has other cells
/// changed, or other elements of a list. There is at least one, and the first is that of the last iteration.
/// kInternal when two of them cannot come from one variable; kResourceExhausted.
Result<Variable> MergeVariable(const Variable& before, std::vector<Variable> changed);

}  // namespace heddle::engine
