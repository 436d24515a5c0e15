// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/fourier.h"

#include <cmath>
#include <random>

#include "ops/spectrum/fourier_plan.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;
using Complex = std::complex<double>;

std::vector<Complex> RandomNumbers(int64_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::vector<Complex> x(static_cast<size_t>(n));
  for (Complex& cell : x)
    cell = {static_cast<double>(random()) * 0x1p-32 - 0.5, static_cast<double>(random()) * 0x1p-32 - 0.5};
  return x;
}

double Norm(const std::vector<Complex>& x) {
  double sum = 0;
  for (const Complex& cell : x) sum += std::norm(cell);
  return std::sqrt(sum);
}

// Powers of two, small primes and their products, primes and products for Bluestein's way.
TEST(FourierPlanTest, IsWithinItsErrorOfTheDefinition) {
  for (const int64_t n : {1,  2,  3,   4,   5,   7,   8,   11,  12,  13,  16,  17,  19,  24,   30,   34,  64,
                          77, 97, 100, 128, 143, 210, 243, 251, 256, 360, 509, 512, 625, 1001, 1021, 1024}) {
    const std::vector<Complex> x = RandomNumbers(n);
    for (const bool inverse : {false, true}) {
      std::vector<double> re, im;
      for (const Complex& cell : x) {
        re.push_back(cell.real());
        im.push_back(cell.imag());
      }
      FourierPlan::Workspace workspace;
      FourierPlan(n).Transform(re.data(), im.data(), inverse, &workspace);
      const std::vector<Complex> expected = reference::Fourier(x, inverse);
      std::vector<Complex> error;
      for (size_t k = 0; k < x.size(); ++k) error.push_back(Complex(re[k], im[k]) - expected[k]);
      EXPECT_LE(Norm(error), 2e-16 * (2 + std::log2(static_cast<double>(n))) * Norm(expected) * 4)
          << n << " " << inverse;
    }
  }
}

Invocation Call(std::string name, Inputs inputs) { return Invocation(std::move(name), std::move(inputs)); }
std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }

std::vector<Matrix> Parts(Invocation call, int threads = 1) {
  const Result<std::vector<Value>> results = call.RunSeveralRows(0, 0, 0, threads);
  EXPECT_TRUE(results.ok()) << results.status().ToString();
  if (!results.ok()) return {Matrix(), Matrix()};
  return {(*results)[0].matrix(), (*results)[1].matrix()};
}

void ExpectNear(const Matrix& x, const Matrix& expected) {
  ASSERT_EQ(x.shape(), expected.shape());
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j) EXPECT_NEAR(x.At(i, j), expected.At(i, j), 1e-9);
}

// The numbers that SystemDS 3.4 prints.
TEST(FourierOperatorsTest, TransformWhatSystemdsTransforms) {
  const Matrix y = Rows({{1, 2, 3, 4}, {5, 6, 7, 9}, {2, 4, 1, 0}, {1, 1, 5, 3}});
  for (const Matrix& form : Forms(y)) {
    const std::vector<Matrix> both = Parts(Call("fft", {form}), 2);
    ExpectNear(both[0], Rows({{54, -7, -4, -7}, {3, -2, -1, -4}, {-20, 5, -2, 5}, {3, -4, -1, -2}}));
    ExpectNear(both[1], Rows({{0, 3, 0, -3}, {-17, 4, 5, -8}, {0, -7, 0, 7}, {17, 8, -5, -4}}));
    const std::vector<Matrix> rows = Parts(Call("fft_linearized", {form}), 2);
    ExpectNear(rows[0], Rows({{10, -2, -2, -2}, {27, -2, -3, -2}, {7, 1, -1, 1}, {10, -4, 2, -4}}));
    ExpectNear(rows[1], Rows({{0, 2, 0, -2}, {0, 3, 0, -3}, {0, -4, 0, 4}, {0, 2, 0, -2}}));
  }
  const std::vector<Matrix> row = Parts(Call("fft", {Rows({{1, 2, 3, 4, 5, 6, 7, 9}})}));
  ExpectNear(row[0], Rows({{37, -3.2928932188, -4, -4.7071067812, -5, -4.7071067812, -4, -3.2928932188}}));
  ExpectNear(row[1], Rows({{0, 10.3639610307, 5, 2.3639610307, 0, -2.3639610307, -5, -10.3639610307}}));
}

TEST(FourierOperatorsTest, InversesUndoForAnyShape) {
  const Matrix zero = Rows({{0}});
  for (const Shape& shape : {Shape{1, 1}, {1, 9}, {9, 1}, {5, 6}, {17, 34}, {64, 3}}) {
    const Matrix x = RandomCells(shape.rows, shape.columns, 3);
    for (const std::string kind : {"", "_linearized"}) {
      const std::vector<Matrix> there = Parts(Call("fft" + kind, {x}));
      const std::vector<Matrix> back = Parts(Call("ifft" + kind, {there[0], Value(there[1])}), 2);
      ExpectNear(back[0], x);
      ExpectNear(back[1], *FilledMatrix(shape.rows, shape.columns, 0));
      ExpectNear(Parts(Call("ifft" + kind, {x, std::nullopt}))[0],
                 Parts(Call("ifft" + kind, {x, Value(*FilledMatrix(shape.rows, shape.columns, 0))}))[0]);
    }
  }
  EXPECT_EQ(Parts(Call("fft", {Matrix()}))[0].shape(), (Shape{0, 0}));
}

TEST(FourierOperatorsTest, WindowsOverlapAndTheLastIsFilledUp) {
  const Matrix x = Rows({{1, 2, 3, 4, 5}, {5, 4, 3, 2, 1}}), im = Rows({{0, 1, 0, 1, 0}, {1, 1, 1, 1, 1}});
  const std::vector<Matrix> result = Parts(Call("stft", {x, Value(im), S(3), S(1)}));
  ASSERT_EQ(result[0].shape(), (Shape{2, 6}));
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t window = 0; window < 2; ++window) {
      std::vector<Complex> cells;
      for (int64_t k = 0; k < 3; ++k)
        cells.emplace_back(x.At(row, 2 * window + k), im.At(row, 2 * window + k));
      const std::vector<Complex> expected = reference::Fourier(cells, false);
      for (int64_t k = 0; k < 3; ++k) {
        EXPECT_NEAR(result[0].At(row, 3 * window + k), expected[static_cast<size_t>(k)].real(), 1e-14);
        EXPECT_NEAR(result[1].At(row, 3 * window + k), expected[static_cast<size_t>(k)].imag(), 1e-14);
      }
    }
  }
  // 5 columns in windows of 4 that begin every 3: two, the last with two cells and two zeros.
  ExpectNear(Parts(Call("stft", {x, S(4), S(1), std::nullopt}))[0],
             Rows({{10, -2, -2, -2, 9, 4, -1, 4}, {14, 2, 2, 2, 3, 2, 1, 2}}));
  EXPECT_EQ(Parts(Call("stft", {x, S(7), S(5), std::nullopt}))[0].shape(), (Shape{2, 0}));
}

TEST(FourierOperatorsTest, RowsCanBeDivided) {
  const Matrix x = RandomCells(300, 6, 4);
  Call("fft_linearized", {x}).ExpectPiecesMatch(3);
  Call("stft", {x, S(3), S(1), std::nullopt}).ExpectPiecesMatch(2);
}

TEST(FourierOperatorsTest, ErrorsNameTheShapes) {
  EXPECT_EQ(Call("ifft", {Rows({{1, 2}}), Value(Rows({{1}}))}).Error(),
            "ifft: the real part is 1x2 but the imaginary part is 1x1");
  EXPECT_EQ(Call("stft", {Rows({{1, 2}}), S(2), S(2), std::nullopt}).Error(),
            "stft: the overlap of windows, 2, must be less than their size, 2");
  EXPECT_EQ(Call("stft", {Rows({{1, 2}}), S(-2), S(2), std::nullopt}).Error(),
            "stft: window must be a number that is not negative, not -2");
  EXPECT_EQ(Call("fft", {S(1)}).Error(), "fft: argument 1 must be a matrix, not a scalar");
}

}  // namespace
}  // namespace heddle::ops
