// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "compiler/rules/rules.h"
#include "core/values/sizes.h"

// Rules that add up in another order. Missing on purpose: sum(A + B) as sum(A) + sum(B), which can lose every
// digit of sum(A - B); sum(v * w) as t(v) %*% w, which gains nothing once the left side is fused; 1 / (1 +
// exp(-X)) as sigmoid(X), which takes half as long again as the fused operators (it does not overflow).
namespace heddle::compiler {
namespace {

double Cells(const Shape& shape) {
  return static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
}

bool AreKnown(const Match& match, std::initializer_list<std::string_view> letters) {
  for (const std::string_view letter : letters)
    if (!match.ShapeOf(letter).IsKnown()) return false;
  return true;
}

// The product is a matrix, not a vector: without it there is much less to compute.
bool IsRealProduct(const Match& match) {
  return AreKnown(match, {"A", "B"}) && match.ShapeOf("A").rows > 1 && match.ShapeOf("A").columns > 0 &&
         match.ShapeOf("B").columns > 1;
}
bool IsRealTransposedProduct(const Match& match) {
  return AreKnown(match, {"A", "B"}) && match.ShapeOf("A").columns > 1 && match.ShapeOf("B").columns > 1;
}
bool IsSquareProduct(const Match& match) {
  return IsRealProduct(match) && match.ShapeOf("A").rows == match.ShapeOf("B").columns;
}

// The sampled product costs the driver's entries times the length of the rows of U; the sum over them is not
// split.
constexpr int64_t kLongestSampled = 4096;

bool CanSample(const Match& match, const Shape& product, int64_t inner) {
  return match.IsSparse("W") && match.IsDense("U") && match.IsDense("V") && match.ShapeOf("W") == product &&
         product.rows > 1 && product.columns > 1 && inner > 0 && inner <= kLongestSampled;
}
bool CanSampleRows(const Match& match) {  // U %*% t(V)
  return AreKnown(match, {"W", "U", "V"}) &&
         CanSample(match, {match.ShapeOf("U").rows, match.ShapeOf("V").rows}, match.ShapeOf("U").columns);
}
bool CanSampleColumns(const Match& match) {  // U %*% V
  return AreKnown(match, {"W", "U", "V"}) &&
         CanSample(match, {match.ShapeOf("U").rows, match.ShapeOf("V").columns}, match.ShapeOf("U").columns);
}
bool CanSampleTransposed(const Match& match) {  // t(U) %*% V
  return AreKnown(match, {"W", "U", "V"}) &&
         CanSample(match, {match.ShapeOf("U").columns, match.ShapeOf("V").columns}, match.ShapeOf("U").rows);
}

// The number that hides cells is not 0: the result stays dense.
bool HidesWithNumber(const Match& match) {
  const Scalar* const number = match.LiteralOf("s");
  return number != nullptr && number->AsDouble() != 0;
}
bool CanMaskRows(const Match& match) { return CanSampleRows(match) && HidesWithNumber(match); }
bool CanMaskColumns(const Match& match) { return CanSampleColumns(match) && HidesWithNumber(match); }

// The sum of all cells of (U %*% t(V))^2 is that of products of t(U) %*% U and t(V) %*% V: worth it where
// those are smaller than the product.
bool MultipliesOut(const Match& match, int64_t inner) {
  const Shape& product = match.ShapeOf("W");
  return SaturatingProduct(inner, product.rows + product.columns) <= product.Cells();
}
bool MultipliesOutRows(const Match& match) {
  return CanSampleRows(match) && MultipliesOut(match, match.ShapeOf("U").columns);
}
bool MultipliesOutColumns(const Match& match) {
  return CanSampleColumns(match) && MultipliesOut(match, match.ShapeOf("U").columns);
}

// t(A) %*% S as t(t(S) %*% A): the CSR operand leads, so that what makes it may be fused with the product.
bool LeadsWithSparse(const Match& match) {
  return AreKnown(match, {"A", "W", "U", "V"}) && match.IsDense("A") && match.IsSparse("W") &&
         match.Operand(1).format == Format::kSparse &&
         match.ShapeOf("A").columns < match.ShapeOf("W").columns;
}
// Not back again.
bool LeadsWithDense(const Match& match) { return !(match.IsSparse("A") && match.IsDense("B")); }

bool IsWeightedByColumn(const Match& match) {
  return AreKnown(match, {"X", "V"}) && match.IsColumn("V") && match.ShapeOf("X").columns > 1 &&
         match.ShapeOf("X").rows == match.ShapeOf("V").rows;
}
bool IsWeightedByRow(const Match& match) {
  return AreKnown(match, {"X", "V"}) && match.IsColumn("V") && match.ShapeOf("X").rows > 1 &&
         match.ShapeOf("X").columns == match.ShapeOf("V").rows;
}
bool IsWeightedByRowVector(const Match& match) {
  return AreKnown(match, {"X", "V"}) && match.IsRow("V") && match.ShapeOf("X").rows > 1 &&
         match.ShapeOf("X").columns == match.ShapeOf("V").columns;
}
// At most half of the product is asked for. Bounds are numbers: what is wrong with others is told when they
// are known, of the product and not of a factor.
bool PicksHalf(const Match& match, std::initializer_list<std::string_view> bounds) {
  for (const std::string_view bound : bounds)
    if (!match.IsLiteral(bound)) return false;
  return match.ShapeOfRoot().IsKnown() && match.Operand(0).shape.IsKnown() &&
         2 * Cells(match.ShapeOfRoot()) <= Cells(match.Operand(0).shape);
}
bool PicksRows(const Match& match) { return PicksHalf(match, {"k", "l"}); }
bool PicksColumns(const Match& match) { return PicksHalf(match, {"m", "n"}); }
bool PicksCells(const Match& match) { return PicksHalf(match, {"k", "l", "m", "n"}); }
// Who picks rows has the whole matrix: A instead of the product.
bool HasSmallA(const Match& match) {
  return AreKnown(match, {"A"}) && Cells(match.ShapeOf("A")) <= Cells(match.Operand(0).shape);
}
bool PicksRowsOfSmallA(const Match& match) { return PicksRows(match) && HasSmallA(match); }
bool PicksCellsOfSmallA(const Match& match) { return PicksCells(match) && HasSmallA(match); }

bool IsColumnV(const Match& match) { return AreKnown(match, {"V"}) && match.IsColumn("V"); }
bool IsColumnVOfMany(const Match& match) { return IsColumnV(match) && match.ShapeOf("V").rows > 1; }

// All operands dense and of one size on each side: one product instead of two.
bool AreAddable(const Match& match) {
  return AreKnown(match, {"A", "B", "C"}) && match.ShapeOf("B") == match.ShapeOf("C") && match.IsDense("A") &&
         match.IsDense("B") && match.IsDense("C") && match.ShapeOfRoot().IsKnown() &&
         Cells(match.ShapeOf("A")) > 1;
}
bool NegatesLess(const Match& match) {
  return match.ShapeOfRoot().IsKnown() && AreKnown(match, {"A"}) &&
         Cells(match.ShapeOfRoot()) < Cells(match.ShapeOf("A"));
}
// t(A) %*% t(B): the result is smaller than the B that would be transposed.
bool TransposesLess(const Match& match) {
  return match.ShapeOfRoot().IsKnown() && AreKnown(match, {"B"}) &&
         Cells(match.ShapeOfRoot()) < Cells(match.ShapeOf("B"));
}
// t(A %*% B): B is smaller than the result that would be transposed.
bool TransposesOperand(const Match& match) {
  return match.ShapeOfRoot().IsKnown() && AreKnown(match, {"A"}) &&
         Cells(match.ShapeOf("A")) < Cells(match.ShapeOfRoot());
}
bool KnowsOperands(const Match& match) { return match.KnowsOperands(); }
bool TakesScalars(const Match& match) { return match.TakesScalars("f"); }
// There is a chain: what a transposed matrix alone sums up to has a rule of its own, for shared ones, too.
bool TakesScalarsBetween(const Match& match) { return TakesScalars(match) && !match.Chain("f").empty(); }

// A sum of cells that are smaller than those of X may be a double where that of X is not. So a factor leaves
// the sum only where it makes no cell smaller. Before a product it does so in any case: without it there is
// much less to compute, and the sums that stand for the product leave the range of doubles anyway
// (docs/numerics.md, section 3).
bool IsProduct(const Match& match) {
  return match.OperatorOf("X") == "%*%" || match.OperatorOf("X") == "t%*%";
}
bool IsFactorOf1OrMore(const Match& match) {
  const Scalar* const factor = match.LiteralOf("s");
  return IsProduct(match) ||
         (factor != nullptr && std::abs(factor->AsDouble()) >= 1 && std::isfinite(factor->AsDouble()));
}
bool IsDivisorOf1OrLess(const Match& match) {
  const Scalar* const divisor = match.LiteralOf("s");
  return IsProduct(match) ||
         (divisor != nullptr && std::abs(divisor->AsDouble()) <= 1 && divisor->AsDouble() != 0);
}
bool IsOnesRow(const Match& match) {
  return match.KnowsOperands() && AreKnown(match, {"V"}) && match.IsColumn("V") &&
         match.ShapeOf("A").columns > 1 && match.ShapeOf("A") == match.ShapeOfRoot();
}

// The squared error of a sparse matrix where it has no entries, too, multiplied out (Apache SystemDS:
// wsloss). The error is that of sums of W ^ 2 and of (U %*% t(V)) ^ 2, not of the result, which may be much
// smaller; it is never negative.
constexpr std::string_view kLoss =
    "max(0, (sum(W ^ 2) - 2 * sum(W * (U %*% t(V)))) + sum((t(U) %*% U) * (t(V) %*% V)))";
constexpr std::string_view kLossOfColumns =
    "max(0, (sum(W ^ 2) - 2 * sum(W * (U %*% V))) + sum((t(U) %*% U) * (V %*% t(V))))";

constexpr Rule kRules[] = {
    // Sums of what has been moved around.
    {"sum-of-transpose", "sum(t(X))", "sum(X)", nullptr, true},
    {"mean-of-transpose", "mean(t(X))", "mean(X)", nullptr, true},
    {"sum-of-transposed-cells", "sum(f(t(X)))", "sum(f(X))", TakesScalarsBetween},
    {"mean-of-transposed-cells", "mean(f(t(X)))", "mean(f(X))", TakesScalarsBetween},
    {"row-sums-of-transpose", "rowSums(f(t(X)))", "t(colSums(f(X)))", TakesScalars},
    {"column-sums-of-transpose", "colSums(f(t(X)))", "t(rowSums(f(X)))", TakesScalars},
    {"row-means-of-transpose", "rowMeans(f(t(X)))", "t(colMeans(f(X)))", TakesScalars},
    {"column-means-of-transpose", "colMeans(f(t(X)))", "t(rowMeans(f(X)))", TakesScalars},
    {"sum-of-row-sums", "sum(rowSums(X))", "sum(X)"},
    {"sum-of-column-sums", "sum(colSums(X))", "sum(X)"},
    // A common factor leaves the sum.
    {"sum-of-scaled", "sum(s * X)", "s * sum(X)", IsFactorOf1OrMore},
    {"row-sums-of-scaled", "rowSums(s * X)", "s * rowSums(X)", IsFactorOf1OrMore},
    {"column-sums-of-scaled", "colSums(s * X)", "s * colSums(X)", IsFactorOf1OrMore},
    {"sum-of-divided", "sum(X / s)", "sum(X) / s", IsDivisorOf1OrLess},
    {"row-sums-of-divided", "rowSums(X / s)", "rowSums(X) / s", IsDivisorOf1OrLess},
    {"column-sums-of-divided", "colSums(X / s)", "colSums(X) / s", IsDivisorOf1OrLess},
    // Sums over products need no product.
    {"sum-of-product", "sum(A %*% B)", "sum(t(colSums(A)) * rowSums(B))", IsRealProduct},
    {"row-sums-of-product", "rowSums(A %*% B)", "A %*% rowSums(B)", IsRealProduct},
    {"column-sums-of-product", "colSums(A %*% B)", "colSums(A) %*% B", IsRealProduct},
    {"sum-of-transposed-product", "sum(t(A) %*% B)", "sum(rowSums(A) * rowSums(B))", IsRealTransposedProduct},
    {"row-sums-of-transposed-product", "rowSums(t(A) %*% B)", "t(A) %*% rowSums(B)", IsRealTransposedProduct},
    {"column-sums-of-transposed-product", "colSums(t(A) %*% B)", "t(rowSums(A)) %*% B",
     IsRealTransposedProduct},
    {"trace-of-product", "trace(A %*% B)", "sum(A * t(B))", IsSquareProduct},
    {"sum-of-diagonal-of-product", "sum(diag(A %*% B))", "sum(A * t(B))", IsSquareProduct},
    {"diagonal-of-product", "diag(A %*% B)", "rowSums(A * t(B))", IsSquareProduct},
    // Weighted sums are products.
    {"column-sums-of-weighted", "colSums(X * V)", "t(V) %*% X", IsWeightedByColumn},
    {"row-sums-of-weighted", "rowSums(X * t(V))", "X %*% V", IsWeightedByRow},
    {"row-sums-of-weighted-by-row", "rowSums(X * V)", "X %*% t(V)", IsWeightedByRowVector},
    // A few cells of a product are products of a few rows and columns.
    {"cells-of-product", "index(A %*% B, k, l, m, n)",
     "index(A, k, l, none, none) %*% index(B, none, none, m, n)", PicksCellsOfSmallA},
    {"rows-of-product", "index(A %*% B, k, l, none, none)", "index(A, k, l, none, none) %*% B",
     PicksRowsOfSmallA},
    {"columns-of-product", "index(A %*% B, none, none, m, n)", "A %*% index(B, none, none, m, n)",
     PicksColumns},
    {"cells-of-transposed-product", "index(t(A) %*% B, k, l, m, n)",
     "t(index(A, none, none, k, l)) %*% index(B, none, none, m, n)", PicksCells},
    {"rows-of-transposed-product", "index(t(A) %*% B, k, l, none, none)",
     "t(index(A, none, none, k, l)) %*% B", PicksRows},
    {"columns-of-transposed-product", "index(t(A) %*% B, none, none, m, n)",
     "t(A) %*% index(B, none, none, m, n)", PicksColumns},
    // Products with ones are sums.
    {"ones-times", "matrix(1, 1, n) %*% Y", "colSums(Y)", KnowsOperands, true},
    {"transpose-times-ones", "t(X) %*% matrix(1, n, 1)", "t(colSums(X))", KnowsOperands, true},
    // Products with special matrices are cell-wise.
    {"diagonal-times", "diag(V) %*% Y", "Y * V", IsColumnVOfMany},
    {"times-diagonal", "X %*% diag(V)", "X * t(V)", IsColumnVOfMany},
    {"plus-outer-with-ones", "A + V %*% matrix(1, 1, n)", "A + V", IsOnesRow},
    {"minus-outer-with-ones", "A - V %*% matrix(1, 1, n)", "A - V", IsOnesRow},
    // Two products for one over the rows of both.
    {"square-of-stacked", "t(rbind(A, B)) %*% rbind(A, B)", "t(A) %*% A + t(B) %*% B", nullptr, true},
    // One product for two, and signs and transposes on the smaller matrix.
    {"sum-of-products", "A %*% B + A %*% C", "A %*% (B + C)", AreAddable},
    {"sum-of-transposed-products", "t(A) %*% B + t(A) %*% C", "t(A) %*% (B + C)", AreAddable},
    {"negated-transpose-times", "(-t(A)) %*% B", "-(t(A) %*% B)", NegatesLess},
    {"negated-times", "(-A) %*% B", "-(A %*% B)", NegatesLess},
    {"product-of-transposed", "t(A) %*% t(B)", "t(B %*% A)", TransposesLess},
    {"transpose-of-transposed-product", "t(t(A) %*% B)", "t(B) %*% A", LeadsWithDense},
    {"transpose-of-product", "t(A %*% B)", "t(B) %*% t(A)", TransposesOperand},
    // Quotients of a sparse matrix in a product: what has no entry adds nothing, even where 0 / 0 is NaN
    // (Apache SystemDS: wdivmm).
    {"quotient-times", "(W / f(U %*% V)) %*% B", "((W != 0) * (W / f(U %*% V))) %*% B", CanSampleColumns,
     true},
    {"quotient-of-transposed-times", "(W / f(t(U) %*% V)) %*% B", "((W != 0) * (W / f(t(U) %*% V))) %*% B",
     CanSampleTransposed, true},
    {"times-quotient", "A %*% (W / f(U %*% V))", "A %*% ((W != 0) * (W / f(U %*% V)))", CanSampleColumns,
     true},
    {"times-quotient-of-transposed", "A %*% (W / f(t(U) %*% V))", "A %*% ((W != 0) * (W / f(t(U) %*% V)))",
     CanSampleTransposed, true},
    {"transposed-quotient-times", "t(W / f(U %*% V)) %*% B", "t((W != 0) * (W / f(U %*% V))) %*% B",
     CanSampleColumns, true},
    {"transposed-quotient-of-transposed-times", "t(W / f(t(U) %*% V)) %*% B",
     "t((W != 0) * (W / f(t(U) %*% V))) %*% B", CanSampleTransposed, true},
    {"transposed-times-quotient", "t(A) %*% (W / f(U %*% V))", "t(A) %*% ((W != 0) * (W / f(U %*% V)))",
     CanSampleColumns, true},
    {"transposed-times-quotient-of-transposed", "t(A) %*% (W / f(t(U) %*% V))",
     "t(A) %*% ((W != 0) * (W / f(t(U) %*% V)))", CanSampleTransposed, true},
    {"loss", "sum((W - U %*% t(V)) ^ 2)", kLoss, MultipliesOutRows, true},
    {"loss-negated", "sum((U %*% t(V) - W) ^ 2)", kLoss, MultipliesOutRows, true},
    {"loss-of-columns", "sum((W - U %*% V) ^ 2)", kLossOfColumns, MultipliesOutColumns, true},
    {"loss-of-columns-negated", "sum((U %*% V - W) ^ 2)", kLossOfColumns, MultipliesOutColumns, true},
    // A product that a sparse matrix picks a few cells of. Should another reader need all cells after all,
    // the few cost little beside them.
    {"sampled-product", "W * f(U %*% t(V))", "W * f(sampledProduct(W, U, V))", CanSampleRows, true},
    {"sampled-product-of-columns", "W * f(U %*% V)", "W * f(sampledProduct(W, U, t(V)))", CanSampleColumns,
     true},
    {"sampled-product-of-transposed", "W * f(t(U) %*% V)", "W * f(sampledProduct(W, t(U), t(V)))",
     CanSampleTransposed, true},
    // What a mask hides is not computed: ifelse(M == 0, -Infinity, Q %*% t(K)).
    {"masked-product", "ifelse(W == 0, s, f(U %*% t(V)))", "ifelse(W == 0, s, f(sampledProduct(W, U, V)))",
     CanMaskRows, true},
    {"masked-product-of-columns", "ifelse(W == 0, s, f(U %*% V))",
     "ifelse(W == 0, s, f(sampledProduct(W, U, t(V))))", CanMaskColumns, true},
    {"shown-product", "ifelse(W, f(U %*% t(V)), s)", "ifelse(W, f(sampledProduct(W, U, V)), s)", CanMaskRows,
     true},
    {"shown-product-of-columns", "ifelse(W, f(U %*% V), s)", "ifelse(W, f(sampledProduct(W, U, t(V))), s)",
     CanMaskColumns, true},
    {"sampled-at-nonzeros", "sampledProduct(X != 0, U, V)", "sampledProduct(X, U, V)", nullptr, true},
    {"transposed-times-sampled", "t(A) %*% f(sampledProduct(W, U, V))",
     "t(t(f(sampledProduct(W, U, V))) %*% A)", LeadsWithSparse, true},
};

}  // namespace

std::span<const Rule> OrderRules() { return kRules; }

}  // namespace heddle::compiler
