// SPDX-License-Identifier: Apache-2.0
// Sums of rows and columns of narrow matrices are folded where their cells are computed, with the bytes of
// the operators one by one.
#include <cmath>
#include <random>

#include "body_builder.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops::testing {
namespace {

constexpr int64_t kRows = 1027;
const std::vector<int64_t> kColumns = {1,  2,  3,  4,  5,  7,  8,  9,  10, 12,  15, 16,
                                       17, 23, 31, 32, 33, 40, 63, 64, 65, 100, 129};

class NarrowRows : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, NarrowRows, ::testing::ValuesIn(kColumns));

TEST_P(NarrowRows, OneFold) {
  const int64_t n = GetParam();
  for (const char* root :
       {"rowSums", "rowMeans", "rowMins", "rowMaxs", "rowProds", "rowSds", "colSums", "colMins"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(kRows, n, 1, true))),
                 y = body.Input(Value(Cells(kRows, n, 2, true)));
    const NodeId column = body.Input(Value(Cells(kRows, 1, 3, true))),
                 row = body.Input(Value(Cells(1, n, 4, true)));
    body.Finish({body.Op(root, {body.Op("*", {body.Op("-", {body.Op("*", {x, y}), column}), row})})});
    body.ExpectSame(root);
  }
}

TEST_P(NarrowRows, SeveralFoldsThatLaterOperatorsRead) {
  const int64_t n = GetParam();
  for (const char* root : {"", "rowSums", "colSums", "sum"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(kRows, n, 5, true))),
                 y = body.Input(Value(Cells(kRows, n, 6, true)));
    const NodeId product = body.Op("*", {x, y});
    const NodeId weights = body.Op("+", {body.Op("rowSums", {product}), body.Op("rowMaxs", {product})});
    const NodeId value =
        body.Op("-", {body.Op("*", {product, weights}), body.Op("rowMeans", {body.Op("abs", {x})})});
    body.Finish({*root == 0 ? value : body.Op(root, {value})});
    body.ExpectSame(std::string("weighted ") + root);
  }
}

TEST_P(NarrowRows, RepeatedVectors) {
  const int64_t n = GetParam();
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(kRows, n, 12, true))),
               p = body.Input(Value(Cells(kRows, 3, 13, true)));
  const NodeId row = body.Input(Value(Cells(1, n, 14, true)));
  const NodeId shares = body.Op("/", {x, body.Op("rowSums", {x})});
  body.Finish({body.Op("+", {body.Op("*", {shares, body.Columns(p, 2, 2)}), row})});
  body.ExpectSame("X/rowSums(X)*P[,2]+row");
}

TEST_P(NarrowRows, CellsThatAreStoredToo) {
  const int64_t n = GetParam();
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(kRows, n, 7, true))),
               y = body.Input(Value(Cells(kRows, n, 8, true)));
  const NodeId product = body.Op("*", {x, y});
  const NodeId sums = body.Op("rowSums", {product}), places = body.Op("rowIndexMax", {product});
  body.Finish({body.Op("t%*%", {product, body.Op("*", {sums, places})})});
  body.ExpectSame("t(P)%*%(rowSums(P)*rowIndexMax(P))");
}

TEST_P(NarrowRows, ColumnRangesAndCsrInputs) {
  const int64_t n = GetParam();
  for (const char* root : {"rowSums", "colSums"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(kRows, n + 2, 9, true)));
    const NodeId y = body.Input(Value(*ToSparse(Cells(kRows, n, 10, true, 0.3))));
    body.Finish({body.Op(root, {body.Op("*", {body.Op("+", {body.Columns(x, 2, n + 1), y}), y})})});
    body.ExpectSame(std::string("(X[,2:n+1]+Y)*Y ") + root);
  }
}

TEST_P(NarrowRows, HeavyOperators) {
  const int64_t n = GetParam();
  for (const char* root : {"rowSums", "colSums"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(kRows, n, 11, true)));
    body.Finish(
        {body.Op(root, {body.Op("exp", {body.Op("-", {x, body.Op("rowMaxs", {body.Op("abs", {x})})})})})});
    body.ExpectSame(std::string("exp ") + root);
  }
}

// One region and nothing else: no buffer is written.
TEST(NarrowRowsTest, LightFoldsNeedNoBuffer) {
  for (const int64_t n : {9, 10, 31, 64, 100}) {
    for (const char* root : {"rowSums", "rowMeans", "colSums"}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(kRows, n, 1, true))),
                   y = body.Input(Value(Cells(kRows, n, 2, true)));
      body.Finish({body.Op(root, {body.Op("*", {x, y})})});
      const Result<TileProgram> program = Lower(body.fused());
      ASSERT_TRUE(program.ok()) << program.status().ToString();
      EXPECT_EQ(program->steps.size(), 1u) << root << " " << n;
      EXPECT_TRUE(program->buffers.empty()) << root << " " << n;
      EXPECT_EQ(program->regions[0].columns, n <= kMostNarrowColumns ? n : 0);
    }
  }
  for (int64_t n = 1; n <= 8; ++n) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(kRows, n, 1, true))),
                 y = body.Input(Value(Cells(kRows, n, 2, true)));
    body.Finish({body.Op("colSums", {body.Op("*", {x, y})})});
    const Result<TileProgram> program = Lower(body.fused());
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    EXPECT_EQ(program->steps.size(), 1u) << n;
    EXPECT_EQ(program->regions[0].outputs[0].eights, n);
  }
}

}  // namespace
}  // namespace heddle::ops::testing
