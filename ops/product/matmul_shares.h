// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ops/base/stages.h"
#include "ops/product/matmul.h"

// What the forms of X %*% Y have in common that ranks compute together (matmul_grid.cc, matmul_turns.cc).
namespace heddle::ops {

/// Places of the operands.
constexpr size_t kA = 0, kY = 1;

ProductSizes SizesOf(std::span<const ValueInfo> inputs);

/// For StagedForm::applies. Sizes of both operands and the result are known.
bool IsSizedProduct(const Node& node, std::span<const ValueInfo> inputs);
/// And cells are chains that can be continued: of dense operands over all of the inner dimension.
bool HasOpenChains(const Node& node, std::span<const ValueInfo> inputs);
/// And cells are joined from panels of the inner dimension (SplitsInner).
bool HasPanels(const Node& node, std::span<const ValueInfo> inputs);

/// Of all cells of the result, as doubles that are not rounded yet.
double BytesOfSums(std::span<const ValueInfo> inputs);

/// Where the `part`-th of so many equal parts of `length` begins.
constexpr int64_t PartBegin(int64_t length, int64_t part, int64_t parts) { return length * part / parts; }

/// Rows [begin, end) of those that pieces hold one below the other, the first of which is row `first`.
Result<Value> RowsOfPieces(std::span<const Value* const> pieces, int64_t first, int64_t begin, int64_t end);

/// Doubles, rounded where the cells of the node are floats.
Result<Matrix> AsElements(const Node& node, Matrix product);

/// sums += A[begin:end, ] * Y for dense operands of one type, or `sums` becomes that where they are the first
/// terms. Chains of doubles continue; of floats, whole blocks are added (GemmOf::accumulate).
void AddProduct(const Matrix& a, const Matrix& y, int64_t begin, int64_t end, bool is_first,
                const KernelContext& context, double* sums);

}  // namespace heddle::ops
