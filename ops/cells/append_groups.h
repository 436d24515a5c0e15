// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "core/values/column_groups.h"

namespace heddle::ops {

/// Matrices below each other, most of them compressed, as column groups. Neighbouring views of one matrix are
/// a view of it. Else columns are in one group that all parts have in one group; its dictionary is that of
/// the parts where they share one, or has the tuples of all. A part that is not compressed, and has few of
/// the rows, is dense; its tuples are looked up. Exact. Parallel.
///
/// nullopt where there are no groups: parts that are not compressed are many or CSR, or a group is CSR.
/// kResourceExhausted.
Result<std::optional<Matrix>> AppendGroups(std::span<const Matrix> parts);

}  // namespace heddle::ops
