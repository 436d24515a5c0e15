// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/dense_cells.h"

namespace heddle::ops {
namespace {

using Householder = Eigen::HouseholderQR<Cells>;

// The power of two by which a column is multiplied, for the squares of its cells neither to overflow nor to
// vanish; 0 for cells of usual sizes. Each column of R takes it over, and nothing is rounded.
int PowerFor(const Cells& cells, Eigen::Index column) {
  constexpr int kUsual = 400;
  const double largest = std::abs(cells(LargestInColumn(cells, column), column));
  if (largest == 0 || !std::isfinite(largest)) return 0;
  const int power = std::ilogb(largest);
  return std::abs(power) <= kUsual ? 0 : -power;
}

// The factors of A with each column multiplied by 2^powers[j].
struct Factors {
  Householder qr;
  std::vector<int> powers;

  // What solves for these columns as what solves for those of A.
  void ToThoseOfA(Cells* x) const {
    for (Eigen::Index j = 0; j < x->rows(); ++j)
      if (const int power = powers[static_cast<size_t>(j)]; power != 0)
        for (double& cell : x->row(j)) cell = std::ldexp(cell, power);
  }
};

// The factors of A, of which they are the only copy; kFailedPrecondition if a column lies in the span of
// those before it, up to rounding: |r_jj| <= 4 sqrt(n) eps |a_j|.
Result<Factors> FactorsOf(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(Cells a, ToEigen(call.inputs[0]->matrix()));
  std::vector<int> powers(static_cast<size_t>(a.cols()));
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    const int power = powers[static_cast<size_t>(j)] = PowerFor(a, j);
    if (power != 0)
      for (double& cell : a.col(j)) cell = std::ldexp(cell, power);
  }
  Factors factors{Householder(a), std::move(powers)};
  const double scale = 4 * std::sqrt(static_cast<double>(a.cols())) * std::numeric_limits<double>::epsilon();
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    const double pivot = factors.qr.matrixQR()(j, j);
    if (!(std::abs(pivot) > scale * a.col(j).norm()) && !std::isnan(pivot))
      return Singular(call.node.op, call.inputs[0]->matrix().shape());
  }
  return factors;
}

// ---- solve(A, b): x with A x = b by Householder QR; the least squares solution if A has more rows than
//      columns. Of several columns each is solved by itself, with the factors of A: its bits do not depend on
//      the others. Shapes: A m x n, m >= n; b m x k; x n x k. Errors: A singular (at run time). Format:
//      dense. Error: backward stable, (A + E) x = b with |E| <= c n^1.5 eps |A| (Higham, Accuracy and
//      Stability, section 19.3). Cost: 2 n^2 (m - n/3), and 4 m n for each column.

Result<ValueInfo> InferSolve(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 1, "argument 2"));
  const Shape a = context.inputs[0].shape;
  const Shape b = context.inputs[1].shape;
  if (a.IsKnown() && a.rows < a.columns)
    return InvalidArgument("solve: the matrix has more columns than rows: {}", a);
  if (a.rows != kUnknown && b.rows != kUnknown && a.rows != b.rows)
    return InvalidArgument("solve: numbers of rows differ: {} and {}", a, b);
  return ValueInfo::OfMatrix({a.columns, b.columns});
}

Result<Value> RunSolve(const KernelCall& call) {
  FixCacheSizes();
  const Shape a = call.inputs[0]->matrix().shape();
  const Shape b = call.inputs[1]->matrix().shape();
  if (a.rows < a.columns || a.rows != b.rows)
    return FailedPrecondition("solve: shapes do not fit: {} and {}", a, b);
  HEDDLE_ASSIGN_OR_RETURN(const Factors factors, FactorsOf(call));
  HEDDLE_ASSIGN_OR_RETURN(const Cells right, ToEigen(call.inputs[1]->matrix()));
  if (b.columns == 1) {
    Cells solution = factors.qr.solve(right);
    factors.ToThoseOfA(&solution);
    return FromEigen(solution);
  }
  Cells solution(a.columns, b.columns);
  for (Eigen::Index j = 0; j < right.cols(); ++j) {
    if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    const Cells column = right.col(j);  // a matrix: Eigen computes otherwise for what it knows as a column
    solution.col(j) = factors.qr.solve(column);
  }
  factors.ToThoseOfA(&solution);
  return FromEigen(solution);
}

// The factors, and of the right sides and solutions a copy each.
double SolveWorkingBytes(const Node& node, std::span<const ValueInfo> inputs) {
  const double columns = static_cast<double>(inputs[1].shape.columns);
  const double rows = static_cast<double>(inputs[0].shape.rows + inputs[0].shape.columns);
  return FactorsWorkingBytes(node, inputs) + sizeof(double) * rows * columns;
}

// ---- inv(A): the inverse of a square matrix by Householder QR. Errors: A singular (at run time). Format:
// dense. Cost: 4 n^3.

Result<ValueInfo> InferSquare(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const Shape a = context.inputs[0].shape;
  HEDDLE_RETURN_IF_ERROR(CheckSquare(context.node.op, a, StatusCode::kInvalidArgument));
  const int64_t n = a.rows == kUnknown ? a.columns : a.rows;
  return ValueInfo::OfMatrix({n, n});
}

Result<Value> RunInverse(const KernelCall& call) {
  FixCacheSizes();
  const Shape a = call.inputs[0]->matrix().shape();
  HEDDLE_RETURN_IF_ERROR(CheckSquare("inv", a, StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Factors factors, FactorsOf(call));
  const Householder& qr = factors.qr;
  // R X = t(Q), some columns at a time: the library solves for all that it is given in one step, which cannot
  // be interrupted. The order of operations in a column is the same for any number of columns above 48.
  constexpr Eigen::Index kColumnsAtATime = 256;
  Cells inverse = Cells::Identity(a.rows, a.columns);
  inverse.applyOnTheLeft(qr.householderQ().adjoint());
  for (Eigen::Index begin = 0; begin < inverse.cols();) {
    const Eigen::Index left = inverse.cols() - begin;
    const Eigen::Index columns = left < 2 * kColumnsAtATime ? left : kColumnsAtATime;
    auto some = inverse.middleCols(begin, columns);
    qr.matrixQR().triangularView<Eigen::Upper>().solveInPlace(some);
    begin += columns;
  }
  factors.ToThoseOfA(&inverse);
  return FromEigen(inverse);
}

// ---- cholesky(A): the lower triangular L with A = L %*% t(L). Errors (at run time): A is not symmetric
// (cells differ by more
//      than 1e-10 of the larger), or not positive definite. Format: dense. Cost: n^3 / 3.

Result<Value> RunCholesky(const KernelCall& call) {
  FixCacheSizes();
  const Shape shape = call.inputs[0]->matrix().shape();
  HEDDLE_RETURN_IF_ERROR(CheckSquare("cholesky", shape, StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(Cells a, ToEigen(call.inputs[0]->matrix()));
  HEDDLE_RETURN_IF_ERROR(CheckSymmetric("cholesky", a, 1e-10, /*of_all=*/false));
  const Eigen::LLT<Cells> factor(a);
  a.resize(0, 0);
  if (factor.info() != Eigen::Success)
    return FailedPrecondition("cholesky: the {} matrix is not positive definite", shape);
  return FromEigen(factor.matrixL());
}

// Murray, Differentiation of the Cholesky decomposition (2016), section 3: with the lower triangle P of
// t(L) %*% dL, its diagonal halved, dA is inv(t(L)) %*% P %*% inv(L), made symmetric as A is.
void DifferentiateCholesky(AdjointCall& call) {
  const NodeId m = call.Formula("t(y) %*% dy");
  const NodeId p = call.Formula("lower.tri(M, TRUE, TRUE) - diag(diag(M)) * 0.5", {{"M", m}});
  const NodeId s = call.Formula("t(inv(y)) %*% P %*% inv(y)", {{"P", p}});
  call.Give(0, call.Formula("(S + t(S)) * 0.5", {{"S", s}}));
}

constexpr Operator kOperators[] = {
    {.name = "solve",
     .form = CallForm::kPositional,
     .parameters = "A b",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = InferSolve,
     .cost = CubicCost,
     .run = Interruptible<RunSolve>,
     .may_fail = true,
     .working_bytes = SolveWorkingBytes,
     .adjoints = "-solve(t(A), dy) %*% t(y); solve(t(A), dy)"},
    {.name = "inv",
     .form = CallForm::kPositional,
     .parameters = "A",
     .aliases = "inverse",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferSquare,
     .cost = CubicCost,
     .run = Interruptible<RunInverse>,
     .may_fail = true,
     .working_bytes = FactorsWorkingBytes,
     .adjoints = "-(t(y) %*% dy) %*% t(y)"},
    {.name = "cholesky",
     .form = CallForm::kPositional,
     .parameters = "A",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferSquare,
     .cost = CubicCost,
     .run = Interruptible<RunCholesky>,
     .may_fail = true,
     .working_bytes = FactorsWorkingBytes,
     .adjoints = "*",
     .differentiate = DifferentiateCholesky},
};

}  // namespace

std::span<const Operator> SolveOperators() { return kOperators; }

}  // namespace heddle::ops
