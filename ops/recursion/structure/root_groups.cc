// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/structure/root_groups.h"

#include <algorithm>

namespace heddle::ops {

Result<Matrix> RowsOfGroups(std::span<const int64_t> roots) {
  const auto count = static_cast<int64_t>(roots.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix groups, Matrix::Dense(GroupsOf(count), 1 + kMostRootsOfGroup));
  std::fill(groups.mutable_data(), groups.mutable_data() + groups.cells(), kNoRoot);
  for (int64_t group = 0; group < groups.rows(); ++group) {
    double* row = groups.mutable_data() + group * groups.columns();
    *row++ = static_cast<double>(group);
    for (int64_t i = FirstRootOf(group, count); i < FirstRootOf(group + 1, count); ++i)
      *row++ = static_cast<double>(roots[static_cast<size_t>(i)]);
  }
  return groups;
}

std::vector<int64_t> RootsOf(const Matrix& groups, int64_t row) {
  std::vector<int64_t> roots;
  for (int64_t j = 1; j < groups.columns() && groups.At(row, j) != kNoRoot; ++j)
    roots.push_back(static_cast<int64_t>(groups.At(row, j)));
  return roots;
}

}  // namespace heddle::ops
