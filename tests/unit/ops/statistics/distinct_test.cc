// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/distinct.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/statistics/smallest_hashes.h"
#include "tests/unit/ops/run_phases.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Attributes;
using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;
using testing::RunPhases;

Invocation Call(std::string name, Inputs inputs, Attributes attributes = {}) {
  return Invocation(std::move(name), std::move(inputs), std::move(attributes));
}

std::vector<Matrix> AwkwardMatrices() {
  Matrix special = RandomCells(300, 7, 5);
  double* cells = special.mutable_data();
  cells[0] = cells[40] = NAN;
  cells[1] = INFINITY;
  cells[2] = -INFINITY;
  cells[3] = -0.0;
  cells[4] = 5e-324;
  return {special,
          RandomCells(1, 50, 1),
          RandomCells(50, 1, 2),
          Rows({{0, 0}, {0, 0}}),
          Rows({{-0.0, 0.0}}),
          Rows({{NAN}}),
          RandomCells(2000, 3, 3, 100)};
}

TEST(UniqueTest, EqualsTheReferenceInEveryDirection) {
  for (const Matrix& x : AwkwardMatrices()) {
    for (const Matrix& form : Forms(x)) {
      EXPECT_TRUE(Matrix::SameCells(Call("unique", {form}).RunMatrix(2), reference::Unique(x)));
      EXPECT_TRUE(Matrix::SameCells(Call("unique", {form}, {{"dir", Scalar("r")}}).RunMatrix(2),
                                    reference::UniqueOfRows(x)));
      EXPECT_TRUE(Matrix::SameCells(Call("unique", {form}, {{"dir", Scalar("C")}}).RunMatrix(),
                                    reference::UniqueOfColumns(x)));
      if (x.rows() < 300) continue;
      for (const int workers : {1, 2, 3}) {
        Invocation call = Call("unique", {form}, {{"dir", Scalar("rc")}});
        EXPECT_TRUE(Matrix::SameCells(RunPhases(call, x.rows(), workers).matrix(), reference::Unique(x)));
      }
    }
  }
}

TEST(UniqueTest, RanksTogetherHaveTheRowsOfOne) {
  for (const Matrix& x : AwkwardMatrices()) {
    for (const Matrix& form : Forms(x)) {
      Invocation rows = Call("unique", {form}, {{"dir", Scalar("r")}});
      Invocation columns = Call("unique", {form}, {{"dir", Scalar("c")}});
      for (const int32_t ranks : {1, 2, 3, 7}) {
        testing::ExpectStagesMatch(rows, x.rows(), ranks, 0);
        testing::ExpectStagesMatch(columns, x.rows(), ranks, 1);
      }
    }
  }
}

// More than a table holds, with duplicates within a part of the list and between two parts; more than one
// part of it is sorted. NaN and both zeros are among them.
TEST(UniqueTest, ManyValuesAreSortedInParts) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{900'000, 1}, {1, 900'000}, {9'000, 100}}) {
    Matrix x = *Matrix::Dense(rows, columns);
    uint64_t state = 7;
    for (int64_t k = 0; k < x.cells(); ++k) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      // Some come often, most once; negative ones and fractions are among them.
      const auto number = static_cast<double>(static_cast<int64_t>(state >> 20));
      x.mutable_data()[k] = k % 3 == 0 ? static_cast<double>(k % 50'000) - 10'000.5 : number * 0x1p-10 - 1e10;
    }
    x.mutable_data()[5] = NAN;
    x.mutable_data()[600'001] = NAN;
    x.mutable_data()[6] = -0.0;
    x.mutable_data()[700'001] = 0.0;
    // The literal loops of the reference take too long: sorted, zeros alike, the only NaN behind.
    std::vector<double> distinct;
    for (int64_t k = 0; k < x.cells(); ++k)
      if (!std::isnan(x.data()[k])) distinct.push_back(x.data()[k] + 0.0);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    distinct.push_back(NAN);
    Matrix expected = *Matrix::Dense(static_cast<int64_t>(distinct.size()), 1);
    std::copy(distinct.begin(), distinct.end(), expected.mutable_data());
    for (const int threads : {1, 2, 3}) {
      EXPECT_TRUE(Matrix::SameCells(Call("unique", {x}).RunMatrix(threads), expected));
      EXPECT_EQ(Call("countDistinct", {x}).Run(threads).scalar(), Scalar(expected.rows()));
    }
    if (rows < 100) continue;
    for (const int workers : {2, 3}) {
      Invocation call = Call("unique", {x}), count = Call("countDistinct", {x});
      EXPECT_TRUE(Matrix::SameCells(RunPhases(call, rows, workers).matrix(), expected));
      EXPECT_EQ(RunPhases(count, rows, workers).scalar(), Scalar(expected.rows()));
    }
  }
}

TEST(UniqueTest, AnUnknownDirectionIsAnError) {
  EXPECT_EQ(Call("unique", {Rows({{1}})}, {{"dir", Scalar("x")}}).Error(),
            "unique: unknown direction dir=\"x\"");
  EXPECT_EQ(Call("unique", {Value(Scalar(1))}).Error(), "unique: data must be a matrix, not a scalar");
}

// As a row and as a column.
std::vector<double> Counts(const Matrix& x, bool of_rows) {
  std::vector<double> counts;
  for (int64_t k = 0; k < (of_rows ? x.rows() : x.columns()); ++k)
    counts.push_back(static_cast<double>(of_rows ? reference::Distinct(x, k, k + 1, 0, x.columns()).size()
                                                 : reference::Distinct(x, 0, x.rows(), k, k + 1).size()));
  return counts;
}
std::vector<double> CellsOf(const Matrix& x) { return {x.data(), x.data() + x.cells()}; }

TEST(CountDistinctTest, EqualsTheReferenceAlsoFromASketchOfFew) {
  for (const Matrix& x : AwkwardMatrices()) {
    const auto all = static_cast<int64_t>(reference::Distinct(x, 0, x.rows(), 0, x.columns()).size());
    ASSERT_LT(all, SmallestHashes::kKept * 3);
    for (const Matrix& form : Forms(x)) {
      for (const std::string approx : {"", "Approx"}) {
        if (approx.empty() || all < SmallestHashes::kKept) {
          EXPECT_EQ(Call("countDistinct" + approx, {form}).Run(2).scalar(), Scalar(all));
        }
        const Attributes rows = {{"dir", Scalar("r")}}, columns = {{"dir", Scalar("c")}};
        EXPECT_EQ(CellsOf(Call("countDistinct" + approx, {form}, rows).RunMatrix(2)), Counts(x, true));
        EXPECT_EQ(CellsOf(Call("rowCountDistinct" + approx, {form}).RunMatrix()), Counts(x, true));
        EXPECT_EQ(CellsOf(Call("countDistinct" + approx, {form}, columns).RunMatrix(2)), Counts(x, false));
        EXPECT_EQ(CellsOf(Call("colCountDistinct" + approx, {form}).RunMatrix()), Counts(x, false));
        Call("rowCountDistinct" + approx, {form}).ExpectPiecesMatch(3);
        if (x.rows() < 300) continue;
        for (const int workers : {1, 2, 3}) {
          Invocation by_columns = Call("colCountDistinct" + approx, {form});
          EXPECT_EQ(CellsOf(RunPhases(by_columns, x.rows(), workers).matrix()), Counts(x, false));
          Invocation of_all = Call("countDistinct" + approx, {form});
          EXPECT_EQ(RunPhases(of_all, x.rows(), workers).scalar(), of_all.Run().scalar());
        }
      }
    }
  }
}

// 1 ... n, each several times.
Matrix Numbers(int64_t n, int64_t rows, int64_t columns) {
  Result<Matrix> x = Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < x->cells(); ++k) x->mutable_data()[k] = static_cast<double>(k % n + 1);
  return *std::move(x);
}

TEST(CountDistinctTest, ASketchIsWithinFourStandardErrors) {
  for (const int64_t n : {1023, 1024, 3000, 20000, 100000}) {
    const Matrix x = Numbers(n, 50000, 4);
    Invocation call = Call("countDistinctApprox", {x}, {{"type", Scalar("kmv")}});
    const int64_t estimate = call.Run(2).scalar().AsInteger();
    if (n < SmallestHashes::kKept) {
      EXPECT_EQ(estimate, n);
    }
    EXPECT_NEAR(static_cast<double>(estimate) / static_cast<double>(n), 1, 4 * 0.0313) << n;
    for (const int workers : {2, 3}) EXPECT_EQ(RunPhases(call, x.rows(), workers).scalar(), Scalar(estimate));
  }
  // Never more than there are cells: of many columns whose cells all differ, some sketches say more.
  const Matrix counts = Call("colCountDistinctApprox", {Numbers(90000, 3000, 30)}).RunMatrix();
  int64_t bounded = 0;
  for (int64_t j = 0; j < counts.columns(); ++j) {
    EXPECT_LE(counts.At(0, j), 3000);
    bounded += counts.At(0, j) == 3000 ? 1 : 0;
  }
  EXPECT_GT(bounded, 0);
  EXPECT_EQ(Call("colCountDistinctApprox", {Rows({{1}})}, {{"type", Scalar("HLL")}}).Error(),
            "colCountDistinctApprox: unknown sketch type=\"HLL\"");
}

}  // namespace
}  // namespace heddle::ops
