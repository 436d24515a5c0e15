// SPDX-License-Identifier: Apache-2.0
// Fused operators give the bytes of their operators run one by one, on every shape, format, thread and worker
// count.
#include "ops/fused/fused.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "body_builder.h"
#include "ops/fused/tile_program.h"

namespace heddle::ops::testing {
namespace {

const std::vector<Shape> kShapes = {{2, 1},     {65, 1},    {4099, 1},  {3, 2},     {130, 3},  {1000, 7},
                                    {999, 8},   {1025, 9},  {777, 10},  {333, 31},  {200, 32}, {129, 100},
                                    {70, 1000}, {9, 20000}, {4200, 13}, {20011, 4}, {515, 16}, {20011, 12}};

class FusedShapes : public ::testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Awkward, FusedShapes, ::testing::ValuesIn(kShapes), [](const auto& info) {
  return std::to_string(info.param.rows) + "x" + std::to_string(info.param.columns);
});

TEST_P(FusedShapes, CellChainsIntoEveryRoot) {
  const auto [m, n] = GetParam();
  for (const char* root : {"", "sum", "mean", "min", "max", "prod", "rowSums", "rowMeans", "rowMaxs",
                           "rowIndexMax", "colSums", "colMeans", "colMins", "colProds"}) {
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

// Of a wide payload few entries touch few places.
TEST(FusedTest, WidePayloadsOfFewEntries) {
  for (const double density : {0.0, 0.0005, 0.0015, 0.05}) {
    for (const int64_t k : {1, 2, 3, 8}) {
      for (const std::string what :
           {"t(X)%*%(w*(X%*%V))", "t(X*Y)%*%W", "colSums(X*Y)", "t(X)%*%(X%*%V), special"}) {
        const int64_t m = 1'000, n = 1'001;
        const bool special = what.ends_with("special");
        BodyBuilder body;
        const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 80, special, density)))),
                     y = body.Input(Value(*ToSparse(Cells(m, n, 81, false, 0.3))));
        const NodeId v = body.Input(Value(Cells(n, k, 82, special))), w = body.Input(Value(Cells(m, k, 83)));
        NodeId root = kNoNode;
        if (what.starts_with("t(X*Y)"))
          root = body.Op("t%*%", {body.Op("*", {x, y}), w});
        else if (what.starts_with("colSums"))
          root = body.Op("colSums", {body.Op("*", {x, y})});
        else
          root = body.Op("t%*%",
                         {x, special ? body.Op("%*%", {x, v}) : body.Op("*", {w, body.Op("%*%", {x, v})})});
        body.Finish({root});
        body.ExpectSame(fmt::format("{}, {} columns, density {}", what, k, density));
      }
    }
  }
}

// A tile has several leaves of a sum, the last of which may have fewer rows, or a part of one.
TEST(FusedTest, SumsAtEntriesOfManyLeaves) {
  for (const int64_t m : {31, 64, 65, 777}) {
    for (const int64_t n : {4'096, 4'104, 4'099}) {
      for (const double density : {0.0, 0.0005, 0.01, 0.1}) {
        for (const bool two : {false, true}) {
          BodyBuilder body;
          const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 50, false, density))));
          const NodeId u = body.Input(Value(Cells(m, 3, 51))), v = body.Input(Value(Cells(n, 3, 52)));
          const NodeId product = body.Op("*", {x, body.Op("sampledProduct", {x, u, v})});
          std::vector<NodeId> roots = {body.Op("sum", {product})};
          if (two) roots.push_back(body.Op("sum", {body.Op("*", {product, x})}));
          body.Finish(roots);
          body.ExpectSame(
              fmt::format("sum(X*(U%*%t(V))) of {}x{}, {}{}", m, n, density, two ? ", two sums" : ""));
        }
      }
    }
  }
}

// V of more than four megabytes: tiles of many entries; leaves of 8 rows and, where rows are no whole eights,
// of others.
TEST(FusedTest, SumsAtEntriesThatReadVByBlocks) {
  for (const int64_t m : {7, 260, 1'501}) {
    for (const int64_t n : {8'200, 8'203}) {
      const Matrix x = *ToSparse(Cells(m, n, 70, false, 0.015)), u = Cells(m, 66, 71), v = Cells(n, 66, 72);
      for (const char* aggregate : {"sum", "colSums", "rowSums", ""}) {
        BodyBuilder body;
        const NodeId w = body.Input(Value(x));
        const NodeId product =
            body.Op("*", {w, body.Op("sampledProduct", {w, body.Input(Value(u)), body.Input(Value(v))})});
        body.Finish({*aggregate == '\0' ? body.Op("*", {product, body.Literal(Scalar(2.0))})
                                        : body.Op(aggregate, {product})});
        body.ExpectSame(fmt::format("{}(X*(U%*%t(V))) of {}x{}", aggregate, m, n));
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

// So many entries in each row, spread over its columns.
Matrix FewEntries(int64_t m, int64_t n, int64_t of_row, uint32_t seed) {
  const Matrix values = Cells(m, of_row, seed);
  Matrix x = *Matrix::Sparse(m, n, m * of_row);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < m; ++i) {
    x.mutable_row_offsets()[i + 1] = (i + 1) * of_row;
    for (int64_t e = 0; e < of_row; ++e) {
      const int64_t first = n * e / of_row, last = n * (e + 1) / of_row;
      x.mutable_column_indexes()[i * of_row + e] =
          static_cast<int32_t>(first + static_cast<int64_t>(random() % static_cast<uint64_t>(last - first)));
      x.mutable_values()[i * of_row + e] = values.data()[i * of_row + e];
    }
  }
  return x;
}

// Products with more than eight columns are chains along all of a row, whatever its length.
TEST(FusedTest, SampledProductOfVeryManyColumns) {
  const int64_t m = 6'000, n = 70'001, rank = 12;
  BodyBuilder body;
  const NodeId x = body.Input(Value(FewEntries(m, n, 5, 44)));
  const NodeId u = body.Input(Value(Cells(m, rank, 45))), v = body.Input(Value(Cells(n, rank, 46)));
  const NodeId present = body.Op("!=", {x, body.Literal(Scalar(0.0))});
  body.Finish({body.Op("%*%", {body.Op("*", {present, body.Op("sampledProduct", {x, u, v})}), v})});
  body.ExpectSame("((X!=0)*(U%*%t(V)))%*%V");
}

// Rows of several leaves of which most have no entry; tasks begin and end within rows.
TEST(FusedTest, SumsAtEntriesOfLongRows) {
  for (const auto& [m, n, entries] :
       {std::tuple(3'000, 70'001, 5), {700, 1'200'000, 3}, {3, 140'000, 2'000}}) {
    const Matrix cells = FewEntries(m, n, entries, 44);
    for (const bool two : {false, true}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(cells)), u = body.Input(Value(Cells(m, 1, 45)));
      const NodeId product = body.Op("*", {x, u});
      std::vector<NodeId> roots = {body.Op("sum", {product})};
      if (two) roots.push_back(body.Op("sum", {body.Op("*", {product, x})}));
      body.Finish(roots);
      body.ExpectSame(fmt::format("sum(X*u) of {}x{}, {}", m, n, two ? "and sum(X*u*X)" : ""));
    }
  }
}

// So many columns that terms are sorted by blocks of them.
TEST(FusedTest, PayloadsOfVeryManyColumns) {
  const int64_t m = 700;
  for (const auto& [k, n] : {std::pair(1, 250'001), {3, 80'001}}) {
    for (const bool sums : {false, true}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(FewEntries(m, n, 7, 44))), u = body.Input(Value(Cells(m, 1, 45)));
      const NodeId product = body.Op("*", {x, u});
      body.Finish({sums ? body.Op("colSums", {product})
                        : body.Op("t%*%", {product, body.Input(Value(Cells(m, k, 46)))})});
      body.ExpectSame(fmt::format("{} {}", sums ? "colSums(X*u)" : "t(X*u)%*%W", k));
    }
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

// V does not fit the second-level cache: where rows are fetched there, those of the next tile are, up to the
// last entry.
TEST(FusedTest, RightProductsThatFetchRowsOfALargeFactor) {
  constexpr int64_t kColumns = 20000;
  for (const int64_t rank : {9, 20, 50}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(*ToSparse(Cells(300, kColumns, 31, false, 0.01)))),
                 u = body.Input(Value(Cells(300, rank, 32, false, 1))),
                 v = body.Input(Value(Cells(kColumns, rank, 33, false, 1)));
    body.Finish({body.Op("%*%", {body.Op("*", {x, body.Op("sampledProduct", {x, u, v})}), v})});
    body.ExpectSame("rank " + std::to_string(rank));
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

// A job whose sizes change with every round, and a master that plans for ever, must not grow with what they
// have seen.
TEST(FusedTest, ProgramsAreForgottenButNotWhatTheyDid) {
  FusedRuntime runtime(nullptr, false, nullptr);
  constexpr int64_t kRounds = static_cast<int64_t>(FusedRuntime::kMostPrograms) + 10;
  for (int64_t rows = 2; rows < 2 + kRounds; ++rows) {
    BodyBuilder body;
    body.Finish({body.Op("sum", {body.Op("abs", {body.Input(Value(*FilledMatrix(rows, 1, -1.0)))})})});
    const std::string text = body.fused().ToText();
    const auto program = runtime.Get(text);
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    runtime.Record(text, **program, 5, 8);
    ASSERT_LE(runtime.programs(), FusedRuntime::kMostPrograms);
  }
  EXPECT_EQ(runtime.programs(), 10u);
  int64_t calls = 0, bytes = 0;
  for (const FusedCounts& counts : runtime.Counts()) {
    EXPECT_EQ(counts.label, "cell sum");
    calls += counts.calls;
    bytes += counts.bytes;
  }
  EXPECT_EQ(calls, kRounds);
  EXPECT_EQ(bytes, 8 * kRounds);
}

// Counts what is asked of it; interprets, or refuses.
class CountingSource : public RegionSource {
 public:
  explicit CountingSource(bool refuses) : refuses_(refuses) {}
  Result<std::shared_ptr<const RegionCode>> Compile(const Region& region) override {
    ++asked;
    if (refuses_) return Internal("no code today");
    return InterpretedRegions().Compile(region);
  }
  int asked = 0;

 private:
  bool refuses_;
};

// With a hundred columns and three operators: more than is interpreted.
constexpr auto kManyRows = static_cast<int64_t>(FusedRuntime::kInterpretedWork) / 300;

// sum(abs(x + 1) * x): a region of few values for each cell.
void SumOf(const Shape& shape, BodyBuilder* body) {
  const NodeId x = body->Input(Value(Cells(shape.rows, shape.columns, 1)));
  body->Finish({body->Op(
      "sum", {body->Op("*", {body->Op("abs", {body->Op("+", {x, body->Literal(Scalar(1.0))})}), x})})});
}

TEST(FusedTest, RegionsAreCompiledOnceTheyHaveComputedEnough) {
  const auto source = std::make_shared<CountingSource>(false);
  FusedRuntime runtime(source, false, nullptr);
  BodyBuilder body, other;
  SumOf({1000, 100}, &body);
  SumOf({700, 100}, &other);
  const auto nodes = static_cast<double>((*Lower(body.fused())).regions[0].nodes.size());
  const auto calls = static_cast<int64_t>(std::ceil(FusedRuntime::kInterpretedWork / (nodes * 100000)));
  ASSERT_GT(calls, 1);
  const Value expected = body.RunOneByOne();
  for (int64_t call = 1; call <= calls + 1; ++call) {
    const Result<Value> sum = body.RunFused(1, 1, &runtime);
    ASSERT_TRUE(sum.ok()) << sum.status().ToString();
    EXPECT_EQ(sum->scalar().AsDouble(), expected.scalar().AsDouble());
    EXPECT_EQ(source->asked, call < calls ? 0 : 1) << call;
  }
  // The same loop in another operator: there is code for it.
  ASSERT_TRUE(other.RunFused(1, 1, &runtime).ok());
  EXPECT_EQ(source->asked, 2);
  EXPECT_EQ(runtime.fallbacks(), 0);
}

TEST(FusedTest, LargeCallsAndStrictRuntimesCompileAtOnce) {
  BodyBuilder large, small;
  SumOf({kManyRows, 100}, &large);
  SumOf({10, 10}, &small);
  const auto source = std::make_shared<CountingSource>(false);
  FusedRuntime runtime(source, false, nullptr), strict(source, true, nullptr);
  ASSERT_TRUE(small.RunFused(1, 1, &runtime).ok());
  EXPECT_EQ(source->asked, 0);
  ASSERT_TRUE(large.RunFused(1, 1, &runtime).ok());
  EXPECT_EQ(source->asked, 1);
  ASSERT_TRUE(small.RunFused(1, 1, &strict).ok());
  EXPECT_EQ(source->asked, 2);
  ASSERT_TRUE(runtime.Get(large.fused().ToText()).ok());
  EXPECT_EQ(source->asked, 2);
  BodyBuilder unseen;
  SumOf({20, 3}, &unseen);
  ASSERT_TRUE(runtime.Get(unseen.fused().ToText()).ok());
  EXPECT_EQ(source->asked, 3) << "nobody says what will be computed";
}

TEST(FusedTest, WhatCannotBeCompiledIsInterpretedWithOneWarning) {
  BodyBuilder body;
  SumOf({kManyRows, 100}, &body);
  const auto source = std::make_shared<CountingSource>(true);
  int warnings = 0;
  FusedRuntime runtime(source, false, [&](const Status&) { ++warnings; }), strict(source, true, nullptr);
  for (int call = 0; call < 3; ++call) {
    const Result<Value> sum = body.RunFused(1, 2, &runtime);
    ASSERT_TRUE(sum.ok()) << sum.status().ToString();
    EXPECT_EQ(sum->scalar().AsDouble(), body.RunOneByOne().scalar().AsDouble());
  }
  EXPECT_EQ(source->asked, 1);
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(runtime.fallbacks(), 1);
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(body.RunFused(1, 2, &strict).status().code(), StatusCode::kFailedPrecondition);
}

// A body of up to `most` random operators over matrices of that shape, fused against one by one; false if the
// executor refuses it.
bool RandomBodyAgrees(const Shape& shape, uint32_t seed, size_t most) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return random() % n; };
  BodyBuilder body;
  std::vector<NodeId> matrices, columns, scalars;
  const bool sparse = pick(3) == 0;
  matrices.push_back(body.Input(Value(sparse ? *ToSparse(Cells(shape.rows, shape.columns, seed, false, 0.2))
                                             : Cells(shape.rows, shape.columns, seed))));
  const bool special = pick(2) == 0;
  const Matrix other = Cells(shape.rows, shape.columns, seed + 1000, special, pick(4) == 0 ? 0.3 : 1);
  matrices.push_back(body.Input(Value(pick(4) == 0 ? *ToSparse(other) : other)));
  columns.push_back(body.Input(Value(Cells(shape.rows, 1, seed + 2000))));
  if (pick(4) == 0)
    columns.push_back(body.Input(Value(*ToSparse(Cells(shape.rows, 1, seed + 5000, false, 0.6)))));
  for (const double literal : {0.5, 0.0, -1.0, 1.0}) scalars.push_back(body.Literal(Scalar(literal)));
  scalars.push_back(body.Input(Value(Scalar(1.25))));
  const NodeId v = body.Input(Value(Cells(shape.columns, 1, seed + 3000)));
  const NodeId row = body.Input(Value(Cells(1, shape.columns, seed + 4000)));
  const char* const binary[] = {"+", "-", "*", "/", "pmin", "pmax", ">", "!=", ">=", "=="};
  const char* const unary[] = {"abs", "exp", "sqrt", "sign", "!", "round"};
  const char* const folds[] = {"rowSums", "rowMaxs", "rowMeans", "rowMins", "rowIndexMax", "rowProds"};
  for (size_t step = 0, count = 2 + pick(most - 1); step < count; ++step) {
    const NodeId a = matrices[pick(matrices.size())];
    const auto any = [&] {
      return pick(3) == 0 ? scalars[pick(scalars.size())] : matrices[pick(matrices.size())];
    };
    switch (pick(12)) {
      case 0:
      case 1: matrices.push_back(body.Op(binary[pick(10)], {a, matrices[pick(matrices.size())]})); break;
      case 2: matrices.push_back(body.Op(unary[pick(6)], {a})); break;
      case 3: matrices.push_back(body.Op(binary[pick(10)], {a, columns[pick(columns.size())]})); break;
      case 4: matrices.push_back(body.Op(binary[pick(10)], {a, scalars[pick(scalars.size())]})); break;
      case 5: columns.push_back(body.Op(folds[pick(6)], {a})); break;
      case 6:
        columns.push_back(
            body.Op(binary[pick(10)], {columns[pick(columns.size())], columns[pick(columns.size())]}));
        break;
      case 7:
        if (shape.columns > 1) matrices.push_back(body.Op(binary[pick(10)], {a, row}));
        break;
      case 9: matrices.push_back(body.Op("ifelse", {a, any(), any()})); break;
      case 10: matrices.push_back(body.Op(binary[pick(10)], {scalars[pick(scalars.size())], a})); break;
      case 11: {
        const double patterns[] = {0.0, 1.0, NAN, INFINITY};
        matrices.push_back(
            body.Op("replace", {a, body.Literal(Scalar(patterns[pick(4)])), scalars[pick(scalars.size())]}));
        break;
      }
      case 8:
        if (body.info(a).format == Format::kDense || a == matrices[0])
          columns.push_back(body.Op("%*%", {a, v}));
        break;
    }
  }
  const NodeId last = matrices.back(), last_column = columns.back();
  NodeId root = last;
  switch (pick(8)) {
    case 0: break;
    case 1: root = body.Op("sum", {last}); break;
    case 2: root = body.Op("colSums", {last}); break;
    case 3: root = last_column; break;
    case 4:
      root = body.info(last).format == Format::kDense ? body.Op("t%*%", {last, last_column})
                                                      : body.Op("rowSums", {last});
      break;
    case 5: root = body.Op("sum", {last_column}); break;
    case 6: root = body.Op(folds[pick(4)], {last}); break;
    case 7: root = body.Op(pick(2) == 0 ? "colMaxs" : "min", {last}); break;
  }
  body.Finish({root}, 0);
  // The driver must be used: walk the rows of whichever matrix is.
  if (!CanRunFused(body.fused()).ok()) body.Finish({root}, 1);
  if (!CanRunFused(body.fused()).ok()) body.Finish({root}, 2);
  if (!CanRunFused(body.fused()).ok()) return false;
  body.ExpectSame("seed " + std::to_string(seed));
  return true;
}

TEST(FusedTest, RandomBodies) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 600 && !HasFailure(); ++seed) {
    const Shape& shape = kShapes[seed * 2654435761u % kShapes.size()];
    if (shape.Cells() <= 60000) ran += RandomBodyAgrees(shape, seed, 11) ? 1 : 0;
  }
  EXPECT_GT(ran, 250);
}

// Every kind of root of rows that are cut by columns, on workers that have leaves of their own, beside
// vectors of both formats.
TEST(FusedTest, EveryRootOfLongRows) {
  for (const char* root :
       {"", "sum", "mean", "min", "rowSums", "rowMeans", "rowMaxs", "colSums", "colMeans", "colMaxs"}) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{130, 65540}, {3, 131073}, {1, 70001}}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(m, n, 1, m < 100))), row = body.Input(Value(Cells(1, n, 2)));
      const NodeId column = body.Input(Value(Cells(m, 1, 3))),
                   sparse = body.Input(Value(*ToSparse(Cells(m, 1, 4, false, 0.7))));
      const NodeId scaled = body.Op("*", {body.Op("+", {x, m == 1 ? x : sparse}), body.Op("exp", {column})});
      const NodeId chain = body.Op("-", {scaled, m == 1 ? x : row});
      body.Finish({*root == 0 ? chain : body.Op(root, {chain})});
      const Result<TileProgram> program = Lower(body.fused());
      ASSERT_TRUE(program.ok()) << root << ": " << program.status().ToString();
      EXPECT_EQ(program->cut_columns, n) << root;
      body.ExpectSame(fmt::format("{} of {} x {}", root, m, n));
    }
  }
  BodyBuilder several;
  const NodeId x = several.Input(Value(Cells(130, 65540, 1))), y = several.Input(Value(Cells(130, 65540, 2)));
  several.Finish(
      {several.Op("sum", {several.Op("*", {x, y})}), several.Op("max", {several.Op("-", {x, y})})});
  EXPECT_EQ(Lower(several.fused())->cut_columns, 65540);
  several.ExpectSame("two sums");
}

// Rows longer than a column chunk are computed chunk by chunk, a single one, too; the last shape has two
// leaves of a column sum.
TEST(FusedTest, RandomBodiesOfLongRows) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 120 && !HasFailure(); ++seed) {
    const Shape shapes[] = {{1, 65537}, {1, 200003}, {3, 131072}, {2, 70001}, {66, 65540}};
    ran += RandomBodyAgrees(shapes[seed % 20 == 19 ? 4 : seed % 4], seed, 5) ? 1 : 0;
  }
  EXPECT_GT(ran, 50);
}

}  // namespace
}  // namespace heddle::ops::testing
