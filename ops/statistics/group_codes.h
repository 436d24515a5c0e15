// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ops/statistics/group_panels.h"

namespace heddle::ops {

/// What ReadByPanels gives, from how many rows of each group have which tuple of a compressed x: counts, sums
/// and means whose additions are exact in any order (ops/compressed/exact.h), and extremes. The groups may be
/// compressed, too; of counts they alone have to be.
///
/// nullopt where additions may be rounded, where x has uncompressed groups or there are more groups and
/// tuples than rows, for group numbers that are errors, and when the run was cancelled.
std::optional<std::vector<PayloadsOfGroups>> ReadByCodes(const Matrix& x, const Matrix& groups,
                                                         const GroupPayload& payload, int64_t most,
                                                         RowsOfAll rows, const std::atomic<bool>* cancelled);

}  // namespace heddle::ops
