// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/catalog.h"
#include "tests/reference/select.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::Rows;

std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }
Invocation Table(Inputs inputs) { return Invocation(SelectOperators(), "table", std::move(inputs)); }

Matrix Keys(int64_t rows, int64_t columns, uint32_t seed, int most) {
  std::mt19937 random(seed);
  Matrix x = *Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < x.cells(); ++k)
    x.mutable_data()[k] = 1 + static_cast<double>(random() % static_cast<uint32_t>(most)) +
                          static_cast<double>(random() % 10) / 10;
  return x;
}

std::vector<double> Cells(const Matrix& x) { return {x.data(), x.data() + x.cells()}; }

// Weights of very different size, so that the order of the additions shows.
Matrix Weights(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix x = *Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < x.cells(); ++k)
    x.mutable_data()[k] =
        std::ldexp(static_cast<double>(random() % 2000) - 1000, static_cast<int>(random() % 40));
  return x;
}

TEST(TableTest, CountsPairs) {
  EXPECT_TRUE(Matrix::SameCells(Table({Rows({{1}, {2}, {1}, {3}}), Rows({{2}, {1}, {2}, {2}})}).RunMatrix(),
                                Rows({{0, 2}, {1, 0}, {0, 1}})));
  for (int64_t m : {1, 50, 1500}) {
    for (int columns : {3, 20}) {  // Dense and CSR results.
      const Matrix a = Keys(m, 2, 1, 7);
      const Matrix b = Keys(m, 2, 2, columns);
      const Matrix result = Table({a, b, {}, S(7), S(columns)}).RunMatrix();
      EXPECT_EQ(result.IsSparse(), columns > 8);
      EXPECT_TRUE(Matrix::SameCells(
          result,
          reference::Table(a, Cells(b), std::vector<double>(static_cast<size_t>(2 * m), 1.0), 7, columns)));
    }
  }
}

TEST(TableTest, AddsWeightsInTheDocumentedOrder) {
  for (int64_t m : {1, 63, 65, 1000, 3000}) {  // Granules of 64 rows: up to 47 panels.
    for (int columns : {2, 12}) {
      const Matrix a = Keys(m, 1, 3, 3);
      const Matrix b = Keys(m, 1, 4, columns);
      const Matrix w = Weights(m, 1, 5);
      const Matrix expected = reference::Table(a, Cells(b), Cells(w), 3, columns);
      for (const Matrix& form : Forms(w))
        EXPECT_TRUE(Matrix::SameCells(Table({a, b, form, S(3), S(columns)}).RunMatrix(), expected)) << m;
      const std::vector<double> tenth(static_cast<size_t>(m), 0.1);
      EXPECT_TRUE(Matrix::SameCells(Table({a, b, S(0.1), S(3), S(columns)}).RunMatrix(),
                                    reference::Table(a, Cells(b), tenth, 3, columns)));
    }
  }
}

TEST(TableTest, AScalarKeyMakesAHistogram) {
  const Matrix a = Rows({{2}, {2}, {4}});
  EXPECT_TRUE(Matrix::SameCells(Table({a, S(1)}).RunMatrix(), Rows({{0}, {2}, {0}, {1}})));
  EXPECT_TRUE(
      Matrix::SameCells(Table({a, S(2), S(0.5)}).RunMatrix(), Rows({{0, 0}, {0, 1}, {0, 0}, {0, 0.5}})));
  EXPECT_TRUE(Matrix::SameCells(Table({a, S(1), Rows({{1}, {10}, {100}})}).RunMatrix(),
                                Rows({{0}, {11}, {0}, {100}})));
}

TEST(TableTest, OneHotRowsOfKeys) {
  const Matrix rows = Rows({{1}, {2}, {3}, {4}});
  const Matrix keys = Rows({{3}, {NAN}, {1}, {12}});
  const Matrix wide = Table({rows, keys, S(1), S(4), S(12)}).RunMatrix();
  EXPECT_TRUE(wide.IsSparse());
  EXPECT_EQ(wide.At(0, 2), 1);
  EXPECT_EQ(wide.At(2, 0), 1);
  EXPECT_EQ(wide.At(3, 11), 1);
  EXPECT_EQ(wide.CountNonzeros(), 3);
  EXPECT_EQ(Table({rows, keys}).RunMatrix().shape(), (Shape{4, 12}));
  EXPECT_TRUE(Matrix::SameCells(Table({rows, keys, {}, S(3), S(3)}).RunMatrix(),
                                Rows({{0, 0, 1}, {0, 0, 0}, {1, 0, 0}})))
      << "entries outside are dropped";
}

TEST(TableTest, SkipsNanAndReportsKeysBelowOne) {
  EXPECT_TRUE(Matrix::SameCells(Table({Rows({{1}, {NAN}, {2}}), S(1), Rows({{NAN}, {1}, {5}})}).RunMatrix(),
                                Rows({{0}, {5}})));
  StatusCode code;
  EXPECT_EQ(Table({Rows({{1}, {0}}), Rows({{1}, {1}})}).Error(&code),
            "table: key 0 at row 2, column 1 is below 1");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(Table({Rows({{1}, {2}}), Rows({{1}, {-3.5}})}).Error(),
            "table: key -3.5 at row 2, column 1 is below 1");
  EXPECT_EQ(Table({Rows({{1}, {-INFINITY}}), S(1)}).Error(), "table: key -inf at row 2, column 1 is below 1");
  EXPECT_EQ(Table({Rows({{1}, {-INFINITY}}), S(1), {}, S(2), S(2)}).Error(),
            "table: key -inf at row 2, column 1 is below 1");
  EXPECT_EQ(Table({Rows({{1}, {2}}), Rows({{1, 2}})}).Error(),
            "table: the first argument is 2x1 but the second is 1x2");
}

TEST(TableTest, KeysFitByPosition) {
  const Inputs more_columns = {Rows({{1}, {2}}), Rows({{3, 9}, {1, 9}}), Rows({{5, 8, 8}, {6, 8, 8}})};
  EXPECT_TRUE(Matrix::SameCells(Table(more_columns).RunMatrix(), Rows({{0, 0, 5}, {6, 0, 0}})));
  const Inputs row_and_column = {Rows({{1, 2, 1}}), Rows({{1}, {1}, {2}})};
  EXPECT_TRUE(Matrix::SameCells(Table(row_and_column).RunMatrix(), Rows({{1, 1}, {1, 0}})));
  EXPECT_EQ(Table({Rows({{1, 2, 1}}), Rows({{1}, {1}})}).Error(),
            "table: the first argument is 1x3 but the second is 2x1");
  EXPECT_EQ(Table({Rows({{1, 2}}), Rows({{1}})}).Error(),
            "table: the first argument is 1x2 but the second is 1x1");
}

TEST(TableTest, TheSizeIsOpenUntilTheRun) {
  EXPECT_EQ(Table({Rows({{1}}), Rows({{1}})}).Infer()->shape, (Shape{kUnknown, kUnknown}));
  EXPECT_EQ(Table({Rows({{1}}), Rows({{1}}), {}, S(3), S(4)}).Infer()->shape, (Shape{3, 4}));
  EXPECT_EQ(Table({Rows({{1}}), Rows({{1}}), {}, S(3), S(4)}).InferBlind()->shape,
            (Shape{kUnknown, kUnknown}));
}

// With seq(1, m) as the first argument every row of it has one in the table.
Invocation NumberedRows(Inputs inputs) {
  return Invocation(SelectOperators(), "table", std::move(inputs), {{"keep.rows", Scalar(true)}});
}

TEST(TableTest, NumberedRowsStayWithoutAnEntry) {
  const double nan = std::nan("");
  const Matrix rows = Rows({{1}, {2}, {3}, {4}}), keys = Rows({{1}, {2}, {nan}, {nan}});
  EXPECT_TRUE(
      Matrix::SameCells(NumberedRows({rows, keys}).RunMatrix(), Rows({{1, 0}, {0, 1}, {0, 0}, {0, 0}})));
  EXPECT_TRUE(Matrix::SameCells(NumberedRows({*ToSparse(rows), *ToSparse(keys)}).RunMatrix(),
                                Rows({{1, 0}, {0, 1}, {0, 0}, {0, 0}})));
  EXPECT_TRUE(Matrix::SameCells(NumberedRows({rows, keys, S(2.5)}).RunMatrix(),
                                Rows({{2.5, 0}, {0, 2.5}, {0, 0}, {0, 0}})));
  // Sizes that are given count, not those of the keys; so do weights of their own.
  EXPECT_TRUE(
      Matrix::SameCells(NumberedRows({rows, keys, {}, S(3), S(1)}).RunMatrix(), Rows({{1}, {0}, {0}})));
  EXPECT_TRUE(Matrix::SameCells(NumberedRows({rows, keys, rows}).RunMatrix(), Rows({{1, 0}, {0, 2}})));
  // Without an entry there are no columns.
  const Matrix none = NumberedRows({rows, Rows({{nan}, {nan}, {nan}, {nan}})}).RunMatrix();
  EXPECT_EQ(none.shape(), (Shape{4, 0}));
  EXPECT_EQ(NumberedRows({rows, keys, S(nan)}).RunMatrix().shape(), (Shape{4, 0}));
  EXPECT_EQ(NumberedRows({rows, keys}).InferBlind()->shape.rows, 4);
  EXPECT_EQ(NumberedRows({rows, keys, rows}).InferBlind()->shape.rows, kUnknown);
  // Other keys that are skipped leave nothing.
  EXPECT_TRUE(Matrix::SameCells(Table({Rows({{1}, {2}, {6}}), Rows({{1}, {2}, {nan}})}).RunMatrix(),
                                Rows({{1, 0}, {0, 1}})));
}

}  // namespace
}  // namespace heddle::ops
