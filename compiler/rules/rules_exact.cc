// SPDX-License-Identifier: Apache-2.0
#include "compiler/rules/rules.h"

// What is missing here on purpose, because bits would change: X + 0 (-0.0 becomes 0.0), X * 0 and X %*% 0
// (NaN and Infinity times 0), (X>0) - (X<0) as sign(X) (NaN), X * (X > 0) as max(X, 0) (-Infinity), X - Y * X
// as (1 - Y) * X (Infinity), X * (Y * Z) as (X * Y) * Z (rounding). What needs no rule: X * (1 - X), (X != 0)
// * log(X) and X - m * (X != 0) visit the entries of a CSR X only, once they are fused.
namespace heddle::compiler {
namespace {

bool AreAlike(const Match& match) {
  return match.ShapeOf("X").IsKnown() && match.ShapeOf("X") == match.ShapeOf("Y");
}

// -Y has absent cells where Y has, +0.0 and not -0.0.
bool IsDenseY(const Match& match) { return AreAlike(match) && match.IsDense("Y"); }

// A matrix of one value stands where a scalar can: the other operand alone decides the shape.
bool IsFill(const Match& match) { return match.KnowsOperands() && match.ShapeOf("X") == match.ShapeOfRoot(); }

bool IsOneCellY(const Match& match) {
  return match.ShapeOf("Y") == Shape{1, 1} && match.ShapeOf("X").IsKnown();
}
// Products skip absent cells on the left, and on the right if there are many columns.
bool IsDenseCellX(const Match& match) {
  return match.ShapeOf("X") == Shape{1, 1} && match.ShapeOf("Y").IsKnown() && match.IsDense("X") &&
         match.IsDense("Y");
}

// What sumTo and spreadTo come to where sizes are known; a cell counts as a cell before it counts as a
// vector.
bool IsResized(const Match& match) { return match.KnowsOperands() && match.ShapeOfRoot().IsKnown(); }
bool IsSameSize(const Match& match) { return IsResized(match) && match.ShapeOf("X") == match.ShapeOfRoot(); }
bool IsOneCell(const Match& match) {
  return IsResized(match) && !IsSameSize(match) && match.ShapeOfRoot() == Shape{1, 1};
}
bool IsOneColumn(const Match& match) {
  return IsResized(match) && !IsSameSize(match) && !IsOneCell(match) && match.ShapeOfRoot().columns == 1;
}
bool IsOneRow(const Match& match) {
  return IsResized(match) && !IsSameSize(match) && !IsOneCell(match) && match.ShapeOfRoot().rows == 1;
}
// Broadcasting by the operator beside it repeats the same cells.
bool IsSpread(const Match& match) {
  return match.KnowsOperands() && match.ShapeOf("Y").IsKnown() && match.ShapeOf("Y") == match.ShapeOfRoot() &&
         match.IsDense("X");
}

bool KnowsOperands(const Match& match) { return match.KnowsOperands(); }
bool TakesScalars(const Match& match) { return match.TakesScalars("f"); }

constexpr Rule kRules[] = {
    // Transposes and reversals.
    {"double-transpose", "t(t(X))", "X", nullptr, true},
    {"double-reverse", "rev(rev(X))", "X", nullptr, true},
    {"transpose-through-cells", "t(f(t(X)))", "f(X)", TakesScalars},
    {"transpose-of-filled", "t(matrix(s, n, m))", "matrix(s, m, n)", nullptr, true},
    {"sum-of-transposes", "t(X) + t(Y)", "t(X + Y)", AreAlike},
    {"difference-of-transposes", "t(X) - t(Y)", "t(X - Y)", AreAlike},
    {"product-of-transposes", "t(X) * t(Y)", "t(X * Y)", AreAlike},
    {"quotient-of-transposes", "t(X) / t(Y)", "t(X / Y)", AreAlike},
    {"rows-of-transpose", "nrow(t(X))", "ncol(X)", nullptr, true},
    {"columns-of-transpose", "ncol(t(X))", "nrow(X)", nullptr, true},
    {"cells-of-transpose", "length(t(X))", "length(X)", nullptr, true},
    // Minima and maxima have no order.
    {"min-of-transpose", "min(t(X))", "min(X)", nullptr, true},
    {"max-of-transpose", "max(t(X))", "max(X)", nullptr, true},
    {"row-mins-of-transpose", "rowMins(t(X))", "t(colMins(X))"},
    {"row-maxs-of-transpose", "rowMaxs(t(X))", "t(colMaxs(X))"},
    {"column-mins-of-transpose", "colMins(t(X))", "t(rowMins(X))"},
    {"column-maxs-of-transpose", "colMaxs(t(X))", "t(rowMaxs(X))"},
    {"min-of-row-mins", "min(rowMins(X))", "min(X)"},
    {"max-of-row-maxs", "max(rowMaxs(X))", "max(X)"},
    {"min-of-column-mins", "min(colMins(X))", "min(X)"},
    {"max-of-column-maxs", "max(colMaxs(X))", "max(X)"},
    // Operations that do nothing, or that another does in one step.
    {"times-one", "X * 1", "X", nullptr, true},
    {"divided-by-one", "X / 1", "X", nullptr, true},
    {"minus-zero", "X - 0", "X", nullptr, true},
    {"power-one", "X ^ 1", "X", nullptr, true},
    {"double-negation", "-(-X)", "X", nullptr, true},
    {"plus-negated", "X + -Y", "X - Y", IsDenseY},
    {"minus-negated", "X - -Y", "X + Y", IsDenseY},
    {"square", "X * X", "X ^ 2", nullptr, true},
    {"twice", "X + X", "X * 2", nullptr, true},
    // Products that multiply each cell once, or by 1: fma(x, y, 0.0) + 0.0, and rowSums in the same lanes.
    {"times-one-cell", "X %*% Y", "X * as.scalar(Y) + 0", IsOneCellY, true},
    {"one-cell-times", "X %*% Y", "Y * as.scalar(X) + 0", IsDenseCellX, true},
    {"times-ones", "X %*% matrix(1, n, 1)", "rowSums(X)", KnowsOperands, true},
    // Adjoints of broadcasting and of aggregates (docs/gradient.md).
    {"sum-to-same", "sumTo(X, n, m)", "X", IsSameSize, true},
    {"sum-to-cell", "sumTo(X, n, m)", "as.matrix(sum(X))", IsOneCell, true},
    {"sum-to-column", "sumTo(X, n, m)", "rowSums(X)", IsOneColumn, true},
    {"sum-to-row", "sumTo(X, n, m)", "colSums(X)", IsOneRow, true},
    {"spread-to-same", "spreadTo(X, n, m)", "X", IsSameSize, true},
    {"spread-times", "spreadTo(X, n, m) * Y", "Y * X", IsSpread},
    {"spread-plus", "spreadTo(X, n, m) + Y", "Y + X", IsSpread},
    {"minus-spread", "Y - spreadTo(X, n, m)", "Y - X", IsSpread},
    {"divided-spread", "Y / spreadTo(X, n, m)", "Y / X", IsSpread},
    // matrix(s, rows, columns) beside a matrix of its size is s.
    {"filled-times-scalar", "matrix(s, n, m) * x", "matrix(s * x, n, m)"},
    {"filled-divided-scalar", "matrix(s, n, m) / x", "matrix(s / x, n, m)"},
    {"filled-plus", "matrix(s, n, m) + X", "s + X", IsFill},
    {"filled-minus", "matrix(s, n, m) - X", "s - X", IsFill},
    {"filled-times", "matrix(s, n, m) * X", "s * X", IsFill},
    {"filled-divided", "matrix(s, n, m) / X", "s / X", IsFill},
    {"minus-filled", "X - matrix(s, n, m)", "X - s", IsFill},
    {"divided-filled", "X / matrix(s, n, m)", "X / s", IsFill},
};

}  // namespace

std::span<const Rule> ExactRules() { return kRules; }

}  // namespace heddle::compiler
