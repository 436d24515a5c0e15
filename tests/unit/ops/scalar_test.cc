// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/values/value.h"
#include "ops/base/operator.h"
#include "ops/catalog.h"
#include "ops/scalar/evaluate_scalar.h"
#include "ops/simd/cellwise/math.h"

namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

Result<Scalar> TryEvaluate(std::string_view op, const std::vector<Scalar>& arguments) {
  Node node;
  node.op = op;
  std::vector<const Scalar*> inputs;
  for (const Scalar& argument : arguments) inputs.push_back(&argument);
  return EvaluateScalar(node, inputs);
}

// Evaluates, and checks that inference promised this type; that of ifelse may depend on the condition.
Scalar Evaluate(std::string_view op, const std::vector<Scalar>& arguments) {
  Result<Scalar> result = TryEvaluate(op, arguments);
  EXPECT_TRUE(result.ok()) << op << ": " << result.status().message();
  if (!result.ok()) return Scalar("failed");
  std::vector<ValueType> types;
  for (const Scalar& argument : arguments) types.push_back(argument.type());
  const Result<ValueType> type = ScalarResultType(op, types);
  EXPECT_TRUE(type.ok()) << op;
  const bool is_open = type.ok() && *type == ValueType::kUnknown && op == "ifelse";
  if (type.ok() && !is_open && !(result->IsDouble() && !std::isfinite(result->AsDouble()))) {
    EXPECT_EQ(Name(*type), Name(result->type())) << op;
  }
  return *result;
}

std::string ErrorOf(std::string_view op, const std::vector<Scalar>& arguments) {
  return std::string(TryEvaluate(op, arguments).status().message());
}

TEST(ScalarTest, ArithmeticOfIntegersStaysWhole) {
  EXPECT_EQ(Evaluate("+", {2, 3}), Scalar(5));
  EXPECT_EQ(Evaluate("-", {2, 3}), Scalar(-1));
  EXPECT_EQ(Evaluate("*", {2, 3}), Scalar(6));
  EXPECT_EQ(Evaluate("/", {6, 3}), Scalar(2.0));
  EXPECT_EQ(Evaluate("^", {2, 10}), Scalar(1024.0));
  EXPECT_EQ(Evaluate("pmin", {2, 3}), Scalar(2));
  EXPECT_EQ(Evaluate("pmax", {2, 3}), Scalar(3));
  EXPECT_EQ(Evaluate("round", {7}), Scalar(7.0));
  EXPECT_EQ(Evaluate("*", {int64_t{3037000499}, int64_t{3037000499}}), Scalar(int64_t{9223372030926249001}));
}

TEST(ScalarTest, DoublesAndMixturesAreDoubles) {
  EXPECT_EQ(Evaluate("+", {2, 0.5}), Scalar(2.5));
  EXPECT_EQ(Evaluate("*", {0.5, 4}), Scalar(2.0));
  EXPECT_EQ(Evaluate("pmax", {2, 1.5}), Scalar(2.0));
  EXPECT_EQ(Evaluate("+", {true, true}), Scalar(2.0));
  EXPECT_EQ(Evaluate("+", {true, 2}), Scalar(3));
  EXPECT_EQ(Evaluate("*", {true, 2.5}), Scalar(2.5));
}

TEST(ScalarTest, OverflowOfIntegersIsAnError) {
  EXPECT_EQ(ErrorOf("+", {kLargest, 1}),
            "+: the result does not fit in a 64-bit integer: 9223372036854775807 + 1");
  EXPECT_FALSE(TryEvaluate("-", {kSmallest, 1}).ok());
  EXPECT_FALSE(TryEvaluate("*", {kLargest, 2}).ok());
  EXPECT_FALSE(TryEvaluate("%/%", {kSmallest, -1}).ok());
  EXPECT_EQ(TryEvaluate("+", {kLargest, 1}).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Evaluate("%%", {kSmallest, -1}), Scalar(0));
}

TEST(ScalarTest, DivisionTruncatesTowardZero) {
  EXPECT_EQ(Evaluate("%/%", {-5, 2}), Scalar(-2));
  EXPECT_EQ(Evaluate("%%", {-5, 2}), Scalar(-1));
  EXPECT_EQ(Evaluate("%/%", {-5.0, 2}), Scalar(-2.0));
  EXPECT_EQ(Evaluate("%%", {-5.5, 2}), Scalar(-1.5));
  EXPECT_EQ(Evaluate("%/%", {5, 0}), Scalar(kInfinity));
  EXPECT_EQ(Evaluate("%/%", {-5.0, 0.0}), Scalar(-kInfinity));
  EXPECT_TRUE(std::isnan(Evaluate("%%", {5, 0}).AsDouble()));
  EXPECT_EQ(Evaluate("/", {1, 0}), Scalar(kInfinity));
  EXPECT_FALSE(std::signbit(Evaluate("%/%", {-1.0, 2}).AsDouble()));
}

TEST(ScalarTest, ComparisonsLookAtStringsIntegersOrDoubles) {
  EXPECT_EQ(Evaluate("<", {2, 10}), Scalar(true));
  EXPECT_EQ(Evaluate("<", {"2", 10}), Scalar(false));
  EXPECT_EQ(Evaluate("==", {"TRUE", true}), Scalar(true));
  EXPECT_EQ(Evaluate("==", {"1.0", 1.0}), Scalar(true));
  EXPECT_EQ(Evaluate("==", {1, 1.0}), Scalar(true));
  EXPECT_EQ(Evaluate("==", {true, 1}), Scalar(true));
  EXPECT_EQ(Evaluate("==", {int64_t{9007199254740993}, int64_t{9007199254740992}}), Scalar(false));
  EXPECT_EQ(Evaluate("==", {0.0, -0.0}), Scalar(true));
  EXPECT_EQ(Evaluate("==", {std::nan(""), std::nan("")}), Scalar(false));
  EXPECT_EQ(Evaluate("!=", {std::nan(""), 1}), Scalar(true));
  EXPECT_EQ(Evaluate(">=", {"b", "a"}), Scalar(true));
}

TEST(ScalarTest, LogicTakesNonZeroForTrue) {
  EXPECT_EQ(Evaluate("&", {true, 2}), Scalar(true));
  EXPECT_EQ(Evaluate("|", {false, 0.0}), Scalar(false));
  EXPECT_EQ(Evaluate("xor", {true, true}), Scalar(false));
  EXPECT_EQ(Evaluate("!", {0}), Scalar(true));
}

TEST(ScalarTest, FunctionsOfOneNumberAreDoubles) {
  EXPECT_EQ(Evaluate("is.nan", {std::nan("")}), Scalar(1.0));
  EXPECT_EQ(Evaluate("is.na", {3}), Scalar(0.0));
  EXPECT_EQ(Evaluate("is.infinite", {kInfinity}), Scalar(1.0));
  EXPECT_EQ(Evaluate("abs", {-3}), Scalar(3.0));
  EXPECT_EQ(Evaluate("round", {3}), Scalar(3.0));
  EXPECT_EQ(Evaluate("sign", {-3}), Scalar(-1.0));
}

TEST(ScalarTest, PlusJoinsText) {
  EXPECT_EQ(Evaluate("+", {"x = ", 1.5}), Scalar("x = 1.5"));
  EXPECT_EQ(Evaluate("+", {true, " or not"}), Scalar("TRUE or not"));
  EXPECT_EQ(Evaluate("+", {"n", 3}), Scalar("n3"));
  EXPECT_EQ(Evaluate("+", {"", 1e7}), Scalar("1.0E7"));
  EXPECT_EQ(ErrorOf("*", {"a", 2}), "*: strings are not numbers; use as.double");
  EXPECT_EQ(ErrorOf("sqrt", {"a"}), "sqrt: strings are not numbers; use as.double");
}

TEST(ScalarTest, BitOperatorsKeepAllSixtyFourBits) {
  EXPECT_EQ(Evaluate("bitwAnd", {12, 10}), Scalar(8));
  EXPECT_EQ(Evaluate("bitwOr", {12.9, 10}), Scalar(14.0));
  EXPECT_EQ(Evaluate("bitwXor", {kLargest, 1}), Scalar(kLargest - 1));
  EXPECT_EQ(Evaluate("bitwShiftL", {1, 62}), Scalar(int64_t{1} << 62));
  EXPECT_EQ(Evaluate("bitwShiftR", {-8, 1}), Scalar(-4));
  EXPECT_EQ(Evaluate("bitwOr", {true, false}), Scalar(1));
}

TEST(ScalarTest, FunctionsOfNumbers) {
  EXPECT_EQ(Evaluate("sqrt", {4}), Scalar(2.0));
  EXPECT_EQ(Evaluate("exp", {1.0}), Scalar(Exp(1.0)));
  EXPECT_EQ(Evaluate("log", {8, 2}), Scalar(Log(8.0) / Log(2.0)));
  EXPECT_EQ(Evaluate("round", {-2.5}), Scalar(-2.0));
  // Halves and their neighbours, whole numbers that have no fraction any more, and no numbers.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<double, double> rounded[] = {{0.49999999999999994, 0},
                                               {0.5, 1},
                                               {-0.5, 0},
                                               {-0.49999999999999994, 0},
                                               {-0.5000000000000001, -1},
                                               {1.5, 2},
                                               {-1.5, -1},
                                               {0x1p52 + 1, 0x1p52 + 1},
                                               {0x1p53 - 1, 0x1p53 - 1},
                                               {-0x1p52 - 1, -0x1p52 - 1},
                                               {0x1p51 + 0.5, 0x1p51 + 1},
                                               {-1e-300, 0},
                                               {1e300, 1e300},
                                               {kInfinity, kInfinity},
                                               {-kInfinity, -kInfinity}};
  for (const auto& [x, expected] : rounded) EXPECT_EQ(Evaluate("round", {x}), Scalar(expected)) << x;
  EXPECT_TRUE(std::isnan(Evaluate("round", {std::nan("")}).AsDouble()));
  EXPECT_EQ(Evaluate("sign", {-0.5}), Scalar(-1.0));
  EXPECT_EQ(Evaluate("ceil", {1.2}), Scalar(2.0));
}

TEST(ScalarTest, SelectGivesTheChosenValueAsItIs) {
  EXPECT_EQ(Evaluate("ifelse", {true, 1, 2}), Scalar(1));
  EXPECT_EQ(Evaluate("ifelse", {std::nan(""), 1, 2.5}), Scalar(1));
  EXPECT_EQ(Evaluate("ifelse", {0, 1.5, 2}), Scalar(2));
  EXPECT_EQ(Evaluate("ifelse", {0, 1.5, true}), Scalar(true));
  EXPECT_EQ(Evaluate("ifelse", {1, 1.5, "a"}), Scalar(1.5));
  EXPECT_EQ(Evaluate("ifelse", {0, "a", "b"}), Scalar("b"));
}

TEST(ScalarTest, Casts) {
  EXPECT_EQ(Evaluate("as.integer", {-2.7}), Scalar(-2));
  EXPECT_EQ(Evaluate("as.integer", {true}), Scalar(1));
  EXPECT_EQ(Evaluate("as.integer", {"12.9"}), Scalar(12));
  EXPECT_EQ(Evaluate("as.double", {"1e3"}), Scalar(1000.0));
  EXPECT_EQ(Evaluate("as.double", {3}), Scalar(3.0));
  EXPECT_EQ(Evaluate("as.logical", {0.5}), Scalar(true));
  EXPECT_EQ(Evaluate("as.logical", {"true"}), Scalar(true));
  EXPECT_EQ(Evaluate("as.logical", {"yes"}), Scalar(false));
  EXPECT_EQ(Evaluate("as.scalar", {"s"}), Scalar("s"));
  EXPECT_EQ(ErrorOf("as.double", {"ten"}), "as.double: the text is not a number: \"ten\"");
}

TEST(ScalarTest, WhatIsNotDefinedOnScalarsSaysSo) {
  EXPECT_EQ(TryEvaluate("%*%", {1, 2}).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(TryEvaluate("print", {"x"}).status().code(), StatusCode::kUnimplemented);
}

// The operators of ops/scalar/scalar.cc, which also take matrices.
struct Outcome {
  Result<ValueInfo> info;
  Result<Value> value;
};

Outcome RunOn(std::string_view name, const Value& x) {
  Node node;
  node.op = name;
  const std::array infos = {x.IsMatrix()
                                ? ValueInfo::OfMatrix(x.matrix().shape(), FormatOf(x.matrix().storage()))
                                : ValueInfo::OfScalar(x.scalar().type())};
  const std::array<const Scalar*, 1> scalars = {nullptr};
  const std::array inputs = {&x};
  KernelContext context;
  for (const Operator& op : ScalarOperators()) {
    if (op.name != name) continue;
    Result<ValueInfo> info = op.infer({node, infos, scalars});
    if (!info.ok()) return {info, info.status()};
    node.info = *info;
    return {info, op.run({node, Phase::kWhole, inputs, infos, 0, 0, 0, context})};
  }
  std::abort();
}

TEST(CastOperatorTest, MatricesAndScalars) {
  const Matrix one = *FilledMatrix(1, 1, 4.5);
  const Matrix many = *FilledMatrix(3, 2, 1.0);
  EXPECT_EQ(RunOn("as.scalar", Value(one)).value->scalar(), Scalar(4.5));
  EXPECT_EQ(RunOn("as.scalar", Value(*ToSparse(*FilledMatrix(1, 1, 0)))).value->scalar(), Scalar(0.0));
  EXPECT_EQ(RunOn("as.scalar", Value(many)).info.status().message(),
            "as.scalar: the matrix must be 1x1: 3x2");
  EXPECT_EQ(RunOn("as.scalar", Value(Scalar(3))).value->scalar(), Scalar(3));
  EXPECT_TRUE(Matrix::SameCells(RunOn("as.matrix", Value(Scalar(4.5))).value->matrix(), one));
  EXPECT_TRUE(Matrix::SameCells(RunOn("as.matrix", Value(many)).value->matrix(), many));
  EXPECT_EQ(RunOn("as.integer", Value(Scalar(4.5))).value->scalar(), Scalar(4));
  EXPECT_EQ(RunOn("as.integer", Value(one)).info.status().message(),
            "as.integer: the argument must be a scalar, not a matrix");
  EXPECT_EQ(RunOn("nrow", Value(many)).value->scalar(), Scalar(3));
  EXPECT_EQ(RunOn("ncol", Value(many)).value->scalar(), Scalar(2));
  EXPECT_EQ(RunOn("length", Value(many)).value->scalar(), Scalar(6));
  EXPECT_FALSE(RunOn("nrow", Value(Scalar(1))).info.ok());
}

}  // namespace
}  // namespace heddle::ops
