// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/base/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/dense_cells.h"

namespace heddle::ops {
namespace {

// [P, L, U] = lu(A): P %*% A = L %*% U with a permutation P, ones on the diagonal of the lower triangular L
// and an upper triangular U. In each column the largest of the cells that are left becomes the pivot.
//
// Shapes: all n x n. Format: dense. NaN cells give NaN.
// Errors (at run time): A is singular: |u_jj| <= 4 sqrt(n) eps |a_j|.
// Error: the factors of A + E with |E| <= n eps |L| |U| (Higham, Accuracy and Stability of Numerical
// Algorithms, section 9.3).
// Cost: 2 n^3 / 3.

Result<std::vector<ValueInfo>> InferLu(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const Shape a = context.inputs[0].shape;
  HEDDLE_RETURN_IF_ERROR(CheckSquare("lu", a, StatusCode::kInvalidArgument));
  const int64_t n = a.rows == kUnknown ? a.columns : a.rows;
  return std::vector<ValueInfo>(3, ValueInfo::OfMatrix({n, n}));
}

Status RunLu(const KernelCall& call, std::span<Value> results) {
  FixCacheSizes();
  const Shape shape = call.inputs[0]->matrix().shape();
  HEDDLE_RETURN_IF_ERROR(CheckSquare("lu", shape, StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(Cells a, ToEigen(call.inputs[0]->matrix()));
  const Eigen::PartialPivLU<Cells> factors(a);
  const Cells& both = factors.matrixLU();
  const double scale = 4 * std::sqrt(static_cast<double>(a.cols())) * std::numeric_limits<double>::epsilon();
  for (Eigen::Index j = 0; j < a.cols(); ++j)
    if (const double pivot = both(j, j); std::abs(pivot) <= scale * a.col(j).stableNorm())
      return Singular("lu", shape);
  a = factors.permutationP().toDenseMatrix().cast<double>();
  HEDDLE_ASSIGN_OR_RETURN(results[0], FromEigen(a));
  a = both.triangularView<Eigen::UnitLower>();
  HEDDLE_ASSIGN_OR_RETURN(results[1], FromEigen(a));
  a = both.triangularView<Eigen::Upper>();
  HEDDLE_ASSIGN_OR_RETURN(results[2], FromEigen(a));
  return OkStatus();
}

}  // namespace

extern constexpr Operator kLu = {.name = "lu",
                                 .form = CallForm::kPositional,
                                 .parameters = "A",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .results = 3,
                                 .infer_several = InferLu,
                                 .cost = CubicCost,
                                 .run_several = Interruptible<RunLu>,
                                 .may_fail = true,
                                 .working_bytes = FactorsWorkingBytes};

}  // namespace heddle::ops
