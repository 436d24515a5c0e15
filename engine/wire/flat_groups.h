// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/status.h"
#include "core/values/matrix.h"

namespace heddle::engine {

/// The bytes of the rows of a compressed matrix (core/values/column_groups_bytes.h), as of FlattenGroups:
/// made once for all of this process that send the same rows at the same time, and there until the last of
/// them has let go of them. kResourceExhausted. Thread-safe; whoever comes while they are made waits.
Result<std::shared_ptr<const Buffer>> SharedFlatGroups(const Matrix& compressed);

}  // namespace heddle::engine
