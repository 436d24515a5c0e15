// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/catalog.h"
#include "tests/reference/reorganize.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

std::optional<Value> At(int64_t bound) { return Value(Scalar(bound)); }
Invocation Index(Inputs inputs) { return Invocation(IndexOperators(), "index", std::move(inputs)); }
Invocation Assign(Inputs inputs) { return Invocation(IndexOperators(), "indexAssign", std::move(inputs)); }

TEST(IndexTest, CutsEveryRegionOfASmallMatrix) {
  const Matrix x = RandomCells(4, 5, 1);
  for (const Matrix& form : Forms(x))
    for (int64_t rl = 1; rl <= 4; ++rl)
      for (int64_t ru = rl; ru <= 4; ++ru)
        for (int64_t cl = 1; cl <= 5; ++cl)
          for (int64_t cu = cl; cu <= 5; ++cu) {
            const Matrix result = Index({form, At(rl), At(ru), At(cl), At(cu)}).RunMatrix();
            EXPECT_EQ(result.storage(), form.storage());
            EXPECT_TRUE(Matrix::SameCells(result, reference::Index(x, rl, ru, cl, cu)));
          }
}

TEST(IndexTest, LeftOutBoundsTakeEverything) {
  const Matrix x = RandomCells(300, 7, 2);
  for (const Matrix& form : Forms(x)) {
    EXPECT_TRUE(Matrix::SameCells(Index({form, {}, {}, {}, {}}).RunMatrix(), x));
    EXPECT_TRUE(Matrix::SameCells(Index({form}).RunMatrix(), x));
    EXPECT_TRUE(
        Matrix::SameCells(Index({form, At(5), At(9), {}, {}}).RunMatrix(), reference::Index(x, 5, 9, 1, 7)));
    EXPECT_TRUE(Matrix::SameCells(Index({form, {}, {}, At(2), At(3)}).RunMatrix(2),
                                  reference::Index(x, 1, 300, 2, 3)));
    EXPECT_TRUE(Matrix::SameCells(Index({form, At(5)}).RunMatrix(), reference::Index(x, 5, 5, 1, 7)));
  }
}

TEST(IndexTest, ColumnsAreTakenRowByRow) {
  const Matrix x = RandomCells(300, 7, 2);
  for (const Matrix& form : Forms(x)) {
    Invocation call = Index({form, {}, {}, At(2), At(4)});
    EXPECT_EQ(call.op->row_rule(call.node, call.infos), RowRule::kRowWise);
    call.ExpectPiecesMatch(3);
  }
  Invocation rows = Index({x, At(2), At(4), {}, {}});
  EXPECT_EQ(rows.op->row_rule(rows.node, rows.infos), RowRule::kWhole);
}

TEST(IndexTest, BoundsTruncate) {
  const Matrix x = RandomCells(4, 5, 1);
  const Matrix result =
      Index({x, Value(Scalar(2.9)), Value(Scalar(3.2)), Value(Scalar(true)), At(2)}).RunMatrix();
  EXPECT_TRUE(Matrix::SameCells(result, reference::Index(x, 2, 3, 1, 2)));
}

TEST(IndexTest, UnknownBoundsLeaveTheSizeOpenButASingleRowIsOne) {
  const Matrix x = RandomCells(4, 5, 1);
  Invocation call = Index({x, At(2), At(3), {}, {}});
  EXPECT_EQ(call.InferBlind()->shape, (Shape{kUnknown, 5}));
  call.node.inputs[2] = call.node.inputs[1];
  EXPECT_EQ(call.InferBlind()->shape, (Shape{1, 5}));
}

TEST(IndexTest, SaysWhatIsOutOfRange) {
  const Matrix x = RandomCells(3, 4, 1);
  StatusCode code;
  EXPECT_EQ(Index({x, At(5), At(5), {}, {}}).Error(&code), "index [5,] is out of range for a 3x4 matrix");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Index({x, At(5), At(5), {}, {}}).RunTimeError(&code),
            "index [5,] is out of range for a 3x4 matrix");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(Index({x, At(0), At(2), {}, {}}).Error(), "index [0:2,] is out of range for a 3x4 matrix");
  EXPECT_EQ(Index({x, {}, {}, At(-2), At(-1)}).Error(), "index [,-2:-1] is out of range for a 3x4 matrix");
  EXPECT_EQ(Index({x, At(1), At(1), At(3), At(5)}).Error(), "index [1,3:5] is out of range for a 3x4 matrix");
  EXPECT_EQ(Index({x, At(3), At(2), {}, {}}).Error(),
            "index [3:2,] is empty: its lower bound is above its upper bound");
}

// What no matrix can have as a row or a column, and what it is called.
const std::pair<Scalar, const char*> kNoBounds[] = {
    {Scalar(std::numeric_limits<double>::infinity()), "Infinity"},
    {Scalar(-std::numeric_limits<double>::infinity()), "-Infinity"},
    {Scalar(std::numeric_limits<double>::quiet_NaN()), "NaN"},
    {Scalar(1e308), "1.0E308"},
    {Scalar(-1e308), "-1.0E308"},
    {Scalar(0x1p63), "9.223372036854776E18"},
    {Scalar(std::numeric_limits<int64_t>::max()), "9223372036854775807"},
    {Scalar(std::numeric_limits<int64_t>::min()), "-9223372036854775808"},
    {Scalar(0.5), "0"},
    {Scalar(-0.0), "0"},
    {Scalar(0x1p48), "281474976710656"}};

TEST(IndexTest, NoNumberStandsForABoundThatIsNotKnown) {
  const Matrix x = RandomCells(3, 4, 1);
  for (const auto& [number, text] : kNoBounds) {
    const std::optional<Value> bound = Value(number);
    const std::string name = text;
    const std::vector<std::pair<Inputs, std::string>> calls = {
        {{x, bound, bound, {}, {}}, name + ","},
        {{x, {}, {}, bound, bound}, "," + name},
        {{x, At(2), At(2), bound, bound}, "2," + name},
        {{x, bound, At(2), {}, {}}, name + ":2,"},
        {{x, At(2), bound, {}, {}}, "2:" + name + ","},
        {{x, At(1), At(2), bound, At(3)}, "1:2," + name + ":3"}};
    for (const Matrix& form : Forms(x)) {
      for (auto [inputs, range] : calls) {
        const std::string message = "index [" + range + "] is out of range for a 3x4 matrix";
        StatusCode code;
        inputs[0] = Value(form);
        EXPECT_EQ(Index(inputs).Error(&code), message);
        EXPECT_EQ(code, StatusCode::kInvalidArgument);
        EXPECT_EQ(Index(inputs).RunTimeError(&code), message);
        EXPECT_EQ(code, StatusCode::kFailedPrecondition);
        inputs.insert(inputs.begin() + 1, Value(Scalar(5)));
        EXPECT_EQ(Assign(inputs).Error(&code), message);
        EXPECT_EQ(code, StatusCode::kInvalidArgument);
        EXPECT_EQ(Assign(inputs).RunTimeError(&code), message);
        EXPECT_EQ(code, StatusCode::kFailedPrecondition);
      }
    }
  }
}

TEST(IndexAssignTest, ReplacesARegionByAMatrixOrAScalar) {
  const Matrix x = RandomCells(6, 5, 1);
  const Matrix v = RandomCells(3, 2, 2, 1);
  for (const Matrix& form : Forms(x)) {
    for (const Matrix& value : Forms(v)) {
      for (int threads : {1, 2}) {
        const Matrix result = Assign({form, value, At(2), At(4), At(3), At(4)}).RunMatrix(threads);
        EXPECT_EQ(result.storage(), form.storage());
        EXPECT_TRUE(Matrix::SameCells(result, reference::IndexAssign(x, v, 2, 4, 3, 4)));
      }
    }
    for (double constant : {0.0, 4.5}) {
      const Matrix one = Rows({{constant}});
      const Matrix expected = reference::IndexAssign(x, one, 2, 6, 1, 5);
      EXPECT_TRUE(Matrix::SameCells(Assign({form, Value(Scalar(constant)), At(2), At(6), {}, {}}).RunMatrix(),
                                    expected));
      EXPECT_TRUE(Matrix::SameCells(Assign({form, one, At(2), At(6), {}, {}}).RunMatrix(), expected));
    }
    EXPECT_TRUE(Matrix::SameCells(Assign({form, x, {}, {}, {}, {}}).RunMatrix(), x));
    EXPECT_TRUE(Matrix::SameCells(form, x)) << "the target must not change";
  }
}

TEST(IndexAssignTest, WholeColumnsAreReplacedRowByRow) {
  const Matrix x = RandomCells(400, 5, 1);
  const Matrix v = RandomCells(400, 2, 2);
  for (const Matrix& form : Forms(x)) {
    Invocation by_matrix = Assign({form, v, {}, {}, At(3), At(4)});
    EXPECT_EQ(by_matrix.op->row_rule(by_matrix.node, by_matrix.infos), RowRule::kRowWise);
    EXPECT_TRUE(Matrix::SameCells(by_matrix.RunMatrix(), reference::IndexAssign(x, v, 1, 400, 3, 4)));
    by_matrix.ExpectPiecesMatch(3);
    Assign({form, Value(Scalar(2)), {}, {}, At(3), At(4)}).ExpectPiecesMatch(2);
  }
}

TEST(IndexAssignTest, NamesTheSizesThatDoNotFit) {
  const Matrix x = RandomCells(6, 5, 1);
  EXPECT_EQ(Assign({x, RandomCells(2, 2, 1), At(2), At(4), At(3), At(4)}).Error(),
            "index [2:4,3:4] is 3x2 but the assigned matrix is 2x2");
  EXPECT_EQ(Assign({x, Value(Scalar(1)), At(7), At(7), {}, {}}).Error(),
            "index [7,] is out of range for a 6x5 matrix");
}

}  // namespace
}  // namespace heddle::ops
