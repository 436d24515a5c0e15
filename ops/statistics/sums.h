// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ops/base/operator.h"
#include "ops/reduction/wide_number.h"

// What mean, moment and cov of weighted or centred cells share: sums in the order of sum() (docs/numerics.md,
// section 3), so that they have the bits of the same formula written in a script.
namespace heddle::ops {

/// sum(f(cell)) over the cells of matrices of one shape: `f` is given cell k of each. Sums of finite terms
/// beyond the largest double are told, so that their means are right.
Result<WideNumber> SumOf(const KernelCall& call, std::span<const Matrix> cells,
                     const std::function<double(const double* const* cells, int64_t k)>& f);

/// The matrices among the inputs [0, count), dense, all of the shape of the first: kFailedPrecondition,
/// naming the function, if they are not, or have no cells.
Result<std::vector<Matrix>> CellsOfOneShape(const KernelCall& call, std::string_view name, size_t count);
/// kInvalidArgument unless the inputs [0, count) can be that.
Status CheckOneShape(const InferContext& context, std::string_view name, size_t count);

}  // namespace heddle::ops
