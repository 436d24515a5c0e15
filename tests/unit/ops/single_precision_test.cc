// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/single_precision.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "ops/catalog.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/cellwise/elementwise_codes.h"
#include "tests/reference/matmul.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Inputs;
using testing::RandomCells;
using testing::Rows;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Matrix Single(const Matrix& matrix) { return *Narrow(matrix); }

// `op` on the values given, through the catalog as the actors call it; floats in make floats out.
Result<Value> RunOn(std::string op, const std::vector<Value>& inputs, Phase phase = Phase::kWhole,
                    int threads = 2) {
  Node node{.op = std::move(op)};
  std::vector<ValueInfo> infos;
  std::vector<const Scalar*> scalars;
  std::vector<const Value*> pointers;
  int64_t rows = 0;
  for (const Value& input : inputs) {
    node.inputs.push_back(static_cast<NodeId>(node.inputs.size()));
    scalars.push_back(input.IsScalar() ? &input.scalar() : nullptr);
    pointers.push_back(&input);
    ValueInfo info = ValueInfo::OfScalar(ValueType::kDouble);
    if (input.IsMatrix()) {
      info = ValueInfo::OfMatrix(input.matrix().shape(), FormatOf(input.matrix().storage()));
      info.element_type = input.matrix().element_type();
      if (rows == 0) rows = input.matrix().rows();
    }
    infos.push_back(info);
  }
  HEDDLE_ASSIGN_OR_RETURN(node.info, Infer({.node = node, .inputs = infos, .scalars = scalars}));
  if (node.info.IsMatrix() && RowRuleOf(node, infos) != RowRule::kReduce) rows = node.info.shape.rows;
  KernelContext context;
  context.threads = threads;
  Result<Value> result = Status();
  Arena(threads).Execute([&] {
    result = CatalogKernels().Run({.node = node,
                                   .phase = phase,
                                   .inputs = pointers,
                                   .input_infos = infos,
                                   .row_begin = 0,
                                   .row_end = rows,
                                   .total_rows = rows,
                                   .context = context});
  });
  return result;
}

// The definition: the operator on doubles, each cell rounded.
void ExpectRoundedDoubles(const std::string& op, const std::vector<Value>& singles) {
  std::vector<Value> doubles;
  for (const Value& value : singles)
    doubles.push_back(value.IsMatrix() ? Value(*Widen(value.matrix())) : value);
  const Result<Value> expected = RunOn(op, doubles), result = RunOn(op, singles);
  ASSERT_TRUE(expected.ok() && result.ok())
      << op << " " << expected.status().ToString() << result.status().ToString();
  if (result->IsScalar()) {
    EXPECT_EQ(std::bit_cast<uint64_t>(result->scalar().AsDouble()),
              std::bit_cast<uint64_t>(expected->scalar().AsDouble()))
        << op;
    return;
  }
  EXPECT_EQ(result->matrix().element_type(), ElementType::kFloat32) << op;
  EXPECT_EQ(result->matrix().storage(), expected->matrix().storage()) << op;
  EXPECT_TRUE(Matrix::SameCells(*Widen(result->matrix()), *Widen(Single(expected->matrix())))) << op;
}

TEST(SinglePrecisionTest, WidenAndNarrowKeepFloatsAndRoundDoubles) {
  const Matrix x = Rows({{0.1, -0.0, 1e300}, {1e-60, std::numeric_limits<double>::quiet_NaN(), 16777217}});
  const Matrix single = Single(x);
  for (int64_t i = 0; i < x.cells(); ++i) {
    const float expected = static_cast<float>(x.data()[i]), got = single.data<float>()[i];
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(got));
    else
      EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected)) << i;
  }
  EXPECT_EQ(single.data<float>()[2], kInfinity);
  EXPECT_TRUE(Matrix::SameCells(Single(*Widen(single)), single));
}

TEST(SinglePrecisionTest, EntriesThatVanishAreDropped) {
  const Matrix x = *ToSparse(Rows({{1, 0, 1e-60}, {0, -1e-50, 3}, {0, 0, 0}, {2, 4, 1e-46}}));
  for (const Matrix& part : {x, x.Rows(1, 4)}) {
    const Matrix single = Single(part);
    EXPECT_EQ(single.stored(), single.CountNonzeros());
    ASSERT_EQ(single.shape(), part.shape());
    for (int64_t i = 0; i < part.rows(); ++i)
      for (int64_t j = 0; j < part.columns(); ++j)
        EXPECT_EQ(single.At(i, j), static_cast<double>(static_cast<float>(part.At(i, j))));
  }
  EXPECT_EQ(Single(x).stored(), 4);
  EXPECT_EQ(Single(x.Rows(1, 3)).At(0, 2), 3);
}

// Sums, differences, products, quotients and roots of doubles, rounded to floats, are those of floats.
TEST(SinglePrecisionTest, ArithmeticIsThatOfTheProcessorsFloats) {
  const Matrix a = Single(RandomCells(701, 13, 1)), b = Single(RandomCells(701, 13, 2));
  const auto expect = [&](const std::string& op, auto&& compute) {
    const Result<Value> result = op == "sqrt" ? RunOn(op, {a}) : RunOn(op, {a, b});
    ASSERT_TRUE(result.ok());
    for (int64_t i = 0; i < a.cells(); ++i) {
      const float expected = compute(a.data<float>()[i], b.data<float>()[i]),
                  got = result->matrix().data<float>()[i];
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(got));
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected)) << op << " at " << i;
    }
  };
  expect("+", [](float x, float y) { return x + y; });
  expect("-", [](float x, float y) { return x - y; });
  expect("*", [](float x, float y) { return x * y; });
  expect("/", [](float x, float y) { return x / y; });
  expect("sqrt", [](float x, float) { return std::sqrt(x); });
}

TEST(SinglePrecisionTest, CellwiseOperatorsRoundOnce) {
  const Matrix x = Single(RandomCells(300, 37, 3)), y = Single(RandomCells(300, 37, 4)),
               column = Single(RandomCells(300, 1, 5)), row = Single(RandomCells(1, 37, 6));
  for (const char* op : {"sin", "asin", "sinh", "abs", "round", "sign", "is.nan", "!"})
    ExpectRoundedDoubles(op, {x});
  for (const char* op : {"+", "/", "^", "<=", "%%", "%/%", "&", "pmin", "log"}) {
    for (const Matrix& right : {y, column, row}) ExpectRoundedDoubles(op, {x, right});
    ExpectRoundedDoubles(op, {x, Value(Scalar(0.1))});
    ExpectRoundedDoubles(op, {Value(Scalar(-1.7)), x});
  }
  ExpectRoundedDoubles("*", {column, row});
  ExpectRoundedDoubles("ifelse", {x, y, Value(Scalar(0.1))});
  const Matrix sparse = *ToSparse(x);
  ExpectRoundedDoubles("*", {sparse, y});
  ExpectRoundedDoubles("+", {sparse, *ToSparse(y)});
  ExpectRoundedDoubles("cos", {sparse});
  ExpectRoundedDoubles("sqrt", {sparse});
}

// Functions that are computed in floats: dense or CSR, their kernel on each cell.
TEST(SinglePrecisionTest, SomeFunctionsAreThoseOfFloats) {
  const Matrix x = Single(RandomCells(300, 37, 3));
  const std::pair<const char*, UnaryCode> kFunctions[] = {{"exp", UnaryCode::kSingleExponential},
                                                          {"log", UnaryCode::kSingleLogarithm},
                                                          {"tanh", UnaryCode::kSingleHyperbolicTangent},
                                                          {"sigmoid", UnaryCode::kSingleSigmoid},
                                                          {"erf", UnaryCode::kSingleErrorFunction}};
  for (const auto& [op, code] : kFunctions) {
    EXPECT_EQ(InSingles(*FindUnaryCode(op)), code) << op;
    Matrix expected = *Widen(x);
    SelectedElementwiseKernels().Of(code)(expected.data(), expected.mutable_data(), expected.cells(), false);
    for (const Matrix& form : {x, *ToSparse(x)}) {
      const Result<Value> found = RunOn(op, {form});
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      EXPECT_TRUE(Matrix::SameCells(*Widen(found->matrix()), expected)) << op;
    }
  }
}

// Large enough for several panels: 2^20 cells each.
TEST(SinglePrecisionTest, PanelsGiveTheBitsOfTheWhole) {
  const Matrix x = Single(RandomCells(70'001, 37, 7)), v = Single(RandomCells(37, 1, 8)),
               w = Single(RandomCells(70'001, 3, 9));
  for (const char* op :
       {"sum", "mean", "var", "colSums", "colMaxs", "colVars", "rowSums", "rowIndexMax", "t", "cumsum"})
    ExpectRoundedDoubles(op, {x});
  ExpectRoundedDoubles("%*%", {x, v});
  ExpectRoundedDoubles("t%*%", {x, w});
  ExpectRoundedDoubles("cbind", {x, w});
}

// The matrix with a share of its cells, as CSR.
Matrix Thinned(const Matrix& x, double share) {
  Matrix thin = *Matrix::Dense(x.rows(), x.columns());
  std::mt19937_64 random(11);
  for (int64_t i = 0; i < x.cells(); ++i)
    thin.mutable_data()[i] = static_cast<double>(random() % 1'000) < 1'000 * share ? x.data()[i] : 0.0;
  return *ToSparse(thin);
}

// Every pair of storages: few rows, one block of terms, several, a long inner dimension.
TEST(SinglePrecisionTest, ProductsAreChainsOfFloatsOverBlocks) {
  const struct {
    int64_t m, k, n;
    double share;
  } kCases[] = {{1, 700, 40, 0.3},   {3, 300, 130, 0.1}, {37, 256, 9, 0.2},
                {50, 900, 33, 0.02}, {20, 513, 17, 0.5}, {3, 70'000, 11, 0.001}};
  for (const auto& [m, k, n, share] : kCases) {
    const Matrix a = RandomCells(m, k, 1), b = RandomCells(k, n, 2);
    for (const Matrix& left : {Single(a), Single(Thinned(a, share))}) {
      for (const Matrix& right : {Single(b), Single(Thinned(b, share))}) {
        const Matrix expected = reference::MultiplySingles(left, right);
        for (const int threads : {1, 3}) {
          const Result<Value> found = RunOn("%*%", {left, right}, Phase::kWhole, threads);
          ASSERT_TRUE(found.ok()) << found.status().ToString();
          EXPECT_EQ(found->matrix().element_type(), ElementType::kFloat32);
          EXPECT_EQ(found->matrix().IsSparse(), left.IsSparse() && right.IsSparse());
          EXPECT_TRUE(Matrix::SameCells(found->matrix(), expected))
              << m << "x" << k << "x" << n << (left.IsSparse() ? ", left CSR" : "")
              << (right.IsSparse() ? ", right CSR" : "");
        }
      }
    }
  }
}

TEST(SinglePrecisionTest, TransposedProductsAreChainsOfFloatsOverBlocks) {
  const struct {
    int64_t m, n, k;
    double share;
  } kCases[] = {
      {1, 12, 9, 0.5}, {300, 3, 17, 0.1}, {900, 60, 50, 0.02}, {200, 270, 250, 0.02}, {70'001, 20, 9, 0.05}};
  for (const auto& [m, n, k, share] : kCases) {
    const Matrix a = RandomCells(m, n, 1), b = RandomCells(m, k, 2);
    for (const Matrix& left : {Single(a), Single(Thinned(a, share))}) {
      for (const Matrix& right : {Single(b), Single(Thinned(b, share)), left}) {
        if (right.columns() <= 8) continue;
        const Matrix expected = reference::TransposedMultiplySingles(left, right);
        for (const int threads : {1, 3}) {
          const Result<Value> found = RunOn("t%*%", {left, right}, Phase::kWhole, threads);
          ASSERT_TRUE(found.ok()) << found.status().ToString();
          EXPECT_TRUE(Matrix::SameCells(found->matrix(), expected))
              << m << "x" << n << " by " << k << (left.IsSparse() ? ", left CSR" : "")
              << (right.IsSparse() ? ", right CSR" : "");
        }
      }
    }
  }
}

TEST(SinglePrecisionTest, CellsAreTakenAndPutAsTheyAre) {
  const Matrix x = Single(RandomCells(50, 9, 11));
  const auto at = [](int64_t bound) { return Value(Scalar(bound)); };
  for (const Matrix& form : {x, *ToSparse(x)}) {
    const Result<Value> part = RunOn("index", {form, at(3), at(40), at(2), at(7)});
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part->matrix().element_type(), ElementType::kFloat32);
    for (int64_t i = 0; i < 38; ++i)
      for (int64_t j = 0; j < 6; ++j) EXPECT_EQ(part->matrix().At(i, j), x.At(i + 2, j + 1));
    const Result<Value> put = RunOn("indexAssign", {form, Value(Scalar(0.1)), at(5), at(6), at(2), at(3)});
    ASSERT_TRUE(put.ok());
    EXPECT_EQ(put->matrix().element_type(), ElementType::kFloat32);
    for (int64_t i = 0; i < 50; ++i)
      for (int64_t j = 0; j < 9; ++j)
        EXPECT_EQ(put->matrix().At(i, j),
                  i >= 4 && i < 6 && j >= 1 && j < 3 ? static_cast<double>(0.1F) : x.At(i, j));
  }
}

TEST(SinglePrecisionTest, WhatIsMadeOfNoMatrixHasThePrecisionOfTheProgram) {
  Node node{.op = "seq", .inputs = {0, 1}};
  const Scalar from(int64_t{1}), to(int64_t{2'100'000});
  const std::vector<const Scalar*> scalars = {&from, &to};
  const std::vector<ValueInfo> infos(2, ValueInfo::OfScalar(ValueType::kInteger));
  const InferContext infer{
      .node = node, .inputs = infos, .scalars = scalars, .element_type = ElementType::kFloat32};
  node.info = *Infer(infer);
  EXPECT_EQ(node.info.element_type, ElementType::kFloat32);
  const Value first(from), last(to);
  const std::vector<const Value*> inputs = {&first, &last};
  KernelContext context;
  const Result<Value> result = CatalogKernels().Run({.node = node,
                                                     .phase = Phase::kWhole,
                                                     .inputs = inputs,
                                                     .input_infos = infos,
                                                     .row_end = 2'100'000,
                                                     .total_rows = 2'100'000,
                                                     .context = context});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  ASSERT_EQ(result->matrix().element_type(), ElementType::kFloat32);
  for (int64_t i = 0; i < 2'100'000; ++i)
    ASSERT_EQ(result->matrix().data<float>()[i], static_cast<float>(i + 1));
}

TEST(SinglePrecisionTest, APanelThatFailsFailsTheCall) {
  const std::atomic<bool> cancelled = true;
  const Value x(Single(RandomCells(70'001, 37, 7)));
  Node node{.op = "rowSums", .inputs = {0}};
  ValueInfo info = ValueInfo::OfMatrix({70'001, 37});
  info.element_type = ElementType::kFloat32;
  const std::vector<ValueInfo> infos = {info};
  const std::vector<const Scalar*> scalars = {nullptr};
  node.info = *Infer({.node = node, .inputs = infos, .scalars = scalars});
  KernelContext context;
  context.cancelled = &cancelled;
  const Value* const input = &x;
  EXPECT_EQ(CatalogKernels()
                .Run({.node = node,
                      .phase = Phase::kWhole,
                      .inputs = {&input, 1},
                      .input_infos = infos,
                      .row_end = 70'001,
                      .total_rows = 70'001,
                      .context = context})
                .status()
                .code(),
            StatusCode::kCancelled);
}

}  // namespace
}  // namespace heddle::ops
