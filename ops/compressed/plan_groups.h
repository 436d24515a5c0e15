// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/base/kernel.h"

namespace heddle::ops {

/// Columns that are to be stored together, as the sample of the matrix lets them look.
struct PlannedGroup {
  std::vector<int32_t> columns;  ///< Ascending.
  Encoding encoding = Encoding::kUncompressed;
  double tuples = 0;  ///< Distinct ones, estimated.
  double bytes = 0;   ///< Of the group, estimated.
  double cost = 0;    ///< To read it once in products (ops/compressed/read_cost.h).
  /// The two groups that were joined to it; none of a group that was not joined.
  std::vector<PlannedGroup> parts;
};

struct CompressionPlan {
  std::vector<PlannedGroup> groups;        ///< By their first columns.
  double bytes = 0, cost = 0;              ///< Of all groups.
  double plain_bytes = 0, plain_cost = 0;  ///< Of the matrix as it is.
  /// What takes nearly as long to read is left alone: look-ups of other operators than products cost more.
  bool Pays(double read_cost) const { return read_cost < 0.6 * plain_cost; }
  bool Pays() const { return Pays(cost); }
  /// Whether groups that were made, of such a cost, are better than the cells.
  bool PaysWith(double group_cost) const { return group_cost < 0.65 * plain_cost; }
};

/// Rows of a matrix that a plan is made from: all of them where there are few, else a hundredth, at least
/// 3,000 and at most 1,000,000. Ascending, a function of `rows` alone: every rank, and every run, makes the
/// same plan.
std::vector<int64_t> SampledRows(int64_t rows);

/// Which columns of a dense or CSR matrix are to be stored together, and how, so that it costs least to read:
/// distinct tuples by EstimateDistinct, runs by neighbours of the sampled rows; columns are joined as long as
/// it saves, by a queue of the cheapest groups while they are many, then the pair that saves most. Reads the
/// sampled rows alone. Cancelled().
/// Source: Elgohary et al., VLDB 2016, sections 4.1-4.3; Baunsgaard and Boehm, SIGMOD 2023, section 4.
Result<CompressionPlan> PlanCompression(const Matrix& matrix, const KernelContext& context);

/// The matrix stored by the groups of the plan. A group whose columns turn out to have more distinct tuples
/// than the sample said is stored as costs least to read for what it has: as its parts, where these cost
/// less, or uncompressed. By their first columns; all uncompressed columns are one group. Tuples of a
/// dictionary ascend, column by column; that of kDefault that most rows have comes first. NaNs become one.
/// kResourceExhausted, Cancelled().
Result<ColumnGroups> CompressColumns(const Matrix& matrix, const CompressionPlan& plan,
                                     const KernelContext& context);

}  // namespace heddle::ops
