// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/reorganize.h"

#include "ops/catalog.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Csr;
using testing::CsrPanel;
using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

const Shape kShapes[] = {{0, 0}, {0, 3}, {3, 0}, {1, 1},  {1, 7},   {7, 1},
                         {4, 4}, {5, 9}, {8, 8}, {13, 3}, {70, 65}, {300, 129}};

Invocation Call(std::string name, Inputs inputs) {
  return Invocation(ReorganizeOperators(), std::move(name), std::move(inputs));
}

TEST(TransposeTest, EqualsTheReferenceInEveryFormat) {
  for (const Shape& shape : kShapes) {
    const Matrix x = RandomCells(shape.rows, shape.columns, 1);
    for (const Matrix& form : Forms(x)) {
      for (int threads : {1, 2}) {
        const Matrix result = Call("t", {form}).RunMatrix(threads);
        EXPECT_EQ(result.storage(), form.storage());
        EXPECT_TRUE(Matrix::SameCells(result, reference::Transpose(x))) << x.rows() << "x" << x.columns();
      }
    }
  }
}

// Of the lengths of all parts, dense ones are at most a quarter, and there are others.
template <typename LengthOf>
bool IsMostlySparse(const std::vector<Matrix>& parts, LengthOf length_of) {
  int64_t dense = 0, total = 0;
  bool any = false;
  for (const Matrix& part : parts) {
    any |= part.IsSparse();
    total += length_of(part);
    if (!part.IsSparse()) dense += length_of(part);
  }
  return any && 4 * dense <= total;
}

TEST(CbindTest, PutsMatricesSideBySide) {
  for (const Shape& shape : kShapes) {
    const Matrix a = RandomCells(shape.rows, shape.columns, 1);
    const Matrix b = RandomCells(shape.rows, 2, 2);
    const Matrix expected = reference::Cbind({a, b, a});
    for (const Matrix& x : Forms(a)) {
      for (const Matrix& y : Forms(b)) {
        Invocation call = Call("cbind", {x, y, x});
        const Matrix result = call.RunMatrix(2);
        EXPECT_EQ(result.IsSparse(),
                  IsMostlySparse({x, y, x}, [](const Matrix& part) { return part.columns(); }));
        EXPECT_TRUE(Matrix::SameCells(result, expected)) << a.rows() << "x" << a.columns();
        call.ExpectPiecesMatch(3);
      }
    }
  }
}

TEST(RbindTest, PutsMatricesBelowEachOther) {
  for (const Shape& shape : kShapes) {
    const Matrix a = RandomCells(shape.rows, shape.columns, 1);
    const Matrix b = RandomCells(2, shape.columns, 2);
    const Matrix expected = reference::Rbind({a, b, a});
    for (const Matrix& x : Forms(a)) {
      for (const Matrix& y : Forms(b)) {
        const Matrix result = Call("rbind", {x, y, x}).RunMatrix(2);
        EXPECT_EQ(result.IsSparse(),
                  IsMostlySparse({x, y, x}, [](const Matrix& part) { return part.rows(); }));
        EXPECT_TRUE(Matrix::SameCells(result, expected)) << a.rows() << "x" << a.columns();
      }
    }
  }
}

TEST(BindTest, NamesBothShapesWhenTheyDoNotFit) {
  StatusCode code;
  EXPECT_EQ(Call("cbind", {RandomCells(3, 4, 1), RandomCells(2, 4, 1)}).Error(&code),
            "cbind: numbers of rows differ: 3x4 and 2x4");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Call("rbind", {RandomCells(3, 4, 1), RandomCells(3, 5, 1)}).Error(),
            "rbind: numbers of columns differ: 3x4 and 3x5");
  EXPECT_EQ(Call("cbind", {RandomCells(3, 4, 1), Value(Scalar(1.0))}).Error(),
            "cbind: argument 2 must be a matrix, not a scalar");
}

TEST(DiagTest, TurnsVectorsIntoMatricesAndBack) {
  for (int64_t n : {0, 1, 2, 5, 100}) {
    const Matrix vector = RandomCells(n, 1, 3);
    for (const Matrix& form : Forms(vector)) {
      const Matrix result = Call("diag", {form}).RunMatrix();
      EXPECT_TRUE(result.IsSparse());
      EXPECT_TRUE(Matrix::SameCells(result, reference::Diag(vector)));
    }
    if (n == 1) continue;
    const Matrix square = RandomCells(n, n, 4);
    for (const Matrix& form : Forms(square))
      EXPECT_TRUE(Matrix::SameCells(Call("diag", {form}).RunMatrix(), reference::Diag(square)));
  }
  EXPECT_EQ(Call("diag", {RandomCells(2, 3, 1)}).Error(),
            "diag: needs a column vector or a square matrix, got 2x3");
}

TEST(RevTest, TurnsTheRowsAround) {
  for (const Shape& shape : kShapes) {
    const Matrix x = RandomCells(shape.rows, shape.columns, 5);
    for (const Matrix& form : Forms(x))
      EXPECT_TRUE(Matrix::SameCells(testing::Invocation("rev", {form}).RunMatrix(2), reference::Rev(x)));
  }
}

}  // namespace
}  // namespace heddle::ops
