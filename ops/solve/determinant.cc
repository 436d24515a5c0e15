// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/catalog.h"
#include "ops/solve/dense_cells.h"

namespace heddle::ops {
namespace {

// mantissa * 2^exponent with a mantissa in [1/2, 1): a product of doubles that leaves their range nowhere.
class ScaledProduct {
 public:
  void Multiply(double factor) {
    int of_factor = 0, of_product = 0;
    mantissa_ = std::frexp(mantissa_ * std::frexp(factor, &of_factor), &of_product);
    exponent_ += of_factor + of_product;
  }
  void Multiply(const ScaledProduct& other) {
    Multiply(other.mantissa_);
    exponent_ += other.exponent_;
  }
  /// The product times 2^exponent, as a double.
  double At(int64_t exponent) const { return Scale(mantissa_, exponent_ + exponent); }
  double mantissa() const { return mantissa_; }
  int64_t exponent() const { return exponent_; }

  static double Scale(double x, int64_t exponent) {
    constexpr int64_t kBeyond = 5000;  // of the exponent of any double
    return std::ldexp(x, static_cast<int>(std::clamp(exponent, -kBeyond, kBeyond)));
  }

 private:
  double mantissa_ = 1;
  int64_t exponent_ = 0;
};

// ---- det(A): the determinant of a square matrix, a double scalar, by LU with row exchanges. 1 for 0 x 0.
// The pivots are multiplied as numbers in [1/2, 1) beside powers of two, so that only a determinant that is
// itself too large or small for a double becomes Infinity or 0. Cost: 2 n^3 / 3.

Result<ValueInfo> InferDeterminant(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(CheckSquare("det", context.inputs[0].shape, StatusCode::kInvalidArgument));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

Result<Value> RunDeterminant(const KernelCall& call) {
  FixCacheSizes();
  HEDDLE_RETURN_IF_ERROR(
      CheckSquare("det", call.inputs[0]->matrix().shape(), StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Cells a, ToEigen(call.inputs[0]->matrix()));
  if (a.rows() == 0) return Value(Scalar(1.0));
  const Eigen::PartialPivLU<Cells> factors(a);
  ScaledProduct product;
  product.Multiply(static_cast<double>(factors.permutationP().determinant()));
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    product.Multiply(factors.matrixLU()(j, j));
    if (product.mantissa() == 0 || !std::isfinite(product.mantissa()))
      return Value(Scalar(product.mantissa()));
  }
  return Value(Scalar(product.At(0)));
}

// ---- det_backward(A, dy): the adjoint of A in det(A), which is dy times the matrix of cofactors: that of
// cell (i, j) is (-1)^(i+j) times the determinant of A without row i and column j. It exists where A is
// singular, too, so it is not made of an inverse.
//
// How: C(A B) = C(A) C(B), and of an orthogonal Q it is det(Q) Q. With A P = Q R by column pivoting, R = D Y
// with D the diagonal of R and ones on that of Y, which has no cell much larger than 1:
//     C(A) = det(Q) det(P) Q C(D) t(inv(Y)) t(P)
// and C(D) has at (i, i) the product of all other pivots (Stewart, On the adjugate matrix, 1998). Rows are
// first divided by powers of two, which C(A) gets back, so that no product leaves the range of doubles.
//
// Shapes: as A. NaN where a cell of A is NaN or infinite. Cost: 3 n^3.

Result<ValueInfo> InferDeterminantBackward(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(CheckSquare("det", context.inputs[0].shape, StatusCode::kInvalidArgument));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 1, "argument 2"));
  return ValueInfo::OfMatrix(context.inputs[0].shape);
}

// Divides each row by a power of two that leaves its largest cell below 1; returns the exponents.
std::vector<int64_t> DivideRows(Cells* a) {
  std::vector<int64_t> exponents;
  for (Eigen::Index i = 0; i < a->rows(); ++i) {
    int exponent = 0;
    std::frexp(a->row(i).cwiseAbs().maxCoeff(), &exponent);
    exponents.push_back(exponent);
    for (Eigen::Index j = 0; j < a->cols(); ++j) (*a)(i, j) = std::ldexp((*a)(i, j), -exponent);
  }
  return exponents;
}

// Of each number the product of all others.
std::vector<ScaledProduct> ProductsOfOthers(const std::vector<double>& numbers) {
  std::vector<ScaledProduct> products(numbers.size());
  ScaledProduct before, behind;
  for (size_t i = 0; i < numbers.size(); ++i) {
    products[i] = before;
    before.Multiply(numbers[i]);
  }
  for (size_t i = numbers.size(); i-- > 0;) {
    products[i].Multiply(behind);
    behind.Multiply(numbers[i]);
  }
  return products;
}

Result<Value> RunDeterminantBackward(const KernelCall& call) {
  FixCacheSizes();
  HEDDLE_ASSIGN_OR_RETURN(Cells a, ToEigen(call.inputs[0]->matrix()));
  const double adjoint = call.inputs[1]->scalar().AsDouble();
  const Eigen::Index n = a.rows();
  if (n == 0) return FromEigen(a);
  if (!a.allFinite() || !std::isfinite(adjoint)) {
    a.setConstant(std::numeric_limits<double>::quiet_NaN());
    return FromEigen(a);
  }
  const std::vector<int64_t> of_rows = DivideRows(&a);
  int64_t of_all_rows = 0;
  for (const int64_t exponent : of_rows) of_all_rows += exponent;

  const Eigen::ColPivHouseholderQR<Cells> qr(a);
  double sign = static_cast<double>(qr.colsPermutation().determinant());
  for (Eigen::Index j = 0; j < n; ++j)
    if (qr.hCoeffs()(j) != 0) sign = -sign;  // a reflection
  std::vector<double> pivots;
  Cells unit = Cells::Identity(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const double pivot = qr.matrixQR()(i, i);
    pivots.push_back(pivot);
    for (Eigen::Index j = i + 1; j < n && pivot != 0; ++j) unit(i, j) = qr.matrixQR()(i, j) / pivot;
  }
  Cells cofactors = Cells::Identity(n, n);
  unit.transpose().triangularView<Eigen::UnitLower>().solveInPlace(cofactors);

  const std::vector<ScaledProduct> others = ProductsOfOthers(pivots);
  int64_t largest = std::numeric_limits<int64_t>::min();
  for (const ScaledProduct& product : others)
    if (product.mantissa() != 0) largest = std::max(largest, product.exponent());
  for (Eigen::Index i = 0; i < n; ++i) {
    const ScaledProduct& product = others[static_cast<size_t>(i)];
    cofactors.row(i) *= product.mantissa() == 0 ? 0.0 : sign * product.At(-largest);
  }
  cofactors.applyOnTheLeft(qr.householderQ());
  cofactors = (cofactors * qr.colsPermutation().transpose()).eval();
  int of_adjoint = 0;
  cofactors *= std::frexp(adjoint, &of_adjoint);
  for (Eigen::Index i = 0; i < n; ++i) {
    const int64_t exponent = largest + of_all_rows - of_rows[static_cast<size_t>(i)] + of_adjoint;
    for (Eigen::Index j = 0; j < n; ++j)
      if (cofactors(i, j) != 0) cofactors(i, j) = ScaledProduct::Scale(cofactors(i, j), exponent);
  }
  return FromEigen(cofactors);
}

// Y, its inverse and what is applied to it beside the factors.
double BackwardWorkingBytes(const Node& node, std::span<const ValueInfo> inputs) {
  const double cells = static_cast<double>(inputs[0].shape.rows) * static_cast<double>(inputs[0].shape.rows);
  return FactorsWorkingBytes(node, inputs) + 3 * sizeof(double) * cells;
}

}  // namespace

extern constexpr Operator kDeterminant = {.name = "det",
                                          .form = CallForm::kPositional,
                                          .parameters = "A",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .infer = InferDeterminant,
                                          .cost = CubicCost,
                                          .run = Interruptible<RunDeterminant>,
                                          .working_bytes = FactorsWorkingBytes,
                                          .adjoints = "det_backward(A, dy)"};

extern constexpr Operator kDeterminantBackward = {.name = "det_backward",
                                                  .parameters = "A dy",
                                                  .min_inputs = 2,
                                                  .max_inputs = 2,
                                                  .infer = InferDeterminantBackward,
                                                  .cost = CubicCost,
                                                  .run = Interruptible<RunDeterminantBackward>,
                                                  .working_bytes = BackwardWorkingBytes};

}  // namespace heddle::ops
