// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "core/values/column_groups.h"
#include "ops/base/kernel.h"
#include "ops/compressed/exact.h"
#include "ops/product/transposed_order.h"

// Products of compressed matrices (docs/compression.md). Where all sums are exact, they come from codes and
// dictionaries in whatever order; else rows are decoded in the first-level cache, and the chains of
// docs/numerics.md run along them.
namespace heddle::ops {

/// Wider rows of tiles leave the caches.
constexpr int64_t kMostTileColumns = 4096;

/// Operator::run_compressed of %*%: X %*% M with a compressed X.
Result<std::optional<Value>> MultiplyCompressed(const KernelCall& call);
/// Of t%*%: t(X) %*% Y with a compressed X or Y where it is exact, and with a compressed X and any Y.
Result<std::optional<Value>> MultiplyTransposedCompressed(const KernelCall& call);

/// Both, with a compressed right operand of more than eight columns: t(V) %*% X with a dense V of at most
/// eight columns, V %*% X with a dense V of at most eight rows, S %*% X with a CSR S of few entries.
Result<std::optional<Value>> MultiplyByCompressed(const KernelCall& call);
/// Whether X %*% M with k columns of M is faster column by column of X than by tiles of rows.
bool MultipliesByColumns(const Matrix& x, int64_t k);
/// X %*% M with the chains of docs/numerics.md, in that way; `out` is row-major. By buffers of looked up
/// columns with more columns of M than two.
void MultiplyByColumns(const Matrix& x, const Matrix& m, const KernelContext& context, double* out);
void MultiplyByBuffers(const Matrix& x, const Matrix& m, const KernelContext& context, double* out);
/// Whether t(X) %*% W with k <= 8 columns of W in panels of `height` rows is faster with several panels side
/// by side than by tiles of rows. X has rows [first, last) of all.
bool AddsByPanels(const Matrix& x, int64_t k, int64_t first, int64_t last, int64_t height);
/// The tree nodes of t(X) %*% W in that way, with the chains of docs/numerics.md: column j of X with column c
/// of W is at c * step + j of a payload of `reduction`, whose other places are zeros.
Result<Matrix> AddByPanels(const Matrix& x, const Matrix& w, int64_t first, int64_t last, int64_t height,
                           int64_t step, Reduction reduction);
/// t(X) %*% Y by products of columns of bytes (byte_planes.h), of compressed matrices and of dense ones with
/// whole numbers from 0 to 127; or nothing where a matrix is none of these, where sums are not exact, or
/// columns span so many units that it takes longer than the product of doubles.
Result<std::optional<Value>> MultiplyByteColumns(const KernelCall& call, const TransposedOrder& order);

/// Whether X, input `i` of the call, is one of CSR, whose zeros are left out, also of 0 * Infinity.
bool SkipsZeros(const KernelCall& call, size_t i = 0);
/// Whether X, the first input, is one of CSR whose rows have so few entries that they are decoded as such.
bool HasFewEntries(const KernelCall& call);
/// Of all columns of X.
ExactUnits UnitsOfGroups(const ColumnGroups& groups);
/// Whether sums of `terms` products of numbers of such units and cells of dense doubles are exact. Looks at
/// a few cells first.
bool AddExactlyWith(const ExactUnits& units, const Matrix& cells, double terms);

/// Where no sum is rounded: cells[j * k + c] = the sum of x(i, j) * y(i, c) over rows [begin, end), for the k
/// <= 8 columns c of dense Y.
void AddWeights(const Matrix& x, const Matrix& y, int64_t begin, int64_t end, const KernelContext& context,
                double* cells);
/// Whether AddWeights takes less time than chains in panels of `height` rows. X has rows [first, last) of
/// all.
bool AddsFewWeights(const Matrix& x, int64_t k, int64_t first, int64_t last, int64_t height);
/// The first row of this call's X among all rows.
int64_t FirstRowOf(const KernelCall& call);
/// The result of a call of t(X) %*% Y all of whose sums are exact: n x k cells, or in phase kPartial tree
/// nodes that have them. `add` writes the cells of rows [begin, end) of this call, row-major.
Result<Value> ExactSums(const KernelCall& call, const TransposedOrder& order,
                        const std::function<void(int64_t begin, int64_t end, double* cells)>& add);

}  // namespace heddle::ops
