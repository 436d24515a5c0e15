// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/elementwise.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "core/values/value.h"
#include "ops/base/cpu.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/catalog.h"
#include "ops/elementwise/elementwise_sparse.h"

namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const Operator& Find(std::string_view name) {
  const Operator* op = FindOperator(name);
  HEDDLE_CHECK(op != nullptr, "tests name operators of the catalog");
  return *op;
}

// Operands that share their form: the tests name them by position.
struct Argument {
  Value value;
  ValueInfo info;
};

Argument Of(Scalar scalar) { return {Value(scalar), ValueInfo::OfScalar(scalar.type())}; }
Argument Of(const Matrix& matrix) {
  return {Value(matrix), ValueInfo::OfMatrix(matrix.shape(), heddle::FormatOf(matrix.storage()))};
}

Matrix MakeMatrix(int64_t rows, int64_t columns, const std::vector<double>& cells) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  std::copy(cells.begin(), cells.end(), matrix.mutable_data());
  return matrix;
}

// Numbers with all the awkward ones among them; `zeros` of ten are 0.
Matrix RandomMatrix(int64_t rows, int64_t columns, uint32_t seed, int zeros, Format format) {
  static constexpr double kSpecial[] = {
      kNaN, kInfinity, -kInfinity,          -0.0,      4.9e-324, -2.5, 0.5, 1, -1, 2, 1e308, 1e-310,
      3,    64,        0.49999999999999994, 0x1p52 + 1};
  std::mt19937 random(seed);
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    double x = std::uniform_real_distribution<double>(-4, 4)(random);
    if (random() % 8 == 0) x = kSpecial[random() % std::size(kSpecial)];
    if (static_cast<int>(random() % 10) < zeros) x = 0;
    matrix.mutable_data()[i] = x;
  }
  return format == Format::kSparse ? *ToSparse(matrix) : matrix;
}

// Infers and runs; the result has the inferred shape and format.
Result<Value> RunOperator(std::string_view name, const std::vector<Argument>& arguments,
                          ValueInfo* info = nullptr) {
  const Operator& op = Find(name);
  Node node;
  node.op = name;
  std::vector<ValueInfo> infos;
  std::vector<const Value*> inputs;
  std::vector<const Scalar*> scalars;
  for (const Argument& argument : arguments) {
    infos.push_back(argument.info);
    inputs.push_back(&argument.value);
    scalars.push_back(argument.value.IsScalar() ? &argument.value.scalar() : nullptr);
  }
  Result<ValueInfo> inferred = op.infer({node, infos, scalars});
  if (!inferred.ok()) return inferred.status();
  node.info = *inferred;
  if (info != nullptr) *info = *inferred;
  KernelContext context;
  return op.run({node, Phase::kWhole, inputs, infos, 0, node.info.shape.rows, node.info.shape.rows, context});
}

void ExpectCells(const Result<Value>& got, const ValueInfo& info, const Matrix& expected,
                 const std::string& what) {
  ASSERT_TRUE(got.ok()) << what << ": " << got.status().message();
  ASSERT_EQ(got->matrix().shape(), info.shape) << what;
  ASSERT_EQ(got->matrix().shape(), expected.shape()) << what;
  ASSERT_EQ(heddle::FormatOf(got->matrix().storage()), info.format) << what;
  if (got->matrix().IsSparse()) {
    const Matrix& sparse = got->matrix();
    ASSERT_EQ(sparse.CountNonzeros(), sparse.stored()) << what << ": explicit zeros";
  }
  ASSERT_TRUE(Matrix::SameCells(got->matrix(), expected)) << what;
}

// The cell-wise operators of the catalog.
template <typename Has>
std::vector<std::string> NamesOfThoseThat(const Has& has) {
  std::vector<std::string> names;
  for (const Operator* op : AllOperators())
    if (has(*op)) names.emplace_back(op->name);
  return names;
}
const std::vector<std::string> kBinaryNames =
    NamesOfThoseThat([](const Operator& op) { return op.binary.has_value(); });
const std::vector<std::string> kUnaryNames =
    NamesOfThoseThat([](const Operator& op) { return op.unary.has_value(); });

// Every test runs with each copy of the kernels that the machine has, on one and two threads.
class ElementwiseTest : public testing::TestWithParam<std::tuple<Cpu, int>> {
 protected:
  void SetUp() override {
    // The other copy of the kernels can only run where the CPU has its instructions.
    if (!IsSupported(std::get<0>(GetParam())))
      GTEST_SKIP() << "this machine cannot run " << Name(std::get<0>(GetParam()));
    ASSERT_TRUE(ForceCpu(std::get<0>(GetParam())).ok());
    arena_ = std::make_unique<Arena>(std::get<1>(GetParam()));
  }
  void TearDown() override { ASSERT_TRUE(ForceCpu("auto").ok()); }

  void CheckBinary(const std::string& op, const Argument& a, const Argument& b) {
    const std::string what = fmt::format("{} {}{} {} {}{}", a.info.shape, Name(a.info.format)[0], op, "on",
                                         b.info.shape, Name(b.info.format)[0]);
    Result<Value> got(OkStatus());
    ValueInfo info;
    arena_->Execute([&] { got = RunOperator(op, {a, b}, &info); });
    ExpectCells(got, info, reference::Binary(op, a.value, b.value), what);
  }

  std::unique_ptr<Arena> arena_;
};

TEST_P(ElementwiseTest, BinaryOperatorsOnEveryShapeAndFormat) {
  struct Shapes {
    Shape a, b;
  };
  const Shapes shapes[] = {
      {{1, 1}, {1, 1}},   {{7, 5}, {7, 5}},         {{1, 9}, {1, 9}},   {{9, 1}, {9, 1}},
      {{16, 8}, {16, 8}}, {{33, 257}, {33, 257}},   {{7, 5}, {7, 1}},   {{7, 5}, {1, 5}},
      {{300, 3}, {1, 3}}, {{300, 3}, {300, 1}},     {{5, 300}, {5, 1}}, {{5, 300}, {1, 300}},
      {{6, 1}, {1, 4}},   {{6, 1}, {1, 1}},         {{1, 6}, {1, 1}},   {{1, 1}, {1, 6}},
      {{6, 1}, {1, 261}}, {{2, 17000}, {1, 17000}}, {{0, 4}, {0, 4}},   {{0, 4}, {1, 4}},
      {{4, 0}, {4, 0}},   {{0, 1}, {1, 3}},         {{8, 1}, {8, 1}},   {{0, 4}, {0, 1}}};
  uint32_t seed = 1;
  for (const Shapes& shape : shapes) {
    for (Format left : {Format::kDense, Format::kSparse}) {
      for (Format right : {Format::kDense, Format::kSparse}) {
        const Argument a =
            Of(RandomMatrix(shape.a.rows, shape.a.columns, ++seed, left == Format::kSparse ? 7 : 1, left));
        const Argument b =
            Of(RandomMatrix(shape.b.rows, shape.b.columns, ++seed, right == Format::kSparse ? 7 : 1, right));
        for (const std::string& op : kBinaryNames) CheckBinary(op, a, b);
      }
    }
  }
}

TEST_P(ElementwiseTest, DividingByAMatrixWithoutZerosKeepsThePattern) {
  const Matrix x = RandomMatrix(40, 30, 5, 8, Format::kSparse);
  Matrix y = *Matrix::Dense(40, 30);
  for (int64_t i = 0; i < y.cells(); ++i) y.mutable_data()[i] = static_cast<double>(i % 17) - 20;
  CheckBinary("/", Of(x), Of(y));
  CheckBinary("/", Of(x), Of(y.Rows(3, 4)));
  CheckBinary("/", Of(x), Of(MakeMatrix(40, 1, std::vector<double>(40, -3))));
}

TEST_P(ElementwiseTest, BinaryOperatorsWithScalars) {
  uint32_t seed = 100;
  for (Format format : {Format::kDense, Format::kSparse}) {
    for (Shape shape : {Shape{1, 1}, Shape{13, 7}, Shape{1, 31}, Shape{0, 3}, Shape{64, 40}}) {
      const Argument x =
          Of(RandomMatrix(shape.rows, shape.columns, ++seed, format == Format::kSparse ? 7 : 1, format));
      for (const Scalar& scalar : {Scalar(0.0), Scalar(-0.0), Scalar(2.0), Scalar(-1.5), Scalar(kNaN),
                                   Scalar(kInfinity), Scalar(3), Scalar(true)}) {
        for (const std::string& op : kBinaryNames) {
          CheckBinary(op, x, Of(scalar));
          CheckBinary(op, Of(scalar), x);
        }
      }
    }
  }
}

TEST_P(ElementwiseTest, UnaryOperatorsOnEveryShapeAndFormat) {
  uint32_t seed = 200;
  for (Format format : {Format::kDense, Format::kSparse}) {
    for (Shape shape : {Shape{1, 1}, Shape{13, 7}, Shape{1, 4000}, Shape{0, 3}, Shape{3, 0}, Shape{64, 41}}) {
      const Matrix x =
          RandomMatrix(shape.rows, shape.columns, ++seed, format == Format::kSparse ? 7 : 1, format);
      for (const std::string& op : kUnaryNames) {
        Result<Value> got(OkStatus());
        ValueInfo info;
        arena_->Execute([&] { got = RunOperator(op, {Of(x)}, &info); });
        ExpectCells(got, info, reference::Unary(op, x), fmt::format("{}({} {})", op, shape, Name(format)));
      }
    }
  }
}

TEST_P(ElementwiseTest, SelectTakesAnyMixOfMatricesAndScalars) {
  for (Shape shape : {Shape{5, 3}, Shape{1, 20}, Shape{0, 2}, Shape{70, 9}}) {
    // Of each argument: a scalar, a zero, a dense or a CSR matrix.
    for (int mix = 0; mix < 64; ++mix) {
      std::array<Argument, 3> arguments = {Of(Scalar(kNaN)), Of(Scalar(2)), Of(Scalar(-0.5))};
      const std::array<int, 3> kinds = {mix % 4, mix / 4 % 4, mix / 16};
      if (*std::max_element(kinds.begin(), kinds.end()) >= 2) {
        for (uint32_t i = 0; i < 3; ++i) {
          const int kind = kinds[i];
          if (kind == 1) arguments[i] = Of(Scalar(0.0));
          if (kind >= 2)
            arguments[i] = Of(RandomMatrix(shape.rows, shape.columns, 300 + i, 4,
                                           kind == 2 ? Format::kDense : Format::kSparse));
        }
        Result<Value> got(OkStatus());
        ValueInfo info;
        arena_->Execute([&] {
          got = RunOperator("ifelse", {arguments[0], arguments[1], arguments[2]}, &info);
        });
        ExpectCells(got, info, reference::Select(arguments[0].value, arguments[1].value, arguments[2].value),
                    fmt::format("mix {}", mix));
      }
    }
  }
}

// Large enough for several tasks; also what streams past the caches, from a piece that does not start on a
// line.
TEST_P(ElementwiseTest, LargeMatricesGiveTheSameCells) {
  const Matrix x = RandomMatrix(2100, 33, 1, 1, Format::kDense),
               y = RandomMatrix(2100, 33, 2, 1, Format::kDense);
  for (const std::string op : {"*", "-", "<", "pmax"}) {
    CheckBinary(op, Of(x), Of(y));
    CheckBinary(op, Of(x.Rows(3, 2099)), Of(y.Rows(1, 2097)));
    CheckBinary(op, Of(x), Of(y.Rows(7, 8)));
    CheckBinary(op, Of(RandomMatrix(2100, 33, 3, 7, Format::kSparse).Rows(5, 2000)),
                Of(RandomMatrix(2100, 33, 4, 7, Format::kSparse).Rows(9, 2004)));
  }
  const Matrix column = RandomMatrix(70000, 1, 6, 1, Format::kDense),
               row = RandomMatrix(1, 61, 7, 1, Format::kDense);
  CheckBinary("+", Of(column), Of(row));
}

// A worker's piece of a distributed matrix: the vector on the right is whole, the infos are of the whole.
TEST_P(ElementwiseTest, PiecesOfRowsJoinToTheWholeResult) {
  for (Format format : {Format::kDense, Format::kSparse}) {
    const Matrix x = RandomMatrix(10, 6, 1, 5, format);
    const Matrix row = RandomMatrix(1, 6, 2, 1, Format::kDense);
    const Matrix column = RandomMatrix(10, 1, 3, 1, Format::kDense);
    for (const std::string op : {"+", "*", "/"}) {
      for (bool use_row : {true, false}) {
        const Argument whole[] = {Of(x), Of(use_row ? row : column)};
        ValueInfo info;
        const Result<Value> expected = RunOperator(op, {whole[0], whole[1]}, &info);
        ASSERT_TRUE(expected.ok());
        for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 4}, {4, 4}, {4, 10}, {9, 10}}) {
          Argument left = whole[0], right = whole[1];
          left.value = Value(x.Rows(begin, end));
          if (!use_row) right.value = Value(column.Rows(begin, end));
          const Result<Value> piece = RunOperator(op, {left, right});
          ASSERT_TRUE(piece.ok());
          EXPECT_EQ(heddle::FormatOf(piece->matrix().storage()), info.format);
          EXPECT_TRUE(Matrix::SameCells(piece->matrix(), expected->matrix().Rows(begin, end)))
              << op << " rows " << begin << " to " << end;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ElementwiseTest,
                         testing::Combine(testing::Values(Cpu::kAvx2, Cpu::kAvx512), testing::Values(1, 2)),
                         [](const auto& info) {
                           return fmt::format("{}x{}", Name(std::get<0>(info.param)),
                                              std::get<1>(info.param));
                         });

Format FormatOf(std::string_view op, const std::vector<Argument>& arguments) {
  ValueInfo info;
  EXPECT_TRUE(RunOperator(op, arguments, &info).ok()) << op;
  return info.format;
}

Result<ValueInfo> InferOnly(std::string_view name, const std::vector<ValueInfo>& infos) {
  Node node;
  node.op = name;
  const std::vector<const Scalar*> scalars(infos.size(), nullptr);
  return Find(name).infer({node, infos, scalars});
}

// The table of docs/numerics.md, section 7.
TEST(ElementwiseFormatTest, FormatsFollowFromOperatorsAndOperands) {
  const Argument s = Of(RandomMatrix(6, 5, 1, 7, Format::kSparse)),
                 d = Of(RandomMatrix(6, 5, 2, 0, Format::kDense));
  const Argument column = Of(RandomMatrix(6, 1, 3, 0, Format::kDense)),
                 sparse_column = Of(RandomMatrix(6, 1, 3, 5, Format::kSparse));
  const Argument two = Of(Scalar(2.0));
  for (const std::string op : {"*", "&"}) {
    for (const Argument& other : {s, d, two}) {
      EXPECT_EQ(FormatOf(op, {s, other}), Format::kSparse) << op;
      EXPECT_EQ(FormatOf(op, {other, s}), Format::kSparse) << op;
    }
    EXPECT_EQ(FormatOf(op, {s, column}), Format::kSparse) << op;
    EXPECT_EQ(FormatOf(op, {d, sparse_column}), Format::kDense) << op;
  }
  for (const std::string op : {"+", "-", "|", "xor", "pmin", "pmax"}) {
    EXPECT_EQ(FormatOf(op, {s, s}), Format::kSparse) << op;
    EXPECT_EQ(FormatOf(op, {s, d}), Format::kDense) << op;
    EXPECT_EQ(FormatOf(op, {d, s}), Format::kDense) << op;
  }
  // With a known scalar it is its value that counts.
  const Argument zero = Of(Scalar(0.0)), less = Of(Scalar(-2.0)), nan = Of(Scalar(kNaN));
  for (const std::string op : {"pmin", "==", ">=", "%%", "%/%", "bitwAnd"}) {
    EXPECT_EQ(FormatOf(op, {s, two}), Format::kSparse) << op;
    EXPECT_EQ(FormatOf(op, {d, two}), Format::kDense) << op;
  }
  for (const std::string op : {"pmin", "==", "<=", "bitwAnd"})
    EXPECT_EQ(FormatOf(op, {two, s}), Format::kSparse) << op;
  for (const std::string op : {"pmax", "+", "-", "|", "<="})
    EXPECT_EQ(FormatOf(op, {s, two}), Format::kDense) << op;
  for (const std::string op : {"pmin", "pmax", "|", "+"})
    EXPECT_EQ(FormatOf(op, {s, nan}), Format::kDense) << op;
  for (const std::string op : {"pmax", "+", "-", "|", "xor"})
    EXPECT_EQ(FormatOf(op, {s, zero}), Format::kSparse) << op;
  EXPECT_EQ(FormatOf("pmin", {s, less}), Format::kDense);
  EXPECT_EQ(FormatOf("pmax", {less, s}), Format::kSparse);
  for (const Argument& any : {s, d, two}) {
    EXPECT_EQ(FormatOf("ifelse", {s, any, zero}), Format::kSparse);
    EXPECT_EQ(FormatOf("ifelse", {s, any, s}), Format::kSparse);
    EXPECT_EQ(FormatOf("ifelse", {s, any, two}), Format::kDense);
    EXPECT_EQ(FormatOf("ifelse", {s, any, d}), Format::kDense);
  }
  for (const Argument& condition : {d, two}) {
    EXPECT_EQ(FormatOf("ifelse", {condition, s, zero}), Format::kSparse);
    EXPECT_EQ(FormatOf("ifelse", {condition, zero, s}), Format::kSparse);
    EXPECT_EQ(FormatOf("ifelse", {condition, s, s}), Format::kSparse);
    EXPECT_EQ(FormatOf("ifelse", {condition, d, s}), Format::kDense);
    EXPECT_EQ(FormatOf("ifelse", {condition, s, d}), Format::kDense);
  }
  EXPECT_EQ(FormatOf("ifelse", {d, zero, zero}), Format::kDense);
  const ValueInfo unknown = ValueInfo::OfScalar(ValueType::kDouble);
  for (const std::string op : {"!=", "<", ">"}) {
    EXPECT_EQ(FormatOf(op, {s, s}), Format::kSparse) << op;
    EXPECT_EQ(FormatOf(op, {s, d}), Format::kDense) << op;
    EXPECT_EQ(InferOnly(op, {s.info, unknown})->format, Format::kSparse) << op;
    EXPECT_EQ(InferOnly(op, {unknown, s.info})->format, Format::kSparse) << op;
    EXPECT_EQ(FormatOf(op, {s, two}), op == ">" ? Format::kSparse : Format::kDense) << op;
    EXPECT_EQ(FormatOf(op, {two, s}), op == "<" ? Format::kSparse : Format::kDense) << op;
  }
  for (const std::string op : {"/", "^"})
    EXPECT_EQ(InferOnly(op, {s.info, unknown})->format, Format::kSparse) << op;
  for (const std::string op : {"pmax", "==", "+", "%%"})
    EXPECT_EQ(InferOnly(op, {s.info, unknown})->format, Format::kDense) << op;
  EXPECT_EQ(FormatOf("/", {s, zero}), Format::kDense);
  EXPECT_EQ(FormatOf("^", {s, less}), Format::kDense);
  EXPECT_EQ(FormatOf("/", {s, two}), Format::kSparse);
  EXPECT_EQ(FormatOf("/", {s, d}), Format::kSparse);
  EXPECT_EQ(FormatOf("/", {s, s}), Format::kDense);
  EXPECT_EQ(FormatOf("/", {two, s}), Format::kDense);
  EXPECT_EQ(FormatOf("^", {s, two}), Format::kSparse);
  EXPECT_EQ(FormatOf("^", {two, s}), Format::kDense);
  for (const std::string op : {"==", "<=", ">=", "%%", "%/%", "bitwOr", "log"})
    EXPECT_EQ(FormatOf(op, {s, s}), Format::kDense) << op;
  for (const std::string op : {"!", "exp", "log", "cos", "acos", "cosh", "sigmoid"})
    EXPECT_EQ(FormatOf(op, {s}), Format::kDense) << op;
  for (const std::string op : {"abs", "sqrt", "sign", "round", "tanh", "erf", "is.nan"})
    EXPECT_EQ(FormatOf(op, {s}), Format::kSparse) << op;
}

TEST(ElementwiseShapeTest, UnknownSizesAreSettledWhereTheyCanBe) {
  auto shape_of = [](Shape a, Shape b) {
    return InferOnly("+", {ValueInfo::OfMatrix(a), ValueInfo::OfMatrix(b)})->shape;
  };
  EXPECT_EQ(shape_of({kUnknown, 4}, {kUnknown, kUnknown}), (Shape{kUnknown, 4}));
  EXPECT_EQ(shape_of({kUnknown, 4}, {9, 1}), (Shape{9, 4}));
  EXPECT_EQ(shape_of({kUnknown, 4}, {1, kUnknown}), (Shape{kUnknown, 4}));
  EXPECT_EQ(shape_of({kUnknown, kUnknown}, {1, 5}), (Shape{kUnknown, 5}));
  EXPECT_EQ(shape_of({kUnknown, kUnknown}, {1, 1}), (Shape{kUnknown, kUnknown}));
  EXPECT_EQ(shape_of({3, 1}, {kUnknown, kUnknown}), (Shape{3, kUnknown}));
  EXPECT_EQ(InferOnly("ifelse", {ValueInfo::OfMatrix({kUnknown, 4}), ValueInfo::OfScalar(ValueType::kDouble),
                                 ValueInfo::OfMatrix({3, kUnknown})})
                ->shape,
            (Shape{3, 4}));
}

TEST(ElementwiseShapeTest, ASingleCellIsRepeatedWhereItStandsOnTheRight) {
  const auto shape = [](Shape a, Shape b) {
    const Result<ValueInfo> info = InferOnly("*", {ValueInfo::OfMatrix(a), ValueInfo::OfMatrix(b)});
    return info.ok() ? info->shape : Shape{-2, -2};
  };
  EXPECT_EQ(shape({3, 4}, {1, 1}), (Shape{3, 4}));
  EXPECT_EQ(shape({3, 4}, {1, kUnknown}), (Shape{3, 4}));
  EXPECT_EQ(shape({3, 4}, {}), (Shape{3, 4}));
  EXPECT_EQ(shape({1, 1}, {3, 4}), (Shape{-2, -2}));
  EXPECT_EQ(shape({3, 4}, {1, 2}), (Shape{-2, -2}));
}

TEST(ElementwiseShapeTest, MismatchesSayWhatIsAllowed) {
  auto message = [](Shape a, Shape b) {
    return InferOnly("*", {ValueInfo::OfMatrix(a), ValueInfo::OfMatrix(b)}).status().ToString();
  };
  EXPECT_EQ(message({3, 4}, {4, 3}),
            "*: shapes 3x4 and 4x3 do not match; on the right of 3x4 there may be 3x4, 3x1, 1x4 or a scalar");
  EXPECT_NE(message({1, 4}, {3, 4}).find("a vector is repeated only where it stands on the right"),
            std::string::npos);
  EXPECT_NE(message({3, 1}, {3, 4}).find("on the right of 3x1 there may be 3x1, a row vector or a scalar"),
            std::string::npos);
  EXPECT_FALSE(InferOnly("*", {ValueInfo::OfMatrix({1, 1}), ValueInfo::OfMatrix({3, 1})}).ok());
  // What a string names is known when it is converted.
  EXPECT_TRUE(InferOnly("*", {ValueInfo::OfMatrix({1, 1}), ValueInfo::OfScalar(ValueType::kString)}).ok());
  const ValueInfo square = ValueInfo::OfMatrix({2, 2}), column = ValueInfo::OfMatrix({2, 1}),
                  scalar = ValueInfo::OfScalar(ValueType::kDouble);
  EXPECT_EQ(InferOnly("ifelse", {square, column, scalar}).status().ToString(),
            "ifelse: all matrices must have the same shape: 2x2 and 2x1");
  EXPECT_EQ(InferOnly("ifelse", {square, column, square}).status().ToString(),
            "ifelse: all matrices must have the same shape: 2x2, 2x1 and 2x2");
}

TEST(ElementwiseShapeTest, RowsMeetRowsAndVectorsAreNeededWhole) {
  const Operator& plus = Find("+");
  auto uses = [&](Shape a, Shape b) {
    const std::array infos = {ValueInfo::OfMatrix(a), ValueInfo::OfMatrix(b)};
    return std::pair(plus.input_use({}, infos, 0), plus.input_use({}, infos, 1));
  };
  using enum InputUse;
  EXPECT_EQ(uses({8, 3}, {8, 3}), std::pair(kRows, kRows));
  EXPECT_EQ(uses({8, 3}, {8, 1}), std::pair(kRows, kRows));
  EXPECT_EQ(uses({8, 3}, {1, 3}), std::pair(kRows, kWhole));
  EXPECT_EQ(uses({8, 1}, {1, 3}), std::pair(kRows, kWhole));
  EXPECT_EQ(uses({1, 3}, {1, 3}), std::pair(kWhole, kWhole));
  const std::array infos = {ValueInfo::OfScalar(ValueType::kDouble), ValueInfo::OfMatrix({8, 3})};
  EXPECT_EQ(plus.input_use({}, infos, 0), kWhole);
  EXPECT_EQ(plus.input_use({}, infos, 1), kRows);
  EXPECT_EQ(plus.row_rule({}, infos), RowRule::kRowWise);
}

TEST(ElementwiseCancelTest, ACancelledRunSaysSo) {
  Node node;
  node.op = "+";
  const Value x(RandomMatrix(100, 100, 1, 0, Format::kDense));
  const std::array<const Value*, 2> inputs = {&x, &x};
  const std::array infos = {ValueInfo::OfMatrix({100, 100}), ValueInfo::OfMatrix({100, 100})};
  node.info = infos[0];
  std::atomic<bool> cancelled = true;
  KernelContext context;
  context.cancelled = &cancelled;
  EXPECT_EQ(Find("+").run({node, Phase::kWhole, inputs, infos, 0, 100, 100, context}).status().code(),
            StatusCode::kCancelled);
}

// Entries that become zeros leave a CSR result in its own memory where there is no room for a copy.
TEST(ElementwiseMemoryTest, ZerosLeaveWithoutRoomForACopy) {
  constexpr int64_t kRows = 1000, kEntries = 500;
  Matrix matrix = *Matrix::Sparse(kRows, kEntries, kRows * kEntries);
  for (int64_t i = 0; i < kRows; ++i) {
    matrix.mutable_row_offsets()[i + 1] = (i + 1) * kEntries;
    for (int64_t j = 0; j < kEntries; ++j) {
      matrix.mutable_column_indexes()[i * kEntries + j] = static_cast<int32_t>(j);
      matrix.mutable_values()[i * kEntries + j] = i % 3 == 0 ? 0 : static_cast<double>((i * j) % 4);
    }
  }
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  const Matrix expected = *DropZeros(matrix);
  BlockPool::Process().Trim();
  budget.SetLimit(budget.used());
  const Status refused = DropZeros(matrix).status();
  const Result<Matrix> result = DropZerosOfOwn(std::move(matrix));
  budget.SetLimit(limit);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->stored(), expected.stored());
  EXPECT_TRUE(Matrix::SameCells(*result, expected));
}

}  // namespace
}  // namespace heddle::ops
