// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/programs/graph.h"
#include "ops/base/kernel.h"

// A %*% B with at most 8 columns of B where ranks have columns of A, and the rows of B that meet them.
namespace heddle::ops {

/// Of A %*% B with at most 8 columns of B and more than a chunk of columns of A, the tree nodes of the chunks
/// from column `first` on, which is a multiple of a chunk: `a` has those columns and `b` those rows, of
/// doubles. A payload has the lanes of all rows.
Result<Matrix> NarrowNodes(const Matrix& a, const Matrix& b, int64_t first, const KernelContext& context);
/// The result of that size, from all nodes; `left` is the format of A.
Result<Matrix> JoinNarrowNodes(const Matrix& nodes, Format left, int64_t rows, int64_t columns,
                               const KernelContext& context);

/// Of A %*% B with at most 8 columns of B and no more than a chunk of columns of A: goes on with the eight
/// lanes of each cell of rows [begin, end), lanes[((i - begin) * columns + c) * 8 + lane], through the
/// columns of A from column `first` of the whole one on: `a` has those and `b` their rows, of doubles.
Status ContinueLanes(const Matrix& a, const Matrix& b, int64_t first, int64_t begin, int64_t end,
                     const KernelContext& context, double* lanes);
/// The cells whose lanes these are, `columns` in a row.
Result<Matrix> CloseLanesOfCells(const Matrix& lanes, int64_t columns);

}  // namespace heddle::ops
