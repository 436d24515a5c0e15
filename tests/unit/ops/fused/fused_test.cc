// SPDX-License-Identifier: Apache-2.0
// Fused operators give the bytes of their operators run one by one, on every shape, format, thread and worker
// count.
#include "ops/fused/fused.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "body_builder.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops::testing {
namespace {

TEST(FusedTest, EachRootIsAResult) {
  BodyBuilder body;
  const Matrix cells = Cells(900, 7, 1, false);
  const NodeId x = body.Input(Value(cells));
  const NodeId sum = body.Op("sum", {x}), largest = body.Op("max", {x});
  body.Finish({sum, largest});
  body.fused().kind = FusionTemplate::kMultiAggregate;
  ASSERT_TRUE(Verify(body.fused()).ok()) << Verify(body.fused()).ToString();
  Node node{.op = "fusedSeveral", .inputs = {0}};
  node.fused = std::make_shared<const FusedOperator>(body.fused());
  const ValueInfo infos[] = {ValueInfo::OfMatrix({900, 7})};
  const Result<ValueInfo> tuple = Infer({.node = node, .inputs = infos, .scalars = {}}, &node.results);
  ASSERT_TRUE(tuple.ok()) << tuple.status().ToString();
  EXPECT_TRUE(tuple->IsTuple());
  EXPECT_EQ(node.results, std::vector<ValueInfo>(2, ValueInfo::OfScalar(ValueType::kDouble)));
  const Result<std::vector<Value>> results = body.RootsFused(/*workers=*/3, /*threads=*/2);
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  const std::vector<Value> expected = body.RootsOneByOne();
  ASSERT_EQ(results->size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ((*results)[i].scalar().ToLiteral(), expected[i].scalar().ToLiteral()) << i;
  // Of one root there is one value, and no tuple.
  body.Finish({sum});
  node = {.op = "fused", .inputs = {0}};
  node.fused = std::make_shared<const FusedOperator>(body.fused());
  const Result<ValueInfo> one = Infer({.node = node, .inputs = infos, .scalars = {}}, &node.results);
  ASSERT_TRUE(one.ok()) << one.status().ToString();
  EXPECT_TRUE(one->IsScalar());
  EXPECT_TRUE(node.results.empty());
}

class FusedShapes : public ::testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Awkward, FusedShapes, ::testing::ValuesIn(kShapes), [](const auto& info) {
  return std::to_string(info.param.rows) + "x" + std::to_string(info.param.columns);
});

TEST_P(FusedShapes, CellChainsIntoEveryRoot) {
  const auto [m, n] = GetParam();
  for (const char* root :
       {"", "sum", "mean", "min", "max", "prod", "rowSums", "rowMeans", "rowMaxs", "rowIndexMax", "rowVars",
        "rowSds", "colSums", "colMeans", "colMins", "colProds"}) {
    for (const bool sparse : {false, true}) {
      BodyBuilder body;
      const NodeId x =
          body.Input(Value(sparse ? *ToSparse(Cells(m, n, 1, true, 0.2)) : Cells(m, n, 1, true)));
      const NodeId y = body.Input(Value(Cells(m, n, 2, true)));
      const NodeId s = body.Input(Value(Scalar(0.7)));
      const NodeId chain = body.Op("*", {body.Op("+", {body.Op("*", {x, y}), s}), y});
      body.Finish({*root == 0 ? chain : body.Op(root, {chain})});
      body.ExpectSame(std::string("x*y+s ") + root + (sparse ? " CSR" : ""));
    }
  }
}

TEST_P(FusedShapes, VectorsAreRepeatedOverRowsAndColumns) {
  const auto [m, n] = GetParam();
  for (const char* root : {"", "sum", "rowSums", "colSums", "colMaxs"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(m, n, 3)));
    const NodeId column = body.Input(Value(Cells(m, 1, 4)));
    const NodeId row = body.Input(Value(Cells(1, n, 5)));
    NodeId value = body.Op("/", {body.Op("-", {x, column}), row});
    value = body.Op("^", {value, body.Literal(Scalar(int64_t{2}))});
    value = body.Op("*", {value, body.Op("+", {column, body.Literal(Scalar(0.25))})});
    body.Finish({*root == 0 ? value : body.Op(root, {value})});
    body.ExpectSame(std::string("vectors ") + root);
  }
}

TEST_P(FusedShapes, ProductsWithTheTransposed) {
  const auto [m, n] = GetParam();
  for (const int64_t k : {1, 2, 3, 6, 9, 20}) {
    if (n * k > 100000) continue;
    for (const bool sparse : {false, true}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(sparse ? *ToSparse(Cells(m, n, 6, false, 0.3)) : Cells(m, n, 6)));
      const NodeId v = body.Input(Value(Cells(n, k, 7)));
      const NodeId w = body.Input(Value(Cells(m, 1, 8)));
      NodeId product = body.Op("%*%", {x, v});
      product = k == 1 ? body.Op("*", {w, product}) : body.Op("*", {product, w});
      body.Finish({body.Op("t%*%", {x, product})});
      body.ExpectSame("t(X)%*%(w*(X%*%V)) k=" + std::to_string(k) + (sparse ? " CSR" : ""));
    }
  }
}

// Nothing reads the rows of X before the product does.
TEST_P(FusedShapes, TransposedTimesComputedColumns) {
  const auto [m, n] = GetParam();
  for (const int64_t k : {1, 3, 5}) {
    if (n * k > 100000) continue;
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(m, n, 6))), p = body.Input(Value(Cells(m, k, 7))),
                 y = body.Input(Value(Cells(m, k, 8)));
    body.Finish({body.Op("t%*%", {x, body.Op("-", {p, y})})});
    body.ExpectSame("t(X)%*%(P-Y) k=" + std::to_string(k));
  }
}

TEST_P(FusedShapes, RowChains) {
  const auto [m, n] = GetParam();
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(m, n, 9)));
  const NodeId e = body.Op("exp", {body.Op("-", {x, body.Op("rowMaxs", {x})})});
  body.Finish({body.Op("/", {e, body.Op("rowSums", {e})})});
  body.ExpectSame("softmax");
}

TEST_P(FusedShapes, MultinomialInnerLoop) {
  const auto [m, n] = GetParam();
  const int64_t k = 4;
  if (n > 2000) return;  // The payload is too wide to be interesting.
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(m, n, 10)));
  const NodeId v = body.Input(Value(Cells(n, k, 11)));
  const NodeId p = body.Input(Value(Cells(m, k + 1, 12)));
  const NodeId left = body.Columns(p, 1, k);
  const NodeId q = body.Op("*", {left, body.Op("%*%", {x, v})});
  const NodeId h = body.Op("-", {q, body.Op("*", {left, body.Op("rowSums", {q})})});
  body.Finish({body.Op("t%*%", {x, h})});
  body.ExpectSame("t(X)%*%(Q-P[,1:k]*rowSums(Q))");
}

TEST_P(FusedShapes, SeveralAggregatesInOnePass) {
  const auto [m, n] = GetParam();
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(m, n, 13)));
  const NodeId y = body.Input(Value(Cells(m, n, 14)));
  const NodeId a = body.Op("sum", {body.Op("*", {x, y})}), b = body.Op("mean", {x}),
               c = body.Op("sum", {body.Op("exp", {y})});
  body.Finish({a, b, c});
  body.fused().kind = FusionTemplate::kMultiAggregate;
  body.ExpectSame("sum(X*Y), mean(X), sum(exp(Y))");
}

TEST_P(FusedShapes, ColumnRangesAndJoinedColumns) {
  const auto [m, n] = GetParam();
  if (n < 3) return;
  for (const char* root : {"", "sum", "colSums", "rowSums"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(m, n, 15)));
    const NodeId part = body.Columns(x, 2, n - 1);
    const NodeId joined = body.Op("cbind", {body.Op("abs", {part}), body.Columns(x, n, n), part});
    body.Finish({*root == 0 ? joined : body.Op(root, {joined})});
    body.ExpectSame(std::string("cbind(abs(X[,2:n-1]), X[,n], ...) ") + root);
  }
}

TEST_P(FusedShapes, CellsAtTheEntriesOfASparseDriver) {
  const auto [m, n] = GetParam();
  if (n < 2) return;
  for (const double density : {0.0, 0.02, 0.5}) {
    for (const char* root :
         {"", "sum", "mean", "rowSums", "colSums", "%*% 1", "%*% 3", "%*% 9", "t%*% 1", "t%*% 2", "t%*% 9"}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 20, false, density))));
      const NodeId y = body.Input(Value(*ToSparse(Cells(m, n, 21, true, 0.4))));
      const NodeId z = body.Input(Value(Cells(m, n, 22, true)));
      const NodeId w = body.Input(Value(Cells(m, 1, 23)));
      const NodeId r = body.Input(Value(Cells(1, n, 24)));
      const NodeId free =
          body.Op("exp", {body.Op("+", {body.Op("-", {z, w}), r})});  // Needed at X's entries only.
      NodeId value = body.Op("*", {x, free});
      value = body.Op("*", {value, body.Op("+", {y, body.Literal(Scalar(0.125))})});
      value = body.Op("*", {value, body.Op("!=", {x, body.Literal(Scalar(int64_t{0}))})});
      const std::string name = root;
      const int64_t k = name.find(' ') == std::string::npos ? 0 : std::stoll(name.substr(name.find(' ')));
      if (n * k > 100000 || k == n) continue;
      if (name.starts_with("%*%")) {
        value = body.Op("%*%", {value, body.Input(Value(Cells(n, k, 25)))});
      } else if (name.starts_with("t%*%")) {
        value = body.Op("t%*%", {value, body.Input(Value(Cells(m, k, 26)))});
      } else if (!name.empty()) {
        value = body.Op(name, {value});
      }
      body.Finish({value});
      const Result<TileProgram> program = Lower(body.fused());
      ASSERT_TRUE(program.ok()) << program.status().ToString();
      EXPECT_TRUE(program->by_pattern);
      body.ExpectSame(name + " at density " + std::to_string(density));
    }
  }
}

TEST_P(FusedShapes, ProductsSampledAtTheEntriesOfTheDriver) {
  const auto [m, n] = GetParam();
  if (n < 2) return;
  for (const int64_t rank : {1, 7, 20}) {
    for (const char* root : {"", "sum", "%*% V", "t%*% U"}) {
      if (rank == n || n * rank > 100000) continue;
      BodyBuilder body;
      const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 30, false, 0.1))));
      const NodeId u = body.Input(Value(Cells(m, rank, 31))), v = body.Input(Value(Cells(n, rank, 32)));
      const NodeId product = body.Op("sampledProduct", {x, u, v});
      NodeId value = body.Op(
          "*", {x, body.Op("log", {body.Op("+", {body.Op("abs", {product}), body.Literal(Scalar(1e-15))}),
                                   kNoNode})});
      if (*root == 's') value = body.Op("sum", {value});
      if (*root == '%') value = body.Op("%*%", {value, v});
      if (*root == 't') value = body.Op("t%*%", {value, u});
      body.Finish({value});
      body.ExpectSame(std::string("X*log(abs(U%*%t(V))+1e-15) ") + root + " rank " + std::to_string(rank));
    }
  }
}

// Rows longer than a column chunk are several leaves of a sum.
TEST(FusedTest, RowsLongerThanAColumnChunk) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>(70, 70'001), {9, 200'003}, {3, 65'537}}) {
    for (const double density : {0.0, 0.00002, 0.01}) {
      for (const std::string_view root : {"sum", "mean", "colSums"}) {
        BodyBuilder body;
        const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 40, false, density))));
        const NodeId y = body.Input(Value(*ToSparse(Cells(m, n, 41, false, 0.1))));
        const NodeId u = body.Input(Value(Cells(m, 12, 42))), v = body.Input(Value(Cells(n, 12, 43)));
        NodeId value = body.Op("*", {x, y});
        if (root == "sum") value = body.Op("*", {x, body.Op("-", {x, body.Op("sampledProduct", {x, u, v})})});
        body.Finish({body.Op(root.data(), {value})});
        body.ExpectSame(fmt::format("{} of {}x{}, {}", root, m, n, density));
      }
    }
  }
}

// One loop does both products of a row, unless something is between them.
TEST(FusedTest, SparseRowsTimesAVectorAndBack) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>(1'000, 40), {777, 1'001}, {66, 20'001}}) {
    for (const double density : {0.0, 0.001, 0.02, 0.3}) {
      for (const bool special : {false, true}) {
        for (const bool weighted : {false, true}) {
          BodyBuilder body;
          const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 70, special, density))));
          const NodeId v = body.Input(Value(Cells(n, 1, 71, special))),
                       w = body.Input(Value(Cells(m, 1, 72)));
          const NodeId product = body.Op("%*%", {x, v});
          body.Finish({body.Op("t%*%", {x, weighted ? body.Op("*", {w, product}) : product})});
          body.ExpectSame(fmt::format("t(X)%*%({}X%*%v) of {}x{}, {}{}", weighted ? "w*" : "", m, n, density,
                                      special ? ", special" : ""));
        }
      }
    }
  }
}

// The product of four rows and their part of the sums in one pass, or of the tile before where something is
// between them.
TEST(FusedTest, NarrowRowsTimesAVectorAndBack) {
  for (const int64_t n : {8, 9, 10, 12, 13, 16, 17}) {
    for (const int64_t m : {2, 3, 255, 4'101, 20'007}) {
      for (const bool special : {false, true}) {
        for (const bool weighted : {false, true}) {
          BodyBuilder body;
          const NodeId x = body.Input(Value(Cells(m, n, 73, special))),
                       v = body.Input(Value(Cells(n, 1, 74))), w = body.Input(Value(Cells(m, 1, 75)));
          const NodeId product = body.Op("%*%", {x, v});
          body.Finish({body.Op("t%*%", {x, weighted ? body.Op("*", {w, product}) : product})});
          body.ExpectSame(fmt::format("t(X)%*%({}X%*%v) of {}x{}{}", weighted ? "w*" : "", m, n,
                                      special ? ", special" : ""));
        }
      }
    }
  }
}

void ExpectRegions(BodyBuilder& body, int64_t regions, const std::string& what) {
  const Result<TileProgram> program = Lower(body.fused());
  ASSERT_TRUE(program.ok()) << what << ": " << program.status().ToString();
  EXPECT_EQ(std::count_if(program->steps.begin(), program->steps.end(),
                          [](const Step& step) { return step.kind == Step::Kind::kRegion; }),
            regions)
      << what;
  body.ExpectSame(what);
}

TEST(FusedTest, AValueOfOneLaterRegionIsComputedThere) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(*ToSparse(Cells(300, 20, 60, false, 0.2))));
  const NodeId u = body.Input(Value(Cells(300, 5, 61))), v = body.Input(Value(Cells(20, 5, 62)));
  const NodeId present = body.Op("!=", {x, body.Literal(Scalar(0.0))});
  const NodeId difference = body.Op("-", {x, body.Op("sampledProduct", {x, u, v})});
  body.Finish({body.Op("sum", {body.Op("*", {present, body.Op("*", {difference, difference})})})});
  ExpectRegions(body, 1, "sum((X!=0)*(X-U%*%t(V))^2)");
}

// X+1 and 2*(X+1) wait for X%*%v; but not where X+1 is read before and would have to be kept; nor what a
// product reads.
TEST(FusedTest, WhatOthersReadIsNotComputedLater) {
  for (const std::string what :
       {"sum(2*(X+1) * (X%*%v))", "sum(2*(X+1) * rowSums(X+1))", "sum((X+1) * ((X+1)%*%v))"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(300, 20, 63))), v = body.Input(Value(Cells(20, 1, 64)));
    const NodeId more = body.Op("+", {x, body.Literal(Scalar(1.0))});
    const bool product = what.ends_with("((X+1)%*%v))"), sums = what.ends_with("rowSums(X+1))");
    const NodeId later = sums ? body.Op("rowSums", {more}) : body.Op("%*%", {product ? more : x, v});
    const NodeId first = product ? more : body.Op("*", {more, body.Literal(Scalar(2.0))});
    body.Finish({body.Op("sum", {body.Op("*", {first, later})})});
    ExpectRegions(body, product || sums ? 2 : 1, what);
  }
}

// Every cell-wise operator alone and under a sum, dense and CSR operands, special values.
TEST(FusedTest, EveryCellwiseOperatorOfTwoOperands) {
  for (const char* op : {"+", "-", "*", "/", "^", "%%", "%/%", "<", "<=", ">", ">=", "==", "!=", "&", "|",
                         "xor", "pmin", "pmax", "bitwAnd"}) {
    for (const auto& [left, right] :
         {std::pair(false, false), std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
      BodyBuilder body;
      const Matrix a = Cells(123, 11, 16, true, left ? 0.3 : 1),
                   b = Cells(123, 11, 17, true, right ? 0.3 : 1);
      const NodeId x = body.Input(Value(left ? *ToSparse(a) : a)),
                   y = body.Input(Value(right ? *ToSparse(b) : b)),
                   dense = body.Input(Value(Cells(123, 11, 18, false, 1)));
      body.Finish({body.Op("+", {body.Op("+", {body.Op(op, {x, y}), body.Op(op, {y, x})}), dense})});
      body.ExpectSame(op);
    }
  }
}

// X + Y of two CSR matrices has entries where X has none, so a walk along X's is not enough; dense tiles
// would visit, and hold, every cell of a matrix that has few.
TEST(FusedTest, BodiesThatWouldMakeCsrValuesDenseAreRefused) {
  using Body = BodyBuilder;
  // W, X and Y are CSR, D is dense.
  static const auto kSparse = [](Body& b, uint32_t seed) {
    return b.Input(Value(*ToSparse(Cells(300, 40, seed, false, 0.05))));
  };
  static const auto kX = [](Body& b) { return kSparse(b, 21); };
  static const auto kY = [](Body& b) { return kSparse(b, 22); };
  static const auto kW = [](Body& b) { return kSparse(b, 23); };
  static const auto kD = [](Body& b) { return b.Input(Value(Cells(300, 40, 24, false, 1))); };
  static const auto kSum = [](Body& b) { return b.Op("+", {kX(b), kY(b)}); };
  struct BodyCase {
    const char* formula;
    bool refused;
    NodeId (*root)(Body& b);
  };
  const BodyCase cases[] = {
      {"abs(X + Y)", true, [](Body& b) { return b.Op("abs", {kSum(b)}); }},
      {"sum(max(X, Y) - X)", true,
       [](Body& b) {
         const NodeId x = kX(b);
         return b.Op("sum", {b.Op("-", {b.Op("pmax", {x, kY(b)}), x})});
       }},
      {"sum((X + Y) * D)", true,
       [](Body& b) {
         return b.Op("sum", {b.Op("*", {kSum(b), kD(b)})});
       }},
      // Along the entries of W, and where a value is dense anyway.
      {"sum(W * (X + Y))", false,
       [](Body& b) {
         return b.Op("sum", {b.Op("*", {kW(b), kSum(b)})});
       }},
      {"abs(X + Y + D)", false,
       [](Body& b) {
         return b.Op("abs", {b.Op("+", {kSum(b), kD(b)})});
       }},
      {"sum(exp(X + Y))", false, [](Body& b) { return b.Op("sum", {b.Op("exp", {kSum(b)})}); }},
  };
  for (const BodyCase& test : cases) {
    Body body;
    body.Finish({test.root(body)});
    if (!test.refused) {
      body.ExpectSame(test.formula);
      continue;
    }
    const std::string reason = CanRunFused(body.fused()).ToString();
    EXPECT_NE(reason.find("entries where the driver has none"), std::string::npos)
        << test.formula << ": " << reason;
  }
}

}  // namespace
}  // namespace heddle::ops::testing
