// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/base/operator.h"
#include "ops/statistics/group_payload.h"

namespace heddle::ops {

/// The rows that a kernel has, as a part of all: whole panels.
struct RowsOfAll {
  int64_t begin;
  int64_t end;
  int64_t total;
};

/// What aggregate() keeps of all groups in some rows: an array of payloads, one for each group that may
/// occur.
struct PayloadsOfGroups {
  int64_t panel = 0;             ///< A panel of the node of the reduction tree that these rows are.
  std::vector<double> payloads;  ///< groups x GroupPayload::width(); undefined where a group does not occur.
  std::vector<uint8_t> occurs;   ///< By group.
};

/// Reads the rows of x in their order, whatever their groups: for few groups, which need few payloads a
/// panel. Each result is a node of the reduction tree (docs/numerics.md, section 2) within these rows,
/// ascending; one, when these are all rows. The bytes are those of GroupTree.
///
/// nullopt where sorting the rows by group is better (many groups, CSR), for group numbers that are errors,
/// and when the run was cancelled. `most` as of ngroups: rows of larger groups are left out; kUnknown for
/// all.
std::optional<std::vector<PayloadsOfGroups>> ReadByPanels(const Matrix& x, const Matrix& groups,
                                                          const double* weights, const GroupPayload& payload,
                                                          int64_t most, RowsOfAll rows,
                                                          const std::atomic<bool>* cancelled);

}  // namespace heddle::ops
