// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/catalog.h"
#include "tests/unit/ops/run_stages.h"

// batch_norm2d and lstm, and their gradients: operators with several results.
namespace heddle::ops {
namespace {

using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

// Few zeros, so that variances are not 0.
Matrix Cells(int64_t rows, int64_t columns, uint32_t seed) { return RandomCells(rows, columns, seed, 1); }
Value Number(double x) { return Value(Scalar(x)); }
Value Text(const char* text) { return Value(Scalar(text)); }
Value Flag(bool flag) { return Value(Scalar(flag)); }

void ExpectReference(const std::string& op, const Inputs& inputs) {
  Invocation call(op, inputs);
  std::vector<const Value*> given;
  for (const auto& input : inputs) given.push_back(input ? &*input : nullptr);
  const std::vector<Value> expected = reference::FindSeveralKernel(op)(call.node, given);
  for (const int threads : {1, 3}) {
    const Result<std::vector<Value>> got = call.RunSeveralRows(0, 0, 0, threads);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    ASSERT_EQ(got->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ((*got)[i].matrix().shape(), ResultsOf(call.node)[i].shape) << op << " " << i;
      EXPECT_TRUE(Matrix::SameCells((*got)[i].matrix(), expected[i].matrix())) << op << ", result " << i;
    }
  }
}

std::string ErrorOf(const std::string& op, const Inputs& inputs) { return Invocation(op, inputs).Error(); }

TEST(BatchNormTest, AgreesWithTheReferenceBitByBit) {
  for (const auto& [n, channels, cells] :
       {std::tuple{1, 1, 2}, {5, 3, 9}, {70, 4, 1}, {300, 3, 5}, {3, 20, 16}})
    for (const char* mode : {"train", "test"})
      for (const Matrix& x : testing::Forms(Cells(n, channels * cells, 1))) {
        const Matrix positive = *FilledMatrix(channels, 1, 2);
        ExpectReference("batch_norm2d",
                        {x, Cells(channels, 1, 2), Cells(channels, 1, 3), Cells(channels, 1, 4), positive,
                         Text(mode), Number(1e-3), Number(0.9)});
        ExpectReference("batch_norm2d_backward",
                        {x, Cells(n, channels * cells, 5), Cells(channels, 1, 2), Number(1e-3),
                         Cells(channels, 1, 3), Cells(channels, 1, 4)});
      }
}

TEST(BatchNormTest, RanksTogetherMakeTheCellsOfOne) {
  for (const int64_t n : {1, 64, 65, 130, 1000})
    for (const char* mode : {"train", "test"})
      for (const int32_t ranks : {1, 2, 3, 8}) {
        const Value x(Cells(n, 15, 1)), gradient(Cells(n, 15, 5)), gamma(Cells(3, 1, 2)),
            beta(Cells(3, 1, 3)), mean(Cells(3, 1, 4)), variance(*FilledMatrix(3, 1, 2));
        Invocation forward("batch_norm2d",
                           {x, gamma, beta, mean, variance, Text(mode), Number(1e-3), Number(0.9)});
        testing::ExpectStagesMatch(forward, n, ranks);
        Invocation moments(
            "batch_norm2d_moments",
            {x, gamma, beta, mean, variance, Flag(std::string(mode) == "train"), Number(1e-3), Number(0.9)});
        testing::ExpectStagesMatch(moments, n, ranks);
        Invocation backward("batch_norm2d_backward", {x, gradient, gamma, Number(1e-3), mean, variance});
        testing::ExpectStagesMatch(backward, n, ranks);
      }
}

TEST(BatchNormTest, MeansOfAChannelAndOfItsPast) {
  const Matrix x = Rows({{1, 3, 10, 10}, {5, 7, 10, 10}}), ones = *FilledMatrix(2, 1, 1);
  Invocation call("batch_norm2d", {x, ones, *FilledMatrix(2, 1, 0), *FilledMatrix(2, 1, 8), ones,
                                   Text("train"), Number(0), Number(0.5)});
  const std::vector<Matrix> results = call.RunMatrices();
  EXPECT_TRUE(Matrix::SameCells(results[1], Rows({{6}, {9}})));
  EXPECT_TRUE(Matrix::SameCells(results[2], Rows({{2.5}, {5.5}})));  // Of the means, as SystemDS has it.
  EXPECT_TRUE(Matrix::SameCells(results[3], Rows({{4}, {10}})));
}

TEST(BatchNormTest, ErrorsNameTheArgument) {
  const Matrix x = Cells(2, 6, 1), column = Cells(3, 1, 1);
  const auto call = [&](const Matrix& gamma, const Matrix& beta, const char* mode) {
    return ErrorOf("batch_norm2d", {x, gamma, beta, column, column, Text(mode), Number(0), Number(0)});
  };
  EXPECT_EQ(call(column, column, "learn"), "batch_norm2d: mode must be \"train\" or \"test\", not learn");
  EXPECT_EQ(call(Cells(4, 1, 1), column, "test"),
            "batch_norm2d: 6 columns cannot be divided among 4 channels");
  EXPECT_EQ(call(Cells(1, 3, 1), column, "test"), "batch_norm2d: gamma must be a column, not 1x3");
  EXPECT_EQ(call(Cells(0, 1, 1), column, "test"), "batch_norm2d: gamma has no rows");
  EXPECT_EQ(call(column, Cells(2, 1, 1), "test"), "batch_norm2d: beta is 2x1 but gamma 3x1");
  EXPECT_EQ(ErrorOf("batch_norm2d_backward", {x, Cells(2, 3, 1), column, Number(0), column, column}),
            "batch_norm2d_backward: dout is 2x3 but X 2x6");
  EXPECT_EQ(ErrorOf("batch_norm2d_backward", {x, x, column, Number(0), column, Cells(1, 1, 1)}),
            "batch_norm2d_backward: the scale is 1x1 but gamma 3x1");
}

TEST(LstmTest, AgreesWithTheReferenceBitByBit) {
  for (const auto& [n, steps, d, m] :
       {std::tuple{1, 1, 1, 1}, {3, 4, 2, 5}, {20, 2, 7, 3}, {0, 2, 2, 2}, {150, 3, 2, 3}})
    for (const bool sequences : {false, true}) {
      const Inputs forward = {Cells(n, steps * d, 1), Cells(d + m, 4 * m, 2), Cells(1, 4 * m, 3),
                              Cells(n, m, 4),         Cells(n, m, 5),         Flag(sequences)};
      ExpectReference("lstm", forward);
      Inputs backward = forward;
      backward.emplace_back(Cells(n, sequences ? steps * m : m, 6));
      backward.emplace_back(Cells(n, m, 7));
      Inputs without = backward;
      without.resize(11);
      ExpectReference("lstm_backward", without);
      const std::vector<Matrix> states = Invocation("lstm", forward).RunMatrices();
      for (size_t i = 2; i < 5; ++i) backward.emplace_back(states[i]);
      ExpectReference("lstm_backward", backward);
      ExpectReference("lstm_by_rows", forward);
      ExpectReference("lstm_backward_by_rows", without);
      const std::vector<Matrix> rows = Invocation("lstm_by_rows", forward).RunMatrices();
      for (size_t i = 2; i < 5; ++i) without[6 + i] = rows[i];
      ExpectReference("lstm_backward_by_rows", without);
    }
}

// What the ranks make of their sequences, put together: rows, and sums by their nodes.
TEST(LstmTest, RanksTogetherMakeTheCellsOfOne) {
  for (const int64_t n : {1, 64, 65, 300})
    for (const int ranks : {1, 2, 3, 8}) {
      const Inputs forward = {Cells(n, 6, 1), Cells(5, 12, 2), Cells(1, 12, 3),
                              Cells(n, 3, 4), Cells(n, 3, 5),  Flag(true)};
      Invocation layer("lstm_by_rows", forward);
      layer.ExpectPiecesMatch(ranks);
      Inputs inputs = forward;
      inputs.emplace_back(Cells(n, 9, 6));
      inputs.emplace_back(Cells(n, 3, 7));
      const std::vector<Matrix> states = layer.RunMatrices();
      for (size_t i = 2; i < 5; ++i) inputs.emplace_back(states[i]);
      Invocation backward("lstm_backward_by_rows", inputs);
      const std::vector<Matrix> whole = backward.RunMatrices();
      const Split cuts = Distribution::SplitRows(n, ranks).split;
      std::vector<std::vector<Value>> of_ranks;
      for (int32_t rank = 0; rank < ranks; ++rank) {
        std::vector<Value> pieces;
        for (size_t i = 0; i < backward.inputs.size(); ++i) {
          const bool by_rows =
              InputUseOf(backward.node, backward.infos, static_cast<int>(i)) == InputUse::kRows;
          const Value& input = *backward.inputs[i];
          pieces.push_back(by_rows ? *SliceRows(input, cuts.Begin(rank), cuts.End(rank)) : input);
        }
        std::vector<const Value*> given;
        for (const Value& piece : pieces) given.push_back(&piece);
        std::vector<Value> results(5);
        const Status status = CatalogKernels().Run({.node = backward.node,
                                                    .phase = Phase::kPartial,
                                                    .inputs = given,
                                                    .input_infos = backward.infos,
                                                    .row_begin = cuts.Begin(rank),
                                                    .row_end = cuts.End(rank),
                                                    .total_rows = n,
                                                    .context = backward.context},
                                                   results);
        ASSERT_TRUE(status.ok()) << status.ToString();
        of_ranks.push_back(std::move(results));
      }
      std::vector<Value> joined(5);
      for (size_t i = 0; i < 5; ++i) {
        std::vector<const Value*> pieces;
        for (const std::vector<Value>& results : of_ranks) pieces.push_back(&results[i]);
        joined[i] = *JoinRows(pieces);
      }
      const std::vector<const Value*> lists = {&joined[1], &joined[2]};
      std::vector<Value> sums(2);
      const Status status = CatalogKernels().Run({.node = backward.node,
                                                  .phase = Phase::kFinish,
                                                  .inputs = lists,
                                                  .input_infos = backward.infos,
                                                  .total_rows = n,
                                                  .context = backward.context},
                                                 sums);
      ASSERT_TRUE(status.ok()) << status.ToString();
      for (const size_t i : {0, 3, 4}) EXPECT_TRUE(Matrix::SameCells(joined[i].matrix(), whole[i])) << n;
      for (const size_t i : {0, 1}) EXPECT_TRUE(Matrix::SameCells(sums[i].matrix(), whole[i + 1])) << n;
    }
}

TEST(LstmTest, TakesStatesOfALargerBatch) {
  const Inputs call = {Cells(2, 6, 1), Cells(4, 4, 2), Cells(1, 4, 3),
                       Cells(5, 1, 4), Cells(3, 1, 5), Flag(true)};
  ExpectReference("lstm", call);
}

TEST(LstmTest, SizesAreKnownAsFarAsTheyCanBe) {
  Invocation call(
      "lstm", {Cells(3, 8, 1), Cells(7, 20, 2), Cells(1, 20, 3), Cells(3, 5, 4), Cells(3, 5, 5), Flag(true)});
  EXPECT_EQ(call.Infer()->shape, (Shape{3, 20}));
  EXPECT_EQ(call.InferBlind()->shape, (Shape{3, kUnknown}));
  EXPECT_EQ((*call.InferWith(call.scalars))[4].shape, (Shape{4, 60}));
}

TEST(LstmTest, ErrorsNameTheArgument) {
  const auto call = [](const Matrix& x, const Matrix& w, const Matrix& b, const Matrix& out0) {
    return ErrorOf("lstm", {x, w, b, out0, Cells(2, 1, 1), Flag(true)});
  };
  const Matrix x = Cells(2, 6, 1), w = Cells(4, 4, 1), b = Cells(1, 4, 1), out0 = Cells(2, 1, 1);
  EXPECT_EQ(call(x, Cells(4, 5, 1), b, out0), "lstm: W must have 4 * m columns, not 5");
  EXPECT_EQ(call(x, Cells(1, 4, 1), b, out0), "lstm: W is 1x4: it must have more than 1 rows");
  EXPECT_EQ(call(Cells(2, 7, 1), w, b, out0), "lstm: 7 columns of X are no steps of 3 numbers");
  EXPECT_EQ(call(x, w, Cells(1, 3, 1), out0), "lstm: b is 1x3 but W 4x4");
  EXPECT_EQ(call(x, w, b, Cells(1, 1, 1)), "lstm: out0 is 1x1 but must be 2x1");
  const Inputs backward = {x, w, b, out0, out0, Flag(true), Cells(2, 1, 1), out0};
  EXPECT_EQ(ErrorOf("lstm_backward", backward), "lstm_backward: dout is 2x1 but must be 2x2");
  Inputs one_cache = backward;
  one_cache.insert(one_cache.end(), {Cells(2, 2, 1), std::nullopt, std::nullopt});
  EXPECT_EQ(ErrorOf("lstm_backward", one_cache), "lstm_backward: cache_c is missing");
}

}  // namespace
}  // namespace heddle::ops
