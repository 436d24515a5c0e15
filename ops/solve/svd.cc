// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/dense_cells.h"

namespace heddle::ops {
namespace {

// [U, S, V] = svd(X): X = U %*% S %*% t(V) with orthonormal columns in U and V and the singular values,
// descending, on the diagonal of S. A pair of vectors is determined up to its sign: the first of the largest
// absolute values of the one in V is positive.
//
// Shapes: X m x n and k = min(m, n): U m x k, S k x k, V n x k. Format: dense.
// Errors (at run time): a cell is NaN or infinite.
// Error: backward stable, the factors of X + E with |E| <= c m n eps |X| (Golub, Van Loan, Matrix
// Computations, sections 8.6 and 8.7: bidiagonal form, then divide and conquer; Jacobi's rotations below 16
// columns). Cost: 4 m n k + 8 k^3.

Result<std::vector<ValueInfo>> InferSvd(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const Shape x = context.inputs[0].shape;
  const int64_t k = x.IsKnown() ? std::min(x.rows, x.columns) : kUnknown;
  return std::vector<ValueInfo>{ValueInfo::OfMatrix({x.rows, k}), ValueInfo::OfMatrix({k, k}),
                                ValueInfo::OfMatrix({x.columns, k})};
}

Status RunSvd(const KernelCall& call, std::span<Value> results) {
  FixCacheSizes();
  HEDDLE_ASSIGN_OR_RETURN(Cells x, ToEigen(call.inputs[0]->matrix()));
  HEDDLE_RETURN_IF_ERROR(CheckFinite("svd", x));
  const Eigen::Index k = std::min(x.rows(), x.cols());
  Cells u(x.rows(), k), s(k, k), v(x.cols(), k);
  if (k > 0) {
    Eigen::BDCSVD<Cells> factors(x, Eigen::ComputeThinU | Eigen::ComputeThinV);
    if (factors.info() != Eigen::Success)
      return FailedPrecondition("svd: the singular values of the {} matrix were not found",
                                call.inputs[0]->matrix().shape());
    u = factors.matrixU();
    v = factors.matrixV();
    s = factors.singularValues().asDiagonal();
  }
  for (Eigen::Index j = 0; j < k; ++j) {
    if (v(LargestInColumn(v, j), j) >= 0) continue;
    u.col(j) = -u.col(j);
    v.col(j) = -v.col(j);
  }
  HEDDLE_ASSIGN_OR_RETURN(results[0], FromEigen(u));
  HEDDLE_ASSIGN_OR_RETURN(results[1], FromEigen(s));
  HEDDLE_ASSIGN_OR_RETURN(results[2], FromEigen(v));
  return OkStatus();
}

// Townsend, Differentiating the singular value decomposition (2016), of the thin factors, s the singular
// values: the adjoint of X is (U (F * (P - t(P))) diag(s) + (dU - U P) diag(1 / s)) t(V) with P = t(U) dU,
// plus U diag(diag(dS)) t(V), plus U (diag(s) (F * (Q - t(Q))) t(V) + diag(1 / s) t(dV - V Q)) with Q = t(V)
// dV; F[i, j] = 1 / (s[j]^2 - s[i]^2), and as in eigen_backward 0 where these are equal, as 1 / s is 0 for s
// = 0.
void DifferentiateSvd(AdjointCall& call) {
  const NodeId u = call.Computed(0), v = call.Computed(2);
  const NodeId s = call.Formula("diag(S)", {{"S", call.Computed(1)}});
  const auto skew = [&](NodeId factor, NodeId adjoint) {
    const NodeId gaps = call.Formula("S ^ 2 - t(S ^ 2)", {{"S", s}});
    const NodeId p = call.Formula("t(B) %*% A", {{"B", factor}, {"A", adjoint}});
    return std::pair(p, call.Formula("(D != 0) / (-1 * D + (D == 0)) * (P - t(P))", {{"D", gaps}, {"P", p}}));
  };
  const NodeId inverse = call.Formula("t((S != 0) / (S + (S == 0)))", {{"S", s}});
  const auto give = [&](NodeId left, NodeId right) {
    call.Give(0, call.Formula("L %*% t(R)", {{"L", left}, {"R", right}}));
  };
  if (call.HasAdjoint(1)) give(call.Formula("U * t(diag(D))", {{"U", u}, {"D", call.Adjoint(1)}}), v);
  if (call.HasAdjoint(0)) {
    const auto [p, k] = skew(u, call.Adjoint(0));
    give(call.Formula("U %*% (K * t(S)) + (A - U %*% P) * I",
                      {{"U", u}, {"K", k}, {"S", s}, {"A", call.Adjoint(0)}, {"P", p}, {"I", inverse}}),
         v);
  }
  if (call.HasAdjoint(2)) {
    const auto [p, k] = skew(v, call.Adjoint(2));
    give(u, call.Formula("V %*% t(K * S) + (A - V %*% P) * I",
                         {{"V", v}, {"K", k}, {"S", s}, {"A", call.Adjoint(2)}, {"P", p}, {"I", inverse}}));
  }
}

Cost SvdCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape shape = inputs.empty() ? Shape{} : inputs[0].shape;
  if (!shape.IsKnown()) return {};
  const auto m = static_cast<double>(shape.rows);
  const auto n = static_cast<double>(shape.columns);
  const double k = std::min(m, n);
  return {.work = 4 * m * n * k + 8 * k * k * k, .bytes = 24 * m * n};
}

// The cells in Eigen's order, both factors twice.
double SvdWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  const auto m = static_cast<double>(inputs[0].shape.rows);
  const auto n = static_cast<double>(inputs[0].shape.columns);
  const double k = std::min(m, n);
  return sizeof(double) * (m * n + 2 * (m + n) * k + k * k);
}

}  // namespace

extern constexpr Operator kSvd = {.name = "svd",
                                  .form = CallForm::kPositional,
                                  .parameters = "X",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .results = 3,
                                  .infer_several = InferSvd,
                                  .cost = SvdCost,
                                  .run_several = Interruptible<RunSvd>,
                                  .may_fail = true,
                                  .working_bytes = SvdWorkingBytes,
                                  .adjoints = "*",
                                  .differentiate = DifferentiateSvd};

}  // namespace heddle::ops
