// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/base/kernel.h"

// Rows and columns of compressed matrices that stay compressed, and matrices that are put together of such.
// Cells are moved, never computed: exact.
namespace heddle::ops {

/// Whether the dictionaries have at most half as many cells as the rows of the matrix: not of a view of few
/// rows, whose cells are read sooner than tuples that it does not have. Groups that are not compressed count
/// nothing.
bool DictionariesPay(const Matrix& compressed);

/// The columns of a compressed matrix named by `columns` (0-based, strictly ascending): its codes, and these
/// columns of the dictionaries. nullopt where an uncompressed group would have to be cut for a view of less
/// than half of its rows.
Result<std::optional<Matrix>> GatherGroupColumns(const Matrix& x, std::span<const int64_t> columns);

/// Matrices of as many rows side by side, at least one compressed; those that are dense or CSR become an
/// uncompressed group, or one of a single tuple where all their rows are the same. nullopt where the
/// compressed ones are views of other rows, or of some rows beside matrices that are not compressed.
Result<std::optional<Matrix>> JoinGroups(std::span<const Matrix> parts);

/// The rows of a compressed matrix named by `rows` (0-based, repeats allowed), in that order.
Result<Matrix> GatherGroupRows(const Matrix& x, std::span<const int64_t> rows, const KernelContext& context);

}  // namespace heddle::ops
