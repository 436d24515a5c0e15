// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ops/fused/program/body_view.h"

// Values made of a CSR driver, of vectors with a number for each row, and of scalars. In a row, each cell
// where the driver has an entry may differ, and all other cells are equal: f(0, ...), the *background* of the
// row. So exp(X - rowMaxs(X)) of a sparse X is computed at the entries, and once for each row: of X = [5 0 0
// 0] the entry is exp(5 - 5) = 1 and the background exp(0 - 5).
namespace heddle::ops {

struct BodyWithBackgrounds {
  FusedOperator fused;  ///< Also has the operators that compute backgrounds, on one column each.
  BodyRoles roles;
  std::vector<NodeId> copies;  ///< By node of the body before: the same value in the new body.
  // By node of the new body:
  std::vector<bool> by_entry;       ///< It is computed at the entries of the driver.
  std::vector<NodeId> backgrounds;  ///< The column with its background; kNoNode: that is 0.
  /// Its background is 0 in most rows, as exp(-Infinity - rowMaxs(X)) is in all rows that have an entry.
  std::vector<bool> usually_zero;
};

/// nullopt where dense tiles are as good (no such value costs more than reading it, and none of them is CSR),
/// for bodies that walk entries alone (CanWalkEntries), and where CSR values would be made dense
/// (LosesSparsity).
std::optional<BodyWithBackgrounds> FindBackgrounds(const BodyView& view);

}  // namespace heddle::ops
