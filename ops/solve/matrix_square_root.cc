// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "ops/base/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/dense_cells.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferSquareRoot(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const Shape a = context.inputs[0].shape;
  HEDDLE_RETURN_IF_ERROR(CheckSquare(context.node.op, a, StatusCode::kInvalidArgument));
  const int64_t n = a.rows == kUnknown ? a.columns : a.rows;
  return ValueInfo::OfMatrix({n, n});
}

Status NoRoot(double eigenvalue) {
  return FailedPrecondition(
      "sqrtMatrixJava: the matrix has no real square root: its eigenvalue {} is negative",
      Scalar(eigenvalue).ToText());
}

// What an eigenvalue may be off zero by rounding.
double Tolerance(const Cells& a) {
  return static_cast<double>(a.rows()) * std::numeric_limits<double>::epsilon() * a.norm();
}

Result<Value> RootOfSymmetric(const Cells& a) {
  const Eigen::SelfAdjointEigenSolver<Cells> solver(a);
  Eigen::VectorXd roots = solver.eigenvalues();
  if (roots(0) < -Tolerance(a)) return NoRoot(roots(0));
  roots = roots.cwiseMax(0.0).cwiseSqrt();
  return FromEigen(solver.eigenvectors() * roots.asDiagonal() * solver.eigenvectors().transpose());
}

Result<Value> RootOfGeneral(const Cells& a) {
  const Eigen::RealSchur<Cells> schur(a);
  const Cells& t = schur.matrixT();
  for (Eigen::Index i = 0; i < t.rows(); ++i) {
    const bool in_block = (i + 1 < t.rows() && t(i + 1, i) != 0) || (i > 0 && t(i, i - 1) != 0);
    if (in_block) continue;  // A pair of complex eigenvalues.
    if (t(i, i) < -Tolerance(a)) return NoRoot(t(i, i));
    if (t(i, i) <= Tolerance(a))
      return FailedPrecondition("sqrtMatrixJava: the matrix is singular and not symmetric")
          .WithNote("such a matrix may have no square root, or many");
  }
  Cells root = Cells::Zero(t.rows(), t.cols());
  Eigen::matrix_sqrt_quasi_triangular(t, root);
  return FromEigen(schur.matrixU() * root * schur.matrixU().transpose());
}

Result<Value> RunSquareRoot(const KernelCall& call) {
  FixCacheSizes();
  HEDDLE_RETURN_IF_ERROR(
      CheckSquare(call.node.op, call.inputs[0]->matrix().shape(), StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Cells a, ToEigen(call.inputs[0]->matrix()));
  HEDDLE_RETURN_IF_ERROR(CheckFinite(call.node.op, a));
  if (a.rows() == 0) return FromEigen(a);
  return a == a.transpose() ? RootOfSymmetric(a) : RootOfGeneral(a);
}

Cost SquareRootCost(const Node&, std::span<const ValueInfo> inputs) {
  const auto n = static_cast<double>(inputs[0].shape.rows);
  return {.work = 28 * n * n * n, .bytes = 40 * n * n};
}

// The factors, the root before it is multiplied, and a product.
double SquareRootWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  const auto n = static_cast<double>(inputs[0].shape.rows);
  return 4 * sizeof(double) * n * n;
}

}  // namespace

/// sqrtMatrixJava(A): the principal square root, the matrix B with B %*% B = A whose eigenvalues have
/// positive real parts. Of a symmetric A from its eigenvalues, else from its real Schur form (Higham,
/// Computing real square roots of a real matrix, Linear Algebra and its Applications 88, 1987). SystemDS has
/// symmetric positive definite matrices only.
///
/// Shapes:  A n x n, the result n x n. Format: dense.
/// Errors:  at run time: a negative eigenvalue; a singular A that is not symmetric; NaN or infinite cells.
/// Error:   |B %*% B - A| <= c n eps |B|^2.
/// Cost:    28 n^3.
extern constexpr Operator kMatrixSquareRoot = {.name = "sqrtMatrixJava",
                                               .form = CallForm::kPositional,
                                               .parameters = "A",
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .infer = InferSquareRoot,
                                               .cost = SquareRootCost,
                                               .run = Interruptible<RunSquareRoot>,
                                               .may_fail = true,
                                               .working_bytes = SquareRootWorkingBytes};

}  // namespace heddle::ops
