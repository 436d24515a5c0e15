// SPDX-License-Identifier: Apache-2.0
// Fused operators give the same bytes where inputs are compressed: tiles decode their rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "body_builder.h"
#include "ops/base/cpu.h"
#include "tests/unit/ops/compressed/encoded.h"

namespace heddle::ops::testing {
namespace {

double Thirds(int64_t number) { return static_cast<double>(number - 1) / 3; }
double Signed(int64_t number) { return number == 0 ? -0.0 : number % 2 == 0 ? 0.0 : 0.7; }

using Build = std::function<std::vector<NodeId>(BodyBuilder& body, NodeId x)>;

// X, and two ways to compress it.
struct Stored {
  explicit Stored(Matrix x) : dense(std::move(x)) {
    for (const bool adjacent : {true, false}) {
      std::vector<EncodedGroup> plan = MixedGroups(dense.columns(), adjacent);
      if (!adjacent) plan[0].encoding = Encoding::kUncompressed;
      compressed.push_back(EncodedMatrix(dense, plan));
    }
  }
  Matrix dense;
  std::vector<Matrix> compressed;
};

// The roots that `build` makes of X have the same bytes for X dense and compressed.
void ExpectSame(const std::string& what, const Stored& x, const Build& build,
                std::optional<FusionTemplate> kind = {}) {
  SCOPED_TRACE(::testing::Message() << what << " of " << x.dense.rows() << "x" << x.dense.columns());
  BodyBuilder dense;
  dense.Finish(build(dense, dense.Input(Value(x.dense))));
  if (kind) dense.fused().kind = *kind;
  const std::vector<Value> expected = dense.RootsOneByOne();
  for (const Matrix& stored : x.compressed) {
    BodyBuilder compressed;
    compressed.Finish(build(compressed, compressed.Input(Value(stored))));
    if (kind) compressed.fused().kind = *kind;
    for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
      if (!IsSupported(cpu)) continue;
      ASSERT_TRUE(ForceCpu(cpu).ok());
      for (const auto& [workers, threads] : {std::pair(1, 1), std::pair(1, 2), std::pair(3, 1)}) {
        const Result<std::vector<Value>> actual = compressed.RootsFused(workers, threads);
        ASSERT_TRUE(actual.ok()) << actual.status().ToString();
        for (size_t i = 0; i < expected.size(); ++i) {
          if (expected[i].IsScalar())
            EXPECT_EQ(expected[i].scalar().ToLiteral(), (*actual)[i].scalar().ToLiteral());
          else
            EXPECT_TRUE(Matrix::SameCells(expected[i].matrix(), (*actual)[i].matrix()))
                << workers << " workers, " << threads << " threads, root " << i;
        }
      }
    }
    ASSERT_TRUE(ForceCpu("auto").ok());
  }
}

const std::vector<Shape> kCompressedShapes = {{2, 1},     {65, 1},    {130, 3},   {999, 8},
                                              {1025, 9},  {333, 31},  {129, 100}, {70, 1000},
                                              {4200, 13}, {20011, 4}, {5000, 40}};

class CompressedShapes : public ::testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Awkward, CompressedShapes, ::testing::ValuesIn(kCompressedShapes),
                         [](const auto& info) {
                           return std::to_string(info.param.rows) + "x" + std::to_string(info.param.columns);
                         });

// Products read codes, and what is between them is an operator of its own.
TEST_P(CompressedShapes, ProductsAroundNarrowRows) {
  const auto [m, n] = GetParam();
  const Stored x(FewDifferent(m, n, Thirds));
  const Matrix w = Cells(m, 1, 8);
  for (const int64_t k : {1, 2, 3, 5, 8}) {
    const Matrix v = Cells(n, k, 7);
    // k-means: the row sums of a product, and a product of those.
    ExpectSame(
        "products around minima", x,
        [&](BodyBuilder& body, NodeId input) {
          const NodeId product = body.Op("%*%", {input, body.Input(Value(v))});
          const NodeId nearest = body.Op("rowMins", {product});
          const NodeId is_nearest = body.Op("<=", {product, nearest});
          return std::vector<NodeId>{body.Op("colSums", {is_nearest}), body.Op("t%*%", {is_nearest, input}),
                                     body.Op("sum", {nearest}), is_nearest};
        },
        FusionTemplate::kStitch);
    // Conjugate gradients: what is computed of a product, and the weights of another one.
    ExpectSame(
        "products around a sum", x,
        [&](BodyBuilder& body, NodeId input) {
          const NodeId inner =
              body.Op("+", {body.Op("%*%", {input, body.Input(Value(v))}), body.Literal(Scalar(0.25))});
          return std::vector<NodeId>{body.Op("sum", {inner}), body.Op("t%*%", {input, inner})};
        },
        FusionTemplate::kStitch);
    // Nothing is between the products, or only before the last one.
    ExpectSame(
        "a product of a product", x,
        [&](BodyBuilder& body, NodeId input) {
          return std::vector<NodeId>{body.Op("t%*%", {input, body.Op("%*%", {input, body.Input(Value(v))})})};
        },
        FusionTemplate::kRow);
    ExpectSame(
        "weights alone", x,
        [&](BodyBuilder& body, NodeId input) {
          const NodeId weights = body.Op("*", {body.Input(Value(w)), body.Input(Value(Cells(m, 1, 9)))});
          return std::vector<NodeId>{body.Op("t%*%", {input, weights})};
        },
        FusionTemplate::kRow);
  }
}

// Squares beside a product, and moments, which are aggregates of X alone.
TEST_P(CompressedShapes, ProductsAndAggregatesOfTheSameMatrix) {
  const auto [m, n] = GetParam();
  if (n > 100) return;
  const Stored x(FewDifferent(m, n, Thirds));
  const Matrix y = Cells(m, 2, 9);
  ExpectSame(
      "normal equations", x,
      [&](BodyBuilder& body, NodeId input) {
        return std::vector<NodeId>{body.Op("t%*%", {input, input}),
                                   body.Op("t%*%", {input, body.Input(Value(y))})};
      },
      FusionTemplate::kStitch);
  ExpectSame(
      "moments", x,
      [&](BodyBuilder& body, NodeId input) {
        return std::vector<NodeId>{body.Op("colMeans", {input}), body.Op("colVars", {input})};
      },
      FusionTemplate::kStitch);
}

TEST(CompressedCellsTest, CellsWithRowVectorsStayCompressed) {
  const Matrix cells = FewDifferent(20000, 13, Thirds);
  const Matrix stored = EncodedMatrix(cells, SingleGroups(13, Encoding::kDenseCodes));
  BodyBuilder dense, compressed;
  for (const auto& [body, x] : {std::pair(&dense, cells), std::pair(&compressed, stored)}) {
    const NodeId input = body->Input(Value(x));
    const NodeId shifted = body->Op("-", {input, body->Input(Value(Cells(1, 13, 3)))});
    body->Finish({body->Op("*", {shifted, body->Input(Value(Cells(1, 13, 4)))})});
  }
  const Result<std::vector<Value>> actual = compressed.RootsFused(1, 2);
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  EXPECT_TRUE((*actual)[0].matrix().IsCompressed());
  EXPECT_TRUE(Matrix::SameCells(dense.RunOneByOne().matrix(), (*actual)[0].matrix()));
}

TEST_P(CompressedShapes, ChainsOfProducts) {
  const auto [m, n] = GetParam();
  const Stored x(FewDifferent(m, n, Thirds));
  const Matrix w = Cells(m, 1, 8), y = Cells(m, 1, 9);
  for (const int64_t k : {1, 3, 9, 70}) {
    if (n * k > 100'000) continue;
    const Matrix v = Cells(n, k, 7);
    ExpectSame("t(X) %*% (X %*% v), k = " + std::to_string(k), x, [&](BodyBuilder& body, NodeId input) {
      return std::vector{body.Op("t%*%", {input, body.Op("%*%", {input, body.Input(Value(v))})})};
    });
    ExpectSame("t(X) %*% (w * (X %*% v)), k = " + std::to_string(k), x, [&](BodyBuilder& body, NodeId input) {
      const NodeId product = body.Op("%*%", {input, body.Input(Value(v))});
      return std::vector{body.Op("t%*%", {input, body.Op("*", {product, body.Input(Value(w))})})};
    });
    if (k > 1) continue;
    ExpectSame("t(X) %*% (X %*% v - y)", x, [&](BodyBuilder& body, NodeId input) {
      const NodeId product = body.Op("%*%", {input, body.Input(Value(v))});
      return std::vector{body.Op("t%*%", {input, body.Op("-", {product, body.Input(Value(y))})})};
    });
  }
}

TEST_P(CompressedShapes, CellsAndRows) {
  const auto [m, n] = GetParam();
  const Stored x(FewDifferent(m, n, Signed));
  const Matrix y = Cells(m, n, 5);
  for (const std::string root : {"", "sum", "rowSums", "rowIndexMax", "colSums", "colMins"})
    ExpectSame("X * Y + 0.3 " + root, x, [&](BodyBuilder& body, NodeId input) {
      const NodeId product = body.Op("*", {input, body.Input(Value(y))});
      const NodeId cells = body.Op("+", {product, body.Literal(Scalar(0.3))});
      return std::vector{root.empty() ? cells : body.Op(root, {cells})};
    });
  ExpectSame("softmax", x, [&](BodyBuilder& body, NodeId input) {
    const NodeId e = body.Op("exp", {body.Op("-", {input, body.Op("rowMaxs", {input})})});
    return std::vector{body.Op("/", {e, body.Op("rowSums", {e})})};
  });
  ExpectSame(
      "several sums", x,
      [&](BodyBuilder& body, NodeId input) {
        return std::vector{body.Op("sum", {input}), body.Op("max", {input}),
                           body.Op("sum", {body.Op("*", {input, input})})};
      },
      FusionTemplate::kMultiAggregate);
  ExpectSame(
      "a stitch", x,
      [&](BodyBuilder& body, NodeId input) {
        const NodeId cells = body.Op("*", {input, body.Input(Value(y))});
        return std::vector{cells, body.Op("colSums", {cells}), body.Op("colVars", {input})};
      },
      FusionTemplate::kStitch);
}

// Cells of X and scalars are computed once for each tuple, and stay compressed; aggregates come from them.
TEST_P(CompressedShapes, CellsOfOneMatrixAndScalars) {
  const auto [m, n] = GetParam();
  const Stored x(FewDifferent(m, n, Signed));
  const auto chain = [](BodyBuilder& body, NodeId input) {
    const NodeId s = body.Input(Value(Scalar(0.7)));
    const NodeId shifted = body.Op("-", {body.Op("*", {input, s}), body.Literal(Scalar(0.1))});
    return body.Op("exp", {body.Op("+", {shifted, input})});
  };
  for (const std::string root : {"", "sum", "mean", "max", "rowSums", "rowIndexMax", "colSums", "colMins"})
    ExpectSame("exp(0.7 * X - 0.1 + X) " + root, x, [&](BodyBuilder& body, NodeId input) {
      const NodeId cells = chain(body, input);
      return std::vector{root.empty() ? cells : body.Op(root, {cells})};
    });
  ExpectSame(
      "several", x,
      [&](BodyBuilder& body, NodeId input) {
        const NodeId cells = chain(body, input);
        return std::vector{body.Op("sum", {cells}), body.Op("min", {input})};
      },
      FusionTemplate::kMultiAggregate);
  ExpectSame(
      "stitched", x,
      [&](BodyBuilder& body, NodeId input) {
        const NodeId cells = chain(body, input);
        return std::vector{cells, body.Op("colSums", {cells}), body.Op("rowSums", {cells})};
      },
      FusionTemplate::kStitch);
}

TEST(CompressedInputsTest, CellsOfOneMatrixAndScalarsStayCompressed) {
  for (const int64_t rows : {5000, 20}) {
    const Matrix x = FewDifferent(rows, 6, Thirds);
    BodyBuilder body;
    const NodeId input = body.Input(Value(EncodedMatrix(x, SingleGroups(6, Encoding::kDenseCodes))));
    body.Finish({body.Op("sqrt", {body.Op("*", {input, input})})});
    const Matrix result = body.RunFused(1, 1)->matrix();
    EXPECT_EQ(result.IsCompressed(), rows == 5000) << "where there are fewer tuples than cells";
    ASSERT_EQ(result.rows(), rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < 6; ++j) ASSERT_EQ(result.At(i, j), std::abs(x.At(i, j)));
  }
}

// By the catalog, as plans run it: the operator takes its call, and gets no decoded pieces.
TEST(CompressedInputsTest, TheOperatorTakesItsCall) {
  const Matrix x = FewDifferent(5000, 30, Thirds);
  for (const bool single : {false, true}) {
    BodyBuilder body;
    const NodeId input = body.Input(Value(x)), v = body.Input(Value(Cells(30, 1, 1)));
    body.Finish({body.Op("t%*%", {input, body.Op("%*%", {input, v})})});
    if (single) body.BecomeSingle();
    Node node{.op = "fused", .inputs = {0, 1}};
    node.fused = std::make_shared<const FusedOperator>(body.fused());
    const ValueInfo infos[] = {body.info(input), body.info(v)};
    node.info = *Infer({.node = node, .inputs = infos, .scalars = {}}, &node.results);
    const Value compressed(EncodedMatrix(body.input(0).matrix(), MixedGroups(30, false)));
    const Value* const inputs[] = {&compressed, &body.input(1)};
    const KernelCall call{.node = node,
                          .phase = Phase::kWhole,
                          .inputs = inputs,
                          .input_infos = infos,
                          .row_end = 5000,
                          .total_rows = 5000,
                          .context = body.context()};
    const Result<std::optional<Value>> taken = FindOperator("fused")->run_compressed(call);
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(taken->has_value(), !single);
    const Value expected = body.RunOneByOne();
    EXPECT_TRUE(Matrix::SameCells(CatalogKernels().Run(call)->matrix(), expected.matrix()));
    if (*taken) {
      EXPECT_TRUE(Matrix::SameCells((*taken)->matrix(), expected.matrix()));
    }
  }
}

}  // namespace
}  // namespace heddle::ops::testing
