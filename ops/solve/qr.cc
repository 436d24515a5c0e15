// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/base/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/dense_cells.h"

namespace heddle::ops {
namespace {

// [H, R] = qr(X): X = Q %*% R by Householder reflections. R is upper triangular; column j of H is the vector
// v of reflection j (its first j - 1 cells are zero), I - 2 v t(v) / (t(v) v), and Q is their product in
// order:
//
//     Q = diag(matrix(1, nrow(X), 1))
//     for (j in min(nrow(X), ncol(X)):1) { v = H[, j]; Q = Q - v %*% (t(v) %*% Q) * (2 / sum(v ^ 2)) }
//
// A column without cells below its diagonal is reflected, too: its v is 2 there, so that no v is zero.
//
// Shapes: X, H and R are m x n. Format: dense. NaN and infinite cells give NaN.
// Error: backward stable, the factors of X + E with |E| <= c m n eps |X| by columns (Higham, Accuracy and
// Stability of Numerical Algorithms, section 19.3).
// Cost: 2 m n^2.

Result<std::vector<ValueInfo>> InferQr(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  return std::vector<ValueInfo>(2, ValueInfo::OfMatrix(context.inputs[0].shape));
}

// Makes cells j + 1, j + 2, ... of column j zero and leaves the vector of the reflection in that of `h`.
void Reflect(Eigen::Index j, Cells& r, Cells& h) {
  const Eigen::Index below = r.rows() - j, behind = r.cols() - j - 1;
  auto x = r.col(j).tail(below);
  auto v = h.col(j).tail(below);
  const double norm = x.stableNorm();
  const double diagonal = x(0) > 0 ? -norm : norm;
  if (norm == 0) {
    v(0) = 2;
  } else {
    v = x / -diagonal;
    v(0) += 1;
  }
  x.setZero();
  x(0) = diagonal;
  auto rest = r.block(j, j + 1, below, behind);
  const Eigen::RowVectorXd products = v.transpose() * rest / v(0);
  rest.noalias() -= v * products;
}

Status RunQr(const KernelCall& call, std::span<Value> results) {
  FixCacheSizes();
  HEDDLE_ASSIGN_OR_RETURN(Cells r, ToEigen(call.inputs[0]->matrix()));
  Cells h = Cells::Zero(r.rows(), r.cols());
  for (Eigen::Index j = 0; j < std::min(r.rows(), r.cols()); ++j) {
    Reflect(j, r, h);
  }
  HEDDLE_ASSIGN_OR_RETURN(results[0], FromEigen(h));
  HEDDLE_ASSIGN_OR_RETURN(results[1], FromEigen(r));
  return OkStatus();
}

}  // namespace

extern constexpr Operator kQr = {.name = "qr",
                                 .form = CallForm::kPositional,
                                 .parameters = "X",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .results = 2,
                                 .infer_several = InferQr,
                                 .cost = CubicCost,
                                 .run_several = Interruptible<RunQr>,
                                 .working_bytes = FactorsWorkingBytes};

}  // namespace heddle::ops
