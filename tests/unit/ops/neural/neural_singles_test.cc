// SPDX-License-Identifier: Apache-2.0
// Operators of neural networks on floats: products against their literal loops, everything else against the
// definition for doubles, rounded (docs/numerics.md, section 9).
#include "tests/reference/neural_singles.h"

#include <cmath>

#include "ops/base/cpu.h"
#include "ops/elementwise/single_precision.h"
#include "tests/reference/catalog.h"
#include "tests/unit/ops/run_phases.h"

namespace heddle::ops {
namespace {

using reference::ImageCall;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;

// Every kernel that this machine can run.
class NeuralSinglesTest : public ::testing::TestWithParam<Cpu> {
 protected:
  void SetUp() override {
    if (!IsSupported(GetParam())) GTEST_SKIP() << "this machine cannot run " << Name(GetParam());
    ASSERT_TRUE(ForceCpu(GetParam()).ok());
  }
  void TearDown() override { ASSERT_TRUE(ForceCpu("auto").ok()); }
};

// Few zeros, no whole numbers: every rounding shows.
Matrix Singles(int64_t rows, int64_t columns, uint32_t seed) {
  Matrix cells = RandomCells(rows, columns, seed, 1);
  for (int64_t i = 0; i < cells.cells(); ++i) cells.mutable_data()[i] /= 3;
  return *Narrow(cells);
}
Value Integer(int64_t x) { return Value(Scalar(x)); }

// One block of terms and several, images of more and of fewer windows than a block, padding, strides; more
// windows than a task unfolds.
constexpr ImageCall kCases[] = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},    {3, 2, 5, 5, 4, 3, 3, 1, 1, 1, 1},
                                {9, 1, 6, 9, 3, 5, 2, 3, 4, 2, 0},    {17, 9, 9, 8, 70, 3, 3, 1, 1, 1, 1},
                                {2, 70, 20, 17, 9, 3, 2, 1, 2, 1, 2}, {2, 3, 40, 37, 5, 7, 7, 1, 1, 3, 3},
                                {0, 2, 4, 4, 3, 2, 2, 1, 1, 0, 0}};

Inputs With(Inputs matrices, const std::vector<int64_t>& numbers) {
  for (const int64_t number : numbers) matrices.emplace_back(Integer(number));
  return matrices;
}
Inputs WithFilter(Inputs matrices, const ImageCall& c) {
  return With(std::move(matrices),
              {c.n, c.c, c.h, c.w, c.k, c.c, c.r, c.s, c.stride_h, c.stride_w, c.pad_h, c.pad_w});
}
Inputs WithPool(Inputs matrices, const ImageCall& c) {
  return With(std::move(matrices), {c.n, c.c, c.h, c.w, c.r, c.s, c.stride_h, c.stride_w, c.pad_h, c.pad_w});
}

void ExpectMatrix(const std::string& op, const Inputs& inputs, const Matrix& expected) {
  for (const int threads : {1, 3}) {
    Invocation call(op, inputs);
    const Matrix found = call.RunMatrix(threads);
    EXPECT_EQ(found.element_type(), ElementType::kFloat32) << op;
    EXPECT_TRUE(Matrix::SameCells(found, expected)) << op << " with " << threads << " threads";
  }
}

TEST_P(NeuralSinglesTest, ConvolutionsAreChainsOfFloatsOverBlocks) {
  for (const ImageCall& c : kCases) {
    SCOPED_TRACE(::testing::Message() << c.n << "x" << c.c << "x" << c.h << "x" << c.w << " by " << c.k << "x"
                                      << c.r << "x" << c.s);
    const Matrix x = Singles(c.n, c.c * c.h * c.w, 1), filters = Singles(c.k, c.c * c.r * c.s, 2),
                 gradient = Singles(c.n, c.k * c.P() * c.Q(), 3);
    ExpectMatrix("conv2d", WithFilter({x, filters}, c), Conv2dSingles(c, x, filters));
    ExpectMatrix("conv2d_backward_data", WithFilter({filters, gradient}, c),
                 Conv2dBackwardDataSingles(c, filters, gradient));
    ExpectMatrix("conv2d_backward_filter", WithFilter({x, gradient}, c),
                 Conv2dBackwardFilterSingles(c, x, gradient));
  }
}

TEST_P(NeuralSinglesTest, TheGradientOfFiltersIsAReductionOfDoubles) {
  const ImageCall c{500, 2, 4, 3, 3, 2, 2, 1, 1, 0, 1};
  const Matrix x = Singles(c.n, c.c * c.h * c.w, 1), gradient = Singles(c.n, c.k * c.P() * c.Q(), 3);
  Invocation call("conv2d_backward_filter", WithFilter({x, gradient}, c));
  for (const int workers : {1, 2, 5}) {
    const Matrix sums = testing::RunPhases(call, c.n, workers).matrix();
    EXPECT_TRUE(Matrix::SameCells(*Narrow(sums), Conv2dBackwardFilterSingles(c, x, gradient))) << workers;
  }
}

// The definition: the reference for doubles, each cell rounded.
void ExpectRounded(const std::string& op, const Inputs& inputs) {
  Invocation call(op, inputs);
  std::vector<Value> widened;
  for (const auto& input : inputs)
    widened.push_back(input->IsMatrix() ? Value(*Widen(input->matrix())) : *input);
  std::vector<const Value*> given;
  for (const Value& value : widened) given.push_back(&value);
  std::vector<Value> expected;
  if (const auto several = reference::FindSeveralKernel(op))
    expected = several(call.node, given);
  else
    expected.push_back(reference::FindKernel(op)(call.node, given));
  for (const int threads : {1, 3}) {
    const Result<std::vector<Value>> found = call.RunSeveralRows(0, 0, 0, threads);
    ASSERT_TRUE(found.ok()) << op << ": " << found.status().ToString();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ((*found)[i].matrix().element_type(), ElementType::kFloat32) << op << " " << i;
      EXPECT_TRUE(Matrix::SameCells((*found)[i].matrix(), *Narrow(expected[i].matrix()))) << op << " " << i;
    }
  }
}

TEST_P(NeuralSinglesTest, EverythingElseIsTheDefinitionOfDoublesRounded) {
  for (const ImageCall& c : kCases) {
    const Matrix x = Singles(c.n, c.c * c.h * c.w, 1), of_pool = Singles(c.n, c.c * c.P() * c.Q(), 4),
                 column = Singles(c.c, 1, 5), same = Singles(c.n, c.c * c.h * c.w, 6);
    ExpectRounded("avg_pool", WithPool({x}, c));
    ExpectRounded("max_pool_backward", WithPool({x, of_pool}, c));
    ExpectRounded("avg_pool_backward", WithPool({x, of_pool}, c));
    ExpectRounded("max_pool_at", WithPool({x, same}, c));
    ExpectRounded("bias_add", {x, column});
    ExpectRounded("bias_multiply", {x, column});
    if (c.n == 0) continue;
    const Matrix positive = *Narrow(*FilledMatrix(c.c, 1, 0.3));
    ExpectRounded("batch_norm2d_backward", {x, same, column, Value(Scalar(1e-3)), column, positive});
  }
}

// A window of padding alone has the least finite number of the cells' type.
TEST_P(NeuralSinglesTest, MaximaAreThoseOfFloats) {
  const ImageCall c{2, 3, 5, 4, 3, 2, 2, 1, 1, 1, 1};
  const Matrix x = Singles(c.n, c.c * c.h * c.w, 1);
  ExpectMatrix("max_pool", WithPool({x}, c), *Narrow(MaxPool(c, *Widen(x))));
  Matrix one = *Matrix::Dense(1, 1, ElementType::kFloat32);
  one.mutable_data<float>()[0] = -7;
  Invocation outside("max_pool", WithPool({one}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}));
  EXPECT_EQ(outside.RunMatrix().data<float>()[0], std::numeric_limits<float>::lowest());
  Matrix odd = *Matrix::Dense(1, 4, ElementType::kFloat32);
  const float cells[] = {-0.0F, 0.0F, std::nanf(""), 1};
  std::copy_n(cells, 4, odd.mutable_data<float>());
  const Matrix most = Invocation("max_pool", WithPool({odd}, {1, 1, 1, 4, 1, 1, 2, 1, 2, 0, 0})).RunMatrix();
  EXPECT_FALSE(std::signbit(most.data<float>()[0]));
  EXPECT_TRUE(std::isnan(most.data<float>()[1]));
}

void ExpectSeveral(const std::string& op, const Inputs& inputs, const std::vector<Matrix>& expected) {
  for (const int threads : {1, 3}) {
    const Result<std::vector<Value>> found = Invocation(op, inputs).RunSeveralRows(0, 0, 0, threads);
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(Matrix::SameCells((*found)[i].matrix(), expected[i])) << op << ", result " << i;
  }
}

TEST_P(NeuralSinglesTest, BatchNormRoundsMomentsAndNormalizesInFloats) {
  for (const auto& [n, channels, cells] : {std::tuple{1, 1, 2}, {5, 3, 9}, {70, 4, 1}, {3, 20, 16}})
    for (const bool trains : {true, false}) {
      const Matrix x = Singles(n, channels * cells, 1), gamma = Singles(channels, 1, 2),
                   beta = Singles(channels, 1, 3), mean = Singles(channels, 1, 4),
                   variance = *Narrow(*FilledMatrix(channels, 1, 0.3));
      std::vector<Matrix> expected =
          reference::BatchNormSingles(x, {gamma, beta, mean, variance}, trains, 1e-3, 0.9);
      Inputs inputs = {x,
                       gamma,
                       beta,
                       mean,
                       variance,
                       Value(Scalar(trains ? "train" : "test")),
                       Value(Scalar(1e-3)),
                       Value(Scalar(0.9))};
      ExpectSeveral("batch_norm2d", inputs, expected);
      inputs[5] = Value(Scalar(trains));
      expected.erase(expected.begin());
      ExpectSeveral("batch_norm2d_moments", inputs, expected);
    }
}

TEST_P(NeuralSinglesTest, LstmAgreesWithItsLoops) {
  for (const auto& [n, steps, d, m] : {std::tuple{1, 1, 1, 1},
                                       {3, 4, 2, 5},
                                       {70, 3, 60, 11},
                                       {20, 2, 7, 20},
                                       {300, 3, 3, 2},
                                       {50, 11, 2, 3}})
    for (const bool sequences : {false, true}) {
      const Matrix x = Singles(n, steps * d, 1), weights = Singles(d + m, 4 * m, 2),
                   bias = Singles(1, 4 * m, 3), out0 = Singles(n, m, 4), c0 = Singles(n, m, 5),
                   of_out = Singles(n, sequences ? steps * m : m, 6), of_cell = Singles(n, m, 7);
      const reference::LstmCall call{x, weights, bias, out0, c0, sequences};
      Inputs inputs = {x, weights, bias, out0, c0, Value(Scalar(sequences))};
      const std::vector<Matrix> states = LstmSingles(call);
      ExpectSeveral("lstm", inputs, states);
      inputs.insert(inputs.end(), {of_out, of_cell});
      const std::vector<Matrix> gradients = LstmBackwardSingles(call, of_out, of_cell);
      Inputs without = inputs;
      without.resize(11);
      ExpectSeveral("lstm_backward", without, gradients);
      inputs.insert(inputs.end(), {states[2], states[3], states[4]});
      ExpectSeveral("lstm_backward", inputs, gradients);
    }
}

// In units of the largest cell. A chain of floats over all 576 or 800 terms has several times this error.
TEST_P(NeuralSinglesTest, ConvolutionsAreCloseToThoseOfDoubles) {
  const ImageCall c{8, 64, 10, 10, 12, 3, 3, 1, 1, 1, 1};
  const Matrix x = Singles(c.n, c.c * c.h * c.w, 1), filters = Singles(c.k, c.c * c.r * c.s, 2),
               gradient = Singles(c.n, c.k * c.P() * c.Q(), 3);
  const auto expect_close = [](const std::string& op, const Inputs& inputs, const Matrix& exact) {
    const Matrix found = *Widen(Invocation(op, inputs).RunMatrix());
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < exact.cells(); ++i) {
      worst = std::max(worst, std::abs(found.data()[i] - exact.data()[i]));
      largest = std::max(largest, std::abs(exact.data()[i]));
    }
    EXPECT_LT(worst, 4e-7 * largest) << op;
  };
  expect_close("conv2d", WithFilter({x, filters}, c), Conv2d(c, *Widen(x), *Widen(filters)));
  expect_close("conv2d_backward_data", WithFilter({filters, gradient}, c),
               Conv2dBackwardData(c, *Widen(filters), *Widen(gradient)));
  expect_close("conv2d_backward_filter", WithFilter({x, gradient}, c),
               Conv2dBackwardFilter(c, *Widen(x), *Widen(gradient)));
}

INSTANTIATE_TEST_SUITE_P(Kernels, NeuralSinglesTest, ::testing::Values(Cpu::kAvx2, Cpu::kAvx512),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace heddle::ops
