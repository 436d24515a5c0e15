// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"

// The roots of a forest in groups, each of which is evaluated and swept back alone: a function of their
// number (docs/numerics.md, section 3), so that threads and workers may take a group each.
namespace heddle::ops {

constexpr int64_t kMostRootsOfGroup = 32;

/// As few groups as can be,
constexpr int64_t GroupsOf(int64_t roots) { return (roots + kMostRootsOfGroup - 1) / kMostRootsOfGroup; }
/// as even as can be, of roots next to each other.
constexpr int64_t FirstRootOf(int64_t group, int64_t roots) { return roots * group / GroupsOf(roots); }
/// The group that root number `root` of so many is in.
constexpr int64_t GroupOf(int64_t root, int64_t roots) { return ((root + 1) * GroupsOf(roots) - 1) / roots; }

/// A row for each group: its number, and its roots, behind which kNoRoot stands.
Result<Matrix> RowsOfGroups(std::span<const int64_t> roots);
constexpr double kNoRoot = -1;
/// The roots of such a row.
std::vector<int64_t> RootsOf(const Matrix& groups, int64_t row);

}  // namespace heddle::ops
