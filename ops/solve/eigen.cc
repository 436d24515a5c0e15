// SPDX-License-Identifier: Apache-2.0

#include "ops/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/eigen_general.h"

namespace heddle::ops {
namespace {

// [values, vectors] = eigen(A): the eigenvalues of a matrix, ascending, and vectors of length 1 in the
// columns, A %*% vectors = vectors %*% diag(values); orthonormal ones where A is symmetric (cells differ by
// no more than 1e-10 of the largest of all; the lower triangle is what is read then). A vector is determined
// up to its sign: the first of its largest absolute values is positive.
//
// Shapes: A n x n, values n x 1, vectors n x n. Format: dense.
// Errors (at run time): a cell is NaN or infinite; an eigenvalue is complex.
// Error: backward stable, the eigenpairs of A + E with |E| <= c n eps |A| (Golub, Van Loan, Matrix
// Computations, section 8.3: tridiagonal form by Householder reflections, then implicit QR).
// Cost: 9 n^3, of a matrix that is not symmetric 25 n^3.
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
  Eigen::VectorXd values(a.rows());
  if (a.rows() > 0 && CheckSymmetric("eigen", a, kSymmetric, /*of_all=*/true).ok()) {
    const Eigen::SelfAdjointEigenSolver<Cells> solver(a);
    if (solver.info() != Eigen::Success)
      return FailedPrecondition("eigen: the values of the {} matrix were not found in {} rounds",
                                input.shape(), solver.m_maxIterations * a.rows());
    values = solver.eigenvalues();
    a = solver.eigenvectors();
  } else if (a.rows() > 0) {
    HEDDLE_RETURN_IF_ERROR(EigenOfGeneral(Cells(a), &values, &a));
  }
  for (Eigen::Index j = 0; j < a.cols(); ++j)
    if (a(LargestInColumn(a, j), j) < 0) a.col(j) = -a.col(j);
  HEDDLE_ASSIGN_OR_RETURN(results[0], FromEigen(values));
  HEDDLE_ASSIGN_OR_RETURN(results[1], FromEigen(a));
  return OkStatus();
}

Cost EigenCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape shape = inputs.empty() ? Shape{} : inputs[0].shape;
  if (!shape.IsKnown()) return {};
  const auto n = static_cast<double>(shape.rows);
  return {.flops = 9 * n * n * n, .bytes = 24 * n * n};
}

double EigenWorkingBytes(const Node& node, std::span<const ValueInfo> inputs) {
  return FactorsWorkingBytes(node, inputs) + BytesOfGeneral(static_cast<double>(inputs[0].shape.rows));
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
                                    .run_several = Interruptible<RunEigen>,
                                    .may_fail = true,
                                    .working_bytes = EigenWorkingBytes};

}  // namespace heddle::ops
