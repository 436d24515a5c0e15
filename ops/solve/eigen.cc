// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Eigenvalues>

#include "ops/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/dense_cells.h"

namespace heddle::ops {
namespace {

// [values, vectors] = eigen(A): the eigenvalues of a symmetric matrix, ascending, and orthonormal vectors in
// the columns, A %*% vectors = vectors %*% diag(values). A vector is determined up to its sign: the first of
// its largest absolute values is positive.
//
// Shapes: A n x n, values n x 1, vectors n x n. Format: dense.
// Errors (at run time): a cell is NaN or infinite; A is not symmetric: cells differ by more than 1e-10 of the
// largest of all. The lower triangle is what is read.
// Error: backward stable, the eigenpairs of A + E with |E| <= c n eps |A| (Golub, Van Loan, Matrix
// Computations, section 8.3: tridiagonal form by Householder reflections, then implicit QR).
// Cost: 9 n^3.
constexpr double kSymmetric = 1e-10;

Result<std::vector<ValueInfo>> InferEigen(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const Shape a = context.inputs[0].shape;
  HEDDLE_RETURN_IF_ERROR(CheckSquare("eigen", a, StatusCode::kInvalidArgument));
  const int64_t n = a.rows == kUnknown ? a.columns : a.rows;
  return std::vector<ValueInfo>{ValueInfo::OfMatrix({n, 1}), ValueInfo::OfMatrix({n, n})};
}

Status RunEigen(const KernelCall& call, std::span<Value> results) {
  FixCacheSizes();
  const Matrix& input = call.inputs[0]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckSquare("eigen", input.shape(), StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(Cells a, ToEigen(input));
  HEDDLE_RETURN_IF_ERROR(CheckFinite("eigen", a));
  HEDDLE_RETURN_IF_ERROR(CheckSymmetric("eigen", a, kSymmetric, /*of_all=*/true));
  Eigen::SelfAdjointEigenSolver<Cells> solver(a.rows());
  if (a.rows() > 0) solver.compute(a);
  if (a.rows() > 0 && solver.info() != Eigen::Success)
    return FailedPrecondition("eigen: the values of the {} matrix were not found in {} rounds", input.shape(),
                              solver.m_maxIterations * a.rows());
  a = a.rows() > 0 ? solver.eigenvectors() : Cells(0, 0);
  for (Eigen::Index j = 0; j < a.cols(); ++j)
    if (a(LargestInColumn(a, j), j) < 0) a.col(j) = -a.col(j);
  HEDDLE_ASSIGN_OR_RETURN(results[0],
                          a.rows() > 0 ? FromEigen(solver.eigenvalues()) : FromEigen(Cells(0, 1)));
  HEDDLE_ASSIGN_OR_RETURN(results[1], FromEigen(a));
  return OkStatus();
}

Cost EigenCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape shape = inputs.empty() ? Shape{} : inputs[0].shape;
  if (!shape.IsKnown()) return {};
  const auto n = static_cast<double>(shape.rows);
  return {.flops = 9 * n * n * n, .bytes = 24 * n * n};
}

}  // namespace

extern constexpr Operator kEigen = {.name = "eigen",
                                    .form = CallForm::kPositional,
                                    .parameters = "A",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .results = 2,
                                    .infer_several = InferEigen,
                                    .cost = EigenCost,
                                    .run_several = RunEigen,
                                    .may_fail = true,
                                    .working_bytes = FactorsWorkingBytes};

}  // namespace heddle::ops
