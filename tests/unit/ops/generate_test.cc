// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/generate.h"

#include <cmath>

#include "core/environment/clock.h"
#include "ops/catalog.h"
#include "tests/reference/reorganize.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Attributes;
using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;
using Kind = RandRequest::Distribution;

std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }
Invocation Call(std::string name, Inputs inputs, Attributes attributes = {}) {
  return Invocation(GenerateOperators(), std::move(name), std::move(inputs), std::move(attributes));
}

TEST(MatrixTest, AScalarFills) {
  for (const Shape& shape : {Shape{0, 0}, {0, 3}, {3, 0}, {1, 1}, {500, 3}}) {
    Invocation call = Call("matrix", {S(2.5), S(shape.rows), S(shape.columns)});
    const Matrix result = call.RunMatrix(2);
    EXPECT_EQ(result.shape(), shape);
    for (int64_t k = 0; k < result.cells(); ++k) EXPECT_EQ(result.data()[k], 2.5);
    EXPECT_EQ(call.op->row_rule(call.node, call.infos), RowRule::kGenerate);
    call.ExpectPiecesMatch(3);
  }
  EXPECT_EQ(Call("matrix", {S(true), S(2.9), S(1)}).RunMatrix().shape(), (Shape{2, 1})) << "sizes truncate";
  EXPECT_EQ(Call("matrix", {S(0), S(-1), S(3)}).Error(),
            "matrix: rows must be a number that is not negative, not -1");
}

TEST(MatrixTest, AMatrixIsReshaped) {
  const Matrix x = RandomCells(6, 4, 1);
  for (const Matrix& form : Forms(x)) {
    for (const Shape& shape : {Shape{24, 1}, {1, 24}, {3, 8}, {8, 3}, {6, 4}}) {
      for (bool by_row : {true, false}) {
        const Matrix result =
            Call("matrix", {form, S(shape.rows), S(shape.columns)}, {{"byrow", Scalar(by_row)}}).RunMatrix();
        EXPECT_EQ(result.storage(), form.storage());
        EXPECT_TRUE(Matrix::SameCells(result, reference::Reshape(x, shape.rows, shape.columns, by_row)));
      }
    }
  }
  EXPECT_EQ(Call("matrix", {x, {}, S(2)}).RunMatrix().shape(), (Shape{12, 2}));
  EXPECT_EQ(Call("matrix", {x, S(5), S(5)}).Error(), "matrix: 24 cells do not fill a 5x5 matrix");
}

TEST(MatrixTest, AStringGivesTheCells) {
  const Matrix result = Call("matrix", {S(" 1 -2.5\t3e2\nNaN  Infinity 0 "), S(2), S(3)}).RunMatrix();
  EXPECT_TRUE(Matrix::SameCells(result, Rows({{1, -2.5, 300}, {NAN, INFINITY, 0}})));
  EXPECT_TRUE(Matrix::SameCells(Call("matrix", {S(" 7 "), S(2), S(1)}).RunMatrix(), Rows({{7}, {7}})));
  EXPECT_EQ(Call("matrix", {S("1 2 3"), S(2), S(3)}).Error(), "matrix: 3 cells do not fill a 2x3 matrix");
  EXPECT_EQ(Call("matrix", {S("1 2 x"), S(1), S(3)}).Error(),
            "matrix: cell 3 of the data string is not a number: \"x\"");
}

TEST(SeqTest, CountsAsTheLanguageSays) {
  EXPECT_TRUE(Matrix::SameCells(Call("seq", {S(1), S(4)}).RunMatrix(), Rows({{1}, {2}, {3}, {4}})));
  EXPECT_TRUE(Matrix::SameCells(Call("seq", {S(3), S(1)}).RunMatrix(), Rows({{3}, {2}, {1}})));
  EXPECT_TRUE(Matrix::SameCells(Call("seq", {S(1), S(2), S(0.4)}).RunMatrix(),
                                Rows({{1}, {1 + 0.4}, {1 + 2 * 0.4}})));
  EXPECT_EQ(Call("seq", {S(0), S(1), S(0.1)}).RunMatrix().rows(), 11);
  EXPECT_EQ(Call("seq", {S(0.1), S(0.6), S(0.1)}).RunMatrix().rows(), 6)
      << "the last one must not be lost to rounding";
  EXPECT_EQ(Call("seq", {S(2), S(2), S(-5)}).RunMatrix().rows(), 1);
  EXPECT_EQ(Call("seq", {S(1), S(3), S(-1)}).Error(), "seq: cannot go from 1.0 to 3.0 in steps of -1.0");
  EXPECT_EQ(Call("seq", {S(1), S(3), S(0)}).Error(), "seq: cannot go from 1.0 to 3.0 in steps of 0.0");
  EXPECT_EQ(Call("seq", {S(NAN), S(3)}).Error(), "seq: cannot go from NaN to 3.0 in steps of -1.0");
  EXPECT_EQ(Call("seq", {S(1), S(3)}).InferBlind()->shape, (Shape{kUnknown, 1}));
  Invocation call = Call("seq", {S(-1), S(700), S(0.3)});
  call.ExpectPiecesMatch(4);
}

struct Recorded {
  RandRequest request;
  int64_t nonzeros;
  struct Cell {
    int64_t row;
    int64_t column;
    double value;
  };
  std::vector<Cell> cells;
};

// Cells that Apache SystemDS 3.4.0 (Java 17) made for these arguments.
const Recorded kRecorded[] = {
    {{.rows = 10, .columns = 10, .seed = 7},
     100,
     {{0, 0, 0.45324353322292277}, {5, 0, 0.38145094312042227}, {9, 9, 0.18346814463669592}}},
    {{.rows = 1500, .columns = 7, .min = -3.5, .max = 2.25, .seed = 42},
     10500,
     {{0, 0, -2.6308322952941676},
      {750, 0, -2.138505526542387},
      {1000, 0, -0.16171665606524943},
      {1499, 6, -0.8103291176116807}}},
    {{.rows = 7, .columns = 1500, .seed = 123456789},
     10500,
     {{0, 0, 0.4224700808719042},
      {3, 750, 0.4732687616025697},
      {4, 1000, 0.40152733722774914},
      {6, 1499, 0.3626018183904982}}},
    {{.rows = 2500, .columns = 1200, .min = -1, .seed = -5},
     3000000,
     {{0, 0, -0.18102760493841363},
      {0, 1199, 0.7384966852199821},
      {999, 0, 0.10165502810627758},
      {999, 1199, -0.7305371516529642},
      {1000, 0, 0.9027639267987431},
      {1000, 1199, 0.6569714443564638},
      {2499, 0, 0.37765887463276115},
      {2499, 1199, -0.467271391370496}}},
    {{.rows = 10, .columns = 10, .sparsity = 0.5, .seed = 7},
     58,
     {{0, 1, 0.45324353322292277}, {5, 6, 0.984957312046689}, {9, 9, 0.25118759881619024}}},
    {{.rows = 1500, .columns = 7, .min = 1, .max = 2, .sparsity = 0.5, .seed = 8},
     5255,
     {{0, 0, 1.5333977769888043},
      {760, 3, 1.287307234971426},
      {1007, 1, 1.3129944921611547},
      {1499, 6, 1.296125424887367}}},
    {{.rows = 7, .columns = 1500, .min = -1, .sparsity = 0.1, .seed = 11},
     1041,
     {{0, 28, 0.11944245566960676},
      {3, 944, -0.57212786047944},
      {4, 1177, 0.006598713846780457},
      {6, 1483, -0.1751589349305276}}},
    {{.rows = 2500, .columns = 1200, .sparsity = 0.1, .seed = 12},
     299690,
     {{0, 6, 0.8847496269527213},
      {0, 1166, 0.5414925273338512},
      {999, 28, 0.8713878631383439},
      {999, 1194, 0.29342472255608265},
      {1000, 13, 0.31367390718713406},
      {1000, 1177, 0.9731604343198457},
      {2499, 7, 0.5177741740212766},
      {2499, 1183, 0.8812806882668853}}},
    {{.rows = 2500, .columns = 1200, .min = 2, .max = 3, .sparsity = 0.01, .seed = 13},
     29967,
     {{0, 41, 2.9403925455659263},
      {0, 1123, 2.9466122563265307},
      {999, 56, 2.1123083220277588},
      {999, 1091, 2.2898084726096135},
      {1000, 167, 2.384185225698516},
      {1000, 1156, 2.4711782060869574},
      {2499, 153, 2.9925749439232514},
      {2499, 1129, 2.6726767703193786}}},
    {{.rows = 2500, .columns = 1200, .sparsity = 0.5, .seed = 15},
     1500134,
     {{0, 2, 0.8068476628599887},
      {0, 1199, 0.6109987526455259},
      {999, 0, 0.9120326199102028},
      {999, 1195, 0.7831672016803368},
      {1000, 0, 0.7814112053656106},
      {1000, 1199, 0.5070225649661073},
      {2499, 4, 0.9904795537405072},
      {2499, 1197, 0.5248441931045691}}},
    {{.rows = 1001, .columns = 4, .sparsity = 0.3, .seed = 16},
     1223,
     {{1, 1, 0.71511683502138},
      {507, 0, 0.3839882051089155},
      {673, 0, 0.7769299996826129},
      {1000, 0, 0.4955071812962957}}},
    {{.rows = 1001, .columns = 12, .sparsity = 0.35, .seed = 17},
     4313,
     {{0, 0, 0.8220776396874777},
      {503, 4, 0.7865870892210464},
      {667, 2, 0.7744518485559222},
      {1000, 10, 0.1389942134494112}}},
    {{.rows = 10, .columns = 10, .seed = 19, .distribution = Kind::kNormal},
     100,
     {{0, 0, 0.30517896307467046}, {5, 0, -1.9218652149513364}, {9, 9, -0.8395906672129637}}},
    {{.rows = 2500, .columns = 1200, .seed = 21, .distribution = Kind::kNormal},
     3000000,
     {{0, 0, -0.21184202853205603},
      {0, 1199, -1.2815261849014365},
      {999, 0, -0.1124640223739742},
      {999, 1199, -0.0059724659557589535},
      {1000, 0, -0.31884245654122567},
      {1000, 1199, -0.6886899867527428},
      {2499, 0, -0.4089349466541275},
      {2499, 1199, -0.1793323614891915}}},
    {{.rows = 2500, .columns = 1200, .sparsity = 0.1, .seed = 22, .distribution = Kind::kNormal},
     300311,
     {{0, 16, 2.5674477712133403},
      {0, 1174, 1.83014723029772},
      {999, 5, -0.3405965006113247},
      {999, 1190, 0.5714731881417658},
      {1000, 4, 0.752193768702443},
      {1000, 1197, 0.3990364519939369},
      {2499, 17, -0.38680183165709675},
      {2499, 1191, 0.5268431791234988}}},
    {{.rows = 10, .columns = 10, .seed = 24, .distribution = Kind::kPoisson},
     62,
     {{0, 1, 1.0}, {5, 3, 3.0}, {9, 8, 1.0}}},
    {{.rows = 1500, .columns = 70, .seed = 26, .distribution = Kind::kPoisson, .lambda = 60.25},
     105000,
     {{0, 0, 66.0}, {750, 0, 60.0}, {1000, 0, 49.0}, {1499, 69, 62.0}}},
    {{.rows = 1500, .columns = 7, .seed = 27, .distribution = Kind::kPoisson, .lambda = 1000},
     10500,
     {{0, 0, 1011.0}, {750, 0, 1022.0}, {1000, 0, 997.0}, {1499, 6, 1003.0}}},
    {{.rows = 1500, .columns = 70, .sparsity = 0.2, .seed = 28, .distribution = Kind::kPoisson, .lambda = 3},
     20191,
     {{0, 5, 3.0}, {754, 20, 5.0}, {1002, 40, 3.0}, {1499, 67, 1.0}}},
    {{.rows = 3, .columns = 3, .min = 5, .max = 5, .sparsity = 0.5, .seed = 4},
     6,
     {{0, 0, 5.0}, {0, 1, 5.0}, {1, 0, 5.0}, {1, 2, 5.0}, {2, 0, 5.0}, {2, 1, 5.0}}},
};

TEST(RandTest, MakesTheCellsOfTheReferenceEngine) {
  for (const Recorded& recorded : kRecorded) {
    const RandRequest& request = recorded.request;
    SCOPED_TRACE(::testing::Message() << request.rows << "x" << request.columns << " seed " << request.seed);
    for (const Recorded::Cell& cell : recorded.cells) {  // One row alone: the streams have to jump.
      const Result<Matrix> row = RandomRows(request, cell.row, cell.row + 1, Format::kDense);
      ASSERT_TRUE(row.ok());
      EXPECT_DOUBLE_EQ(row->At(0, cell.column), cell.value);
      EXPECT_TRUE(request.distribution == Kind::kNormal || row->At(0, cell.column) == cell.value);
    }
    if (request.distribution == Kind::kNormal && request.sparsity == 1 && request.rows > 1000)
      continue;  // Slow.
    const Result<Matrix> whole = RandomRows(request, 0, request.rows, Format::kSparse);
    ASSERT_TRUE(whole.ok());
    EXPECT_EQ(whole->CountNonzeros(), recorded.nonzeros);
  }
}

TEST(RandTest, EqualsTheReferenceForEveryCutAndFormat) {
  const Kind kinds[] = {Kind::kUniform, Kind::kNormal, Kind::kPoisson};
  for (const Shape& shape : {Shape{1, 1}, {2, 3}, {1, 1}, {2003, 3}, {3, 2001}, {1005, 1}, {1100, 1010}}) {
    for (Kind kind : kinds) {
      for (double sparsity : {1.0, 0.7, 0.2, 0.003, 0.0}) {
        if (shape.Cells() > 1'000'000 && (kind != Kind::kUniform || sparsity == 1)) continue;
        RandRequest request{.rows = shape.rows,
                            .columns = shape.columns,
                            .min = -1,
                            .max = 3,
                            .sparsity = sparsity,
                            .seed = 77,
                            .distribution = kind,
                            .lambda = 2.5};
        const Matrix expected =
            sparsity == 0 ? *FilledMatrix(shape.rows, shape.columns, 0) : reference::Random(request);
        for (Format format : {Format::kDense, Format::kSparse}) {
          for (int pieces : {1, 3}) {
            for (int piece = 0; piece < pieces; ++piece) {
              const int64_t begin = shape.rows * piece / pieces;
              const int64_t end = shape.rows * (piece + 1) / pieces;
              Result<Matrix> rows = Status();
              Arena(pieces == 1 ? 2 : 1).Execute([&] { rows = RandomRows(request, begin, end, format); });
              ASSERT_TRUE(rows.ok());
              EXPECT_EQ(rows->IsSparse(), format == Format::kSparse);
              ASSERT_TRUE(Matrix::SameCells(*rows, expected.Rows(begin, end)))
                  << shape.rows << "x" << shape.columns << " kind " << static_cast<int>(kind) << " sparsity "
                  << sparsity << " rows " << begin << " to " << end;
            }
          }
        }
      }
    }
  }
}

TEST(RandTest, LargePoissonMeansHaveTheRightMeanAndVariance) {
  const Result<Matrix> x = RandomRows(
      {.rows = 20000, .seed = 5, .distribution = Kind::kPoisson, .lambda = 90.5}, 0, 20000, Format::kDense);
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < 20000; ++i) sum += x->data()[i], squares += x->data()[i] * x->data()[i];
  EXPECT_NEAR(sum / 20000, 90.5, 0.3);
  EXPECT_NEAR(squares / 20000 - sum * sum / 4e8, 90.5, 4);
}

TEST(RandTest, ReadsItsArguments) {
  const Inputs inputs = {S(4), S(3), S(2), S(5), {}, S(11), {}};
  const Matrix result = Call("rand", inputs).RunMatrix();
  EXPECT_TRUE(Matrix::SameCells(
      result, reference::Random({.rows = 4, .columns = 3, .min = 2, .max = 5, .seed = 11})));
  EXPECT_EQ(Call("rand", {}).RunMatrix().shape(), (Shape{1, 1}));
  Invocation sparse = Call("rand", {S(3000), S(20), {}, {}, S(0.1), S(3), {}}, {{"pdf", Scalar("normal")}});
  EXPECT_TRUE(sparse.RunMatrix(2).IsSparse());
  sparse.ExpectPiecesMatch(3);
  Call("rand", {S(3000), S(20), {}, {}, {}, S(3), {}}).ExpectPiecesMatch(4);
  EXPECT_FALSE(Call("rand", {S(30), S(1), {}, {}, S(0.1), S(3), {}}).RunMatrix().IsSparse());
  EXPECT_EQ(Call("rand", {S(3), S(1), {}, {}, S(1.5), {}, {}}).Error(),
            "rand: sparsity must be between 0 and 1, not 1.5");
  EXPECT_EQ(Call("rand", {}, {{"pdf", Scalar("cauchy")}}).Error(),
            "rand: unknown distribution pdf=\"cauchy\"");
  EXPECT_EQ(Call("rand", {S(3), S(1), {}, {}, {}, {}, S(0)}, {{"pdf", Scalar("poisson")}}).Error(),
            "rand: lambda must be positive, not 0");
}

TEST(RandTest, WithoutASeedTheJobTheCallAndTheRoundDecide) {
  const auto draw = [](uint64_t job, int stream, uint64_t execution, Scalar seed) {
    Invocation call =
        Call("rand", {S(2), S(2), {}, {}, {}, S(std::move(seed)), {}}, {{"stream", Scalar(stream)}});
    call.context.job_seed = job;
    call.context.execution = execution;
    return call.RunMatrix();
  };
  const Matrix first = draw(1, 1, 1, -1);
  EXPECT_TRUE(Matrix::SameCells(first, draw(1, 1, 1, -1)));
  EXPECT_FALSE(Matrix::SameCells(first, draw(2, 1, 1, -1)));
  EXPECT_FALSE(Matrix::SameCells(first, draw(1, 2, 1, -1)));
  EXPECT_FALSE(Matrix::SameCells(first, draw(1, 1, 2, -1)));
  EXPECT_TRUE(Matrix::SameCells(draw(1, 1, 1, 9), draw(2, 2, 2, 9))) << "a given seed decides alone";
}

TEST(TimeTest, ReadsTheClockOfTheContext) {
  VirtualClock clock;
  clock.Advance(42);
  Invocation call = Call("time", {});
  call.context.clock = &clock;
  EXPECT_EQ(call.Run().scalar(), Scalar(int64_t{42}));
  EXPECT_FALSE(call.op->pure);
}

}  // namespace
}  // namespace heddle::ops
