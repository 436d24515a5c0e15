// SPDX-License-Identifier: Apache-2.0

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/eigen_general.h"
#include "ops/solve/eigen_symmetric.h"

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
// Cost: 9 n^3 (ops/solve/eigen_symmetric.h), of a matrix that is not symmetric 25 n^3.
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
    HEDDLE_RETURN_IF_ERROR(EigenOfSymmetric(std::move(a), &values, &a));
  } else if (a.rows() > 0) {
    HEDDLE_RETURN_IF_ERROR(EigenOfGeneral(Cells(a), &values, &a));
  }
  for (Eigen::Index j = 0; j < a.cols(); ++j)
    if (a(LargestInColumn(a, j), j) < 0) a.col(j) = -a.col(j);
  HEDDLE_ASSIGN_OR_RETURN(results[0], FromEigen(values));
  HEDDLE_ASSIGN_OR_RETURN(results[1], FromEigen(a));
  return OkStatus();
}

// ---- eigen_backward(A, values, vectors, dvalues, dvectors): the adjoint of a symmetric A, made symmetric as
// A is. With v the vectors and l the values: v (diag(dvalues) + F * (t(v) dvectors)) t(v), where F[i, j] = 1
// / (l[j] - l[i]), and 0 where these are equal: vectors of equal values are any basis of their space, and
// only functions that do not depend on which have a derivative. Either of the two adjoints may be left out.

enum BackwardInput { kA, kValues, kVectors, kOfValues, kOfVectors };

Result<ValueInfo> InferEigenBackward(const InferContext& context) {
  return ValueInfo::OfMatrix(context.inputs[kA].shape);
}

Result<Value> RunEigenBackward(const KernelCall& call) {
  FixCacheSizes();
  HEDDLE_ASSIGN_OR_RETURN(Cells a, ToEigen(call.inputs[kA]->matrix()));
  if (!CheckSymmetric("eigen", a, kSymmetric, /*of_all=*/true).ok())
    return FailedPrecondition(
               "gradient(): eigen() has a derivative where its matrix is symmetric, and this one is not")
        .WithNote("(A + t(A)) / 2 is symmetric");
  HEDDLE_ASSIGN_OR_RETURN(const Cells values, ToEigen(call.inputs[kValues]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const Cells vectors, ToEigen(call.inputs[kVectors]->matrix()));
  const auto given_adjoint = [&](size_t i) { return i < call.inputs.size() ? call.inputs[i] : nullptr; };
  const Eigen::Index n = a.rows();
  Cells inner = Cells::Zero(n, n);
  if (const Value* const adjoint = given_adjoint(kOfVectors)) {
    HEDDLE_ASSIGN_OR_RETURN(const Cells given, ToEigen(adjoint->matrix()));
    inner.noalias() = vectors.transpose() * given;
    for (Eigen::Index i = 0; i < n; ++i) {
      for (Eigen::Index j = 0; j < n; ++j) {
        const double gap = values(j, 0) - values(i, 0);
        inner(i, j) = gap == 0 ? 0 : inner(i, j) / gap;
      }
    }
  }
  if (const Value* const adjoint = given_adjoint(kOfValues)) {
    HEDDLE_ASSIGN_OR_RETURN(const Cells given, ToEigen(adjoint->matrix()));
    for (Eigen::Index i = 0; i < n; ++i) inner(i, i) += given(i, 0);
  }
  a.noalias() = vectors * inner;
  inner.noalias() = a * vectors.transpose();
  a = 0.5 * (inner + inner.transpose());
  return FromEigen(a);
}

void DifferentiateEigen(AdjointCall& call) {
  const auto adjoint = [&](size_t i) { return call.HasAdjoint(i) ? call.Adjoint(i) : kNoNode; };
  call.Give(0, call.Add("eigen_backward",
                        {call.Input(0), call.Computed(0), call.Computed(1), adjoint(0), adjoint(1)}));
}

Cost EigenCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape shape = inputs.empty() ? Shape{} : inputs[0].shape;
  if (!shape.IsKnown()) return {};
  const auto n = static_cast<double>(shape.rows);
  return {.work = 9 * n * n * n, .bytes = 24 * n * n};
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
                                    .working_bytes = EigenWorkingBytes,
                                    .adjoints = "*",
                                    .differentiate = DifferentiateEigen};

extern constexpr Operator kEigenBackward = {.name = "eigen_backward",
                                            .parameters = "A values vectors dvalues? dvectors?",
                                            .min_inputs = 3,
                                            .max_inputs = 5,
                                            .infer = InferEigenBackward,
                                            .cost = CubicCost,
                                            .run = RunEigenBackward,
                                            .may_fail = true,
                                            .working_bytes = EigenWorkingBytes};

}  // namespace heddle::ops
