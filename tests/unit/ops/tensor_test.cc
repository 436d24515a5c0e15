// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/base/operator.h"

// What tensors are made of: a value and dimensions.
namespace heddle::ops {
namespace {

// On scalars, and by the kernel; both say the same.
std::string On(const std::string& name, const std::vector<Value>& inputs) {
  const Operator& op = *FindOperator(name);
  Node node;
  node.op = name;
  std::vector<const Scalar*> scalars;
  std::vector<const Value*> values;
  for (const Value& input : inputs) {
    scalars.push_back(input.IsScalar() ? &input.scalar() : nullptr);
    values.push_back(&input);
  }
  KernelContext context;
  const Result<Value> run =
      op.run({.node = node, .phase = Phase::kWhole, .inputs = values, .context = context});
  const std::string said = run.ok() ? run->scalar().ToText() : run.status().message();
  if (inputs[0].IsScalar()) {
    const Result<Scalar> evaluated = op.evaluate(op, node, scalars);
    EXPECT_EQ(evaluated.ok() ? evaluated->ToText() : evaluated.status().message(), said);
  }
  return said;
}

Value Text(const char* text) { return Value(Scalar(text)); }

Value Numbers(int64_t rows, int64_t columns, const std::vector<double>& cells) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  std::copy(cells.begin(), cells.end(), matrix.mutable_data());
  return Value(std::move(matrix));
}

TEST(TensorTest, DimensionsAreATextOrAVector) {
  EXPECT_EQ(On("tensorDims", {Text("2  3\t4 ")}), "2 3 4");
  EXPECT_EQ(On("tensorDims", {Text("2.9 1e1")}), "2 10");
  EXPECT_EQ(On("tensorDims", {Numbers(1, 3, {2, 3, 4})}), "2 3 4");
  EXPECT_EQ(On("tensorDims", {Numbers(2, 1, {5, 1})}), "5 1");
  EXPECT_EQ(On("tensorCells", {Text("2 3 4")}), "24");
}

TEST(TensorTest, OtherDimensionsAreRefused) {
  EXPECT_EQ(On("tensorDims", {Text("4")}), "tensor: dims must be two numbers or more, there are 1");
  EXPECT_EQ(On("tensorDims", {Text("")}), "tensor: dims must be two numbers or more, there are 0");
  EXPECT_EQ(On("tensorDims", {Text("2 x 2")}),
            "tensor: a dimension must be a whole number from 1 on, not 'x'");
  EXPECT_EQ(On("tensorDims", {Numbers(1, 2, {2, 0})}),
            "tensor: a dimension must be a whole number from 1 on, not 0");
  EXPECT_EQ(On("tensorDims", {Numbers(2, 2, {2, 1, 1, 1})}),
            "tensor: dims must be a row or a column of numbers, not 2x2");
  EXPECT_EQ(On("tensorDims", {Text("4294967296 4294967296")}),
            "tensor: there are more cells than can be counted");
}

TEST(TensorTest, TheSecondOfTwoMayHaveOneWhereTheFirstHasMore) {
  EXPECT_EQ(On("tensorDims", {Text("2 3 4"), Text("2 1 4")}), "2 3 4");
  EXPECT_EQ(On("tensorDims", {Text("2 3 4"), Text("1 1 1")}), "2 3 4");
  EXPECT_EQ(On("tensorDims", {Text("2 1 4"), Text("2 3 4")}),
            "a tensor of 2 x 3 x 4 goes into none of 2 x 1 x 4 cell by cell");
  EXPECT_EQ(On("tensorDims", {Text("2 3"), Text("2 3 1")}),
            "a tensor of 2 x 3 x 1 goes into none of 2 x 3 cell by cell");
}

TEST(TensorTest, TextsHaveABracketForEachIndex) {
  const Value three(Scalar(int64_t{3}));
  EXPECT_EQ(On("tensorText", {Value(Scalar(7)), Text("2 3 1"), three}),
            "[[[7]\n  [7]\n  [7]]\n [[7]\n  [7]\n  [7]]]\n");
  EXPECT_EQ(On("tensorText", {Value(Scalar(0.5)), Text("1 2"), three}), "[[0.500 0.500]]\n");
  EXPECT_EQ(On("tensorText", {Value(Scalar(0.26)), Text("2 1"), Value(Scalar(1))}), "[[0.3]\n [0.3]]\n");
  EXPECT_EQ(On("tensorText", {Text("a"), Text("1 2"), three}), "[[\"a\" \"a\"]]\n");
  EXPECT_EQ(On("tensorText", {Value(Scalar(true)), Text("1 1"), three}), "[[TRUE]]\n");
}

}  // namespace
}  // namespace heddle::ops
