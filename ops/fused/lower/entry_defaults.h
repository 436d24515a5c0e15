// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ops/fused/program/body_view.h"

// Values made of a CSR driver, of vectors with a number for each row, and of scalars: at the entries of a row
// they differ, all its other cells are equal, f(0, ...). So exp(X - rowMaxs(X)) of a sparse X is computed at
// the entries and once for each row.
namespace heddle::ops {

struct DefaultedBody {
  FusedOperator fused;  ///< With the operators of the defaults, each of one column.
  BodyRoles roles;
  std::vector<NodeId> copies;    ///< By node of the body that was given.
  std::vector<bool> by_entry;    ///< By node: computed at the entries of the driver.
  std::vector<NodeId> defaults;  ///< By node: the column of what such a value is elsewhere; kNoNode: 0.
  /// By node: that is 0 in ordinary rows, as exp(-Infinity - rowMaxs(X)) is in all that have an entry.
  std::vector<bool> usually_zero;
};

/// nullopt where dense tiles are as good: no such value costs more than reading it, and none of them is CSR.
/// Of bodies that walk entries alone (CanWalkEntries), and
/// where CSR values would be made dense (LosesSparsity), too.
std::optional<DefaultedBody> FindDefaults(const BodyView& view);

}  // namespace heddle::ops
