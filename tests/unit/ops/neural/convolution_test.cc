// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <limits>

#include "tests/reference/catalog.h"
#include "tests/unit/ops/run_phases.h"

// conv2d, pooling and biases, and their gradients.
namespace heddle::ops {
namespace {

using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLowest = std::numeric_limits<double>::lowest();

struct Case {
  int64_t n, c, h, w, k, r, s, stride_h, stride_w, pad_h, pad_w;
  int64_t P() const { return (h + 2 * pad_h - r) / stride_h + 1; }
  int64_t Q() const { return (w + 2 * pad_w - s) / stride_w + 1; }
};
// Squares and not, strides that leave cells over, padding wider than the window, one cell, many channels.
constexpr Case kCases[] = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},   {3, 2, 5, 5, 4, 3, 3, 1, 1, 1, 1},
                           {2, 3, 7, 4, 2, 2, 3, 2, 1, 0, 1},   {9, 1, 6, 9, 3, 5, 2, 3, 4, 2, 0},
                           {2, 2, 3, 3, 2, 2, 2, 1, 1, 3, 4},   {17, 5, 8, 8, 9, 3, 3, 2, 2, 1, 1},
                           {4, 40, 3, 2, 70, 1, 1, 1, 1, 0, 0}, {0, 2, 4, 4, 3, 2, 2, 1, 1, 0, 0}};

Value Integer(int64_t x) { return Value(Scalar(x)); }

Inputs With(Inputs matrices, const std::vector<int64_t>& numbers) {
  for (const int64_t number : numbers) matrices.emplace_back(Integer(number));
  return matrices;
}
std::vector<int64_t> FilterNumbers(const Case& c) {
  return {c.n, c.c, c.h, c.w, c.k, c.c, c.r, c.s, c.stride_h, c.stride_w, c.pad_h, c.pad_w};
}
std::vector<int64_t> PoolNumbers(const Case& c) {
  return {c.n, c.c, c.h, c.w, c.r, c.s, c.stride_h, c.stride_w, c.pad_h, c.pad_w};
}

Matrix Images(const Case& c) { return RandomCells(c.n, c.c * c.h * c.w, 1); }
Matrix Filters(const Case& c) { return RandomCells(c.k, c.c * c.r * c.s, 2); }
Matrix OfConvolution(const Case& c) { return RandomCells(c.n, c.k * c.P() * c.Q(), 3); }
Matrix OfPool(const Case& c) { return RandomCells(c.n, c.c * c.P() * c.Q(), 4); }

// The operators with the inputs of a case; matrices are given in that storage.
struct Call {
  std::string op;
  Inputs inputs;
};
std::vector<Call> CallsOf(const Case& c, const std::function<Matrix(const Matrix&)>& stored) {
  const Matrix x = stored(Images(c)), filters = stored(Filters(c));
  const Matrix of_convolution = stored(OfConvolution(c)), of_pool = stored(OfPool(c));
  return {{"conv2d", With({x, filters}, FilterNumbers(c))},
          {"conv2d_backward_data", With({filters, of_convolution}, FilterNumbers(c))},
          {"conv2d_backward_filter", With({x, of_convolution}, FilterNumbers(c))},
          {"max_pool", With({x}, PoolNumbers(c))},
          {"avg_pool", With({x}, PoolNumbers(c))},
          {"max_pool_backward", With({x, of_pool}, PoolNumbers(c))},
          {"max_pool_at", With({x, stored(RandomCells(c.n, c.c * c.h * c.w, 6))}, PoolNumbers(c))},
          {"avg_pool_backward", With({x, of_pool}, PoolNumbers(c))},
          {"bias_add", {x, RandomCells(c.c, 1, 5, 1)}},
          {"bias_multiply", {x, RandomCells(c.c, 1, 5, 1)}}};
}

Matrix ReferenceOf(Invocation& call) {
  std::vector<const Value*> given;
  for (const auto& input : call.inputs) given.push_back(&*input);
  return reference::FindKernel(call.node.op)(call.node, given).matrix();
}

TEST(ConvolutionTest, KernelsAgreeWithTheirReferencesBitByBit) {
  for (const Case& c : kCases)
    for (const auto& stored :
         {+[](const Matrix& x) { return x; }, +[](const Matrix& x) { return *ToSparse(x); }})
      for (Call& one : CallsOf(c, stored)) {
        SCOPED_TRACE(::testing::Message() << one.op << " " << ::testing::PrintToString(FilterNumbers(c)));
        Invocation call(one.op, one.inputs);
        const Matrix expected = ReferenceOf(call);
        EXPECT_TRUE(Matrix::SameCells(call.RunMatrix(1), expected));
        EXPECT_TRUE(Matrix::SameCells(call.RunMatrix(3), expected));
      }
}

// More windows than one task unfolds, more filters than a tile has, windows that overlap by more than a
// stride: cuts change nothing.
TEST(ConvolutionTest, TilesDoNotChangeBits) {
  for (const Case& c : {Case{1, 60, 40, 13, 260, 3, 3, 1, 1, 1, 1}, Case{3, 3, 60, 64, 5, 7, 7, 2, 2, 3, 3},
                        Case{2, 2, 90, 50, 3, 5, 4, 3, 1, 2, 1}}) {
    for (Call& one : CallsOf(c, [](const Matrix& x) { return x; })) {
      if (!one.op.starts_with("conv2d")) continue;
      SCOPED_TRACE(one.op);
      Invocation call(one.op, one.inputs);
      const Matrix result = call.RunMatrix(4);
      Invocation small(one.op, one.inputs);
      EXPECT_TRUE(Matrix::SameCells(small.RunMatrix(1), result));
      EXPECT_TRUE(Matrix::SameCells(ReferenceOf(call), result));
    }
  }
}

TEST(ConvolutionTest, RowsAreComputedAlikeInEveryPiece) {
  const Case many{500, 2, 4, 5, 3, 2, 2, 1, 2, 1, 0};
  for (Call& one : CallsOf(many, [](const Matrix& x) { return x; })) {
    if (one.op == "conv2d_backward_filter") continue;
    SCOPED_TRACE(one.op);
    Invocation(one.op, one.inputs).ExpectPiecesMatch(3);
  }
}

TEST(ConvolutionTest, TheGradientOfFiltersIsAReduction) {
  for (const int64_t n : {7, 64, 65, 500, 1000}) {
    const Case c{n, 2, 4, 3, 3, 2, 2, 1, 1, 0, 1};
    Invocation call("conv2d_backward_filter", With({Images(c), OfConvolution(c)}, FilterNumbers(c)));
    const Matrix expected = ReferenceOf(call);
    EXPECT_TRUE(Matrix::SameCells(call.RunMatrix(2), expected)) << n;
    for (const int workers : {1, 2, 3, 5})
      EXPECT_TRUE(Matrix::SameCells(testing::RunPhases(call, n, workers).matrix(), expected)) << n;
  }
}

TEST(ConvolutionTest, CorrelatesWithoutTurningTheFilter) {
  const Matrix x = Rows({{1, 2, 3, 4, 5, 6, 7, 8, 9}}), filter = Rows({{1, 0, 0, 10}});
  const Inputs call = With({x, filter}, {1, 1, 3, 3, 1, 1, 2, 2, 1, 1, 0, 0});
  EXPECT_TRUE(Matrix::SameCells(Invocation("conv2d", call).RunMatrix(), Rows({{51, 62, 84, 95}})));
}

TEST(PoolingTest, PaddingNeverWinsAndStillCountsForTheMean) {
  const Matrix x = Rows({{-1, -2, -3, -4}});
  const Inputs call = With({x}, {1, 1, 2, 2, 2, 2, 2, 2, 1, 1});
  EXPECT_TRUE(Matrix::SameCells(Invocation("max_pool", call).RunMatrix(), Rows({{-1, -2, -3, -4}})));
  EXPECT_TRUE(Matrix::SameCells(Invocation("avg_pool", call).RunMatrix(), Rows({{-0.25, -0.5, -0.75, -1}})));
  const Inputs outside = With({Rows({{-7}})}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 1});
  EXPECT_TRUE(Matrix::SameCells(Invocation("max_pool", outside).RunMatrix(), Rows({{kLowest, -7, kLowest}})));
}

TEST(PoolingTest, NaNIsALargestCellThatGetsNoGradient) {
  const Matrix x = Rows({{1, kNaN, 2, 0}});
  const std::vector<int64_t> numbers = {1, 1, 2, 2, 2, 2, 1, 1, 0, 0};
  EXPECT_TRUE(Matrix::SameCells(Invocation("max_pool", With({x}, numbers)).RunMatrix(), Rows({{kNaN}})));
  EXPECT_TRUE(Matrix::SameCells(Invocation("max_pool_backward", With({x, Rows({{5}})}, numbers)).RunMatrix(),
                                Rows({{0, 0, 5, 0}})));
}

TEST(PoolingTest, CellsAtMaximaAreThoseThatGetTheGradient) {
  const Matrix x = Rows({{3, 3, kNaN, 1}}), y = Rows({{5, 6, 7, 8}});
  const std::vector<int64_t> numbers = {1, 1, 2, 2, 1, 1, 1, 1, 0, 0}, all = {1, 1, 2, 2, 2, 2, 1, 1, 0, 0};
  EXPECT_TRUE(
      Matrix::SameCells(Invocation("max_pool_at", With({x, y}, numbers)).RunMatrix(), Rows({{5, 6, 0, 8}})));
  EXPECT_TRUE(Matrix::SameCells(Invocation("max_pool_at", With({x, y}, all)).RunMatrix(), Rows({{5}})));
}

TEST(PoolingTest, TheFirstOfEqualCellsGetsTheGradient) {
  const Matrix x = Rows({{3, 3, 3, 3}});
  EXPECT_TRUE(Matrix::SameCells(
      Invocation("max_pool_backward", With({x, Rows({{5}})}, {1, 1, 2, 2, 2, 2, 1, 1, 0, 0})).RunMatrix(),
      Rows({{5, 0, 0, 0}})));
}

TEST(ConvolutionTest, SizesAreKnownAsSoonAsTheNumbersAre) {
  const Case c = kCases[1];
  for (Call& one : CallsOf(c, [](const Matrix& x) { return x; })) {
    if (one.op.starts_with("bias")) continue;
    SCOPED_TRACE(one.op);
    const Invocation call(one.op, one.inputs);
    EXPECT_TRUE(call.Infer()->shape.IsKnown());
    EXPECT_EQ(call.Infer()->format, Format::kDense);
    EXPECT_FALSE(call.InferBlind()->shape.IsKnown());
  }
}

std::string ErrorOf(const std::string& op, const Inputs& inputs) {
  StatusCode code, at_run;
  const std::string message = Invocation(op, inputs).Error(&code);
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  Invocation late(op, inputs);
  EXPECT_EQ(late.RunTimeError(&at_run), message);
  EXPECT_EQ(at_run, StatusCode::kFailedPrecondition);
  return message;
}

TEST(ConvolutionTest, ErrorsNameTheNumber) {
  const Matrix x = RandomCells(2, 8, 1), filter = RandomCells(3, 8, 1);
  EXPECT_EQ(ErrorOf("conv2d", With({x, filter}, {2, 2, 2, 2, 3, 1, 2, 2, 1, 1, 0, 0})),
            "conv2d: filters have 1 channels, images 2");
  EXPECT_EQ(ErrorOf("conv2d", With({x, filter}, {2, 2, 2, 2, 3, 2, 2, 2, 0, 1, 0, 0})),
            "conv2d: stride[1] must be at least 1, not 0");
  EXPECT_EQ(ErrorOf("conv2d", With({x, filter}, {2, 2, 2, 2, 3, 2, 4, 2, 1, 1, 0, 0})),
            "conv2d: a window of 4 rows does not fit into images of 2 with their padding");
  EXPECT_EQ(ErrorOf("conv2d", With({x, filter}, {2, 2, 2, 2, 3, 2, 2, 4, 1, 1, 0, 0})),
            "conv2d: a window of 4 columns does not fit into images of 2 with their padding");
  EXPECT_EQ(ErrorOf("max_pool", With({x}, {2, 1, 2, 2, 2, 2, 1, 1, 0, 0})),
            "max_pool: X is 2x8 but must be 2x4");
}

TEST(ConvolutionTest, ErrorsOfShapesNameTheMatrix) {
  const Matrix x = RandomCells(2, 8, 1), filter = RandomCells(3, 8, 1);
  const auto error = [](const std::string& op, const Inputs& inputs) {
    return Invocation(op, inputs).Error();
  };
  const std::vector<int64_t> numbers = {2, 2, 2, 2, 3, 2, 2, 2, 1, 1, 0, 0};
  EXPECT_EQ(error("conv2d", With({x, x}, numbers)), "conv2d: W is 2x8 but must be 3x8");
  EXPECT_EQ(error("conv2d_backward_data", With({filter, x}, numbers)),
            "conv2d_backward_data: dout is 2x8 but must be 2x3");
  EXPECT_EQ(error("conv2d_backward_filter", With({x, x}, numbers)),
            "conv2d_backward_filter: dout is 2x8 but must be 2x3");
  EXPECT_EQ(error("avg_pool_backward", With({x, x}, {2, 2, 2, 2, 2, 2, 1, 1, 0, 0})),
            "avg_pool_backward: dout is 2x8 but must be 2x2");
  EXPECT_EQ(error("bias_add", {x, RandomCells(3, 1, 1)}),
            "bias_add: 8 columns cannot be divided among 3 channels");
  EXPECT_EQ(error("bias_multiply", {x, RandomCells(2, 2, 1)}),
            "bias_multiply: the second argument must be a column, not 2x2");
}

}  // namespace
}  // namespace heddle::ops
