// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ops/base/operator.h"
#include "ops/select/table_entries.h"

namespace heddle::ops {

/// table(A, B, W) of compressed columns A and B, from how many rows have which tuples of both; B may be a
/// number. W is a number or a compressed column, whose sums are exact in any order. `shape`: of the table, or
/// unknown.
///
/// nullopt where sums may be rounded, where there are more pairs of tuples than rows pay for, and where a key
/// is an error.
Result<std::optional<Value>> TableOfJointCounts(const KernelCall& call, Shape shape);

}  // namespace heddle::ops
