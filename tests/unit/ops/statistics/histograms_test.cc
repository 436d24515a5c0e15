// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/reference/catalog.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::Rows;

std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }

Invocation Histograms(Matrix groups, Matrix bins, Matrix weights, int64_t group_count, int64_t bin_count) {
  return Invocation("histograms", {Value(std::move(groups)), Value(std::move(bins)),
                                   Value(std::move(weights)), S(group_count), S(bin_count)});
}

// Numbers from 0 to 1 above the largest key, a fraction behind them; some are NaN or infinite.
Matrix Keys(int64_t rows, int64_t columns, uint32_t seed, uint32_t most) {
  std::mt19937 random(seed);
  Matrix x = *Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < x.cells(); ++k) {
    const uint32_t draw = random();
    x.mutable_data()[k] = draw % 50 == 0   ? NAN
                          : draw % 50 == 1 ? INFINITY
                          : draw % 50 == 2 ? -INFINITY
                                           : draw % (most + 2) + static_cast<double>(random() % 10) / 10;
  }
  return x;
}

// Of very different size, so that the order of the additions shows.
Matrix Weights(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix x = *Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < x.cells(); ++k)
    x.mutable_data()[k] =
        std::ldexp(static_cast<double>(random() % 2000) - 1000, static_cast<int>(random() % 40));
  return x;
}

Matrix Expected(const Invocation& call) {
  std::vector<const Value*> inputs;
  for (const auto& input : call.inputs) inputs.push_back(&*input);
  return reference::FindKernel("histograms")(call.node, inputs).matrix();
}

TEST(HistogramsTest, TablesOfColumnsStandSideBySide) {
  const Matrix result = Histograms(Rows({{1}, {2}, {2}}), Rows({{1, 3}, {2, 3}, {2, 1}}),
                                   Rows({{1, 10}, {2, 20}, {4, 40}}), 2, 3)
                            .RunMatrix();
  EXPECT_TRUE(Matrix::SameCells(
      result, Rows({{1, 0, 0, 0, 0, 1}, {0, 6, 0, 4, 0, 2}, {10, 0, 0, 0, 0, 10}, {0, 60, 0, 40, 0, 20}})));
}

TEST(HistogramsTest, AddsInTheOrderOfRowsWhateverTheThreads) {
  for (const int64_t rows : {0, 1, 64, 5000}) {
    for (const int64_t weights : {1, 2, 3, 5}) {
      for (const int64_t groups : {1, 3, 70}) {
        Invocation call = Histograms(Keys(rows, 1, 1, static_cast<uint32_t>(groups)), Keys(rows, 7, 2, 9),
                                     Weights(rows, weights, 3), groups, 9);
        const Matrix expected = Expected(call);
        EXPECT_TRUE(Matrix::SameCells(call.RunMatrix(1), expected))
            << rows << " " << weights << " " << groups;
        EXPECT_TRUE(Matrix::SameCells(call.RunMatrix(3), expected))
            << rows << " " << weights << " " << groups;
      }
    }
  }
}

TEST(HistogramsTest, RanksGoOnFromTheSumsOfTheRankBefore) {
  for (const int64_t rows : {0, 1, 64, 130, 5000})
    for (const int64_t columns : {0, 1, 5, 20})
      for (const int32_t ranks : {1, 2, 3, 8}) {
        Invocation call =
            Histograms(Keys(rows, 1, 1, 70), Keys(rows, columns, 2, 9), Weights(rows, 3, 3), 70, 9);
        testing::ExpectStagesMatch(call, rows, ranks);
      }
}

TEST(HistogramsTest, SumsMayBeMoreThanACacheHolds) {
  for (const int64_t bins : {20000, 70000}) {  // Two bytes a bin, and more.
    Invocation call = Histograms(Keys(300, 1, 1, 2), Keys(300, 3, 2, static_cast<uint32_t>(bins)),
                                 Weights(300, 2, 3), 2, bins);
    EXPECT_TRUE(Matrix::SameCells(call.RunMatrix(2), Expected(call))) << bins;
  }
}

TEST(HistogramsTest, TakesSparseMatricesAndEmptyOnes) {
  const Matrix groups = Rows({{1}, {0}, {2}}), bins = Rows({{0, 1}, {1, 1}, {2, 0}}),
               weights = Rows({{3}, {0}, {5}});
  const Matrix expected = Rows({{0, 0, 3, 0}, {0, 5, 0, 0}});
  for (const Matrix& g : Forms(groups))
    for (const Matrix& b : Forms(bins))
      for (const Matrix& w : Forms(weights))
        EXPECT_TRUE(Matrix::SameCells(Histograms(g, b, w, 2, 2).RunMatrix(), expected));
  EXPECT_EQ(Histograms(groups, bins, weights, 0, 2).RunMatrix().shape(), (Shape{0, 4}));
  EXPECT_EQ(Histograms(groups, bins, weights, 2, 0).RunMatrix().shape(), (Shape{2, 0}));
  EXPECT_EQ(Histograms(groups, *Matrix::Dense(3, 0), weights, 2, 2).RunMatrix().shape(), (Shape{2, 0}));
}

TEST(HistogramsTest, WeightsAreAddedWhateverTheyAre) {
  const Matrix result =
      Histograms(Rows({{1}, {1}, {1}}), Rows({{1}, {2}, {3}}), Rows({{NAN}, {INFINITY}, {1}}), 1, 3)
          .RunMatrix();
  EXPECT_TRUE(Matrix::SameCells(result, Rows({{NAN, INFINITY, 1}})));
}

TEST(HistogramsTest, TellsWhatDoesNotFit) {
  const Matrix column = Rows({{1}, {2}}), bins = Rows({{1, 2}, {2, 1}});
  EXPECT_EQ(Histograms(bins, bins, column, 2, 2).Error(), "histograms: the groups must be a column, not 2x2");
  EXPECT_EQ(Histograms(Rows({{1}}), bins, column, 2, 2).Error(),
            "histograms: the bins are 2x2 but the groups are 1x1");
  EXPECT_EQ(Histograms(column, bins, Rows({{1}}), 2, 2).Error(),
            "histograms: the bins are 2x2 but the weights are 1x1");
  StatusCode code;
  EXPECT_NE(Histograms(column, bins, column, -1, 2).Error(&code), "");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  EXPECT_NE(Histograms(column, bins, column, 2, int64_t{1} << 62).Error(&code), "");
  EXPECT_EQ(code, StatusCode::kResourceExhausted);
  EXPECT_EQ(Histograms(column, bins, column, 2, 3).InferBlind()->shape, (Shape{kUnknown, kUnknown}));
}

// The stages of the blocks of columns go on from the rows in the order of their groups, and do not look at
// groups and weights again.
TEST(HistogramsTest, RowsAreGroupedOnceForAllBlocks) {
  Invocation call = Histograms(Keys(500, 1, 1, 4), Keys(500, 16, 2, 9), Weights(500, 2, 3), 4, 9);
  const Matrix expected = call.RunMatrix();
  const StagedForm& form = *StagedFormAt(*call.op, 0);
  const Split cuts = Distribution::SplitRows(500, 1).split;
  const Split result_cuts = Distribution::SplitRows(expected.rows(), 1).split;
  const Value groups(*Matrix::Dense(0, 1)), weights(*Matrix::Dense(0, 2));
  std::vector<const Value*> inputs;
  for (const auto& input : call.inputs) inputs.push_back(&*input);
  std::vector<Value> held;
  for (int32_t stage = 0; stage < static_cast<int32_t>(form.stages.size()); ++stage) {
    const Stage& now = form.stages[static_cast<size_t>(stage)];
    std::vector<const Value*> received;
    for (const Value& value : held) received.push_back(&value);
    std::vector<Value> made(now.outputs.empty() ? 1 : now.outputs.size());
    ASSERT_TRUE(form.run({.form = form,
                          .node = call.node,
                          .input_infos = call.infos,
                          .stage = stage,
                          .rows = cuts,
                          .result_rows = result_cuts,
                          .inputs = now.reads_inputs ? inputs : std::vector<const Value*>(),
                          .received = received,
                          .context = call.context},
                         made)
                    .ok());
    if (HandsOn(now)) made.pop_back();
    held = std::move(made);
    inputs[0] = &groups;
    inputs[2] = &weights;
  }
  EXPECT_TRUE(Matrix::SameCells(held[0].matrix(), expected));
}

}  // namespace
}  // namespace heddle::ops
