// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/catalog.h"
#include "tests/unit/ops/run_operator.h"

// sumTo and spreadTo, which gradient() puts around operands of other sizes.
namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;

Inputs Resized(const Matrix& g, int64_t rows, int64_t columns) {
  return {Value(g), Value(Scalar(rows)), Value(Scalar(columns))};
}

void ExpectReference(const std::string& op, const Inputs& inputs) {
  Invocation call(op, inputs);
  std::vector<const Value*> given;
  for (const auto& input : inputs) given.push_back(&*input);
  EXPECT_TRUE(Matrix::SameCells(call.RunMatrix(), reference::FindKernel(op)(call.node, given).matrix()))
      << op;
}

TEST(SumToTest, IsTheAggregateOfItsSize) {
  for (const Matrix& g : Forms(RandomCells(5, 7, 3)))
    for (const Shape shape : {Shape{5, 7}, {5, 1}, {1, 7}, {1, 1}})
      ExpectReference("sumTo", Resized(g, shape.rows, shape.columns));
  for (const Matrix& g : Forms(RandomCells(4, 1, 3)))
    for (const Shape shape : {Shape{4, 1}, {1, 1}})
      ExpectReference("sumTo", Resized(g, shape.rows, shape.columns));
}

TEST(SumToTest, RefusesOtherSizes) {
  StatusCode code;
  EXPECT_EQ(Invocation("sumTo", Resized(RandomCells(4, 3, 1), 2, 3)).Error(&code),
            "sumTo: the cells of a 2x3 matrix are not sums of a 4x3 one");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
}

TEST(SpreadToTest, RepeatsRowsColumnsAndCells) {
  for (const Shape shape : {Shape{5, 7}, {5, 1}, {1, 7}, {1, 1}})
    for (const Matrix& g : Forms(RandomCells(shape.rows, shape.columns, 3)))
      ExpectReference("spreadTo", Resized(g, 5, 7));
}

TEST(SpreadToTest, RefusesOtherSizes) {
  StatusCode code;
  EXPECT_EQ(Invocation("spreadTo", Resized(RandomCells(4, 3, 1), 8, 3)).Error(&code),
            "spreadTo: the cells of a 4x3 matrix do not repeat to 8x3");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace heddle::ops
