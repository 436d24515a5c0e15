// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/aggregate/aggregate.h"
#include "ops/base/stages.h"

namespace heddle::ops {

/// The partial value of a full aggregate of a matrix with rows of more than one column chunk, of the columns
/// of it that `x` holds, from the beginning of a chunk on. Not of kTrace.
Result<Matrix> NodesOfColumns(const Matrix& x, AggregateKind kind, const Shape& whole, int64_t first_column,
                              const KernelContext& context);

// Of a matrix with shorter rows, leaves are panels of rows. Ranks that have few rows by columns share out the
// panels, each gets all columns of its own, and nobody all rows.

/// Whether a matrix has so few rows that cuts at granules would give one rank all of them, and such leaves.
bool HasFewPanels(const Shape& whole);
/// Sends every rank its rows of the columns that this rank has of all `whole.columns`.
void SendPanels(const StageCall& call, const Matrix& columns, const Shape& whole, std::span<Value> outputs);
/// The partial value of a full aggregate of the rows that have arrived as output 0 of the stage before. Not
/// of kTrace.
Result<Matrix> NodesOfPanels(const StageCall& call, AggregateKind kind, const Shape& whole);

}  // namespace heddle::ops
