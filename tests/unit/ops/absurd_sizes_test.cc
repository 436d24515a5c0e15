// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/catalog.h"
#include "tests/unit/ops/run_operator.h"

// A script may ask for sizes that no machine has; that is an error of the script, never the end of the
// process.
namespace heddle::ops {
namespace {

using testing::Invocation;

Matrix Empty(int64_t rows, int64_t columns) { return *Matrix::Dense(rows, columns); }

StatusCode CodeOf(std::span<const Operator> family, const char* name, testing::Inputs inputs) {
  StatusCode code = StatusCode::kOk;
  Invocation(family, name, std::move(inputs)).Error(&code);
  return code;
}

Value Number(double x) { return Value(Scalar(x)); }

TEST(AbsurdSizesTest, ResultsOfEmptyMatricesAreChargedToTheBudget) {
  const Matrix wide = Empty(0, int64_t{10'000'000'000'000});
  EXPECT_EQ(CodeOf(AggregateOperators(), "colSums", {Value(wide)}), StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(AggregateOperators(), "colMaxs", {Value(wide)}), StatusCode::kResourceExhausted);
  const Matrix x = Empty(0, 10'000'000);
  EXPECT_EQ(CodeOf(MatmulOperators(), "t%*%", {Value(x), Value(x)}), StatusCode::kResourceExhausted);
  const Matrix row = Empty(1, 10'000'000);
  EXPECT_EQ(CodeOf(MatmulOperators(), "t%*%", {Value(row), Value(row)}), StatusCode::kResourceExhausted);
}

TEST(AbsurdSizesTest, EmptyMatricesOfAnyWidthAccumulate) {
  EXPECT_EQ(Invocation(CumulativeOperators(), "cumsum", {Value(Empty(0, int64_t{10'000'000'000'000}))})
                .RunMatrix()
                .rows(),
            0);
}

TEST(AbsurdSizesTest, RandomMatricesAreRefusedBeforeTheirSeedsAreDrawn) {
  EXPECT_EQ(CodeOf(GenerateOperators(), "rand", {Number(1e15), Number(1)}), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      CodeOf(GenerateOperators(), "rand", {Number(1e13), Number(2), Number(0), Number(1), Number(1e-9)}),
      StatusCode::kResourceExhausted);
}

TEST(AbsurdSizesTest, ScratchMemoryThatIsNotThereIsAnError) {
  const Value x(Empty(int64_t{1} << 60, 0));
  Node node;
  node.op = "rev";
  node.inputs = {0};
  node.info = ValueInfo::OfMatrix(x.matrix().shape());
  KernelContext context;
  const Value* inputs[] = {&x};
  const ValueInfo infos[] = {node.info};
  const Result<Value> result = CatalogKernels().Run(
      {.node = node, .phase = Phase::kWhole, .inputs = inputs, .input_infos = infos, .context = context});
  EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(result.status().message().starts_with("out of memory: working memory of "))
      << result.status().message();
  EXPECT_NE(result.status().message().find(" for 'rev' does not fit: "), std::string::npos);
}

}  // namespace
}  // namespace heddle::ops
